"""A peer that answers by a script, for tests of code that calls agents.

::

    peer = FakePeer()
    peer.answers("SendMessage", Unreachable(), Result(task))
    async with open_client(peer.url, transport=peer.transport) as client:
        reply = await client.send("hello")
    assert [call.method for call in peer.calls] == ["SendMessage", "SendMessage"]

It has no socket and no clock of its own: under a virtual clock an hour of silence takes no time.
"""

from collections import deque
from collections.abc import AsyncIterator, Iterator, Mapping
from typing import Final, TypeAlias, cast, final

import attrs
import httpx
import trio

from a2a_trio.errors import ProtocolError
from a2a_trio.wire import jsonrpc, sse
from a2a_trio.wire.agent_card import AgentCard
from a2a_trio.wire.codec import dumps
from a2a_trio.wire.dialects import encode_card, encode_event, encode_result
from a2a_trio.wire.methods import Dialect, Result as CallResult, find_method
from a2a_trio.wire.model import JsonObject, JsonValue, Message, StreamEvent, Task
from a2a_trio.wire.requests import SendMessageResponse

__all__ = [
    "Answer",
    "Break",
    "Event",
    "Failure",
    "FakeCall",
    "FakePeer",
    "Hang",
    "HttpAnswer",
    "Pause",
    "Result",
    "Stream",
    "Unreachable",
]

CARD: Final = "card"
"""Name of the card fetch in a script."""
MAX_CALLS: Final = 100_000
"""Calls that are remembered; a test that makes more has a loop."""


# --- what a script is made of ---------------------------------------------------------------


@final
@attrs.frozen
class Result:
    """A proper answer. A task or message answers a send in the caller's dialect."""

    value: CallResult | Message
    delay: float = 0.0
    """Seconds before the answer."""


@final
@attrs.frozen
class Failure:
    """A JSON-RPC error answer.

    ``error`` is one of the protocol, or a ready ``error`` member.
    """

    error: ProtocolError | JsonObject
    status: int = 200
    headers: Mapping[str, str] = attrs.field(factory=dict)


@final
@attrs.frozen(kw_only=True)
class HttpAnswer:
    """Any HTTP answer; ``{id}`` in the body becomes the JSON id of the request."""

    status: int = 200
    headers: Mapping[str, str] = attrs.field(factory=lambda: {"content-type": "application/json"})
    body: bytes = b""
    breaks: bool = False
    """Whether the connection breaks after the body instead of ending it."""


@final
@attrs.frozen
class Event:
    """One event of a stream under an SSE id."""

    event: StreamEvent
    id: str = ""


@final
@attrs.frozen
class Pause:
    """Silence in a stream, in seconds; ``math.inf`` is for ever."""

    seconds: float


@final
@attrs.frozen
class Break:
    """The connection breaks."""


Step: TypeAlias = StreamEvent | Event | ProtocolError | Pause | Break | bytes
"""What happens in a stream: an event, an error frame, silence, a break, or bytes as they are."""


@final
class Stream:
    """A stream; it ends properly after its last step."""

    def __init__(self, *steps: Step) -> None:
        self.steps = steps


@final
@attrs.frozen
class Unreachable:
    """No connection is made."""


@final
@attrs.frozen
class Hang:
    """No answer ever comes."""


Answer: TypeAlias = Result | Failure | HttpAnswer | Stream | Unreachable | Hang


@final
@attrs.frozen(kw_only=True)
class FakeCall:
    """One request as it arrived."""

    method: str
    """JSON-RPC method, or ``card``."""
    url: str
    headers: Mapping[str, str]
    """Names in lower case."""
    params: JsonValue = None
    id: str | int | None = None
    text: str = ""
    """The body."""


# --- the peer -------------------------------------------------------------------------------


@final
class FakePeer:
    """Answers every method by its script, and remembers who asked what.

    The last answer of a script is given again and again. A call without a script fails the test.

    Args:
        card: served at ``/.well-known/agent-card.json``; None answers 404.
        url: where it seems to be.
    """

    def __init__(self, card: AgentCard | None = None, *, url: str = "http://peer.test") -> None:
        self.url = url
        self.transport: Final = _FakeTransport(self)
        self.calls: list[FakeCall] = []
        self.open_bodies = 0
        """Responses whose body has not been closed: connections that are still in use."""
        self._scripts: dict[str, deque[Answer]] = {}
        self.set_card(card)

    def answers(self, method: str, *answers: Answer) -> None:
        """Set the script of a JSON-RPC method in one dialect, or of ``"card"``."""
        self._scripts[method] = deque(answers)

    def set_card(self, card: AgentCard | None) -> None:
        """Serve another card."""
        if card is None:
            self.answers(CARD, HttpAnswer(status=404))
        else:
            self.answers(CARD, HttpAnswer(body=dumps(encode_card(card, Dialect.V1))))

    def called(self, method: str) -> list[FakeCall]:
        """Return the calls of one method."""
        return [call for call in self.calls if call.method == method]

    def _next(self, call: FakeCall) -> Answer:
        if len(self.calls) >= MAX_CALLS:
            raise AssertionError(f"more than {MAX_CALLS} calls")
        self.calls.append(call)
        script = self._scripts.get(call.method)
        if not script:
            raise AssertionError(f"{call.method} was called and has no script")
        return script.popleft() if len(script) > 1 else script[0]


