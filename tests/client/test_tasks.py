# ruff: noqa: ARG001 - a test asks for the virtual clock by naming its fixture
"""Getting, listing, cancelling and waiting."""

from typing import Any

import attrs
import pytest
import trio
from trio.testing import MockClock

from a2a_trio.client.client import open_client
from a2a_trio.client.options import ClientOptions
from a2a_trio.errors import (
    PeerProtocolError,
    PeerTimeoutError,
    TaskNotCancelableError,
    TaskNotFoundError,
)
from a2a_trio.testing.fake_peer import (
    Break,
    Failure,
    FakePeer,
    Hang,
    HttpAnswer,
    Pause,
    Result,
    Stream,
)
from a2a_trio.wire.model import TaskState
from a2a_trio.wire.requests import ListTasksResponse

WORKING = TaskState.WORKING


def page(values: Any, *ids: str, token: str = "") -> Result:
    tasks = tuple(values.task(task_id=task_id) for task_id in ids)
    return Result(
        ListTasksResponse(tasks=tasks, next_page_token=token, page_size=50, total_size=len(tasks))
    )


async def test_get(values: Any, options: ClientOptions) -> None:
    """The wanted history is asked for; none is not the same as any."""
    peer = FakePeer()
    peer.answers("GetTask", Result(values.task()))
    async with open_client(peer.url, options=options, transport=peer.transport) as client:
        await client.get("t1")
        await client.get("t1", history_length=0)
    assert [c.params for c in peer.called("GetTask")] == [
        {"id": "t1"},
        {"id": "t1", "historyLength": 0},
    ]


async def test_cancel(values: Any, options: ClientOptions, autojump_clock: MockClock) -> None:
    """Cancelling is repeated where it may have been lost, since it is the same twice."""
    peer = FakePeer()
    peer.answers("CancelTask", HttpAnswer(breaks=True), Result(values.task(TaskState.CANCELED, "")))
    async with open_client(peer.url, options=options, transport=peer.transport) as client:
        assert (await client.cancel("t1", metadata={"why": "bored"})).state is TaskState.CANCELED
    assert peer.calls[-1].params == {"id": "t1", "metadata": {"why": "bored"}}


async def test_cancel_too_late(options: ClientOptions) -> None:
    """A task that has ended says so."""
    peer = FakePeer()
    peer.answers("CancelTask", Failure(TaskNotCancelableError()))
    async with open_client(peer.url, options=options, transport=peer.transport) as client:
        with pytest.raises(TaskNotCancelableError):
            await client.cancel("t1")


# --- lists ----------------------------------------------------------------------------------


async def test_list(values: Any, options: ClientOptions) -> None:
    """Filters arrive as they were given."""
    peer = FakePeer()
    peer.answers("ListTasks", page(values, "a", "b"))
    async with open_client(peer.url, options=options, transport=peer.transport) as client:
        found = await client.list(
            context_id="c1", status=WORKING, page_size=2, page_token="p", include_artifacts=True
        )
    assert [task.id for task in found.tasks] == ["a", "b"]
    assert peer.calls[-1].params == {
        "contextId": "c1",
        "status": "TASK_STATE_WORKING",
        "pageSize": 2,
        "pageToken": "p",
        "includeArtifacts": True,
    }


async def test_list_all(values: Any, options: ClientOptions) -> None:
    """Pages are put together; a task that moved between two of them comes once."""
    peer = FakePeer()
    peer.answers(
        "ListTasks",
        page(values, "a", "b", token="2"),
        page(values, "b", "c", token="3"),
        page(values),
    )
    async with open_client(peer.url, options=options, transport=peer.transport) as client:
        tasks = await client.list_all(context_id="c1")
    assert [task.id for task in tasks] == ["a", "b", "c"]
    tokens = []
    for call in peer.called("ListTasks"):
        assert isinstance(call.params, dict)
        assert call.params["contextId"] == "c1"
        tokens.append(call.params.get("pageToken"))
    assert tokens == [None, "2", "3"]


