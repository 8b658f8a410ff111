# ruff: noqa: ARG001 - a test asks for the virtual clock by naming its fixture
"""Streams: what is delivered, how they end, how they break, and how they are taken up again."""

import math
from typing import Any

import attrs
import pytest
import trio
from trio.testing import MockClock

from a2a_trio.client.client import open_client
from a2a_trio.client.options import ClientOptions
from a2a_trio.errors import (
    InternalError,
    PeerError,
    PeerProtocolError,
    PeerTimeoutError,
    ServerBusyError,
    TaskNotFoundError,
    UnsupportedOperationError,
)
from a2a_trio.testing.fake_peer import (
    Break,
    Event,
    Failure,
    FakePeer,
    Hang,
    HttpAnswer,
    Pause,
    Result,
    Stream,
    Unreachable,
)
from a2a_trio.wire.extensions import IDEMPOTENCY_EXTENSION, REPLAY_EXTENSION
from a2a_trio.wire.model import Message, StreamEvent, Task, TaskState

WORKING = TaskState.WORKING
COMPLETED = TaskState.COMPLETED


async def read(
    peer: FakePeer, options: ClientOptions
) -> tuple[list[StreamEvent], Task | None, str]:
    """Read a whole stream."""
    found: list[StreamEvent] = []
    async with open_client(peer.url, options=options, transport=peer.transport) as client:
        async with client.stream("hi") as events:
            async for event in events:
                found.append(event)  # noqa: PERF401 - what was read counts, also after an error
        assert peer.open_bodies == 0
        return found, events.task, events.last_event_id


# --- delivery -------------------------------------------------------------------------------


async def test_events_and_what_they_add_up_to(
    values: Any, options: ClientOptions, autojump_clock: MockClock
) -> None:
    """Events come as they are; the task is what they add up to."""
    peer = FakePeer(values.card())
    script = (
        values.task(TaskState.SUBMITTED, ""),
        values.status(WORKING, "reading"),
        values.chunk("Hel", append=False),
        values.chunk("lo", last=True),
        values.status(COMPLETED),
    )
    peer.answers("SendStreamingMessage", Stream(*(Event(e, str(i)) for i, e in enumerate(script))))
    found, task, last_id = await read(peer, options)
    assert found == list(script)
    assert task is not None
    assert (task.text, task.state, task.context_id) == ("Hello", COMPLETED, "c1")
    assert last_id == "4"
    assert peer.calls[-1].headers["accept"].startswith("text/event-stream")


async def test_direct_message(values: Any, options: ClientOptions) -> None:
    """An agent without tasks streams one message."""
    peer = FakePeer()
    peer.answers("SendStreamingMessage", Stream(values.message("hello")))
    async with open_client(peer.url, options=options, transport=peer.transport) as client:
        async with client.stream("hi") as events:
            found = [event async for event in events]
        assert [type(event) for event in found] == [Message]
        assert events.message is not None
        assert (events.task, events.state, events.context_id) == (None, None, "c1")


@pytest.mark.parametrize("first", ["status", "chunk"])
async def test_update_as_first_event(first: str, values: Any, options: ClientOptions) -> None:
    """A stream of a task that was there before may begin with an update."""
    peer = FakePeer()
    event = values.status(WORKING) if first == "status" else values.chunk("Hi")
    peer.answers("SendStreamingMessage", Stream(event, values.status(COMPLETED)))
    found, task, _ = await read(peer, options)
    assert len(found) == 2
    assert task is not None
    assert (task.id, task.state) == ("t1", COMPLETED)


async def test_last_snapshot_after_the_end_is_delivered(
    values: Any, options: ClientOptions, autojump_clock: MockClock
) -> None:
    """A peer may send the whole task once more before it closes (A2A section 11.7)."""
    peer = FakePeer()
    peer.answers(
        "SendStreamingMessage",
        Stream(
            values.task(WORKING, ""), values.status(COMPLETED), Pause(0.5), values.task(text="all")
        ),
    )
    found, task, _ = await read(peer, options)
    assert len(found) == 3
    assert task is not None
    assert task.text == "all"


