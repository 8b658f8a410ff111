"""The reverse channel of a gateway, without its I/O: reading requests, building answers.

A gateway sends requests down a stream as events and takes the answers as posts. Whoever calls through
it waits for as long as ten minutes for an answer that never comes, so everything that can be answered
at all is: what cannot be carried out gets a plain HTTP error.
"""

import binascii
import re
from binascii import a2b_base64, b2a_base64
from collections.abc import Mapping
from enum import Enum, auto
from typing import Final, TypeAlias, final
from urllib.parse import quote

import attrs

from a2a_trio.errors import ProtocolError
from a2a_trio.wire.json_text import dumps, parse
from a2a_trio.wire.model import JsonValue

__all__ = [
    "ChannelRequest",
    "ChannelResponse",
    "Envelope",
    "Refused",
    "Then",
    "after_post",
    "answer_body",
    "answer_path",
    "open_path",
    "plain",
    "read_envelope",
]

MAX_EVENT_BYTES: Final = 6 * 1024 * 1024
"""Size of one event: a request body of 4 MiB in base64, and its headers."""
MAX_REQUEST_BYTES: Final = 4 * 1024 * 1024
"""Size of a request body."""
MAX_ANSWER_BYTES: Final = 2 * 1024 * 1024 - 1024
"""Size of a posted answer: what gateways read, less a little."""
MAX_PATH_CHARS: Final = 8_192
MAX_HEADERS: Final = 200

_METHOD: Final = re.compile(r"[A-Z]{1,32}", re.ASCII)
_UNSAFE: Final = re.compile(r"[^!-~]")
_HEADER_NAME: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]{1,200}", re.ASCII)
_HEADER_VALUE: Final = re.compile(r"[\t -~]{0,16384}", re.ASCII)
_HOP_BY_HOP: Final = frozenset(
    {"connection", "keep-alive", "proxy-authenticate", "proxy-authorization", "te", "trailers"}
    | {"transfer-encoding", "upgrade", "content-length"}
)
"""Headers that are between two machines only (RFC 9110 section 7.6.1)."""


@final
@attrs.frozen(kw_only=True)
class ChannelRequest:
    """A request that came through a gateway."""

    method: str
    path: str
    query: str = ""
    headers: tuple[tuple[str, str], ...] = attrs.field(default=(), repr=False)
    body: bytes = attrs.field(default=b"", repr=False)


@final
@attrs.frozen(kw_only=True)
class ChannelResponse:
    """The answer to one."""

    status: int
    headers: tuple[tuple[str, str], ...] = ()
    body: bytes = attrs.field(default=b"", repr=False)


@final
@attrs.frozen(kw_only=True)
class Envelope:
    """A request and what its answer must name."""

    id: int
    secret: str = attrs.field(repr=False)
    request: ChannelRequest


@final
@attrs.frozen(kw_only=True)
class Refused:
    """A request that cannot be carried out, and what its caller is told."""

    id: int
    secret: str = attrs.field(repr=False)
    response: ChannelResponse


Read: TypeAlias = Envelope | Refused | None


def plain(status: int, text: str) -> ChannelResponse:
    """Return a short answer for people."""
    return ChannelResponse(
        status=status,
        headers=(("content-type", "text/plain; charset=utf-8"),),
        body=text.encode(),
    )


TOO_LARGE: Final = plain(502, "The answer is too large for the gateway")
BROKEN: Final = plain(502, "The peer could not answer")
BUSY: Final = plain(503, "Too many requests at the same time through this gateway")
TOO_LATE: Final = plain(504, "The peer did not answer in time")


def read_envelope(data: bytes, secret: str) -> Read:
    """Read the data of a ``request`` event.

    Args:
        data: JSON.
        secret: the connection's, which counts where the envelope has none.

    Returns:
        The request; or what to answer to one that is malformed; or None for something that cannot
        even be answered.
    """
    try:
        value = parse(data)
    except ProtocolError:
        return None
    if not isinstance(value, dict):
        return None
    number = value.get("id")
    if not isinstance(number, int) or isinstance(number, bool) or not 0 <= number < 2**64:
        return None
    given = value.get("chan_secret", secret)
    if not isinstance(given, str):
        return None
    request = _request(value)
    if isinstance(request, ChannelResponse):
        return Refused(id=number, secret=given, response=request)
    return Envelope(id=number, secret=given, request=request)


