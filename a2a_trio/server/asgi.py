"""The ASGI adapter: one endpoint as a plain ASGI 3 application.

What it takes care of, each met on a real server: a chunked body is counted while it is read; an
answer that left the body unread first lets the client finish sending, or the client would see a
reset instead of the answer; the last send is shielded, since servers report the end of a request
as a disconnect and a cancelled last send leaves the connection neither reusable nor closed; a
caller that goes away cancels the handler, and only that.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, MutableMapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, Final, TypeAlias, final

import trio

from a2a_trio._log import get_logger
from a2a_trio.errors import InvalidRequestError, PayloadTooLargeError
from a2a_trio.server import answers
from a2a_trio.server.endpoint import Endpoint
from a2a_trio.server.http import ON_DISCONNECT, EventStream, Headers, HttpRequest, HttpResponse

__all__ = ["AsgiApp", "Receive", "Scope", "Send"]

Scope: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send: TypeAlias = Callable[[MutableMapping[str, Any]], Awaitable[None]]

LAST_SEND_TIMEOUT: Final = 5.0
"""Seconds that the last send may take beyond a cancellation."""

DISCARD_BYTES: Final = 16 * 1024 * 1024
"""How much of a body that nobody wants is read, so that its sender gets to see the answer."""
DISCARD_TIMEOUT: Final = 2.0
"""Seconds for that."""

_ABSOLUTE: Final = ("http://", "https://")
_BODILESS: Final = frozenset({204, 304})
_VERSIONS: Final = frozenset({"1.0", "1.1", "2", "3"})

_log = get_logger(__name__)


@asynccontextmanager
async def _no_services() -> AsyncIterator[None]:
    """Stand in where the caller owns what runs beside the app."""
    yield


@final
class AsgiApp:
    """One agent's endpoint as an ASGI application.

    Args:
        endpoint: answers the requests.
        services: opened for as long as the server's lifespan lasts and closed after it, in one
            task; omit it where the services are owned outside, e.g. around a mounted app.
    """

    def __init__(
        self,
        endpoint: Endpoint,
        *,
        services: Callable[[], AbstractAsyncContextManager[None]] = _no_services,
    ) -> None:
        self._endpoint: Final = endpoint
        self.services: Final = services

    def owns(self, scope: Scope) -> bool:
        """Return whether this app has an answer of its own for the path of an HTTP scope."""
        return scope["type"] == "http" and self._endpoint.owns(_path(scope))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one connection scope."""
        match scope["type"]:
            case "http":
                await self._http(scope, receive, send)
            case "lifespan":
                await self._lifespan(receive, send)
            case "websocket":
                await receive()
                await send({"type": "websocket.close", "code": 1003})
            case kind:
                raise NotImplementedError(f"scope {kind!r} is not supported")

    async def _lifespan(self, receive: Receive, send: Send) -> None:
        await receive()
        started = False
        try:
            async with self.services():
                started = True
                await send({"type": "lifespan.startup.complete"})
                await receive()
        except Exception:  # noqa: BLE001 - the server is told, which is how a lifespan fails
            _log.exception("services failed", started=started)
            stage = "shutdown" if started else "startup"
            await send({"type": f"lifespan.{stage}.failed", "message": "services failed"})
        else:
            await send({"type": "lifespan.shutdown.complete"})

    async def _http(self, scope: Scope, receive: Receive, send: Send) -> None:
        exchange = _Exchange(scope, receive, send)
        refused = _refused_framing(scope, exchange.headers)
        if refused is not None:
            await exchange.answer(refused)
        elif scope["method"] in {"GET", "HEAD", "OPTIONS"}:
            # These are answered at once: nobody can leave in between.
            await exchange.answer(await self._endpoint.handle(exchange.request()))
        else:
            await exchange.run(self._endpoint.handle)