@pytest.mark.parametrize("state", [COMPLETED, TaskState.FAILED, TaskState.INPUT_REQUIRED])
async def test_peer_that_does_not_close(
    state: TaskState, values: Any, options: ClientOptions, autojump_clock: MockClock
) -> None:
    """After the last event the iteration ends a second later, whatever the peer does."""
    peer = FakePeer()
    peer.answers(
        "SendStreamingMessage",
        Stream(values.task(WORKING, ""), values.status(state), Pause(math.inf)),
    )
    began = trio.current_time()
    _, task, _ = await read(peer, options)
    assert task is not None
    assert task.state is state
    assert trio.current_time() - began == pytest.approx(1)


async def test_auth_required_keeps_the_stream(
    values: Any, options: ClientOptions, autojump_clock: MockClock
) -> None:
    """The agent goes on by itself once it has its permission (A2A section 7.6.1)."""
    peer = FakePeer()
    peer.answers(
        "SendStreamingMessage",
        Stream(values.status(TaskState.AUTH_REQUIRED), Pause(20), values.status(COMPLETED)),
    )
    found, _, _ = await read(peer, options)
    assert len(found) == 2


async def test_stream_that_ends_while_the_task_waits(values: Any, options: ClientOptions) -> None:
    """A task that waits for its caller has nothing to stream."""
    peer = FakePeer()
    peer.answers("SendStreamingMessage", Stream(values.status(TaskState.AUTH_REQUIRED)))
    found, _, _ = await read(peer, options)
    assert len(found) == 1


async def test_answer_without_a_stream(values: Any, options: ClientOptions) -> None:
    """A peer that answers a plain result has said one event."""
    peer = FakePeer()
    peer.answers(
        "SendStreamingMessage",
        HttpAnswer(
            body=b'{"jsonrpc":"2.0","id":{id},"result":{"task":{"id":"t1","status":{"state":"TASK_STATE_COMPLETED"}}}}'
        ),
    )
    found, task, _ = await read(peer, options)
    assert len(found) == 1
    assert task is not None
    assert task.state is COMPLETED


async def test_v03_stream(values: Any, options: ClientOptions) -> None:
    """The same events from an older peer."""
    peer = FakePeer(values.card(("http://peer.test/old", "0.3")))
    peer.answers(
        "message/stream",
        Stream(
            values.task(WORKING, ""), values.chunk("Hi", append=False), values.status(COMPLETED)
        ),
    )
    found, task, _ = await read(peer, options)
    assert len(found) == 3
    assert task is not None
    assert (task.text, task.state) == ("Hi", COMPLETED)


async def test_named_pings_are_ignored(values: Any, options: ClientOptions) -> None:
    """Some servers send events of their own kind."""
    peer = FakePeer()
    peer.answers(
        "SendStreamingMessage", Stream(b"event: ping\ndata: 12:00\n\n", values.status(COMPLETED))
    )
    found, _, _ = await read(peer, options)
    assert len(found) == 1


async def test_leaving_early(
    values: Any, options: ClientOptions, autojump_clock: MockClock
) -> None:
    """Whoever has seen enough leaves; the connection is given back at once."""
    peer = FakePeer()
    peer.answers("SendStreamingMessage", Stream(values.task(WORKING, ""), Pause(math.inf)))
    began = trio.current_time()
    async with open_client(peer.url, options=options, transport=peer.transport) as client:
        async with client.stream("hi") as events:
            async for _ in events:
                break
        assert peer.open_bodies == 0
        assert trio.current_time() - began < 0.1
        with pytest.raises(StopAsyncIteration):
            await anext(events)


