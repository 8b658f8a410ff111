"""JSON text: bytes to plain values and back, with every limit that A2A peers need.

Reading refuses what is not JSON and what is nested too deeply, and never raises anything else.
Writing never fails: what JSON cannot say (a lone surrogate, a NaN, a cycle) is replaced.
"""

import re
from collections.abc import Mapping
from typing import Any, Final

import orjson

from a2a_trio.errors import InvalidParamsError, JSONParseError
from a2a_trio.wire.model import JsonValue

MAX_DEPTH: Final = 64
"""Deepest nesting that is read. A2A needs ten levels; the rest is for ``data`` and metadata."""

MAX_CONTAINERS: Final = 200_000
"""Arrays and objects in one request. They are what makes a body expensive to read: 5 MiB of empty
arrays hold up the whole server a hundred times as long as 5 MiB of text."""

MAX_WRITE_DEPTH: Final = 200
"""Deepest nesting that is written; below the 254 of orjson, above what was read plus an envelope."""

# One that is not closed ends with the body, so that no quote is tried twice.
_STRING: Final = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+(?:"|\\?\Z)', re.DOTALL)
_BOM: Final = b"\xef\xbb\xbf"
_INT64: Final = range(-(2**63), 2**64)


def loads(body: bytes) -> JsonValue:
    """Read one JSON value.

    A byte order mark is skipped, the last of several equal keys wins, and an integer beyond
    64 bits becomes a float, as in every ProtoJSON peer.

    Raises:
        JSONParseError: the bytes are not JSON in UTF-8. NaN, infinities, lone surrogates and
            numbers beyond a double are not JSON.
        InvalidParamsError: the value is nested deeper than ``MAX_DEPTH``.
    """
    value = parse(body)
    if may_be_too_deep(body) and is_too_deep(value):
        raise too_deep()
    return value


def parse(body: bytes) -> JsonValue:
    """Read one JSON value that may be deeper than ``MAX_DEPTH``, for callers that check it.

    Raises:
        JSONParseError: the bytes are not JSON.
        InvalidParamsError: the parser itself refused the depth.
    """
    try:
        value: JsonValue = orjson.loads(body[3:] if body.startswith(_BOM) else body)
    except orjson.JSONDecodeError as error:
        # orjson has no type for this; a test holds the text.
        if "depth limit" in error.msg:
            raise too_deep() from None
        raise JSONParseError from None
    return value


def too_deep() -> InvalidParamsError:
    """Return the error for a value that is nested too deeply."""
    return InvalidParamsError(f"Nested deeper than {MAX_DEPTH} levels")


def may_be_too_deep(body: bytes) -> bool:
    """Return False if counting brackets already shows that the body is not too deep."""
    return _brackets(body) > MAX_DEPTH


def has_too_many_containers(body: bytes) -> bool:
    """Return True if the body would make more than ``MAX_CONTAINERS`` arrays and objects.

    Brackets in texts do not count: source code is full of them.
    """
    return _brackets(body) > MAX_CONTAINERS and _brackets(_STRING.sub(b"", body)) > MAX_CONTAINERS


def _brackets(body: bytes) -> int:
    return body.count(b"[") + body.count(b"{")


def is_too_deep(value: JsonValue) -> bool:
    """Return True if arrays and objects nest deeper than ``MAX_DEPTH``; linear, no recursion."""
    level: list[list[JsonValue] | dict[str, JsonValue]] = (
        [value] if isinstance(value, list | dict) else []
    )
    for _ in range(MAX_DEPTH):
        if not level:
            return False
        level = [
            member
            for container in level
            for member in (container.values() if type(container) is dict else container)
            if isinstance(member, list | dict)
        ]
    return bool(level)


def dumps(value: JsonValue | Mapping[str, JsonValue]) -> bytes:
    """Write a value as compact JSON in UTF-8; never raises.

    What JSON cannot carry is replaced: NaN and infinities by null, lone surrogates by U+FFFD,
    integers beyond 64 bits by the nearest double, nesting beyond ``MAX_WRITE_DEPTH`` by null or ``{}``,
    an object of a foreign type by its type's name.
    """
    try:
        return orjson.dumps(value, default=_plain_mapping)
    except (TypeError, RecursionError):
        return orjson.dumps(_writable(value, MAX_WRITE_DEPTH))


def _plain_mapping(value: object) -> dict[str, JsonValue]:
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError


def _writable(value: Any, depth: int) -> Any:
    """Return a copy that orjson accepts whatever the value is."""
    match value:
        case None | bool() | float():
            return value
        case int():
            return _int64_or_double(value)
        case str():
            return _encodable(value)
        case list() | tuple():
            return [_writable(member, depth - 1) for member in value] if depth > 0 else None
        case Mapping():
            items = value.items() if depth > 0 else ()
            return {_encodable(str(k)): _writable(v, depth - 1) for k, v in items}
        case _:
            return f"<{type(value).__name__}>"


def _encodable(text: str) -> str:
    # UTF-16 has surrogates: pairs become characters, lone ones U+FFFD.
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def _int64_or_double(value: int) -> int | float | None:
    try:
        return value if value in _INT64 else float(value)
    except OverflowError:
        return None