@final
class _FakeTransport(httpx.AsyncBaseTransport):
    def __init__(self, peer: FakePeer) -> None:
        self._peer = peer

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        await trio.lowlevel.checkpoint()
        call = _call(request, await request.aread())
        answer = self._peer._next(call)  # noqa: SLF001 - the transport is a part of the peer
        match answer:
            case Unreachable():
                raise httpx.ConnectError("connection refused")
            case Hang():
                await trio.sleep_forever()
            case HttpAnswer():
                return self._http(call, answer)
            case Failure():
                return self._http(call, _failure(call, answer))
            case Result():
                await trio.sleep(answer.delay)
                body = jsonrpc.success(call.id, _encoded(call, answer.value))
                return self._http(call, HttpAnswer(body=body))
            case Stream():
                body_of_stream = _Body(self._peer, _pieces(call, answer.steps))
                headers = {"content-type": "text/event-stream"}
                return httpx.Response(200, headers=headers, stream=body_of_stream)
        raise AssertionError("an answer of an unknown kind")

    def _http(self, call: FakeCall, answer: HttpAnswer) -> httpx.Response:
        text = answer.body.replace(b"{id}", dumps(call.id))
        steps: list[bytes | Pause | Break] = [text] if text else []
        if answer.breaks:
            steps.append(Break())
        body = _Body(self._peer, iter(steps))
        return httpx.Response(answer.status, headers=dict(answer.headers), stream=body)


def _call(request: httpx.Request, body: bytes) -> FakeCall:
    headers = {name.lower(): value for name, value in request.headers.items()}
    url = str(request.url)
    if request.method == "GET":
        return FakeCall(method=CARD, url=url, headers=headers)
    envelope = jsonrpc.parse_request(body)
    return FakeCall(
        method=envelope.method,
        url=url,
        headers=headers,
        params=envelope.params,
        id=envelope.id,
        text=body.decode(),
    )


def _dialect(call: FakeCall) -> Dialect:
    return Dialect.V03 if "/" in call.method else Dialect.V1


def _encoded(call: FakeCall, value: CallResult | Message) -> JsonValue:
    method = find_method(call.method)
    if method is None:
        raise AssertionError(f"{call.method} is not a method")
    if method.result is SendMessageResponse:
        if isinstance(value, Task):
            value = SendMessageResponse(task=value)
        elif isinstance(value, Message):
            value = SendMessageResponse(message=value)
    return encode_result(method, _dialect(call), cast("CallResult", value))


def _failure(call: FakeCall, answer: Failure) -> HttpAnswer:
    if isinstance(answer.error, ProtocolError):
        body = jsonrpc.failure(call.id, answer.error)
    else:
        body = dumps({"jsonrpc": "2.0", "id": call.id, "error": dict(answer.error)})
    headers = {"content-type": "application/json", **answer.headers}
    return HttpAnswer(status=answer.status, headers=headers, body=body)


def _pieces(call: FakeCall, steps: tuple[Step, ...]) -> Iterator[bytes | Pause | Break]:
    for step in steps:
        match step:
            case bytes() | Pause() | Break():
                yield step
            case ProtocolError():
                yield sse.encode_event(jsonrpc.failure(call.id, step), event="error")
            case Event():
                yield _frame(call, step.event, step.id)
            case _:
                yield _frame(call, step, "")


def _frame(call: FakeCall, event: StreamEvent, event_id: str) -> bytes:
    data = jsonrpc.success(call.id, encode_event(_dialect(call), event))
    return sse.encode_event(data, id=event_id)


@final
class _Body(httpx.AsyncByteStream):
    """A body that follows the script."""

    def __init__(self, peer: FakePeer, steps: Iterator[bytes | Pause | Break]) -> None:
        self._peer = peer
        self._steps = steps
        self._closed = False
        peer.open_bodies += 1

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self

    async def __anext__(self) -> bytes:
        await trio.lowlevel.checkpoint()
        for step in self._steps:
            match step:
                case Pause():
                    await trio.sleep(step.seconds)
                case Break():
                    raise httpx.RemoteProtocolError("peer closed connection")
                case _:
                    return step
        raise StopAsyncIteration

    async def aclose(self) -> None:
        if not self._closed:
            self._closed = True
            self._peer.open_bodies -= 1
