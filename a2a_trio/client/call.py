"""One JSON-RPC call to a peer: built, sent, read, and repeated where that is safe."""

import itertools
from collections.abc import Awaitable, Callable
from datetime import datetime
from typing import Final, TypeAlias, TypeVar, final

import attrs

from a2a_trio.client.answers import Head, head_of, read_answer, unreadable
from a2a_trio.client.cards import Routes
from a2a_trio.client.exchange import Exchange
from a2a_trio.client.headers import Headers
from a2a_trio.client.options import ClientOptions
from a2a_trio.client.pool import HttpCall, HttpPool, Progress
from a2a_trio.client.retry import Retries
from a2a_trio.client.routes import Route
from a2a_trio.errors import (
    DecodeError,
    MethodNotFoundError,
    PeerProtocolError,
    PeerUnreachableError,
    ProtocolError,
    UnsupportedOperationError,
    VersionNotSupportedError,
)
from a2a_trio.wire import jsonrpc
from a2a_trio.wire.dialects import decode_event, decode_result, encode_params, method_name
from a2a_trio.wire.methods import Operation, Params, Result, method_of
from a2a_trio.wire.model import JsonValue, StreamEvent, Task
from a2a_trio.wire.requests import GetTaskRequest

__all__ = ["Outgoing", "Rpc", "StreamAnswer", "as_task", "decode_frame"]

_EVENT_STREAM: Final = "text/event-stream"
_PLAIN: Final = frozenset({"", "identity"})
_OK: Final = 200
_NOT_SPOKEN: Final = (MethodNotFoundError, VersionNotSupportedError)

T = TypeVar("T")
_Once: TypeAlias = Callable[["Outgoing", Route, Progress], Awaitable[T]]


@final
@attrs.frozen(kw_only=True)
class Outgoing:
    """One logical request, the same over all its tries."""

    operation: Operation
    params: Params
    idempotency_key: str = ""
    last_event_id: str = ""
    extensions: tuple[str, ...] = ()

    @property
    def is_safe(self) -> bool:
        """Whether sending it twice does no more than sending it once."""
        return not method_of(self.operation).sends


@final
@attrs.frozen(kw_only=True)
class StreamAnswer:
    """A stream that was opened, or the one event of a peer that answered without a stream."""

    exchange: Exchange | None
    first: StreamEvent | None
    head: Head
    request_id: str
    route: Route