async def test_waiting_for_an_event_can_be_cancelled(
    values: Any, options: ClientOptions, autojump_clock: MockClock
) -> None:
    """A cancelled wait loses nothing: the stream goes on where it was."""
    peer = FakePeer()
    peer.answers(
        "SendStreamingMessage",
        Stream(values.task(WORKING, ""), Pause(10), values.chunk("Hi"), values.status(COMPLETED)),
    )
    found: list[StreamEvent] = []
    waits = 0
    async with (
        open_client(peer.url, options=options, transport=peer.transport) as client,
        client.stream("hi") as events,
    ):
        while events.state is None or not events.state.is_terminal:
            with trio.move_on_after(3) as scope:
                found.append(await anext(events))
            waits += scope.cancelled_caught
    assert len(found) == 3
    assert waits == 3


async def test_slow_consumer(
    values: Any, options: ClientOptions, autojump_clock: MockClock
) -> None:
    """A consumer that takes its time is not taken for a silent peer."""
    peer = FakePeer()
    chunks = [values.chunk(str(i)) for i in range(100)]
    peer.answers(
        "SendStreamingMessage", Stream(values.task(WORKING, ""), *chunks, values.status(COMPLETED))
    )
    count = 0
    async with (
        open_client(peer.url, options=options, transport=peer.transport) as client,
        client.stream("hi") as events,
    ):
        async for _ in events:
            count += 1
            await trio.sleep(options.stream_idle_timeout * 2)
    assert count == 102


async def test_streams_side_by_side(
    values: Any, options: ClientOptions, autojump_clock: MockClock
) -> None:
    """Streams of one client do not disturb each other, also when one of them fails."""
    peer = FakePeer()
    good = Stream(values.task(WORKING, ""), Pause(5), values.status(COMPLETED))
    bad = Stream(values.task(WORKING, ""), Pause(1), b"data: nonsense\n\n")
    peer.answers("SendStreamingMessage", good, bad, good)
    ends: list[str] = []
    async with open_client(peer.url, options=options, transport=peer.transport) as client:
        await client._routes.current()

        async def follow() -> None:
            try:
                async with client.stream("hi") as events:
                    async for _ in events:
                        pass
                ends.append("good")
            except PeerProtocolError:
                ends.append("bad")

        async with trio.open_nursery() as nursery:
            for _ in range(3):
                nursery.start_soon(follow)
    assert sorted(ends) == ["bad", "good", "good"]
    assert peer.open_bodies == 0


# --- refusals and broken streams ------------------------------------------------------------


async def test_refusal_before_the_first_event(options: ClientOptions) -> None:
    """An error before the stream is the operation's error, raised on entering."""
    peer = FakePeer()
    peer.answers("SendStreamingMessage", Failure(UnsupportedOperationError("no streams")))
    async with open_client(peer.url, options=options, transport=peer.transport) as client:
        with pytest.raises(UnsupportedOperationError, match="no streams"):
            async with client.stream("hi"):
                raise AssertionError("entered")
    assert peer.open_bodies == 0


async def test_error_frame(values: Any, options: ClientOptions) -> None:
    """An error in the stream ends it, and is the error of its code."""
    peer = FakePeer()
    peer.answers(
        "SendStreamingMessage", Stream(values.task(WORKING, ""), InternalError("it broke"))
    )
    with pytest.raises(InternalError, match="it broke"):
        await read(peer, options)


BROKEN: list[tuple[str, tuple[Any, ...], str]] = [
    ("ends", (), "ended while the task was working"),
    ("breaks", (Break(),), "connection broke"),
    ("nonsense", (b"data: sEcReT\n\n",), "other than JSON-RPC"),
    ("bare event", (b'data: {"task":{"id":"t1"}}\n\n',), "other than JSON-RPC"),
    (
        "wrong id",
        (b'data: {"jsonrpc":"2.0","id":"x","result":{"task":{"id":"t1"}}}\n\n',),
        "another request",
    ),
    ("too large", (b"data: " + b"x" * 40_000 + b"\n\n", b"\n"), "larger than 30000 bytes"),
    ("endless line", (b"x" * 20_000, b"x" * 20_000, b"\n"), "larger than 30000 bytes"),
    ("unfinished event", (b'data: {"jsonrpc":"2.0"',), "ended while the task was working"),
]


