"""One HTTP response while its body is read, with every way in which reading can fail."""

from collections.abc import AsyncIterator, Callable
from types import TracebackType
from typing import TYPE_CHECKING, Final, Self, final

import trio

from a2a_trio.client.failures import TransientPeerError
from a2a_trio.errors import PeerProtocolError

if TYPE_CHECKING:
    import httpx

__all__ = ["Exchange", "lost_connection", "transport_errors"]

_CLOSE_GRACE: Final = 1.0
"""Seconds for closing one connection."""
_MAX_BUFFERED_READS: Final = 1_000
"""Reads after which a body that never has to wait is abandoned to the garbage collector."""


def transport_errors() -> tuple[type[Exception], ...]:
    """Return what httpx and the streams below it raise for a connection that broke."""
    import httpx  # noqa: PLC0415 - costs a tenth of a second, which only callers should pay

    return (httpx.HTTPError, OSError, trio.BrokenResourceError, trio.ClosedResourceError)


def lost_connection(url: str) -> TransientPeerError:
    """Return the error for a connection that broke before the answer was complete."""
    return TransientPeerError(
        "the connection broke before the answer was complete; "
        "whether the request was carried out is unknown",
        url=url,
    )


@final
class Exchange:
    """A response whose body is being read. Leaving its context gives the connection back.

    Args:
        response: the response of a streaming request, its head read.
        url: the URL that was called, for errors.
        release: called once, last of all, however the exchange ends.
    """

    def __init__(self, response: "httpx.Response", url: str, release: Callable[[], None]) -> None:
        self._response = response
        self._url = url
        self._release = release
        self._chunks: AsyncIterator[bytes] = response.aiter_bytes()

    @property
    def status(self) -> int:
        """HTTP status."""
        return self._response.status_code

    def header(self, name: str) -> str:
        """Return the value of a header, or ``""``."""
        return str(self._response.headers.get(name, ""))

    async def next_chunk(self) -> bytes | None:
        """Return the next bytes of the body, or None at its end.

        Raises:
            TransientPeerError: the connection broke before the end.
        """
        errors = transport_errors()
        try:
            return await anext(self._chunks)
        except StopAsyncIteration:
            return None
        except errors as exc:
            raise lost_connection(self._url) from exc

    async def read_all(self, limit: int) -> bytes:
        """Return the whole body.

        Raises:
            PeerProtocolError: it is larger than ``limit`` bytes; the rest is not read.
            TransientPeerError: the connection broke before the end.
        """
        body = bytearray()
        while (chunk := await self.next_chunk()) is not None:
            body += chunk
            if len(body) > limit:
                raise PeerProtocolError(f"the answer is larger than {limit} bytes", url=self._url)
        return bytes(body)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        _kind: type[BaseException] | None,
        _error: BaseException | None,
        _traceback: TracebackType | None,
    ) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Give the connection back; one whose body was not read to its end is closed.

        Cancellation: the connection is closed all the same, within a second.
        """
        try:
            with trio.CancelScope(shield=True, deadline=trio.current_time() + _CLOSE_GRACE):
                await self._stop_reading()
                await self._response.aclose()
        finally:
            self._release()

    async def _stop_reading(self) -> None:
        """End httpx's chain of nested async generators.

        Closing the outermost one would leave the inner ones to the garbage collector, which
        complains. A cancelled read runs through all of them, and each one closes what it holds.
        """
        errors = transport_errors()
        with trio.CancelScope() as scope:
            scope.cancel()
            try:
                # Ends at the first read that has to wait; what is buffered is dropped.
                for _ in range(_MAX_BUFFERED_READS):
                    await anext(self._chunks)
            except StopAsyncIteration:
                pass
            except errors:
                pass
