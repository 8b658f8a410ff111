# ruff: noqa: ARG001 - a test asks for the virtual clock by naming its fixture
"""Every way a unary call can end: answers, refusals, broken answers, timeouts, repeats."""

import math
from typing import Any

import attrs
import pytest
import trio
from trio.testing import MockClock

from a2a_trio.client.client import open_client
from a2a_trio.client.options import ClientOptions
from a2a_trio.errors import (
    ForbiddenError,
    InvalidParamsError,
    PeerError,
    PeerProtocolError,
    PeerTimeoutError,
    PeerUnreachableError,
    ProtocolError,
    RateLimitedError,
    RemoteError,
    ServerBusyError,
    TaskNotFoundError,
    UnauthorizedError,
    UnsupportedOperationError,
)
from a2a_trio.testing.fake_peer import (
    Answer,
    Failure,
    FakePeer,
    Hang,
    HttpAnswer,
    Result,
    Unreachable,
)
from a2a_trio.wire.extensions import IDEMPOTENCY_EXTENSION
from a2a_trio.wire.model import TaskState


async def send(peer: FakePeer, options: ClientOptions) -> str:
    async with open_client(peer.url, options=options, transport=peer.transport) as client:
        return (await client.send("hi")).text


async def get(peer: FakePeer, options: ClientOptions) -> str:
    async with open_client(peer.url, options=options, transport=peer.transport) as client:
        return (await client.get("t1")).text


# --- what a proper answer becomes -----------------------------------------------------------


async def test_task_reply(values: Any, options: ClientOptions, autojump_clock: MockClock) -> None:
    """A task answers with its text, state, ids."""
    peer = FakePeer()
    peer.answers("SendMessage", Result(values.task(text="found")))
    async with open_client(peer.url, options=options, transport=peer.transport) as client:
        reply = await client.send("hi")
    assert (reply.text, reply.state, reply.task_id, reply.context_id) == (
        "found",
        TaskState.COMPLETED,
        "t1",
        "c1",
    )
    assert reply.message is None


async def test_message_reply(values: Any, options: ClientOptions) -> None:
    """A direct message has a text and a context, and no state."""
    peer = FakePeer()
    peer.answers("SendMessage", Result(values.message("hello")))
    async with open_client(peer.url, options=options, transport=peer.transport) as client:
        reply = await client.send("hi")
    assert (reply.text, reply.state, reply.task, reply.context_id) == ("hello", None, None, "c1")


async def test_request_shape(values: Any, options: ClientOptions) -> None:
    """What is asked for is what arrives, and nothing else."""
    peer = FakePeer()
    peer.answers("SendMessage", Result(values.task()))
    async with open_client(peer.url, options=options, transport=peer.transport) as client:
        await client.send(
            "hi",
            context_id="c1",
            task_id="t1",
            history_length=0,
            accepted_output_modes=("text/plain",),
            metadata={"k": 1},
        )
        await client.send("again")
    first, second = (call.params for call in peer.called("SendMessage"))
    assert isinstance(first, dict)
    assert isinstance(second, dict)
    message = first["message"]
    assert isinstance(message, dict)
    assert message.pop("messageId")
    assert message == {
        "role": "ROLE_USER",
        "parts": [{"text": "hi"}],
        "contextId": "c1",
        "taskId": "t1",
        "metadata": {"k": 1},
    }
    assert first["configuration"] == {"acceptedOutputModes": ["text/plain"], "historyLength": 0}
    assert "configuration" not in second


async def test_detached_send(values: Any, options: ClientOptions) -> None:
    """A detached send asks to return at once and gives the task."""
    peer = FakePeer()
    peer.answers("SendMessage", Result(values.task(TaskState.SUBMITTED, "")))
    async with open_client(peer.url, options=options, transport=peer.transport) as client:
        task = await client.send_detached("hi")
    params = peer.called("SendMessage")[0].params
    assert isinstance(params, dict)
    assert params["configuration"] == {"returnImmediately": True}
    assert task.state is TaskState.SUBMITTED


