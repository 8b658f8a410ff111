"""An httpx transport that calls an endpoint in the same process: no socket, any clock."""

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import TypeAlias, final
from urllib.parse import unquote

import httpx
import trio

from a2a_trio.errors import PayloadTooLargeError
from a2a_trio.server.http import BodyReceiver, EventStream, Headers, HttpRequest, HttpResponse

__all__ = ["EndpointTransport", "Handler"]

Handler: TypeAlias = Callable[[HttpRequest], Awaitable[HttpResponse]]
"""What answers requests, e.g. ``Endpoint.handle``."""


@final
class EndpointTransport(httpx.AsyncBaseTransport):
    """Carries the requests of a client to a handler, and streams piece by piece to the client.

    The handler runs in the caller's task, so cancelling a call cancels the handler, as a server
    does when its caller disconnects.

    Args:
        handler: answers requests.
        client: address that the handler sees as its direct peer.

    Resources: closing the transport does nothing; several clients may share one.
    """

    def __init__(self, handler: Handler, *, client: str = "127.0.0.1") -> None:
        self._handler = handler
        self._client = client

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Answer one request."""
        await trio.lowlevel.checkpoint()
        response = await self._handler(self._incoming(request))
        body = response.body
        if isinstance(body, bytes):
            headers = [*response.headers, ("content-length", str(len(body)))]
            return httpx.Response(response.status, headers=headers, stream=httpx.ByteStream(body))
        return httpx.Response(
            response.status, headers=list(response.headers), stream=_EventBody(body)
        )

    def _incoming(self, request: httpx.Request) -> HttpRequest:
        path, _, query = request.url.raw_path.decode("ascii").partition("?")
        return HttpRequest(
            method=request.method.upper(),
            path=unquote(path),
            query=query,
            headers=Headers.from_raw(request.headers.raw),
            client=self._client,
            scheme=request.url.scheme,
            receive_body=_receiver(request),
        )


def _receiver(request: httpx.Request) -> BodyReceiver:
    async def receive(limit: int) -> bytes:
        body = bytearray()
        if not isinstance(request.stream, httpx.AsyncByteStream):
            raise TypeError("an async client sends an async body")
        async for chunk in request.stream:
            body += chunk
            if len(body) > limit:
                raise PayloadTooLargeError(metadata={"limit": str(limit)})
        return bytes(body)

    return receive


@final
class _EventBody(httpx.AsyncByteStream):
    """A handler's event stream as the body of an httpx response."""

    def __init__(self, events: EventStream) -> None:
        self._events = events

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self

    async def __anext__(self) -> bytes:
        # A handler whose events are all there must not starve everybody else.
        await trio.lowlevel.checkpoint()
        return await anext(self._events)

    async def aclose(self) -> None:
        """Release what the handler's stream holds."""
        self._events.close()
