"""What discovery needs of an HTTP client; the peer brings one."""

from types import TracebackType
from typing import Protocol, Self, final

import attrs
import trio

from a2a_trio.errors import PeerTimeoutError

__all__ = ["Fetched", "Web", "WebAnswer", "fetch"]


class WebAnswer(Protocol):
    """An answer whose body is being read; leaving its context closes it."""

    @property
    def status(self) -> int:
        """HTTP status."""

    def header(self, name: str) -> str:
        """Return the value of a header, or ``""``."""
        ...

    async def next_chunk(self) -> bytes | None:
        """Return the next bytes of the body, or None at its end.

        Raises:
            PeerError: the connection broke.
        """
        ...

    async def read_all(self, limit: int) -> bytes:
        """Return the whole body.

        Raises:
            PeerError: the connection broke, or the body has more than ``limit`` bytes.
        """
        ...

    async def __aenter__(self) -> Self:
        """Return itself."""
        ...

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Close it."""
        ...


class Web(Protocol):
    """Sends requests; never follows a redirect."""

    async def open(
        self, method: str, url: str, *, headers: tuple[tuple[str, str], ...], body: bytes = b""
    ) -> WebAnswer:
        """Send a request and return the answer once its head is there.

        Raises:
            PeerError: there was no connection, or it broke.
        """
        ...


@final
@attrs.frozen(kw_only=True)
class Fetched:
    """A whole answer."""

    status: int
    retry_after: str
    """The header as it came, or ``""``."""
    body: bytes = attrs.field(repr=False)


async def fetch(
    web: Web,
    method: str,
    url: str,
    *,
    headers: tuple[tuple[str, str], ...],
    body: bytes = b"",
    seconds: float,
    limit: int,
) -> Fetched:
    """Send a request and read the whole answer.

    Args:
        web: the client.
        method: the verb.
        url: the address.
        headers: of the request.
        body: of the request.
        seconds: for all of it.
        limit: bytes of the answer.

    Raises:
        PeerError: there was no connection, it broke, the answer is too large or did not come in time.
    """
    with trio.move_on_after(seconds):
        async with await web.open(method, url, headers=headers, body=body) as answer:
            return Fetched(
                status=answer.status,
                retry_after=answer.header("retry-after"),
                body=await answer.read_all(limit),
            )
    raise PeerTimeoutError(f"no answer within {seconds:g} s", url=url)