async def test_detached_send_answered_by_a_message(values: Any, options: ClientOptions) -> None:
    """An agent without tasks cannot be dispatched to, and the text says so."""
    peer = FakePeer()
    peer.answers("SendMessage", Result(values.message()))
    async with open_client(peer.url, options=options, transport=peer.transport) as client:
        with pytest.raises(PeerProtocolError, match="a message, not a task"):
            await client.send_detached("hi")


@pytest.mark.parametrize("content", ["", ()])
async def test_nothing_to_send(content: Any, options: ClientOptions) -> None:
    """An empty message never leaves."""
    peer = FakePeer()
    async with open_client(peer.url, options=options, transport=peer.transport) as client:
        with pytest.raises(ValueError, match="text or parts"):
            await client.send(content)
    assert peer.calls == []


# --- what a bad answer becomes --------------------------------------------------------------

HTML = HttpAnswer(status=500, headers={"content-type": "text/html"}, body=b"<h1>sEcReT</h1>")
BAD: list[tuple[str, HttpAnswer, type[Exception], str]] = [
    ("html", HTML, PeerProtocolError, r"HTTP 500 \(text/html\)"),
    ("text", HttpAnswer(body=b"sEcReT"), PeerProtocolError, "not JSON-RPC"),
    ("empty", HttpAnswer(), PeerProtocolError, "not JSON-RPC"),
    ("list", HttpAnswer(body=b'["sEcReT"]'), PeerProtocolError, "not JSON-RPC"),
    ("other json", HttpAnswer(body=b'{"sEcReT":1}'), PeerProtocolError, "not JSON-RPC"),
    ("deep", HttpAnswer(body=b"[" * 99 + b"]" * 99), PeerProtocolError, "not JSON-RPC"),
    (
        "wrong id",
        HttpAnswer(body=b'{"jsonrpc":"2.0","id":"other","result":{"sEcReT":1}}'),
        PeerProtocolError,
        "another request",
    ),
    (
        "no result",
        HttpAnswer(body=b'{"jsonrpc":"2.0","id":{id}}'),
        PeerProtocolError,
        "neither result nor error",
    ),
    (
        "wrong type",
        HttpAnswer(body=b'{"jsonrpc":"2.0","id":{id},"result":{"task":{"id":7}}}'),
        PeerProtocolError,
        "not valid A2A: .*id",
    ),
    (
        "json error page",
        HttpAnswer(status=404, body=b'{"detail":"sEcReT"}'),
        RemoteError,
        "HTTP 404",
    ),
    (
        "redirect",
        HttpAnswer(status=302, headers={"location": "http://x/"}),
        PeerProtocolError,
        "redirect",
    ),
    (
        "compressed",
        HttpAnswer(headers={"content-encoding": "gzip"}, body=b"\x1f\x8b"),
        PeerProtocolError,
        "compressed",
    ),
    ("401", HttpAnswer(status=401), UnauthorizedError, "Unauthorized"),
    ("403 html", attrs.evolve(HTML, status=403), ForbiddenError, "Forbidden"),
    ("429", HttpAnswer(status=429), RateLimitedError, "Rate limited"),
    (
        "401 with a body of another code",
        HttpAnswer(
            status=401,
            body=b'{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"who are you"}}',
        ),
        UnauthorizedError,
        "who are you",
    ),
    (
        "unknown code",
        HttpAnswer(
            body=b'{"jsonrpc":"2.0","id":{id},"error":{"code":-31999,"message":"odd\\nline"}}'
        ),
        RemoteError,
        "odd line",
    ),
    (
        "error without id",
        HttpAnswer(body=b'{"jsonrpc":"2.0","id":null,"error":{"code":-32602,"message":"bad"}}'),
        InvalidParamsError,
        "bad",
    ),
]


