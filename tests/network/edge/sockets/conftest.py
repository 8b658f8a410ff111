"""A real listener on loopback and a client that sends exactly the bytes it is told."""

from collections.abc import AsyncIterator, Awaitable, Callable
from functools import partial
from typing import final

import attrs
import pytest
import trio
from hypercorn.typing import ASGIFramework

from a2a_trio.server.listen import bind, serve_http

PATIENCE = 10.0
"""Seconds after which a test that waits for the network has failed."""


@final
@attrs.frozen
class Answer:
    """One HTTP response as it came."""

    status: int
    headers: dict[str, str]
    body: bytes


@final
class Wire:
    """One connection of a client, byte by byte."""

    def __init__(self, stream: trio.SocketStream) -> None:
        self.stream = stream
        self._buffer = b""

    async def send(self, data: bytes) -> None:
        with trio.fail_after(PATIENCE):
            await self.stream.send_all(data)

    async def more(self) -> bytes:
        """Return what comes next, b"" at the end; a reset is an end."""
        with trio.fail_after(PATIENCE):
            try:
                return bytes(await self.stream.receive_some(65_536))
            except trio.BrokenResourceError:
                return b""

    async def until(self, mark: bytes) -> bytes:
        """Return everything up to and with the mark."""
        while mark not in self._buffer:
            data = await self.more()
            if not data:
                raise EOFError(self._buffer)
            self._buffer += data
        head, _, self._buffer = self._buffer.partition(mark)
        return head + mark

    async def exactly(self, count: int) -> bytes:
        while len(self._buffer) < count:
            data = await self.more()
            if not data:
                raise EOFError(self._buffer)
            self._buffer += data
        data, self._buffer = self._buffer[:count], self._buffer[count:]
        return data

    async def head(self) -> Answer:
        """Return the next response without its body."""
        lines = (await self.until(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        headers = dict(line.lower().split(": ", 1) for line in lines[1:] if line)
        return Answer(int(lines[0].split()[1]), headers, b"")

    async def answer(self, *, head_only: bool = False) -> Answer:
        """Return the next response with its body; 100 Continue is skipped."""
        answer = await self.head()
        if answer.status == 100:
            answer = await self.head()
        length = int(answer.headers.get("content-length", "0"))
        if head_only or answer.status in {204, 304}:
            return answer
        return attrs.evolve(answer, body=await self.exactly(length))

    async def ended(self) -> bool:
        """Return whether the server closes within a moment."""
        with trio.move_on_after(PATIENCE):
            while await self.more():
                pass
            return True
        return False

    async def close(self) -> None:
        await self.stream.aclose()


@final
class Served:
    """A running listener."""

    def __init__(self, port: int, shutdown: trio.Event, stopped: trio.Event) -> None:
        self.port = port
        self._shutdown = shutdown
        self._stopped = stopped
        self._wires: list[Wire] = []

    async def connect(self) -> Wire:
        wire = Wire(await trio.open_tcp_stream("127.0.0.1", self.port))
        self._wires.append(wire)
        return wire

    async def ask(self, data: bytes) -> Answer:
        """Send bytes on a connection of their own and return the answer."""
        wire = await self.connect()
        await wire.send(data)
        answer = await wire.answer()
        await wire.close()
        return answer

    async def stop(self) -> float:
        """Stop the listener; return how many seconds that took."""
        started = trio.current_time()
        self._shutdown.set()
        with trio.fail_after(PATIENCE):
            await self._stopped.wait()
        return trio.current_time() - started

    async def aclose(self) -> None:
        for wire in self._wires:
            await trio.aclose_forcefully(wire.stream)
        await self.stop()


ServeApp = Callable[[ASGIFramework], Awaitable[Served]]


@pytest.fixture
async def serve_app(nursery: trio.Nursery) -> AsyncIterator[ServeApp]:
    """Serve ASGI applications on loopback; everything is stopped after the test."""
    running: list[Served] = []

    async def start(app: ASGIFramework) -> Served:
        shutdown, stopped = trio.Event(), trio.Event()
        sock = bind("127.0.0.1", 0)
        port: int = sock.getsockname()[1]

        started = trio.Event()

        async def run() -> None:
            async with trio.open_nursery() as inner:
                await inner.start(partial(serve_http, app, sock, shutdown=shutdown, graceful=0.5))
                started.set()
            stopped.set()

        nursery.start_soon(run)
        await started.wait()
        running.append(Served(port, shutdown, stopped))
        return running[-1]

    yield start
    for served in running:
        await served.aclose()