@pytest.mark.parametrize(
    ("steps", "text"), [case[1:] for case in BROKEN], ids=[case[0] for case in BROKEN]
)
async def test_broken_stream(
    steps: tuple[Any, ...], text: str, values: Any, options: ClientOptions
) -> None:
    """What is lost is not passed off as an end."""
    peer = FakePeer()
    peer.answers("SendStreamingMessage", Stream(values.task(WORKING, ""), *steps))
    with pytest.raises(PeerProtocolError, match=text) as caught:
        await read(peer, attrs.evolve(options, max_event_bytes=30_000))
    assert "sEcReT" not in str(caught.value)
    assert len(peer.called("SendStreamingMessage")) == 1
    assert peer.open_bodies == 0


async def test_stream_without_an_event(options: ClientOptions) -> None:
    """An empty stream is no answer."""
    peer = FakePeer()
    peer.answers("SendStreamingMessage", Stream())
    with pytest.raises(PeerProtocolError, match="without an event"):
        await read(peer, options)


async def test_stream_of_two_tasks(values: Any, options: ClientOptions) -> None:
    """Events of another task are not mixed into this one."""
    peer = FakePeer()
    peer.answers(
        "SendStreamingMessage",
        Stream(values.task(WORKING, ""), values.status(COMPLETED, task_id="t2")),
    )
    with pytest.raises(PeerProtocolError, match="another task"):
        await read(peer, options)


async def test_result_that_grows_too_large(values: Any, options: ClientOptions) -> None:
    """What a stream adds up to is bounded."""
    peer = FakePeer()
    chunks = [values.chunk("x" * 1_000) for _ in range(100)]
    peer.answers("SendStreamingMessage", Stream(values.task(WORKING, ""), *chunks))
    with pytest.raises(PeerProtocolError, match="larger than the 50000 bytes"):
        await read(peer, attrs.evolve(options, max_folded_bytes=50_000))


async def test_break_after_the_last_event(values: Any, options: ClientOptions) -> None:
    """When all is said it does not matter how the connection ends."""
    peer = FakePeer()
    peer.answers("SendStreamingMessage", Stream(values.status(COMPLETED), Break()))
    found, _, _ = await read(peer, options)
    assert len(found) == 1


async def test_silence(values: Any, options: ClientOptions, autojump_clock: MockClock) -> None:
    """Silence longer than allowed is a timeout; comments are no silence."""
    peer = FakePeer()
    alive = [step for _ in range(10) for step in (Pause(29), b":\n\n")]
    peer.answers("SendStreamingMessage", Stream(*alive, values.task(WORKING, ""), Pause(math.inf)))
    began = trio.current_time()
    with pytest.raises(PeerTimeoutError, match="silent for 30 s"):
        await read(peer, options)
    assert trio.current_time() - began == pytest.approx(10 * 29 + 30)
    assert peer.open_bodies == 0


async def test_no_head(options: ClientOptions, autojump_clock: MockClock) -> None:
    """A peer that does not even begin to answer is silent, too."""
    peer = FakePeer()
    peer.answers("SendStreamingMessage", Hang())
    with pytest.raises(PeerTimeoutError, match="within 30 s"):
        await read(peer, options)


async def test_no_limit_on_the_whole(
    values: Any, options: ClientOptions, autojump_clock: MockClock
) -> None:
    """A stream that keeps talking may take a week."""
    peer = FakePeer()
    alive = [step for _ in range(20_000) for step in (Pause(29), b":\n\n")]
    peer.answers("SendStreamingMessage", Stream(*alive, values.status(COMPLETED)))
    await read(peer, options)
    assert trio.current_time() > 500_000


async def test_closing_the_client_ends_its_streams(
    values: Any, options: ClientOptions, autojump_clock: MockClock
) -> None:
    """A stream that outlives its client is told so."""
    peer = FakePeer()
    peer.answers("SendStreamingMessage", Stream(values.task(WORKING, ""), Pause(math.inf)))
    async with open_client(peer.url, options=options, transport=peer.transport) as client:
        events = await client.stream("hi").__aenter__()
        await anext(events)
    with pytest.raises(PeerError, match="client was closed"):
        await anext(events)
    await events.__aexit__(None, None, None)
    assert peer.open_bodies == 0