@pytest.mark.parametrize(
    ("answer", "error", "text"), [case[1:] for case in BAD], ids=[case[0] for case in BAD]
)
async def test_bad_answer(
    answer: HttpAnswer,
    error: type[Exception],
    text: str,
    options: ClientOptions,
    autojump_clock: MockClock,
) -> None:
    """A send raises one clear error, is not repeated, and the body is never quoted."""
    peer = FakePeer()
    peer.answers("SendMessage", answer)
    with pytest.raises(error, match=text) as caught:
        await send(peer, attrs.evolve(options, protocol="1.0"))
    assert type(caught.value) is error
    assert "sEcReT" not in str(caught.value)
    assert len(peer.called("SendMessage")) == 1
    assert peer.open_bodies == 0


async def test_error_texts_are_one_bounded_line(options: ClientOptions) -> None:
    """What a peer says in an error cannot draw on a terminal or fill it."""
    peer = FakePeer()
    text = "\x1b[2Jline\nbreak \u202e" + "x" * 10_000
    peer.answers("SendMessage", Failure({"code": -32001, "message": text}))
    with pytest.raises(TaskNotFoundError) as caught:
        await send(peer, options)
    shown = str(caught.value)
    assert shown.isprintable()
    assert len(shown) <= 500


async def test_errors_name_the_peer(options: ClientOptions) -> None:
    """Whoever calls many peers can tell which one it was."""
    peer = FakePeer()
    peer.answers("SendMessage", HttpAnswer(body=b"no"))
    with pytest.raises(PeerError) as caught:
        await send(peer, options)
    assert caught.value.url.startswith(peer.url)


async def test_oversize_answer(options: ClientOptions) -> None:
    """Reading stops at the bound, and the connection is given back."""
    peer = FakePeer()
    peer.answers("SendMessage", HttpAnswer(body=b" " * 5_001))
    with pytest.raises(PeerProtocolError, match="larger than 5000 bytes"):
        await send(peer, attrs.evolve(options, max_response_bytes=5_000))
    assert peer.open_bodies == 0


async def test_truncated_answer_of_a_send(options: ClientOptions) -> None:
    """A broken answer is an error that says what is unknown; the send is not repeated."""
    peer = FakePeer()
    peer.answers("SendMessage", HttpAnswer(body=b'{"jsonrpc"', breaks=True))
    with pytest.raises(PeerProtocolError, match="whether the request was carried out is unknown"):
        await send(peer, options)
    assert len(peer.called("SendMessage")) == 1


# --- timeouts -------------------------------------------------------------------------------


async def test_send_timeout(options: ClientOptions, autojump_clock: MockClock) -> None:
    """No answer: delivery is unknown, after exactly the time allowed, without a repeat."""
    peer = FakePeer()
    peer.answers("SendMessage", Hang())
    began = trio.current_time()
    with pytest.raises(
        PeerTimeoutError, match="within 60 s; whether it was carried out is unknown"
    ):
        await send(peer, options)
    assert trio.current_time() - began == pytest.approx(60)
    assert len(peer.called("SendMessage")) == 1


async def test_call_timeout(options: ClientOptions, autojump_clock: MockClock) -> None:
    """Quick calls have a limit of their own."""
    peer = FakePeer()
    peer.answers("GetTask", Hang())
    began = trio.current_time()
    with pytest.raises(PeerTimeoutError, match="GetTask within 20 s"):
        await get(peer, options)
    assert trio.current_time() - began == pytest.approx(20)


async def test_no_limit(values: Any, options: ClientOptions, autojump_clock: MockClock) -> None:
    """An infinite limit is one: an answer after a day is still an answer."""
    peer = FakePeer()
    peer.answers("SendMessage", Result(values.task(), delay=86_400))
    assert await send(peer, attrs.evolve(options, send_timeout=math.inf)) == "done"