@final
class _Exchange:
    """One request and its answer over the three ASGI callables."""

    def __init__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self._scope: Final = scope
        self._receive: Final = receive
        self._send: Final = send
        self.headers: Final = _headers(scope)
        # Nothing announces a body: then there is none to read or to discard (RFC 9112 6.3).
        self._unread = "content-length" in self.headers or "transfer-encoding" in self.headers
        self._unread = self._unread or scope["http_version"] not in {"1.0", "1.1"}
        # Clients that call an application in its own process often leave the length out.
        self._unread = self._unread or scope["method"] == "POST"
        self._leave: Callable[[], None] = lambda: None
        self._watch: Callable[[], None] = lambda: None

    def request(self) -> HttpRequest:
        client = self._scope.get("client")
        return HttpRequest(
            method=self._scope["method"],
            path=_path(self._scope),
            query=self._scope["query_string"].decode("latin-1"),
            headers=self.headers,
            client=client[0] if client else "",
            scheme=self._scope.get("scheme", "http"),
            receive_body=self._receive_body,
        )

    async def run(self, handle: Callable[[HttpRequest], Awaitable[HttpResponse]]) -> None:
        """Answer a request whose handler may wait: cancel it when the caller leaves."""
        response = None
        register = self._scope.get("extensions", {}).get(ON_DISCONNECT)
        if register is not None:
            with trio.CancelScope() as scope:
                self._leave = scope.cancel
                register["call"](scope.cancel)
                response = await self._produce(handle)
        else:
            async with trio.open_nursery() as nursery:
                self._leave = nursery.cancel_scope.cancel
                self._watch = lambda: nursery.start_soon(self._watch_for_leaving)
                response = await self._produce(handle)
                nursery.cancel_scope.cancel()
        if response is not None:
            await self.answer(response)

    async def _produce(
        self, handle: Callable[[HttpRequest], Awaitable[HttpResponse]]
    ) -> HttpResponse | None:
        """Return an answer that is still to be sent, or None after a stream."""
        response = await handle(self.request())
        if isinstance(response.body, bytes):
            return response
        await self._stream(response, response.body)
        return None

    async def _watch_for_leaving(self) -> None:
        while (await self._receive())["type"] != "http.disconnect":
            pass
        self._leave()

    async def _receive_body(self, limit: int) -> bytes:
        declared = self.headers.get("content-length")
        length = int(declared) if declared.isdecimal() else -1
        if length > limit:
            raise PayloadTooLargeError(metadata={"limit": str(limit)})
        chunks: list[bytes] = []
        size = 0
        while self._unread:
            chunk = await self._next_chunk()
            if chunk:
                size += len(chunk)
                if size > limit:
                    raise PayloadTooLargeError(metadata={"limit": str(limit)})
                chunks.append(chunk)
            if size == length:
                self._unread = False  # the empty event that says so may stay where it is
        self._watch()
        return chunks[0] if len(chunks) == 1 else b"".join(chunks)

    async def _next_chunk(self) -> bytes:
        event = await self._receive()
        if event["type"] == "http.disconnect":
            self._unread = False
            self._leave()
            await trio.lowlevel.checkpoint_if_cancelled()
            return b""
        self._unread = bool(event.get("more_body", False))
        chunk: bytes = event.get("body", b"")
        return chunk

    async def answer(self, response: HttpResponse) -> None:
        """Send an answer that is all there."""
        if not isinstance(response.body, bytes):
            await self._stream(response, response.body)
            return
        with trio.move_on_after(LAST_SEND_TIMEOUT, shield=True):
            await self._start(response, response.body)
            if not self._unread:
                await self._send({"type": "http.response.body", "body": response.body})
                return
        await self._answer_early(response.body)

    async def _answer_early(self, body: bytes) -> None:
        """Send the answer to a request whose body is still coming.

        The client gets the answer at once and may finish sending; a server with a bounded queue
        towards the app can only close if somebody keeps taking from it.
        """
        await self._send({"type": "http.response.body", "body": body, "more_body": True})
        size = 0
        with trio.move_on_after(DISCARD_TIMEOUT):
            while self._unread and size < DISCARD_BYTES:
                size += len(await self._next_chunk())
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._discard_forever)
            await self._last()
            nursery.cancel_scope.cancel()

    async def _discard_forever(self) -> None:
        while (await self._receive())["type"] != "http.disconnect":
            pass

    async def _stream(self, response: HttpResponse, body: EventStream) -> None:
        try:
            await self._start(response, None)
            async for piece in body:
                await self._send({"type": "http.response.body", "body": piece, "more_body": True})
        finally:
            body.close()
        await self._last()

    async def _start(self, response: HttpResponse, body: bytes | None) -> None:
        headers = [
            (n.encode("latin-1"), v.encode("latin-1", "replace")) for n, v in response.headers
        ]
        if body is not None and response.status not in _BODILESS and not _has_length(response):
            headers.append((b"content-length", b"%d" % len(body)))
        await self._send(
            {"type": "http.response.start", "status": response.status, "headers": headers}
        )

    async def _last(self) -> None:
        with trio.move_on_after(LAST_SEND_TIMEOUT, shield=True):
            await self._send({"type": "http.response.body", "body": b""})


def _has_length(response: HttpResponse) -> bool:
    return any(name == "content-length" for name, _ in response.headers)


def _path(scope: Scope) -> str:
    """Return the path below the prefix that the app is mounted under (ASGI 2.3 root_path)."""
    path: str = scope["path"]
    if path.startswith(_ABSOLUTE):
        path = "/" + path.partition("://")[2].partition("/")[2]
    root: str = scope.get("root_path", "")
    if root and (path == root or path.startswith(f"{root}/")):
        return path[len(root) :] or "/"
    return path


def _headers(scope: Scope) -> Headers:
    """Return the headers of a request.

    A target in absolute form, as proxies send it, names the host itself, and a Host header beside
    it does not count (RFC 9112 3.2.2).
    """
    headers = Headers.from_raw(scope["headers"])
    path: str = scope["path"]
    if not path.startswith(_ABSOLUTE):
        return headers
    authority = path.partition("://")[2].partition("/")[0]
    return Headers((("host", authority), *(pair for pair in headers if pair[0] != "host")))


def _refused_framing(scope: Scope, headers: Headers) -> HttpResponse | None:
    """Refuse what another server on the way may read differently than ours does."""
    if scope["http_version"] not in _VERSIONS:
        return answers.failure(InvalidRequestError("HTTP version not supported"), status=505)
    if "transfer-encoding" in headers and "content-length" in headers:
        return answers.failure(
            InvalidRequestError("Content-Length and Transfer-Encoding exclude each other"),
            status=400,
            extra=(("connection", "close"),),
        )
    return None
