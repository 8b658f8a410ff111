"""A real server with an agent at a gate, and callers that speak to it in bytes."""

import json
import re
import socket
import struct
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Final, TypeAlias, final

import attrs
import pytest
import trio

from a2a_trio import Server, Settings, TaskContext, open_server
from a2a_trio.config.server_schema import ServerSettings
from a2a_trio.wire.model import JsonValue

PATIENCE: Final = 120.0
"""Seconds after which a test counts as hanging; nothing here is expected to take one second."""

MANY: Final = 200
"""Runs at the same time, at most."""


@final
@attrs.define(eq=False)
class GatedAgent:
    """An agent whose runs all wait at one gate, so that a test decides what comes first."""

    gate: trio.Event = attrs.field(factory=trio.Event)
    started: dict[str, trio.Event] = attrs.field(factory=dict)

    def run_of(self, context_id: str) -> trio.Event:
        """Return the event that is set when the run of a context has started."""
        return self.started.setdefault(context_id, trio.Event())

    async def __call__(self, task: TaskContext) -> str:
        if task.raw_text == "flood":
            self.run_of(task.context_id).set()
            while not self.gate.is_set():
                await task.artifact("flood", "x" * 262_144, append=True)
                await trio.lowlevel.checkpoint()
            return "flooded"
        await task.update("at the gate")
        self.run_of(task.context_id).set()
        await self.gate.wait()
        return "through"


@final
class Caller:
    """One connection, spoken to in bytes, so that it can be left in every way there is."""

    def __init__(self, stream: trio.SocketStream, port: int) -> None:
        self._stream = stream
        self._port = port
        self._data = bytearray()

    async def request(self, method: str, params: JsonValue) -> None:
        """Write a JSON-RPC request and do not wait for anything."""
        call = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        body = json.dumps(call).encode()
        head = (
            f"POST / HTTP/1.1\r\nHost: 127.0.0.1:{self._port}\r\nA2A-Version: 1.0\r\n"
            f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
        )
        await self._stream.send_all(head.encode() + body)

    async def send(self, method: str, context_id: str, text: str = "hold", **config: bool) -> None:
        """Write a send of one message."""
        message: dict[str, JsonValue] = {
            "messageId": f"m-{context_id}",
            "role": "ROLE_USER",
            "contextId": context_id,
            "parts": [{"text": text}],
        }
        await self.request(method, {"message": message, "configuration": {**config}})

    async def until(self, marker: bytes) -> bytes:
        """Read until a marker has come."""
        while marker not in self._data:
            chunk = await self._stream.receive_some(65_536)
            assert chunk, f"closed before {marker!r}: {bytes(self._data)!r}"
            self._data += chunk
        return bytes(self._data)

    async def answer(self) -> JsonValue:
        """Read one answer that is framed by its length."""
        head, _, rest = (await self.until(b"\r\n\r\n")).partition(b"\r\n\r\n")
        found = re.search(rb"content-length: *(\d+)", head, re.IGNORECASE)
        assert found, head
        length = int(found[1])
        while len(rest) < length:
            chunk = await self._stream.receive_some(65_536)
            assert chunk, "closed inside an answer"
            rest += chunk
        self._data = bytearray(rest[length:])
        result: JsonValue = json.loads(rest[:length])
        return result

    async def end(self) -> bytes:
        """Read to the end of the connection."""
        async for chunk in self._stream:
            self._data += chunk
        return bytes(self._data)

    async def close(self) -> None:
        """Leave politely (FIN)."""
        await self._stream.aclose()

    async def reset(self) -> None:
        """Leave as a process does that is killed with data unread (RST)."""
        linger = struct.pack("ii", 1, 0)
        self._stream.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
        await self._stream.aclose()

    async def half_close(self) -> None:
        """Say that nothing more is coming, and stay to read."""
        await self._stream.send_eof()