async def test_list_all_is_bounded(values: Any, options: ClientOptions) -> None:
    """No more pages are asked for than are wanted."""
    peer = FakePeer()
    peer.answers("ListTasks", page(values, "a", "b", token="2"), page(values, "c", "d", token="3"))
    async with open_client(peer.url, options=options, transport=peer.transport) as client:
        tasks = await client.list_all(max_tasks=3)
    assert [task.id for task in tasks] == ["a", "b", "c"]
    assert len(peer.called("ListTasks")) == 2


@pytest.mark.parametrize("kind", ["same page", "token again", "empty pages"])
async def test_pages_in_a_circle(kind: str, values: Any, options: ClientOptions) -> None:
    """A peer whose list never ends does not keep its caller for ever."""
    peer = FakePeer()
    answers = {
        "same page": [page(values, "a", token="1")],
        "token again": [page(values, str(i), token="12"[i % 2]) for i in range(9)],
        "empty pages": [page(values, token=str(i)) for i in range(9)],
    }[kind]
    peer.answers("ListTasks", *answers)
    async with open_client(peer.url, options=options, transport=peer.transport) as client:
        with pytest.raises(PeerProtocolError, match="circle"):
            await client.list_all()
    assert len(peer.called("ListTasks")) <= 3


# --- waiting --------------------------------------------------------------------------------


async def test_wait_polls(values: Any, options: ClientOptions, autojump_clock: MockClock) -> None:
    """Without streaming the task is asked for at growing intervals."""
    peer = FakePeer(values.card(streaming=False))
    working = Result(values.task(WORKING, ""))
    peer.answers("GetTask", *[working] * 12, Result(values.task()))
    began = trio.current_time()
    async with open_client(peer.url, options=options, transport=peer.transport) as client:
        assert (await client.wait("t1")).text == "done"
    expected = sum(min(1.5**step, 30) for step in range(12))
    assert trio.current_time() - began == pytest.approx(expected)
    assert peer.called("SubscribeToTask") == []


async def test_wait_with_an_interval(
    values: Any, options: ClientOptions, autojump_clock: MockClock
) -> None:
    """A given interval is kept, and no stream is opened."""
    peer = FakePeer(values.card())
    working = Result(values.task(WORKING, ""))
    peer.answers("GetTask", *[working] * 10, Result(values.task()))
    began = trio.current_time()
    async with open_client(peer.url, options=options, transport=peer.transport) as client:
        await client.wait("t1", poll=2)
    assert trio.current_time() - began == pytest.approx(20)


async def test_wait_is_no_hammer(
    values: Any, options: ClientOptions, autojump_clock: MockClock
) -> None:
    """An interval of nothing is lengthened."""
    peer = FakePeer()
    peer.answers("GetTask", Result(values.task(WORKING, "")))
    async with open_client(peer.url, options=options, transport=peer.transport) as client:
        await client.wait("t1", timeout=10, poll=0)
    assert len(peer.called("GetTask")) <= 41


async def test_wait_listens(values: Any, options: ClientOptions, autojump_clock: MockClock) -> None:
    """With streaming the end is known at once, and the answer is what the peer keeps."""
    peer = FakePeer(values.card())
    peer.answers("GetTask", Result(values.task(WORKING, "")), Result(values.task(text="all")))
    alive: list[Pause | bytes] = [Pause(20), b":\n\n"] * 10
    ended = values.status(TaskState.COMPLETED)
    peer.answers("SubscribeToTask", Stream(values.task(WORKING, ""), *alive, ended))
    began = trio.current_time()
    async with open_client(peer.url, options=options, transport=peer.transport) as client:
        assert (await client.wait("t1")).text == "all"
    assert trio.current_time() - began == pytest.approx(200)
    assert len(peer.called("GetTask")) == 2
    assert peer.open_bodies == 0


