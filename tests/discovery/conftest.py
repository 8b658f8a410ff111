"""A web whose answers the test makes up: no socket, any clock."""

import json
import math
import socket
from collections.abc import Callable
from types import TracebackType
from typing import Any, Final, Self, TypeAlias, TypeVar, TypeVarTuple

import attrs
import pytest
import trio

from a2a_trio.errors import PeerUnreachableError

T = TypeVar("T")
Ts = TypeVarTuple("Ts")

LIMIT: Final = 60.0
"""Seconds after which a test on a real socket counts as hanging."""


def has_multicast() -> bool:
    """Return whether a datagram to the group of mDNS comes back on the loopback interface."""
    group, here = "224.0.0.251", "127.0.0.1"
    with (
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as receiver,
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender,
    ):
        try:
            receiver.bind(("", 0))
            membership = socket.inet_aton(group) + socket.inet_aton(here)
            receiver.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, membership)
            receiver.settimeout(5)
            sender.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, socket.inet_aton(here))
            sender.sendto(b"anybody?", (group, receiver.getsockname()[1]))
            return receiver.recv(100) == b"anybody?"
        except OSError:
            return False


needs_multicast: Final = pytest.mark.skipif(
    not has_multicast(), reason="this machine has no multicast on its loopback interface"
)


async def at_once(function: Callable[[*Ts], T], /, *args: *Ts) -> T:
    """Run blocking work in the Trio thread, as a virtual clock needs it."""
    await trio.lowlevel.checkpoint()
    return function(*args)


@attrs.frozen(kw_only=True)
class Request:
    """What was sent, and when."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes
    at: float

    @property
    def token(self) -> str:
        return self.headers.get("authorization", "").removeprefix("Bearer ")

    def json(self) -> Any:
        return json.loads(self.body)


class FakeStream:
    """A body that the test writes piece by piece."""

    def __init__(self) -> None:
        self._send, self._pieces = trio.open_memory_channel[bytes | None](math.inf)
        self.closed = trio.Event()

    def write(self, piece: bytes) -> None:
        self._send.send_nowait(piece)

    def event(self, name: str, data: object) -> None:
        text = data if isinstance(data, str) else json.dumps(data)
        self.write(f"event: {name}\ndata: {text}\n\n".encode())

    def end(self) -> None:
        self._send.send_nowait(None)

    def break_off(self) -> None:
        self._send.close()

    async def next_chunk(self) -> bytes | None:
        try:
            return await self._pieces.receive()
        except trio.EndOfChannel:
            raise PeerUnreachableError("the connection broke") from None


@attrs.frozen
class FakeAnswer:
    """An answer: whole, or a stream."""

    status: int
    body: bytes = b""
    headers: dict[str, str] = attrs.field(factory=dict)
    stream: FakeStream | None = None

    def header(self, name: str) -> str:
        return self.headers.get(name, "")

    async def next_chunk(self) -> bytes | None:
        assert self.stream is not None
        return await self.stream.next_chunk()

    async def read_all(self, limit: int) -> bytes:
        await trio.lowlevel.checkpoint()
        assert len(self.body) <= limit
        return self.body

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self.stream is not None:
            self.stream.closed.set()


@attrs.frozen
class Later:
    """An answer that takes so many seconds."""

    seconds: float
    answer: FakeAnswer


Behaviour: TypeAlias = FakeAnswer | Later | Exception | float
"""An answer, an error, or how many seconds pass before there is none."""


def says(status: int, value: object = None, **headers: str) -> FakeAnswer:
    """Return an answer with a JSON body."""
    return FakeAnswer(status, json.dumps(value).encode(), headers)


class FakeWeb:
    """Answers by method and path; the last answer of a route is given again and again."""

    def __init__(self) -> None:
        self.requests: list[Request] = []
        self._routes: dict[tuple[str, str], list[Behaviour]] = {}

    def on(self, method: str, path: str, *behaviours: Behaviour) -> None:
        """Set what a route does; paths are compared without the query."""
        self._routes[method, path] = list(behaviours)

    def sent(self, method: str, path: str) -> list[Request]:
        return [r for r in self.requests if r.method == method and r.path.startswith(path)]

    async def open(
        self, method: str, url: str, *, headers: tuple[tuple[str, str], ...], body: bytes = b""
    ) -> FakeAnswer:
        path = "/" + url.split("/", 3)[3]
        self.requests.append(
            Request(
                method=method, path=path, headers=dict(headers), body=body, at=trio.current_time()
            )
        )
        await trio.lowlevel.checkpoint()
        route = self._routes.get((method, path.partition("?")[0]))
        if route is None:
            raise PeerUnreachableError(f"nothing answers {method} {path}")
        behaviour = route.pop(0) if len(route) > 1 else route[0]
        if isinstance(behaviour, Exception):
            raise behaviour
        if isinstance(behaviour, Later):
            await trio.sleep(behaviour.seconds)
            return behaviour.answer
        if isinstance(behaviour, float):
            await trio.sleep(behaviour)
            raise PeerUnreachableError("the connection broke")
        return behaviour
