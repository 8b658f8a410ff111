# ruff: noqa: ARG001 - a test asks for the virtual clock by naming its fixture
"""Detached, blocking and streaming runs: what their callers see, and what bounds them."""

import pytest
import trio

from a2a_trio import ServerSettings, Settings, TaskContext, echo
from a2a_trio.errors import ServerBusyError
from a2a_trio.testing.direct import read_all
from a2a_trio.testing.in_process import open_in_process
from a2a_trio.wire.model import (
    Message,
    Part,
    Role,
    Task,
    TaskArtifactUpdateEvent,
    TaskState,
    TaskStatusUpdateEvent,
)


async def hang(task: TaskContext) -> None:
    await task.update("hanging")
    await trio.sleep_forever()


async def sleepy(task: TaskContext) -> str:
    await trio.sleep(10)
    return f"slept on {task.raw_text}"


def settings(**server: object) -> Settings:
    return Settings(server=ServerSettings(**server))  # type: ignore[arg-type] # names are checked by attrs


async def test_blocking_send_answers_with_the_finished_task(
    autojump_clock: trio.testing.MockClock,
) -> None:
    async with open_in_process(sleepy) as server:
        task = await server.calls().send_for_task("x")

    assert task.state is TaskState.COMPLETED
    assert task.artifacts[0].text == "slept on x"
    assert [m.text for m in task.history] == ["x"]


async def test_detached_send_acks_working_and_can_be_fetched(
    autojump_clock: trio.testing.MockClock,
) -> None:
    async with open_in_process(sleepy) as server:
        calls = server.calls()
        ack = await calls.send_for_task("x", detached=True)
        assert ack.state is TaskState.WORKING
        await trio.sleep(11)
        done = await calls.get(ack.id)

    assert done.state is TaskState.COMPLETED


@pytest.mark.parametrize(
    ("detached", "window", "text"),
    [(False, 300, "reply timeout"), (True, 86_400, "detached-task timeout")],
)
async def test_window_fails_the_task_and_names_itself(
    autojump_clock: trio.testing.MockClock, *, detached: bool, window: int, text: str
) -> None:
    async with open_in_process(hang) as server:
        calls = server.calls()
        before = trio.current_time()
        task = await calls.send_for_task("x", detached=detached)
        if detached:
            await trio.sleep(window - 1)
            assert (await calls.get(task.id)).state is TaskState.WORKING
            await trio.sleep(2)
            task = await calls.get(task.id)
        else:
            assert trio.current_time() - before == pytest.approx(window)

    assert task.state is TaskState.FAILED
    assert task.status.message is not None
    assert text in task.status.message.text
    assert f"{window}" in task.status.message.text


@pytest.mark.parametrize("detached", [False, True])
async def test_window_of_zero_is_no_window(
    autojump_clock: trio.testing.MockClock, *, detached: bool
) -> None:
    limits = settings(reply_timeout_sec=0, async_timeout_sec=0)
    async with open_in_process(hang, limits) as server, trio.open_nursery() as nursery:
        calls = server.calls()
        if detached:
            task = await calls.send_for_task("x", detached=True)
        else:
            nursery.start_soon(calls.send, "x")
            await trio.testing.wait_all_tasks_blocked()
            (task,) = (await calls.list()).tasks
        await trio.sleep(80_000)
        assert (await calls.get(task.id)).state is TaskState.WORKING
        nursery.cancel_scope.cancel()


async def test_caller_that_leaves_only_stops_waiting(
    autojump_clock: trio.testing.MockClock,
) -> None:
    async with open_in_process(sleepy) as server:
        calls = server.calls()
        with trio.move_on_after(1):
            await calls.send("x")
        (task,) = (await calls.list()).tasks
        assert task.state is TaskState.WORKING
        await trio.sleep(10)
        assert (await calls.get(task.id)).state is TaskState.COMPLETED
        assert server.engine.statistics().slots_in_use == 0


async def test_one_pool_of_slots_for_every_mode(autojump_clock: trio.testing.MockClock) -> None:
    async with open_in_process(sleepy, settings(max_concurrent=3)) as server:
        calls = server.calls()
        await calls.send("detached", detached=True)
        async with trio.open_nursery() as nursery, calls.stream("stream") as stream:
            nursery.start_soon(calls.send, "blocking")
            await trio.testing.wait_all_tasks_blocked()
            assert server.engine.statistics().slots_in_use == 3
            with pytest.raises(ServerBusyError) as busy:
                await calls.send("one too many")
            with pytest.raises(ServerBusyError):
                async with calls.stream("one too many"):
                    pytest.fail("a refused stream was opened")
            assert busy.value.retry_after is not None
            assert len((await calls.list()).tasks) == 3
            await read_all(stream)
        assert server.engine.statistics().slots_in_use == 0
        await calls.send("there is room again")