async def test_waiting_for_a_connection_is_not_sending(
    options: ClientOptions, autojump_clock: MockClock
) -> None:
    """A call that never got a connection says that nothing was sent."""
    peer = FakePeer()
    peer.answers("SendMessage", Hang())
    narrow = attrs.evolve(options, max_connections=1, use_card=False, retry_attempts=0)
    async with (
        open_client(peer.url, options=narrow, transport=peer.transport) as client,
        trio.open_nursery() as nursery,
    ):
        nursery.start_soon(client.send, "occupies the connection")
        await trio.testing.wait_all_tasks_blocked()
        with pytest.raises(PeerUnreachableError, match="GetTask was not sent within 20 s"):
            await client.get("t1")
        nursery.cancel_scope.cancel()
    assert peer.called("GetTask") == []


# --- repeats --------------------------------------------------------------------------------

LOST = HttpAnswer(body=b"{", breaks=True)
TRANSIENT: list[tuple[str, Answer]] = [
    ("unreachable", Unreachable()),
    ("429", Failure(RateLimitedError(), status=429)),
    ("502", HttpAnswer(status=502)),
    ("503", HttpAnswer(status=503)),
    ("504 html", attrs.evolve(HTML, status=504)),
    ("busy", Failure(ServerBusyError(), status=503)),
    ("lost", LOST),
]


@pytest.mark.parametrize("answer", [a for _, a in TRANSIENT], ids=[n for n, _ in TRANSIENT])
async def test_safe_calls_are_repeated(
    answer: Answer, values: Any, options: ClientOptions, autojump_clock: MockClock
) -> None:
    """Reading twice does no harm, so a passing failure is not shown."""
    peer = FakePeer()
    peer.answers("GetTask", answer, answer, Result(values.task()))
    assert await get(peer, options) == "done"
    assert len(peer.called("GetTask")) == 3


async def test_repeats_end(options: ClientOptions, autojump_clock: MockClock) -> None:
    """After the allowed repeats the last failure is raised."""
    peer = FakePeer()
    peer.answers("GetTask", HttpAnswer(status=502))
    with pytest.raises(PeerProtocolError, match="HTTP 502"):
        await get(peer, options)
    assert len(peer.called("GetTask")) == 3


@pytest.mark.parametrize(
    ("answer", "repeated"),
    [(a, name in {"unreachable", "busy"}) for name, a in TRANSIENT],
    ids=[n for n, _ in TRANSIENT],
)
async def test_a_send_is_repeated_only_if_nothing_started(
    answer: Answer,
    repeated: bool,  # noqa: FBT001 - a parameter of the test
    values: Any,
    options: ClientOptions,
    autojump_clock: MockClock,
) -> None:
    """A send that may have arrived would run twice."""
    peer = FakePeer()
    peer.answers("SendMessage", answer, Result(values.task()))
    if repeated:
        assert await send(peer, options) == "done"
    else:
        with pytest.raises((PeerError, ProtocolError)):
            await send(peer, options)
    assert len(peer.called("SendMessage")) == 1 + repeated


@pytest.mark.parametrize("answer", [a for _, a in TRANSIENT], ids=[n for n, _ in TRANSIENT])
async def test_a_send_is_repeated_to_a_peer_that_recognises_it(
    answer: Answer, values: Any, options: ClientOptions, autojump_clock: MockClock
) -> None:
    """With the extension, a send is repeated under the same key and with the same message."""
    peer = FakePeer(values.card(extensions=(IDEMPOTENCY_EXTENSION,)))
    peer.answers("SendMessage", answer, Result(values.task()))
    assert await send(peer, options) == "done"
    first, second = peer.called("SendMessage")
    assert first.headers["idempotency-key"] == second.headers["idempotency-key"]
    assert first.params == second.params
    assert IDEMPOTENCY_EXTENSION in first.headers["a2a-extensions"]


