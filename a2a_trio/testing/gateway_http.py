"""The HTTP of a fake gateway: requests read whole, answers and streams written, on one socket."""

import json
import socket
import struct
from collections.abc import Mapping
from typing import Any, Final, Literal, TypeAlias, final
from urllib.parse import parse_qs

import attrs
import h11
import trio

from a2a_trio.testing.gateway_state import Answer

__all__ = [
    "Ending",
    "Request",
    "Seen",
    "begin_stream",
    "end_stream",
    "read_request",
    "reset",
    "send_answer",
    "send_piece",
]

Ending: TypeAlias = Literal["eof", "rst", "mid-frame"]
"""How a stream ends: whole, by a reset, or in the middle of a frame."""

_CHUNK: Final = 65_536


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
    def name(self) -> str:
        """The peer that the query names."""
        return parse_qs(self.query).get("name", [""])[0]


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


async def send_answer(
    stream: trio.SocketStream, connection: h11.Connection, answer: Answer
) -> None:
    """Write a whole answer."""
    headers = [*answer.headers, ("content-length", str(len(answer.body)))]
    if answer.content_type:
        headers.append(("content-type", answer.content_type))
    out = connection.send(h11.Response(status_code=answer.status, headers=headers))
    out += connection.send(h11.Data(data=answer.body)) if answer.body else b""
    await stream.send_all(out + connection.send(h11.EndOfMessage()))


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