@pytest.mark.parametrize("step", [Break(), b"data: nonsense\n\n"])
async def test_wait_goes_on_without_the_stream(
    step: Any, values: Any, options: ClientOptions, autojump_clock: MockClock
) -> None:
    """A stream that does not work is no reason to give up."""
    peer = FakePeer(values.card())
    working = Result(values.task(WORKING, ""))
    peer.answers("GetTask", working, working, Result(values.task()))
    peer.answers("SubscribeToTask", Stream(values.task(WORKING, ""), step))
    async with open_client(peer.url, options=options, transport=peer.transport) as client:
        assert (await client.wait("t1")).text == "done"
    assert len(peer.called("SubscribeToTask")) == 1


@pytest.mark.parametrize("state", [TaskState.INPUT_REQUIRED, TaskState.AUTH_REQUIRED])
@pytest.mark.parametrize("streaming", [True, False])
async def test_wait_ends_when_the_task_waits(
    state: TaskState,
    streaming: bool,  # noqa: FBT001 - a parameter of the test
    values: Any,
    options: ClientOptions,
    autojump_clock: MockClock,
) -> None:
    """A task that waits for its caller would never end by itself."""
    peer = FakePeer(values.card(streaming=streaming))
    peer.answers("GetTask", Result(values.task(WORKING, "")), Result(values.task(state, "")))
    peer.answers(
        "SubscribeToTask", Stream(values.task(WORKING, ""), values.status(state), Pause(500))
    )
    async with open_client(peer.url, options=options, transport=peer.transport) as client:
        assert (await client.wait("t1", timeout=10)).state is state


@pytest.mark.parametrize("streaming", [True, False])
async def test_wait_returns_the_last_state_in_time(
    streaming: bool,  # noqa: FBT001 - a parameter of the test
    values: Any,
    options: ClientOptions,
    autojump_clock: MockClock,
) -> None:
    """A wait that is over is no error: it tells how far the task is."""
    peer = FakePeer(values.card(streaming=streaming))
    first, later = values.task(TaskState.SUBMITTED, ""), values.task(WORKING, "half")
    peer.answers("GetTask", Result(first), Result(later))
    peer.answers("SubscribeToTask", Stream(first, later, Pause(500)))
    began = trio.current_time()
    async with open_client(peer.url, options=options, transport=peer.transport) as client:
        assert await client.wait("t1", timeout=10) == later
        assert trio.current_time() - began == pytest.approx(10)
        assert peer.open_bodies == 0


async def test_wait_that_learns_nothing(options: ClientOptions, autojump_clock: MockClock) -> None:
    """Without any answer there is no state to return."""
    peer = FakePeer()
    peer.answers("GetTask", Hang())
    async with open_client(peer.url, options=options, transport=peer.transport) as client:
        with pytest.raises(PeerTimeoutError, match="no state"):
            await client.wait("t1", timeout=5)


async def test_wait_for_nothing(options: ClientOptions) -> None:
    """An unknown task is an error at once."""
    peer = FakePeer()
    peer.answers("GetTask", Failure(TaskNotFoundError()))
    async with open_client(peer.url, options=options, transport=peer.transport) as client:
        with pytest.raises(TaskNotFoundError):
            await client.wait("t1")


@pytest.mark.parametrize(
    "wrong",
    [
        {"send_timeout": 0},
        {"stream_idle_timeout": float("nan")},
        {"max_connections": 0},
        {"retry_attempts": -1},
        {"retry_base": 40},
        {"protocol": "2.0"},
    ],
)
def test_options_out_of_range(wrong: dict[str, Any]) -> None:
    """A limit that cannot be meant is refused when it is given."""
    with pytest.raises(ValueError, match=next(iter(wrong)).replace("retry_base", "retry_cap")):
        attrs.evolve(ClientOptions(), **wrong)
