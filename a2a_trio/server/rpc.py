"""One JSON-RPC call: parse, charge, decode, run, encode (A2A section 9)."""

import hashlib
from collections.abc import Mapping
from typing import Final, final
from urllib.parse import parse_qsl

import trio

from a2a_trio._log import get_logger
from a2a_trio.config.schema import Settings
from a2a_trio.errors import (
    ExtensionSupportRequiredError,
    InternalError,
    InvalidParamsError,
    InvalidRequestError,
    MethodNotFoundError,
    ProtocolError,
    PushNotificationNotSupportedError,
    UnsupportedOperationError,
)
from a2a_trio.rules.admission import Admission, Caller
from a2a_trio.rules.bounds import violations
from a2a_trio.rules.dedup import MAX_KEY
from a2a_trio.server import answers
from a2a_trio.server.calls import CallContext, EventSource, Operations
from a2a_trio.server.cards import Cards
from a2a_trio.server.http import HttpRequest, HttpResponse
from a2a_trio.server.metrics import DISCONNECTED
from a2a_trio.server.sse_body import SseBody
from a2a_trio.server.trace import CallTrace, Recorder
from a2a_trio.wire import codec, dialects, jsonrpc
from a2a_trio.wire.extensions import (
    EXTENSIONS_HEADER,
    IDEMPOTENCY_HEADER,
    LAST_EVENT_ID_HEADER,
    VERSION_HEADER,
)
from a2a_trio.wire.methods import Dialect, Method, Operation, Params, Result, find_method
from a2a_trio.wire.model import JsonValue
from a2a_trio.wire.requests import (
    CancelTaskRequest,
    GetTaskRequest,
    ListTasksRequest,
    SendMessageRequest,
    SubscribeToTaskRequest,
)

__all__ = ["BODY_TIMEOUT", "Rpc", "requested_version"]

BODY_TIMEOUT: Final = 60.0
"""Seconds in which a request body must have arrived; a slower caller is trickling."""

_MAX_EVENT_ID_DIGITS: Final = 15

_log = get_logger(__name__)

# What this server answers without asking its operations (A2A sections 3.1.7 to 3.1.11).
_REFUSED: Final[Mapping[Operation, type[ProtocolError]]] = {
    Operation.CREATE_PUSH_CONFIG: PushNotificationNotSupportedError,
    Operation.GET_PUSH_CONFIG: PushNotificationNotSupportedError,
    Operation.LIST_PUSH_CONFIGS: PushNotificationNotSupportedError,
    Operation.DELETE_PUSH_CONFIG: PushNotificationNotSupportedError,
    Operation.GET_EXTENDED_CARD: UnsupportedOperationError,
}