def _request(value: Mapping[str, JsonValue]) -> ChannelRequest | ChannelResponse:
    method, path, query = value.get("method"), value.get("path"), value.get("query")
    if not isinstance(method, str) or not _METHOD.fullmatch(method.upper()):
        return plain(400, "The method is malformed")
    if not isinstance(path, str) or not _is_safe_path(path):
        return plain(400, "The path is malformed")
    if query is not None and (not isinstance(query, str) or _UNSAFE.search(query)):
        return plain(400, "The query is malformed")
    headers = _headers(value.get("headers"))
    if headers is None:
        return plain(400, "The headers are malformed")
    body = _body(value.get("body_b64"))
    if isinstance(body, ChannelResponse):
        return body
    return ChannelRequest(
        method=method.upper(), path=path, query=query or "", headers=headers, body=body
    )


def _is_safe_path(path: str) -> bool:
    if not path.startswith("/") or len(path) > MAX_PATH_CHARS or _UNSAFE.search(path):
        return False
    return all(part.lower().replace("%2e", ".") != ".." for part in path.split("/"))


def _headers(value: JsonValue) -> tuple[tuple[str, str], ...] | None:
    """Return the headers that are passed on; those that are no headers are left out."""
    if value is None:
        return ()
    if not isinstance(value, dict) or len(value) > MAX_HEADERS:
        return None
    return tuple(
        (name.lower(), text)
        for name, text in value.items()
        if isinstance(text, str)
        and _HEADER_NAME.fullmatch(name)
        and _HEADER_VALUE.fullmatch(text)
        and name.lower() not in _HOP_BY_HOP
    )


def _body(value: JsonValue) -> bytes | ChannelResponse:
    if value is None:
        return b""
    if not isinstance(value, str):
        return plain(400, "The body is not base64")
    if len(value) > MAX_REQUEST_BYTES * 4 // 3 + 4:
        return plain(413, "The body is too large")
    try:
        return a2b_base64(value, strict_mode=True)
    except (binascii.Error, ValueError):
        return plain(400, "The body is not base64")


def open_path(name: str) -> str:
    """Return the path that opens a peer's channel."""
    return f"/channel?name={quote(name, safe='')}"


def answer_path(name: str, number: int) -> str:
    """Return the path that takes the answer to a request."""
    return f"/channel/response/{number}?name={quote(name, safe='')}"


def answer_body(number: int, secret: str, response: ChannelResponse) -> bytes:
    """Return the post that answers a request; one that the gateway would not read becomes a 502.

    Of several headers of one name the last is kept, since the gateway takes one text for each.
    """
    body = b2a_base64(response.body, newline=False).decode("ascii")
    headers: dict[str, JsonValue] = {
        name.lower(): text for name, text in response.headers if name.lower() not in _HOP_BY_HOP
    }
    encoded = dumps(
        {
            "id": number,
            "status": response.status,
            "headers": headers,
            "body_b64": body,
            "chan_secret": secret,
        }
    )
    if len(encoded) <= MAX_ANSWER_BYTES or response is TOO_LARGE:
        return encoded
    return answer_body(number, secret, TOO_LARGE)


class Then(Enum):
    """What follows on the status of a posted answer."""

    DONE = auto()
    """Taken, or nobody waits for it any more."""
    RETRY = auto()
    """The caller still waits, and the same answer may be taken later."""
    SUBSTITUTE = auto()
    """The caller still waits, and only a smaller answer will be taken."""
    UNAUTHORIZED = auto()
    """The credential is not valid any more."""


def after_post(status: int | None) -> Then:
    """Return what follows.

    Args:
        status: of the gateway's answer; None if there was none.
    """
    if status is None or status == 429 or status >= 500:  # noqa: PLR2004 - HTTP
        return Then.RETRY
    if status == 413:  # noqa: PLR2004 - HTTP
        return Then.SUBSTITUTE
    return Then.UNAUTHORIZED if status in {401, 403} else Then.DONE
