# ruff: noqa: ARG001 - a test asks for the virtual clock by naming its fixture
"""Agents that break in every way: their own task fails, and nothing else happens."""

from collections.abc import Awaitable, Callable

import pytest
import trio

from a2a_trio import ServerSettings, Settings, TaskContext
from a2a_trio.errors import InvalidTransitionError
from a2a_trio.testing.in_process import open_in_process
from a2a_trio.wire.model import Message, Part, Role, Task, TaskState

Break = Callable[[], Awaitable[object]]


class UnspeakableError(Exception):
    """An exception that cannot say what it is."""

    def __str__(self) -> str:
        raise RuntimeError("no words")


class OwnBaseError(BaseException):
    """An exception that is no Exception."""


async def raise_it(error: BaseException) -> None:
    raise error


async def exit_in_a_nursery() -> None:
    async with trio.open_nursery() as nursery:
        nursery.start_soon(raise_it, SystemExit(3))
        nursery.start_soon(raise_it, ValueError("beside it"))


async def keep_a_cancelled() -> None:
    """Raise the Cancelled of a scope that has ended, as a leaked async generator does."""
    kept: list[trio.Cancelled] = []
    with trio.CancelScope() as scope:
        scope.cancel()
        try:
            await trio.lowlevel.checkpoint()
        except trio.Cancelled as exc:
            kept.append(exc)
            raise
    raise kept[0]


async def leak_a_nursery() -> None:
    await trio.open_nursery().__aenter__()


async def leak_a_scope() -> None:
    trio.CancelScope().__enter__()


BREAKS: dict[str, Break] = {
    "exit in a nursery": exit_in_a_nursery,
    "unspeakable": lambda: raise_it(UnspeakableError()),
    "own BaseException": lambda: raise_it(OwnBaseError("mine")),
    "GeneratorExit": lambda: raise_it(GeneratorExit()),
    "kept Cancelled": keep_a_cancelled,
    "leaked nursery": leak_a_nursery,
}


@pytest.mark.parametrize("how", BREAKS)
async def test_an_agent_that_breaks_fails_alone(
    autojump_clock: trio.testing.MockClock, how: str
) -> None:
    async def agent(task: TaskContext) -> str:
        if task.raw_text == "break":
            await BREAKS[how]()
            return "as if nothing had happened"
        await trio.sleep(5)
        return "fine"

    async with open_in_process(agent) as server:
        calls = server.calls()
        bystander = await calls.send_for_task("work", detached=True)
        broken = await calls.send_for_task("break")
        assert server.engine.statistics().slots_in_use == 1
        await trio.sleep(6)
        assert (await calls.get(bystander.id)).state is TaskState.COMPLETED
        assert (await calls.send_for_task("more work")).state is TaskState.COMPLETED

    assert broken.state is TaskState.FAILED
    assert broken.text.startswith(("the agent failed: ", "the agent ended without an answer"))


async def test_a_leaked_scope_is_survived(autojump_clock: trio.testing.MockClock) -> None:
    async def agent(task: TaskContext) -> str:
        await leak_a_scope()
        return "fine"

    async with open_in_process(agent) as server:
        task = await server.calls().send_for_task("x")
        assert task.state.is_terminal
        assert (await server.calls().send_for_task("y")).state is task.state


async def test_ctrl_c_in_an_agent_is_the_operators(autojump_clock: trio.testing.MockClock) -> None:
    async def agent(task: TaskContext) -> str:
        raise KeyboardInterrupt

    async def serve() -> None:
        async with open_in_process(agent) as server:
            await server.calls().send("x")

    with pytest.RaisesGroup(KeyboardInterrupt, flatten_subgroups=True):
        await serve()


@pytest.mark.parametrize("result", [5, b"bytes", ["list"], {"a": 1}, object()])
async def test_a_result_of_a_wrong_type_fails_the_task(
    autojump_clock: trio.testing.MockClock, result: object
) -> None:
    async def agent(task: TaskContext) -> str:
        return result  # type: ignore[return-value] # what is tested

    async with open_in_process(agent) as server:
        task = await server.calls().send_for_task("x")

    assert task.state is TaskState.FAILED
    assert "returns str, None, Message or InputRequired" in task.text


async def test_a_message_answer_is_completed_or_refused(
    autojump_clock: trio.testing.MockClock,
) -> None:
    async def agent(task: TaskContext) -> Message:
        parts = (Part(text="hi"),) if task.raw_text == "good" else ()
        return Message(message_id="", role=Role.AGENT, parts=parts)

    async with open_in_process(agent) as server:
        good = await server.calls().send("good")
        bad = await server.calls().send("bad")

    assert isinstance(good, Message)
    assert good.message_id
    assert isinstance(bad, Task)
    assert bad.state is TaskState.FAILED


async def test_an_agent_that_goes_on_after_the_end_is_refused(
    autojump_clock: trio.testing.MockClock,
) -> None:
    refused: list[str] = []

    async def agent(task: TaskContext) -> None:
        await task.fail("over")
        for name, say in (
            ("update", lambda: task.update("late")),
            ("artifact", lambda: task.artifact("late", "late")),
            ("ask", lambda: task.ask("late")),
            ("fail", lambda: task.fail("late")),
        ):
            try:
                await say()
            except InvalidTransitionError:
                refused.append(name)
        heard = [message async for message in task.messages]
        refused.append(f"{len(heard)} messages")

    async with open_in_process(agent) as server:
        task = await server.calls().send_for_task("x")
        await trio.sleep(1)
        assert server.engine.statistics().live == 0

    assert task.text == "over"
    assert refused == ["update", "artifact", "ask", "fail", "0 messages"]


async def test_asking_on_a_task_that_has_ended_parks_nothing(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """A context that was kept, and one whose task ended while it stood in line for a slot."""
    kept: list[TaskContext] = []

    async def agent(task: TaskContext) -> str:
        kept.append(task)
        return "done"

    async with open_in_process(agent) as server:
        await server.calls().send("x")
        for question in (kept[0].ask, kept[0].require_auth):
            with pytest.raises(InvalidTransitionError):
                await question("still there?")
        statistics = server.engine.statistics()
        assert (statistics.parked, statistics.slots_in_use) == (0, 0)


async def test_task_that_ends_while_its_agent_stands_in_line_holds_no_slot(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """The agent gave up waiting for its caller, wants to go on, and shields itself in the line."""

    async def agent(task: TaskContext) -> None:
        if task.raw_text == "work":
            await trio.sleep(60)
            return
        with trio.move_on_after(1):
            await task.ask("?")
        with trio.CancelScope(shield=True):
            await task.update("going on")

    async with open_in_process(
        agent, Settings(server=ServerSettings(max_concurrent=1, cancel_grace_sec=2))
    ) as server:
        calls = server.calls()
        asked = await calls.send_for_task("ask")
        await calls.send("work", detached=True)
        await trio.sleep(5)
        assert server.engine.statistics().slots_waiting == 1
        assert (await calls.cancel(asked.id)).state is TaskState.CANCELED
        await trio.sleep(120)
        statistics = server.engine.statistics()
        assert (statistics.parked, statistics.slots_in_use, statistics.live) == (0, 0, 0)