@final
@attrs.frozen
class House:
    """A running server with its gated agent."""

    server: Server
    agent: GatedAgent = attrs.field(factory=GatedAgent)
    stopped: trio.Event = attrs.field(factory=trio.Event)
    """Set when the server has closed."""
    _streams: list[trio.SocketStream] = attrs.field(factory=list)

    async def caller(self) -> Caller:
        """Open a connection; what a test leaves open is closed with the server."""
        stream = await trio.open_tcp_stream("127.0.0.1", self.server.port)
        self._streams.append(stream)
        return Caller(stream, self.server.port)

    async def stop(self) -> float:
        """Drain the server and return how many seconds it took until it had closed."""
        begin = trio.current_time()
        await self.server.drain()
        await self.stopped.wait()
        return trio.current_time() - begin

    def close(self) -> None:
        """Close every connection of the callers."""
        for stream in self._streams:
            stream.socket.close()

    async def call(self, method: str, params: JsonValue) -> JsonValue:
        """Make one whole call on a connection of its own."""
        caller = await self.caller()
        await caller.request(method, params)
        answer = await caller.answer()
        await caller.close()
        assert isinstance(answer, dict)
        assert "result" in answer, answer
        return answer["result"]

    async def tasks(self, context_id: str) -> list[dict[str, JsonValue]]:
        """List the tasks of a context, as any later caller would."""
        listed = await self.call("ListTasks", {"contextId": context_id})
        assert isinstance(listed, dict)
        tasks = listed["tasks"]
        assert isinstance(tasks, list)
        return [task for task in tasks if isinstance(task, dict)]

    async def state(self, context_id: str) -> JsonValue:
        """Return the state of the only task of a context."""
        (task,) = await self.tasks(context_id)
        status = task["status"]
        assert isinstance(status, dict)
        return status["state"]

    async def gauges(self) -> dict[str, float]:
        """Return what the server holds for its callers, from its own metrics page."""
        stream = await trio.open_tcp_stream("127.0.0.1", self.server.port)
        async with stream:
            await stream.send_all(
                b"GET /metrics HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nConnection: close\r\n\r\n"
                % self.server.port
            )
            page = b"".join([chunk async for chunk in stream]).decode()
        lines = (line.split() for line in page.splitlines() if line.startswith("a2a_"))
        return {words[0]: float(words[1]) for words in lines if len(words) == 2}

    async def until_gauges(self, **wanted: float) -> None:
        """Ask again and again until the gauges are as wanted; every round is a real exchange."""
        while True:
            gauges = await self.gauges()
            if all(gauges[f"a2a_{name}"] == value for name, value in wanted.items()):
                return

    async def until_state(self, context_id: str, state: str) -> None:
        """Ask again and again until the only task of a context is in a state."""
        while await self.state(context_id) != state:
            pass


def settings() -> Settings:
    """Ephemeral port, room for every run of these tests, no rate that they could reach."""
    return Settings(
        server=ServerSettings(
            port=0,
            max_concurrent=2 * MANY,
            rate_limit_per_min=1_000_000,
            flood_limit_per_min=1_000_000,
            max_task_bytes=4 * 1024 * 1024,
        )
    )


MakeHouse: TypeAlias = Callable[[Server], House]
OpenHouse: TypeAlias = Callable[..., AbstractAsyncContextManager[House]]
Connect: TypeAlias = Callable[[int], Awaitable[Caller]]


@asynccontextmanager
async def _open_house(wanted: Settings | None = None) -> AsyncIterator[House]:
    agent, stopped = GatedAgent(), trio.Event()

    async def run(*, task_status: trio.TaskStatus[Server]) -> None:
        async with open_server(agent, wanted or settings()) as server:
            task_status.started(server)
            await server.wait_drained()
        stopped.set()

    with trio.fail_after(PATIENCE):
        async with trio.open_nursery() as nursery:
            server = await nursery.start(run)
            house = House(server, agent, stopped)
            try:
                yield house
            finally:
                nursery.cancel_scope.cancel()
        house.close()


@pytest.fixture
def open_house() -> OpenHouse:
    """``async with open_house([settings]) as house``: a server, which is cancelled in the end."""
    return _open_house


@pytest.fixture
async def house() -> AsyncIterator[House]:
    """A server for one test."""
    async with _open_house() as opened:
        yield opened


@pytest.fixture
def make_house() -> MakeHouse:
    """The same tools for a server with an agent of the test's own."""
    return House


@pytest.fixture
def room() -> Settings:
    """Settings with room for every run of these tests."""
    return settings()


@pytest.fixture
async def connect() -> AsyncIterator[Connect]:
    """``await connect(port)`` speaks to a server of another process; closed after the test."""
    streams: list[trio.SocketStream] = []

    async def open_caller(port: int) -> Caller:
        streams.append(await trio.open_tcp_stream("127.0.0.1", port))
        return Caller(streams[-1], port)

    yield open_caller
    for stream in streams:
        stream.socket.close()