@final
class Rpc:
    """Makes calls.

    Args:
        pool: where requests go.
        routes: how the peer is called.
        headers: what requests carry.
        retries: how they are repeated.
        options: limits.
        utc: wall clock, for dates in headers.
    """

    def __init__(
        self,
        *,
        pool: HttpPool,
        routes: Routes,
        headers: Headers,
        retries: Retries,
        options: ClientOptions,
        utc: Callable[[], datetime],
    ) -> None:
        self._pool = pool
        self._routes = routes
        self._headers = headers
        self._retries = retries
        self._options = options
        self._utc = utc
        self._ids = itertools.count(1)

    async def call(self, outgoing: Outgoing) -> Result:
        """Make a call and return its result.

        Raises:
            ProtocolError: the peer answered an error of the protocol.
            PeerError: it did not answer, or not properly.

        Cancellation: the request is abandoned; whether it was carried out is unknown.
        """
        limit = self._options.call_timeout if outgoing.is_safe else self._options.send_timeout
        return await self._run(outgoing, self._call_once, limit)

    async def open_stream(self, outgoing: Outgoing) -> StreamAnswer:
        """Open a stream and return it once its head is there.

        Raises:
            ProtocolError, PeerError: as ``call``; an error before the first event is a plain answer.
        """
        return await self._run(outgoing, self._open_once, self._options.stream_idle_timeout)

    async def get_task(self, task_id: str, history_length: int | None = None) -> Task:
        """Call GetTask.

        Raises:
            ProtocolError, PeerError: as ``call``.
        """
        params = GetTaskRequest(id=task_id, history_length=history_length)
        return as_task(await self.call(Outgoing(operation=Operation.GET_TASK, params=params)))

    async def _run(self, outgoing: Outgoing, once: _Once[T], limit: float) -> T:
        tried: list[Route] = []

        async def in_dialect(progress: Progress) -> T:
            route = await self._routes.current()
            tried[:] = [route]
            return await self._in_dialect(outgoing, once, route, progress)

        def repeatable() -> bool:
            return outgoing.is_safe or any(route.deduplicates for route in tried)

        try:
            return await self._retries.run(
                in_dialect, repeatable=repeatable, limit=limit, what=outgoing.operation.value
            )
        except PeerUnreachableError:
            self._routes.forget()
            raise

    async def _in_dialect(
        self, outgoing: Outgoing, once: _Once[T], route: Route, progress: Progress
    ) -> T:
        """Make one try; where the peer does not know the method or version, one in v0.3.

        Neither refusal has started anything, so a send may be repeated too.
        """
        try:
            return await once(outgoing, route, progress)
        except _NOT_SPOKEN as exc:
            older = self._routes.older_than(route)
            if older is None or method_name(method_of(outgoing.operation), older.dialect) is None:
                raise
            refusal = exc
        try:
            result = await once(outgoing, older, progress)
        except _NOT_SPOKEN:
            self._routes.settle(older=False)
            raise refusal from None
        except ProtocolError:
            self._routes.settle(older=True)
            raise
        self._routes.settle(older=True)
        return result

    async def _call_once(self, outgoing: Outgoing, route: Route, progress: Progress) -> Result:
        request_id = self._next_id()
        async with await self._send(outgoing, route, request_id, progress) as exchange:
            head = self._head(exchange, route)
            body = await exchange.read_all(self._options.max_response_bytes)
        value = read_answer(head, body, request_id)
        try:
            return decode_result(method_of(outgoing.operation), route.dialect, value)
        except DecodeError as exc:
            raise unreadable(exc, route.url) from None

    async def _open_once(
        self, outgoing: Outgoing, route: Route, progress: Progress
    ) -> StreamAnswer:
        request_id = self._next_id()
        exchange = await self._send(outgoing, route, request_id, progress)
        kept = False
        try:
            head = self._head(exchange, route)
            first: StreamEvent | None = None
            if head.status == _OK and head.media_type == _EVENT_STREAM:
                kept = True
            else:
                body = await exchange.read_all(self._options.max_response_bytes)
                first = decode_frame(read_answer(head, body, request_id), route)
        finally:
            if not kept:
                await exchange.aclose()
        return StreamAnswer(
            exchange=exchange if kept else None,
            first=first,
            head=head,
            request_id=request_id,
            route=route,
        )

    async def _send(
        self, outgoing: Outgoing, route: Route, request_id: str, progress: Progress
    ) -> Exchange:
        method = method_of(outgoing.operation)
        name = method_name(method, route.dialect)
        if name is None:
            raise UnsupportedOperationError(
                f"A2A {route.dialect.value} has no {outgoing.operation.value}"
            )
        params = outgoing.params
        if route.tenant:
            params = attrs.evolve(params, tenant=route.tenant)
        value = encode_params(method, route.dialect, params)
        headers = self._headers.for_call(
            route,
            streaming=method.streaming,
            idempotency_key=outgoing.idempotency_key,
            last_event_id=outgoing.last_event_id,
            extensions=outgoing.extensions,
        )
        body = jsonrpc.request(request_id, name, value)
        call = HttpCall(method="POST", url=route.url, headers=headers, body=body)
        return await self._pool.open(call, progress)

    def _head(self, exchange: Exchange, route: Route) -> Head:
        head = head_of(exchange, route.url, self._utc())
        if head.encoding not in _PLAIN:
            raise PeerProtocolError(
                "the answer is compressed, which was not asked for", url=route.url
            )
        return head

    def _next_id(self) -> str:
        return f"r{next(self._ids)}"


def as_task(result: Result) -> Task:
    """Return the result of an operation that answers a task."""
    if not isinstance(result, Task):
        raise TypeError(f"the codec answered {type(result).__name__} for a task")
    return result


def decode_frame(value: JsonValue, route: Route) -> StreamEvent:
    """Return the event in a result.

    Raises:
        PeerProtocolError: it is none.
    """
    try:
        return decode_event(route.dialect, value)
    except DecodeError as exc:
        raise unreadable(exc, route.url) from None
