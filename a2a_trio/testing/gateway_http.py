"""The HTTP of a fake gateway: requests read whole, answers and streams written, on one socket."""

import json
import math
import socket
import struct
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from typing import Any, Final, Literal, TypeAlias, final
from urllib.parse import parse_qs

import attrs
import h11
import trio

from a2a_trio.testing.gateway_state import Answer, text

__all__ = [
    "CARD_PATHS",
    "Ending",
    "Fault",
    "Request",
    "Seen",
    "begin_stream",
    "end_stream",
    "misdirected",
    "read_request",
    "reset",
    "send_answer",
    "send_piece",
    "unless_gone",
]

Ending: TypeAlias = Literal["eof", "rst", "mid-frame"]
"""How a stream ends: whole, by a reset, or in the middle of a frame."""

CARD_PATHS: Final = ("/.well-known/agent.json", "/.well-known/agent-card.json")
_CHUNK: Final = 65_536
_BODILESS: Final = frozenset({204, 304})


@final
@attrs.frozen(kw_only=True)
class Seen:
    """A request that came, and the status of its answer."""

    method: str
    path: str
    query: str
    headers: Mapping[str, str] = attrs.field(repr=False)
    body: bytes
    status: int

    def json(self) -> Any:
        """Return the body's value."""
        return json.loads(self.body)


@final
@attrs.frozen(kw_only=True)
class Request:
    """A request that was read whole."""

    method: str
    path: str
    query: str
    headers: dict[str, str]
    body: bytes

    @property
    def token(self) -> str:
        """The credential, wherever it stands."""
        given = self.headers.get("authorization", "")
        if given.startswith("Bearer "):
            return given.removeprefix("Bearer ").strip()
        return self.headers.get("x-gateway-token", "").strip()

    @property
    def is_json(self) -> bool:
        """Whether the body says that it is JSON."""
        return "json" in self.headers.get("content-type", "")

    @property
    def name(self) -> str:
        """The peer that the query names."""
        return parse_qs(self.query).get("name", [""])[0]


@final
@attrs.define(kw_only=True)
class Fault:
    """Another answer than usual to the next requests of a method and a path."""

    method: str
    prefix: str
    answer: Answer
    times: int
    delay: float
    reset: bool

    async def is_survived(self, stream: trio.SocketStream) -> bool:
        """Do what comes before the answer; return whether there is one."""
        if math.isinf(self.delay):
            await stream.receive_some()  # until the client gives up
            return False
        await trio.sleep(self.delay)
        if self.reset:
            reset(stream)
        return not self.reset


async def read_request(
    stream: trio.SocketStream, connection: h11.Connection, body_limit: int
) -> Request | None:
    """Return the next request, its body cut after the limit; None if the client has gone."""
    head: h11.Request | None = None
    body = bytearray()
    while True:
        event = connection.next_event()
        if event is h11.NEED_DATA:
            connection.receive_data(await stream.receive_some(_CHUNK))
        elif isinstance(event, h11.Request):
            head = event
        elif isinstance(event, h11.Data):
            if len(body) <= body_limit:
                body += event.data
        elif isinstance(event, h11.EndOfMessage) and head is not None:
            break
        else:
            return None
    path, _, query = head.target.decode("ascii").partition("?")
    return Request(
        method=head.method.decode("ascii"),
        path=path,
        query=query,
        headers={n.decode("latin-1"): v.decode("latin-1") for n, v in head.headers},
        body=bytes(body),
    )


def misdirected(request: Request, body_limit: int, *, patch: bool) -> Answer | None:
    """Return the refusal of a request that no handler would see, or None.

    Args:
        request: the request.
        body_limit: bytes.
        patch: whether ``PATCH /register`` is known.
    """
    if len(request.body) > body_limit:
        return text(413, "Failed to buffer the request body: length limit exceeded")
    allowed = _allowed(request.path, patch=patch)
    if allowed and request.method not in allowed:
        return Answer(status=405, headers=(("allow", ",".join(allowed)),))
    named = (request.method, request.path) in {("GET", "/channel"), ("DELETE", "/register")}
    if named and not request.name:
        return text(400, "Failed to deserialize query string: missing field `name`")
    return Answer(status=401) if request.path.startswith("/api/") else None


def _allowed(path: str, *, patch: bool) -> tuple[str, ...]:
    """Return the methods of a path; none for one that takes all."""
    if path == "/register":
        return ("POST", "PATCH", "DELETE") if patch else ("POST", "DELETE")
    if path == "/channel" or path in CARD_PATHS:
        return ("GET", "HEAD")
    return ("POST",) if path.startswith("/channel/response/") else ()


async def send_answer(
    stream: trio.SocketStream, connection: h11.Connection, answer: Answer
) -> None:
    """Write a whole answer."""
    body = b"" if answer.status in _BODILESS else answer.body
    headers = [*answer.headers, ("content-length", str(len(body)))]
    if answer.content_type:
        headers.append(("content-type", answer.content_type))
    out = connection.send(h11.Response(status_code=answer.status, headers=headers))
    out += connection.send(h11.Data(data=body)) if body else b""
    await stream.send_all(out + connection.send(h11.EndOfMessage()))


async def unless_gone(
    stream: trio.SocketStream,
    connection: h11.Connection,
    answering: Callable[[], Awaitable[Answer]],
) -> Answer | None:
    """Return an answer, or None once its client has gone; the answering is cancelled then."""
    answer: Answer | None = None

    async def watch() -> None:
        piece = b""
        with suppress(trio.BrokenResourceError):
            piece = await stream.receive_some(_CHUNK)
        if piece:
            connection.receive_data(piece)  # its next request: so it has not gone
        else:
            nursery.cancel_scope.cancel()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(watch)
        answer = await answering()
        nursery.cancel_scope.cancel()
    return answer


async def begin_stream(stream: trio.SocketStream, connection: h11.Connection) -> None:
    """Write the head of an event stream."""
    headers = [("content-type", "text/event-stream"), ("cache-control", "no-cache"),
               ("transfer-encoding", "chunked")]  # fmt: skip
    await stream.send_all(connection.send(h11.Response(status_code=200, headers=headers)))


async def send_piece(stream: trio.SocketStream, connection: h11.Connection, piece: bytes) -> None:
    """Write a piece of a stream."""
    await stream.send_all(connection.send(h11.Data(data=piece)))


async def end_stream(stream: trio.SocketStream, connection: h11.Connection, how: Ending) -> None:
    """End a stream in one of three ways."""
    if how == "rst":
        reset(stream)
    elif how == "mid-frame":
        await stream.send_all(b"400\r\nevent: request\ndata: {")
    else:
        await stream.send_all(connection.send(h11.EndOfMessage()))


def reset(stream: trio.SocketStream) -> None:
    """Make the closing of a socket a reset."""
    stream.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
