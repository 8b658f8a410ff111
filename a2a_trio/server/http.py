"""One HTTP exchange as values, free of any web framework.

``Endpoint.handle`` takes an ``HttpRequest`` and gives an ``HttpResponse``. The ASGI adapter, the
in-memory test transport and the reverse channel all speak these values, so no framework type
passes beyond an adapter.
"""

from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from typing import Final, Protocol, TypeAlias, final, runtime_checkable

import attrs

from a2a_trio.errors import PayloadTooLargeError

__all__ = [
    "ON_DISCONNECT",
    "BodyReceiver",
    "EventStream",
    "Header",
    "Headers",
    "HttpRequest",
    "HttpResponse",
    "body_of",
]

Header: TypeAlias = tuple[str, str]
"""A name in lower case and a value without line breaks."""

BodyReceiver: TypeAlias = Callable[[int], Awaitable[bytes]]
"""Reads the whole request body; the argument is the greatest number of bytes allowed."""

ON_DISCONNECT: Final = "a2a_trio.on_disconnect"
"""Extension that our listener adds to ASGI HTTP scopes: ``{"call": register}``. What is given to
``register`` is called, synchronously, when the client leaves or the request has ended, which
spares an application the task that would wait for that."""


@final
class Headers:
    """The header fields of one message: ordered, repeatable, names without regard to case.

    Args:
        items: name and value pairs in the order received; names are lower-cased.
    """

    __slots__ = ("_items", "_values")

    def __init__(self, items: Iterable[Header] = ()) -> None:
        self._items: Final[tuple[Header, ...]] = tuple((name.lower(), v) for name, v in items)
        values: dict[str, list[str]] = {}
        for name, value in self._items:
            values.setdefault(name, []).append(value)
        self._values: Final[Mapping[str, list[str]]] = values

    @classmethod
    def from_raw(cls, items: Iterable[tuple[bytes, bytes]]) -> "Headers":
        """Build from the byte pairs of ASGI; latin-1 can decode every byte (RFC 9110 5.5)."""
        return cls((name.decode("latin-1"), value.decode("latin-1")) for name, value in items)

    def get(self, name: str, default: str = "") -> str:
        """Return the first value of a name given in lower case, or the default."""
        values = self._values.get(name)
        return values[0] if values else default

    def all(self, name: str) -> tuple[str, ...]:
        """Return every value of a name given in lower case, in the order received."""
        return tuple(self._values.get(name, ()))

    def list_of(self, name: str) -> tuple[str, ...]:
        """Return the members of a comma-separated field, over all its lines (RFC 9110 5.6.1)."""
        members = (m.strip() for value in self.all(name) for m in value.split(","))
        return tuple(m for m in members if m)

    def __iter__(self) -> Iterator[Header]:
        return iter(self._items)

    def __len__(self) -> int:
        return len(self._items)

    def __contains__(self, name: str) -> bool:
        return name in self._values

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Headers) and self._items == other._items

    def __hash__(self) -> int:
        return hash(self._items)

    def __repr__(self) -> str:
        # Values may be credentials, and reprs end up in logs.
        return f"Headers({', '.join(name for name, _ in self._items)})"


@final
@attrs.frozen(kw_only=True, eq=False)
class HttpRequest:
    """One request, its body not yet read."""

    method: str
    """The verb, in upper case."""
    path: str
    """The decoded path, without query and without the prefix an app is mounted under."""
    receive_body: BodyReceiver = attrs.field(repr=False)
    """Reads the body. Raises PayloadTooLargeError as soon as the limit is passed, chunked or not;
    called at most once."""
    query: str = ""
    """The query string as received, without the question mark."""
    headers: Headers = attrs.field(factory=Headers)
    client: str = ""
    """The address of the direct peer, ``""`` where there is none."""
    scheme: str = "http"


@runtime_checkable
class EventStream(Protocol):
    """A body that is produced piece by piece.

    Whoever gets one calls ``close`` in the end, also when it never iterated. Iterating is done by
    one task; cancelling that task is how a lost caller is reported.
    """

    def __aiter__(self) -> "EventStream":
        """Return itself."""
        ...

    async def __anext__(self) -> bytes:
        """Return the next piece, never empty."""
        ...

    def close(self) -> None:
        """Release what the stream holds; synchronous, may be called again."""
        ...


@final
@attrs.frozen(kw_only=True, eq=False)
class HttpResponse:
    """One response. ``content-length`` is the adapter's business, every other header is here."""

    status: int
    headers: tuple[Header, ...] = ()
    body: bytes | EventStream = b""

    def header(self, name: str, default: str = "") -> str:
        """Return the first value of a name given in lower case, or the default."""
        for key, value in self.headers:
            if key == name:
                return value
        return default


def body_of(body: bytes) -> BodyReceiver:
    """Return a receiver for a body that is already in memory."""

    async def receive(limit: int) -> bytes:
        if len(body) > limit:
            raise PayloadTooLargeError(metadata={"limit": str(limit)})
        return body

    return receive