async def test_each_send_has_its_own_key(values: Any, options: ClientOptions) -> None:
    """Two equal sends are two, unless the caller says otherwise."""
    peer = FakePeer()
    peer.answers("SendMessage", Result(values.task()))
    async with open_client(peer.url, options=options, transport=peer.transport) as client:
        await client.send("hi")
        await client.send("hi")
        await client.send("hi", idempotency_key="mine")
    keys = [call.headers["idempotency-key"] for call in peer.called("SendMessage")]
    assert len(set(keys)) == 3
    assert keys[2] == "mine"


async def test_retry_after_is_obeyed(
    values: Any, options: ClientOptions, autojump_clock: MockClock
) -> None:
    """A peer that says when it has time again is asked then."""
    peer = FakePeer()
    busy = Failure(ServerBusyError(), status=503, headers={"retry-after": "17"})
    peer.answers("SendMessage", busy, Result(values.task()))
    began = trio.current_time()
    assert await send(peer, options) == "done"
    assert trio.current_time() - began == pytest.approx(17)


async def test_no_wait_beyond_the_limit(options: ClientOptions, autojump_clock: MockClock) -> None:
    """A wait that cannot end in time is not begun: the peer's own error is shown at once."""
    peer = FakePeer()
    peer.answers("SendMessage", Failure(ServerBusyError(retry_after=3_000), status=503))
    began = trio.current_time()
    with pytest.raises(ServerBusyError) as caught:
        await send(peer, options)
    assert trio.current_time() - began < 1
    assert caught.value.retry_after == 3_000


async def test_no_repeats_when_switched_off(options: ClientOptions) -> None:
    """Zero repeats are none."""
    peer = FakePeer()
    peer.answers("GetTask", HttpAnswer(status=502))
    with pytest.raises(PeerProtocolError):
        await get(peer, attrs.evolve(options, retry_attempts=0))
    assert len(peer.called("GetTask")) == 1


async def test_final_errors_are_not_repeated(options: ClientOptions) -> None:
    """An answer is an answer."""
    peer = FakePeer()
    peer.answers("GetTask", Failure(TaskNotFoundError()))
    with pytest.raises(TaskNotFoundError):
        await get(peer, options)
    assert len(peer.called("GetTask")) == 1


async def test_use_after_close(options: ClientOptions) -> None:
    """A client that was closed says so."""
    peer = FakePeer()
    async with open_client(peer.url, options=options, transport=peer.transport) as client:
        pass
    with pytest.raises(RuntimeError, match="closed"):
        await client.get("t1")


async def test_the_body_of_the_caller_is_not_wrapped(options: ClientOptions) -> None:
    """What the caller's own block raises comes out as it is."""
    peer = FakePeer()
    cause = LookupError("mine")

    async def block() -> None:
        async with open_client(peer.url, options=options, transport=peer.transport):
            try:
                raise cause
            except LookupError:
                raise ValueError("mine")  # noqa: B904 - the context is what is tested

    with pytest.raises(ValueError, match="mine") as caught:
        await block()
    assert caught.value.__context__ is cause


async def test_a_group_of_the_caller_stays_a_group(options: ClientOptions) -> None:
    """An ExceptionGroup that the caller raised is not taken apart, and not wrapped again."""
    peer = FakePeer()

    async def block() -> None:
        async with open_client(peer.url, options=options, transport=peer.transport):
            raise ExceptionGroup("mine", [ValueError("a")])

    with pytest.RaisesGroup(ValueError, match="mine"):
        await block()


async def test_operation_without_name_in_the_dialect(options: ClientOptions) -> None:
    """A2A v0.3 has no list of tasks, and nothing is asked."""
    peer = FakePeer()
    async with open_client(
        peer.url, options=attrs.evolve(options, protocol="0.3"), transport=peer.transport
    ) as client:
        with pytest.raises(UnsupportedOperationError, match=r"0\.3 has no ListTasks"):
            await client.list()