# --- repeats of the opening -----------------------------------------------------------------


async def test_opening_is_repeated_if_nothing_started(
    values: Any, options: ClientOptions, autojump_clock: MockClock
) -> None:
    """As for a send."""
    peer = FakePeer()
    peer.answers(
        "SendStreamingMessage",
        Unreachable(),
        Failure(ServerBusyError(), status=503),
        Stream(values.status(COMPLETED)),
    )
    await read(peer, options)
    keys = {call.headers["idempotency-key"] for call in peer.called("SendStreamingMessage")}
    assert len(keys) == 1


async def test_break_before_the_first_event(
    values: Any, options: ClientOptions, autojump_clock: MockClock
) -> None:
    """A peer that recognises a repeated send is asked again; another one is not."""
    steps = (Stream(b":\n\n", Break()), Stream(values.status(COMPLETED)))
    peer = FakePeer(values.card(extensions=(IDEMPOTENCY_EXTENSION,)))
    peer.answers("SendStreamingMessage", *steps)
    found, _, _ = await read(peer, options)
    assert len(found) == 1
    peer = FakePeer(values.card())
    peer.answers("SendStreamingMessage", *steps)
    with pytest.raises(PeerProtocolError, match="broke"):
        await read(peer, options)


# --- taking a broken stream up again --------------------------------------------------------


@pytest.fixture
def replaying(values: Any) -> FakePeer:
    return FakePeer(values.card(extensions=(REPLAY_EXTENSION,)))


@pytest.mark.parametrize(
    "problem", [(Break(),), (), (Pause(math.inf),)], ids=["break", "end", "silence"]
)
async def test_resume(
    problem: tuple[Any, ...],
    replaying: FakePeer,
    values: Any,
    options: ClientOptions,
    autojump_clock: MockClock,
) -> None:
    """A broken stream goes on where it broke, and what comes twice is delivered once."""
    replaying.answers(
        "SendStreamingMessage",
        Stream(Event(values.task(WORKING, ""), "1"), Event(values.chunk("Hel"), "2"), *problem),
    )
    replaying.answers(
        "SubscribeToTask",
        Stream(
            Event(values.chunk("Hel"), "2"),
            Event(values.chunk("lo"), "3"),
            Event(values.status(COMPLETED), "4"),
        ),
    )
    found, task, last_id = await read(replaying, options)
    assert len(found) == 4
    assert task is not None
    assert (task.text, last_id) == ("Hello", "4")
    (again,) = replaying.called("SubscribeToTask")
    assert again.headers["last-event-id"] == "2"
    assert again.params == {"id": "t1"}


async def test_resume_with_a_snapshot(
    replaying: FakePeer, values: Any, options: ClientOptions, autojump_clock: MockClock
) -> None:
    """A peer that sends the whole task first does not double anything."""
    replaying.answers(
        "SendStreamingMessage",
        Stream(Event(values.task(WORKING, ""), "1"), Event(values.chunk("Hel"), "2"), Break()),
    )
    replaying.answers(
        "SubscribeToTask",
        Stream(Event(values.task(WORKING, "Hello"), "3"), Event(values.status(COMPLETED), "4")),
    )
    _, task, _ = await read(replaying, options)
    assert task is not None
    assert task.text == "Hello"


async def test_task_that_ended_meanwhile(
    replaying: FakePeer, values: Any, options: ClientOptions, autojump_clock: MockClock
) -> None:
    """An ended task has no stream; its last state is asked for instead."""
    replaying.answers("SendStreamingMessage", Stream(Event(values.task(WORKING, ""), "1"), Break()))
    replaying.answers("SubscribeToTask", Failure(UnsupportedOperationError()))
    replaying.answers("GetTask", Result(values.task(text="all")))
    found, task, _ = await read(replaying, options)
    assert len(found) == 2
    assert task is not None
    assert (task.text, task.state) == ("all", COMPLETED)


