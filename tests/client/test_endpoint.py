# ruff: noqa: ARG001 - a test asks for the virtual clock by naming its fixture
"""The client against the real endpoint, in one process: what one says the other understands."""

from collections.abc import AsyncIterator

import attrs
import pytest
import trio
from trio.testing import MockClock

from a2a_trio.agents.contract import TaskContext
from a2a_trio.client.client import Client
from a2a_trio.client.options import ClientOptions
from a2a_trio.errors import (
    TaskNotCancelableError,
    TaskNotFoundError,
    UnsupportedOperationError,
)
from a2a_trio.testing.in_process import InProcessServer, open_in_process
from a2a_trio.wire.model import Task, TaskState


async def scripted_agent(task: TaskContext) -> str | None:
    """Do what the message says."""
    word, _, rest = task.raw_text.partition(" ")
    match word:
        case "chunks":
            for index in range(int(rest)):
                await task.artifact("reply", f"{index},", append=index > 0)
                await trio.sleep(1)
            return None
        case "sleep":
            await trio.sleep(float(rest))
            return "rested"
        case "ask":
            answer = await task.ask("which one?")
            return f"took {answer.text}"
        case _:
            return f"echo {task.raw_text}"


@pytest.fixture
async def server(autojump_clock: MockClock) -> AsyncIterator[InProcessServer]:
    async with open_in_process(scripted_agent) as running:
        yield running


@pytest.fixture(params=["1.0", "0.3"])
async def client(
    request: pytest.FixtureRequest, server: InProcessServer, options: ClientOptions
) -> AsyncIterator[Client]:
    async with server.client(options=attrs.evolve(options, protocol=request.param)) as opened:
        yield opened


async def test_send(client: Client, autojump_clock: MockClock) -> None:
    """A blocking send comes back with the finished task."""
    reply = await client.send("hello")
    assert (reply.text, reply.state) == ("echo hello", TaskState.COMPLETED)
    assert reply.context_id
    assert await client.get(reply.task_id) == reply.task


async def test_stream(client: Client, autojump_clock: MockClock) -> None:
    """What the stream adds up to is what the server keeps."""
    async with client.stream("chunks 5") as events:
        first = await anext(events)
        assert isinstance(first, Task)
        async for _ in events:
            pass
    assert events.task is not None
    kept = await client.get(events.task.id)
    assert events.task.text == kept.text == "0,1,2,3,4,"
    assert events.task.artifacts == kept.artifacts
    assert events.last_event_id


async def test_detached(client: Client, autojump_clock: MockClock) -> None:
    """Dispatch, wait, see the end."""
    task = await client.send_detached("sleep 500")
    assert not task.state.is_terminal
    assert not (await client.wait(task.id, timeout=10)).state.is_terminal
    assert (await client.wait(task.id)).text == "rested"


async def test_cancel(client: Client, autojump_clock: MockClock) -> None:
    """A running task can be cancelled, once."""
    task = await client.send_detached("sleep 500")
    assert (await client.cancel(task.id)).state is TaskState.CANCELED
    with pytest.raises(TaskNotCancelableError):
        await client.cancel(task.id)


async def test_conversation(client: Client, autojump_clock: MockClock) -> None:
    """A question and its answer are one task, the next request is another one."""
    talk = client.conversation()
    asked = await talk.send("ask")
    assert asked.state is TaskState.INPUT_REQUIRED
    assert asked.text == "which one?"
    answered = await talk.send("the red one")
    assert (answered.text, answered.task_id) == ("took the red one", asked.task_id)
    later = await talk.send("more")
    assert later.context_id == asked.context_id
    assert later.task_id != asked.task_id


async def test_subscribe(client: Client, autojump_clock: MockClock) -> None:
    """Another stream of the same task, and none for one that has ended."""
    task = await client.send_detached("chunks 3")
    async with client.subscribe(task.id) as events:
        async for _ in events:
            pass
    assert events.state is TaskState.COMPLETED
    with pytest.raises(UnsupportedOperationError):
        async with client.subscribe(task.id):
            raise AssertionError("entered")


async def test_unknown_task(client: Client, autojump_clock: MockClock) -> None:
    """The same class on both sides."""
    with pytest.raises(TaskNotFoundError):
        await client.get("nothing")


async def test_list(
    server: InProcessServer, options: ClientOptions, autojump_clock: MockClock
) -> None:
    """All pages of a longer list."""
    async with server.client(options=options) as client:
        talk = client.conversation()
        sent = [(await talk.send(str(number))).task_id for number in range(60)]
        tasks = await client.list_all(context_id=talk.context_id)
    # Compared as sets: sends within one millisecond have no order.
    assert {task.id for task in tasks} == set(sent)
    assert len(tasks) == 60


async def test_dropped_stream_does_not_end_the_task(
    server: InProcessServer, options: ClientOptions, autojump_clock: MockClock
) -> None:
    """Leaving a stream is leaving, not cancelling; and the server holds nothing for it."""
    async with server.client(options=options) as client:
        async with client.stream("sleep 100") as events:
            first = await anext(events)
        assert isinstance(first, Task)
        assert (await client.wait(first.id)).text == "rested"


async def test_dropped_send_does_not_end_the_task(
    server: InProcessServer, options: ClientOptions, autojump_clock: MockClock
) -> None:
    """A caller that goes away leaves a task that ends."""
    async with server.client(options=options) as client:
        with trio.move_on_after(5):
            await client.send("sleep 100")
        (task,) = (await client.list()).tasks
        assert (await client.wait(task.id)).text == "rested"


async def test_the_card_declares_what_the_client_uses(
    server: InProcessServer, options: ClientOptions, autojump_clock: MockClock
) -> None:
    """Repeats and replays are switched on between two peers of this package."""
    async with server.client(options=options) as client:
        await client.card()
        route = await client._routes.current()
    assert (route.deduplicates, route.replays, route.streaming, route.trusted) == (True,) * 4
