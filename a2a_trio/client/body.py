"""The body of a request; imported when the first one is sent, since httpx is slow to load."""

from collections.abc import AsyncIterator
from typing import final

import httpx

__all__ = ["RequestBody"]


@final
class RequestBody(httpx.AsyncByteStream):
    """Bytes that are sent at once.

    httpx's own body is an async generator, which a cancelled send leaves to the garbage collector.
    """

    def __init__(self, body: bytes) -> None:
        self._body = body

    def __aiter__(self) -> AsyncIterator[bytes]:
        return _Once(self._body)


@final
class _Once(AsyncIterator[bytes]):
    def __init__(self, body: bytes) -> None:
        self._body: bytes | None = body or None

    async def __anext__(self) -> bytes:
        body, self._body = self._body, None
        if body is None:
            raise StopAsyncIteration
        return body