async def test_resumes_are_bounded(
    replaying: FakePeer, values: Any, options: ClientOptions, autojump_clock: MockClock
) -> None:
    """A stream that breaks again and again without an event is given up."""
    replaying.answers("SendStreamingMessage", Stream(Event(values.task(WORKING, ""), "1"), Break()))
    replaying.answers("SubscribeToTask", Stream(Break()))
    with pytest.raises(PeerProtocolError, match="broke"):
        await read(replaying, options)
    assert len(replaying.called("SubscribeToTask")) == options.retry_attempts


async def test_each_event_renews_the_resumes(
    replaying: FakePeer, values: Any, options: ClientOptions, autojump_clock: MockClock
) -> None:
    """A stream that makes headway may break as often as it likes."""
    replaying.answers("SendStreamingMessage", Stream(Event(values.task(WORKING, ""), "0"), Break()))
    legs = [Stream(Event(values.chunk("x"), str(i)), Break()) for i in range(1, 10)]
    replaying.answers("SubscribeToTask", *legs, Stream(Event(values.status(COMPLETED), "10")))
    _, task, _ = await read(replaying, options)
    assert task is not None
    assert task.text == "x" * 9


async def test_resume_can_be_cancelled(
    replaying: FakePeer, values: Any, options: ClientOptions, autojump_clock: MockClock
) -> None:
    """An impatient consumer does not lose the stream while it is taken up again."""
    replaying.answers("SendStreamingMessage", Stream(Event(values.task(WORKING, ""), "1"), Break()))
    replaying.answers("SubscribeToTask", Stream(Event(values.status(COMPLETED), "2")))
    found = 0
    async with (
        open_client(replaying.url, options=options, transport=replaying.transport) as client,
        client.stream("hi") as events,
    ):
        for _ in range(1_000):
            if events.state is COMPLETED:
                break
            with trio.move_on_after(0.01):
                await anext(events)
                found += 1
    assert found == 2


async def test_no_resume_without_the_extension(
    values: Any, options: ClientOptions, autojump_clock: MockClock
) -> None:
    """Without replay something would be missing, and nobody would know."""
    peer = FakePeer(values.card())
    peer.answers("SendStreamingMessage", Stream(Event(values.task(WORKING, ""), "1"), Break()))
    with pytest.raises(PeerProtocolError, match="broke"):
        await read(peer, options)
    assert peer.called("SubscribeToTask") == []


async def test_subscribe(values: Any, options: ClientOptions) -> None:
    """A subscription begins with the task, and can begin after an event."""
    peer = FakePeer()
    peer.answers("SubscribeToTask", Stream(values.task(WORKING, ""), values.status(COMPLETED)))
    async with (
        open_client(peer.url, options=options, transport=peer.transport) as client,
        client.subscribe("t1", last_event_id="7") as events,
    ):
        assert len([event async for event in events]) == 2
    (call,) = peer.called("SubscribeToTask")
    assert call.headers["last-event-id"] == "7"
    assert "idempotency-key" not in call.headers


async def test_subscribe_to_nothing(options: ClientOptions) -> None:
    """An unknown task is not found."""
    peer = FakePeer()
    peer.answers("SubscribeToTask", Failure(TaskNotFoundError()))
    async with open_client(peer.url, options=options, transport=peer.transport) as client:
        with pytest.raises(TaskNotFoundError):
            async with client.subscribe("t1"):
                raise AssertionError("entered")


async def test_misuse(values: Any, options: ClientOptions) -> None:
    """A stream is entered, once."""
    peer = FakePeer()
    peer.answers("SendStreamingMessage", Stream(values.status(COMPLETED)))
    async with open_client(peer.url, options=options, transport=peer.transport) as client:
        events = client.stream("hi")
        with pytest.raises(RuntimeError, match="async with"):
            await anext(events)
        async with events:
            pass
        with pytest.raises(RuntimeError, match="once"):
            await events.__aenter__()