@final
class Rpc:
    """Answers the POSTs of one agent, once the caller is admitted."""

    def __init__(
        self,
        *,
        operations: Operations,
        admission: Admission,
        cards: Cards,
        settings: Settings,
        recorder: Recorder,
    ) -> None:
        self._operations: Final = operations
        self._admission: Final = admission
        self._cards: Final = cards
        self._recorder: Final = recorder
        self._strict: Final = settings.server.strict_version
        self._limit: Final = settings.server.max_body_bytes
        self._keep_alive: Final = float(settings.server.keep_alive_sec)
        self._digest_always: Final = settings.server.dedup_message_ids

    async def call(self, http: HttpRequest, caller: Caller) -> HttpResponse:
        """Answer one call; never raises but Cancelled, which means that the caller has gone."""
        trace = CallTrace(self._recorder, caller)
        call = _Call(http, trace)
        try:
            response = await self._run(call, caller)
        except ProtocolError as error:
            trace.end(error)
            return call.failure(error)
        except Exception:  # noqa: BLE001 - where a defect ends: logged once, the peer learns nothing
            _log.exception("call failed", method=trace.method)
            defect = InternalError()
            trace.end(defect)
            return call.failure(defect)
        finally:
            if not call.answered:
                trace.end(outcome=DISCONNECTED)
        return response

    async def _run(self, call: "_Call", caller: Caller) -> HttpResponse:
        request = await self._receive(call, caller)
        method = find_method(request.method)
        if method is not None:
            call.trace.method = method.operation.value
        self._charge(caller, polling=method is not None and method.polling)
        if method is None:
            raise MethodNotFoundError(metadata={"method": request.method[:64]})
        params, context = self._decode(call, request, method, caller)
        call.trace.begin(params)
        self._check_capability(method, context)
        result = await self._operate(method, params, context)
        if isinstance(result, _Stream):
            return self._stream(call, result.source, context)
        call.trace.result(result)
        wants_artifacts = isinstance(params, ListTasksRequest) and bool(params.include_artifacts)
        value = dialects.encode_result(
            method, call.dialect, result, include_artifacts=wants_artifacts
        )
        body = jsonrpc.success(call.request_id, value)
        call.answered = True
        call.trace.end()
        return answers.success(body, call.service)

    async def _receive(self, call: "_Call", caller: Caller) -> jsonrpc.JsonRpcRequest:
        """Read and parse the body; one that is no request is charged like any call."""
        try:
            with trio.move_on_after(BODY_TIMEOUT) as slow:
                body = await call.http.receive_body(self._limit)
            if slow.cancelled_caught:
                call.status = 408
                raise InvalidRequestError("The request body did not arrive in time")
            request = jsonrpc.parse_request(body)
        except jsonrpc.RpcFailure as failure:
            call.request_id = failure.id
            self._charge(caller, polling=False)
            raise failure.error from None
        except ProtocolError:
            self._charge(caller, polling=False)
            raise
        call.request_id = request.id
        return request

    def _charge(self, caller: Caller, *, polling: bool) -> None:
        refused = self._admission.charge(caller, polling=polling, now=self._recorder.now())
        if refused is not None:
            raise refused.error

    def _decode(
        self, call: "_Call", request: jsonrpc.JsonRpcRequest, method: Method, caller: Caller
    ) -> tuple[Params, CallContext]:
        """Choose the dialect, then read the parameters in it."""
        headers = call.http.headers
        call.dialect = dialects.choose_dialect(
            request.method,
            requested_version(call.http),
            request.params,
            strict=self._strict,
            stored=self._operations.stored_dialect,
        )
        wanted = (*headers.list_of(EXTENSIONS_HEADER), *headers.list_of(f"x-{EXTENSIONS_HEADER}"))
        activated = tuple(u for u in dict.fromkeys(wanted) if u in self._cards.extensions)
        call.service = answers.service_headers(call.dialect, activated)
        params = dialects.decode_params(method, call.dialect, request.params)
        too_long = violations(params)
        if too_long:
            raise InvalidParamsError(violations=too_long)
        key = headers.get(IDEMPOTENCY_HEADER)
        if len(key) > MAX_KEY:
            raise InvalidParamsError.of(IDEMPOTENCY_HEADER, f"at most {MAX_KEY} characters")
        needs_digest = isinstance(params, SendMessageRequest) and (key or self._digest_always)
        context = CallContext(
            caller=caller,
            dialect=call.dialect,
            idempotency_key=key,
            payload_digest=_digest(request.params) if needs_digest else b"",
            extensions=activated,
            last_event_id=_event_id(headers.get(LAST_EVENT_ID_HEADER)),
        )
        return params, context

    def _check_capability(self, method: Method, context: CallContext) -> None:
        """Refuse what the card does not declare (A2A sections 3.3.4, 4.6.3)."""
        refused = _REFUSED.get(method.operation)
        if refused is not None:
            raise refused
        if method.streaming and not self._cards.card.capabilities.streaming:
            raise UnsupportedOperationError("Streaming is not supported")
        missing = self._cards.required_extensions - set(context.extensions)
        if missing:
            raise ExtensionSupportRequiredError(metadata={"extensions": ", ".join(sorted(missing))})

    async def _operate(
        self, method: Method, params: Params, context: CallContext
    ) -> "Result | _Stream":
        operations = self._operations
        match params:
            case SendMessageRequest() if method.streaming:
                return _Stream(await operations.send_streaming_message(params, context))
            case SendMessageRequest():
                return await operations.send_message(params, context)
            case GetTaskRequest():
                return await operations.get_task(params, context)
            case ListTasksRequest():
                return await operations.list_tasks(params, context)
            case CancelTaskRequest():
                return await operations.cancel_task(params, context)
            case SubscribeToTaskRequest():
                return _Stream(await operations.subscribe_to_task(params, context))
            case _:
                raise UnsupportedOperationError

    def _stream(self, call: "_Call", source: EventSource, context: CallContext) -> HttpResponse:
        """Hand the events over; the trace ends with them."""
        trace = call.trace
        trace.streaming()
        body = SseBody(
            source,
            request_id=call.request_id,
            dialect=context.dialect,
            keep_alive=self._keep_alive,
            on_event=lambda published: trace.event(published.event),
            on_end=trace.end,
        )
        call.answered = True
        return HttpResponse(status=200, headers=(*_SSE_HEADERS, *call.service), body=body)


# Buffering proxies would hold events back; no-transform keeps them from compressing the stream.
_SSE_HEADERS: Final = (
    ("content-type", answers.SSE),
    ("cache-control", "no-cache, no-transform"),
    ("x-accel-buffering", "no"),
)


@final
class _Stream:
    """Tells a stream from a result."""

    def __init__(self, source: EventSource) -> None:
        self.source: Final = source


@final
class _Call:
    """What is known about one call so far, for whichever answer it gets."""

    def __init__(self, http: HttpRequest, trace: CallTrace) -> None:
        self.http: Final = http
        self.trace: Final = trace
        self.request_id: jsonrpc.RpcId = None
        self.dialect = Dialect.V1
        self.service = answers.service_headers()
        self.status: int | None = None
        self.answered = False

    def failure(self, error: ProtocolError) -> HttpResponse:
        self.answered = True
        return answers.failure(
            error, request_id=self.request_id, status=self.status, service=self.service
        )


def requested_version(http: HttpRequest) -> str | None:
    """Return the version asked for, by header or query parameter (A2A section 3.6.1)."""
    version = http.headers.get(VERSION_HEADER).strip()
    if not version and http.query:
        for name, value in parse_qsl(http.query):
            if name.lower() == VERSION_HEADER:
                version = value.strip()
                break
    return version or None


def _event_id(text: str) -> int | None:
    """Return the task version in ``Last-Event-ID``; what is not ours is no error (HTML 9.2.4)."""
    if text.isascii() and text.isdigit() and len(text) <= _MAX_EVENT_ID_DIGITS:
        return int(text)
    return None


def _digest(params: JsonValue) -> bytes:
    return hashlib.sha256(codec.dumps(params)).digest()