async def test_slot_is_free_for_whoever_has_seen_the_end(
    autojump_clock: trio.testing.MockClock,
) -> None:
    async with open_in_process(sleepy, settings(max_concurrent=1)) as server:
        calls = server.calls()
        for _ in range(20):
            await calls.send("x")
            async with calls.stream("y") as stream:
                await read_all(stream)


async def test_stream_begins_with_the_task_and_shows_every_step(
    autojump_clock: trio.testing.MockClock,
) -> None:
    async with open_in_process(echo) as server, server.calls().stream("ten chars " * 10) as stream:
        events = await read_all(stream)

    assert isinstance(events[0], Task)
    assert events[0].state is TaskState.SUBMITTED
    states = [e.status.state for e in events if isinstance(e, TaskStatusUpdateEvent)]
    assert states == [TaskState.WORKING, TaskState.COMPLETED]
    chunks = [e for e in events if isinstance(e, TaskArtifactUpdateEvent)]
    assert "".join(c.artifact.text for c in chunks) == "ten chars " * 10
    assert [c.append for c in chunks] == [False, True]
    assert [c.last_chunk for c in chunks] == [False, True]


async def test_agent_that_raises_fails_its_task_and_no_other(
    autojump_clock: trio.testing.MockClock,
) -> None:
    async def moody(task: TaskContext) -> str:
        if task.raw_text == "raise":
            raise ValueError("what went wrong")
        if task.raw_text == "exit":
            raise SystemExit(3)
        if task.raw_text == "group":
            async with trio.open_nursery() as nursery:
                nursery.start_soon(trio.sleep_forever)
                raise KeyError("in a nursery")
        await trio.sleep(1)
        return "fine"

    async with open_in_process(moody, settings(max_concurrent=4)) as server:
        calls = server.calls()
        tasks = {
            w: await calls.send_for_task(w, detached=True) for w in ("raise", "exit", "group", "ok")
        }
        await trio.sleep(2)
        ended = {word: await calls.get(task.id) for word, task in tasks.items()}

    assert ended["ok"].state is TaskState.COMPLETED
    for word in ("raise", "exit", "group"):
        assert ended[word].state is TaskState.FAILED
        message = ended[word].status.message
        assert message is not None
        assert message.text.startswith("the agent failed: ")
    assert "what went wrong" in (ended["raise"].text)


async def test_message_reply_leaves_no_task(autojump_clock: trio.testing.MockClock) -> None:
    async def replying(_task: TaskContext) -> Message:
        return Message(message_id="r1", role=Role.AGENT, parts=(Part(text="hello"),))

    async with open_in_process(replying) as server:
        calls = server.calls()
        reply = await calls.send("x")
        assert isinstance(reply, Message)
        assert reply.text == "hello"
        assert reply.context_id
        assert not reply.task_id
        assert (await calls.list()).total_size == 0
        detached = await calls.send_for_task("x", detached=True)
        await trio.sleep(1)
        done = await calls.get(detached.id)

    assert done.state is TaskState.COMPLETED
    assert done.status.message is not None
    assert done.status.message.text == "hello"


async def test_fail_and_reject_end_the_task_whatever_is_returned(
    autojump_clock: trio.testing.MockClock,
) -> None:
    async def agent(task: TaskContext) -> str:
        await (task.fail if task.raw_text == "fail" else task.reject)("because")
        return "ignored"

    async with open_in_process(agent) as server:
        failed = await server.calls().send_for_task("fail")
        rejected = await server.calls().send_for_task("reject")

    assert (failed.state, rejected.state) == (TaskState.FAILED, TaskState.REJECTED)
    assert failed.text == rejected.text == "because"
    assert not failed.artifacts


async def test_oversized_task_fails_with_a_clear_text(
    autojump_clock: trio.testing.MockClock,
) -> None:
    async def spam(task: TaskContext) -> str:
        while True:
            await task.artifact("spam", "x" * 1000, append=True)

    async with open_in_process(spam, settings(max_task_bytes=10_000)) as server:
        task = await server.calls().send_for_task("x")

    assert task.state is TaskState.FAILED
    assert "10000 bytes" in task.text or "10000" in (task.status.message or task.history[0]).text
    assert sum(len(a.text) for a in task.artifacts) <= 10_000
