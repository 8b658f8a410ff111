# ruff: noqa: ARG001 - a test asks for the virtual clock by naming its fixture
"""Questions: parked runs, answers at any moment, inboxes, and conversations over several runs."""

import pytest
import trio

from a2a_trio import InputRequired, ServerSettings, Settings, TaskContext
from a2a_trio.errors import InvalidParamsError, ServerBusyError, UnsupportedOperationError
from a2a_trio.testing.direct import read_all
from a2a_trio.testing.in_process import open_in_process
from a2a_trio.wire.model import Task, TaskState, TaskStatusUpdateEvent


def settings(**server: object) -> Settings:
    return Settings(server=ServerSettings(**server))  # type: ignore[arg-type] # names are checked by attrs


async def asker(task: TaskContext) -> str:
    branch = await task.ask("Which branch?")
    return f"done on {branch.text}"


async def test_ask_parks_the_task_and_the_answer_resumes_it(
    autojump_clock: trio.testing.MockClock,
) -> None:
    async with open_in_process(asker) as server:
        calls = server.calls()
        asked = await calls.send_for_task("go")
        assert asked.state is TaskState.INPUT_REQUIRED
        assert asked.status.message is not None
        assert asked.status.message.text == "Which branch?"
        assert server.engine.statistics().slots_in_use == 0
        assert server.engine.statistics().parked == 1
        done = await calls.send_for_task("main", task_id=asked.id)

    assert done.id == asked.id
    assert done.state is TaskState.COMPLETED
    assert done.artifacts[0].text == "done on main"
    assert [m.text for m in done.history] == ["go", "Which branch?", "main"]


async def test_require_auth_keeps_its_stream_open(autojump_clock: trio.testing.MockClock) -> None:
    async def agent(task: TaskContext) -> str:
        await task.require_auth("log in, please")
        return "thanks"

    async with open_in_process(agent) as server, server.calls().stream("go") as stream:
        first = await stream.receive()
        assert first is not None
        assert isinstance(first.event, Task)
        states: list[TaskState] = []
        while len(states) < 2:
            item = await stream.receive()
            assert item is not None
            assert isinstance(item.event, TaskStatusUpdateEvent)
            states.append(item.event.status.state)
        assert states == [TaskState.WORKING, TaskState.AUTH_REQUIRED]
        done = await server.calls().send_for_task("done", task_id=first.event.id)
        assert done.state is TaskState.COMPLETED
        rest = await read_all(stream)

    ends = [e.status.state for e in rest if isinstance(e, TaskStatusUpdateEvent)]
    assert ends == [TaskState.WORKING, TaskState.COMPLETED]


async def test_input_required_ends_the_stream_after_its_status(
    autojump_clock: trio.testing.MockClock,
) -> None:
    async with open_in_process(asker) as server:
        calls = server.calls()
        async with calls.stream("go") as stream:
            events = await read_all(stream)
        last = events[-1]
        assert isinstance(last, TaskStatusUpdateEvent)
        assert last.status.state is TaskState.INPUT_REQUIRED
        async with calls.stream("main", task_id=last.task_id) as stream:
            events = await read_all(stream)

    assert isinstance(events[0], Task)
    assert events[0].state is TaskState.WORKING
    last = events[-1]
    assert isinstance(last, TaskStatusUpdateEvent)
    assert last.status.state is TaskState.COMPLETED


async def test_answer_that_comes_at_once_is_not_lost(
    autojump_clock: trio.testing.MockClock,
) -> None:
    async with open_in_process(
        asker, settings(max_concurrent=1, rate_limit_per_min=1000)
    ) as server:
        calls = server.calls()
        for number in range(50):
            async with calls.stream("go") as stream:
                task_id = ""
                while (item := await stream.receive()) is not None:
                    if isinstance(item.event, Task):
                        task_id = item.event.id
                    elif (
                        isinstance(item.event, TaskStatusUpdateEvent)
                        and item.event.status.state is TaskState.INPUT_REQUIRED
                    ):
                        done = await calls.send_for_task(str(number), task_id=task_id)
                        assert done.artifacts[0].text == f"done on {number}"


async def test_blocked_sender_sees_the_question_even_if_it_is_answered_at_once(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """The first sender's answer is the task as it settled, not as it went on."""
    async with open_in_process(asker) as server, trio.open_nursery() as nursery:
        calls = server.calls()
        seen: list[Task] = []

        async def first() -> None:
            seen.append(await calls.send_for_task("go"))

        async def second() -> None:
            while True:
                tasks = (await calls.list()).tasks
                if tasks and tasks[0].state is TaskState.INPUT_REQUIRED:
                    await calls.send("main", task_id=tasks[0].id, detached=True)
                    return
                await trio.lowlevel.checkpoint()

        nursery.start_soon(second)
        nursery.start_soon(first)

    assert seen[0].state is TaskState.INPUT_REQUIRED


async def test_resuming_run_waits_first_in_line_for_a_slot(
    autojump_clock: trio.testing.MockClock,
) -> None:
    async def agent(task: TaskContext) -> str:
        if task.raw_text == "ask":
            await task.ask("?")
            return "answered"
        await trio.sleep(10)
        return "worked"

    async with open_in_process(agent, settings(max_concurrent=1)) as server:
        calls = server.calls()
        asked = await calls.send_for_task("ask")
        worker = await calls.send_for_task("work", detached=True)
        ack = await calls.send_for_task("answer", task_id=asked.id, detached=True)
        assert ack.state is TaskState.WORKING
        assert server.engine.statistics().slots_waiting == 1
        await trio.sleep(9)
        with pytest.raises(ServerBusyError):
            await calls.send("newcomer")
        await trio.sleep(2)
        assert (await calls.get(worker.id)).state is TaskState.COMPLETED
        assert (await calls.get(asked.id)).state is TaskState.COMPLETED
        await calls.send("work")


async def test_window_stands_still_while_the_task_waits(
    autojump_clock: trio.testing.MockClock,
) -> None:
    async def agent(task: TaskContext) -> str:
        await trio.sleep(20)
        await task.ask("?")
        await trio.sleep(20)
        return "in time"

    async with open_in_process(agent, settings(reply_timeout_sec=30)) as server:
        calls = server.calls()
        asked = await calls.send_for_task("go")
        await trio.sleep(3600)
        done = await calls.send_for_task("answer", task_id=asked.id)

    assert done.state is TaskState.COMPLETED


async def test_an_answer_opens_the_next_window(autojump_clock: trio.testing.MockClock) -> None:
    """What the agent does after the answer has a limit as well."""

    async def agent(task: TaskContext) -> str:
        await task.ask("?")
        await trio.sleep(31)
        return "too late"

    async with open_in_process(agent, settings(reply_timeout_sec=30)) as server:
        calls = server.calls()
        asked = await calls.send_for_task("go")
        failed = await calls.send_for_task("answer", task_id=asked.id)

    assert failed.state is TaskState.FAILED
    assert "30 seconds" in failed.text


async def test_input_window_fails_the_task(autojump_clock: trio.testing.MockClock) -> None:
    async with open_in_process(asker, settings(input_timeout_sec=60)) as server:
        calls = server.calls()
        asked = await calls.send_for_task("go")
        await trio.sleep(59)
        assert (await calls.get(asked.id)).state is TaskState.INPUT_REQUIRED
        await trio.sleep(2)
        failed = await calls.get(asked.id)
        assert server.engine.statistics().live == 0

    assert failed.state is TaskState.FAILED
    assert "60 seconds" in failed.text


async def test_agent_may_give_up_waiting(autojump_clock: trio.testing.MockClock) -> None:
    async def impatient(task: TaskContext) -> str:
        with trio.move_on_after(5):
            await task.ask("quick?")
        await trio.sleep(5)
        await task.update("going on")
        return "without you"

    async with open_in_process(impatient) as server:
        calls = server.calls()
        asked = await calls.send_for_task("go")
        await trio.sleep(6)
        assert (await calls.get(asked.id)).state is TaskState.WORKING
        with pytest.raises(UnsupportedOperationError):
            await calls.send("too late", task_id=asked.id)
        await trio.sleep(6)
        done = await calls.get(asked.id)
        assert server.engine.statistics().slots_in_use == 0
        assert server.engine.statistics().parked == 0

    assert done.state is TaskState.COMPLETED
    assert done.text == "without you"


async def test_parked_task_can_be_cancelled(autojump_clock: trio.testing.MockClock) -> None:
    async with open_in_process(asker) as server:
        calls = server.calls()
        asked = await calls.send_for_task("go")
        canceled = await calls.cancel(asked.id)
        assert server.engine.statistics().parked == 0
        with pytest.raises(UnsupportedOperationError):
            await calls.send("late", task_id=asked.id)

    assert canceled.state is TaskState.CANCELED


async def test_one_task_too_many_that_waits_fails(autojump_clock: trio.testing.MockClock) -> None:
    async with open_in_process(asker, settings(max_parked=2)) as server:
        calls = server.calls()
        states = [(await calls.send_for_task("go")).state for _ in range(3)]
        assert server.engine.statistics().parked == 2
        assert server.engine.statistics().slots_in_use == 0

    assert states == [TaskState.INPUT_REQUIRED, TaskState.INPUT_REQUIRED, TaskState.FAILED]


async def test_input_required_result_runs_the_agent_again_with_the_history(
    autojump_clock: trio.testing.MockClock,
) -> None:
    seen: list[list[str]] = []

    async def stateless(task: TaskContext) -> str | InputRequired:
        seen.append([m.text for m in task.history])
        if len(task.history) == 1:
            return InputRequired("name?")
        return f"hello {task.raw_text}"

    async with open_in_process(stateless) as server:
        calls = server.calls()
        asked = await calls.send_for_task("hi")
        assert asked.state is TaskState.INPUT_REQUIRED
        assert server.engine.statistics().slots_in_use == 0
        done = await calls.send_for_task("Ada", task_id=asked.id)

    assert done.state is TaskState.COMPLETED
    assert done.text == "hello Ada"
    assert seen == [["hi"], ["hi", "name?", "Ada"]]


async def test_messages_reach_an_agent_that_reads_them(
    autojump_clock: trio.testing.MockClock,
) -> None:
    async def reader(task: TaskContext) -> str:
        heard = []
        async for message in task.messages:
            heard.append(message.text)
            if message.text == "stop":
                break
        return " ".join(heard)

    async with open_in_process(reader, settings(max_inbox=2)) as server:
        calls = server.calls()
        task = await calls.send_for_task("go", detached=True)
        await trio.testing.wait_all_tasks_blocked()
        await calls.send("one", task_id=task.id, detached=True)
        done = await calls.send_for_task("stop", task_id=task.id)

    assert done.state is TaskState.COMPLETED
    assert done.text == "one stop"
    assert [m.text for m in done.history] == ["go", "one", "stop"]


async def test_message_to_an_agent_that_does_not_read_is_refused(
    autojump_clock: trio.testing.MockClock,
) -> None:
    async def deaf(task: TaskContext) -> str:
        await trio.sleep(5)
        return "done"

    async with open_in_process(deaf) as server:
        calls = server.calls()
        task = await calls.send_for_task("go", detached=True)
        with pytest.raises(UnsupportedOperationError, match="busy"):
            await calls.send("hello?", task_id=task.id)
        await trio.sleep(6)
        assert (await calls.get(task.id)).state is TaskState.COMPLETED


async def test_full_inbox_refuses(autojump_clock: trio.testing.MockClock) -> None:
    async def slow_reader(task: TaskContext) -> str:
        inbox = task.messages
        await trio.sleep(100)
        return (await anext(aiter(inbox))).text

    async with open_in_process(slow_reader, settings(max_inbox=1)) as server:
        calls = server.calls()
        task = await calls.send_for_task("go", detached=True)
        await trio.testing.wait_all_tasks_blocked()
        await calls.send("first", task_id=task.id, detached=True)
        with pytest.raises(UnsupportedOperationError, match="inbox is full"):
            await calls.send("second", task_id=task.id, detached=True)
        # What was refused is not in the history either, or the caller would be told wrong.
        assert [m.text for m in (await calls.get(task.id)).history] == ["go", "first"]


async def test_answer_in_the_moment_of_giving_up_is_kept(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """The agent's own limit and the answer in one tick: the answer stands, the task ends well."""

    async def impatient(task: TaskContext) -> str:
        with trio.move_on_at(float(task.raw_text)):
            return (await task.ask("quick?")).text
        return f"gave up with {len(task.history)} messages"

    async with open_in_process(impatient, settings(max_pingpong_turns=20)) as server:
        calls = server.calls()
        for _ in range(40):
            at = trio.current_time() + 5
            asked = await calls.send_for_task(str(at))
            await trio.sleep_until(at)
            try:
                done = await calls.send_for_task("here", task_id=asked.id)
            except UnsupportedOperationError:
                await trio.sleep(1)
                done = await calls.get(asked.id)
                assert done.text == "gave up with 2 messages"
            else:
                assert done.text in {"here", "gave up with 3 messages"}
                assert "here" in [m.text for m in done.history]
            assert done.state is TaskState.COMPLETED


async def test_stream_that_answers_a_task_that_is_being_cancelled_ends(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """Answer and cancel in one tick: the answer's stream shows the end instead of hanging."""
    async with open_in_process(asker, settings(max_pingpong_turns=20)) as server:
        calls = server.calls()
        for _ in range(20):
            asked = await calls.send_for_task("go")
            ends: list[TaskState] = []

            async def answer(task_id: str = asked.id, ends: list[TaskState] = ends) -> None:
                try:
                    async with calls.stream("main", task_id=task_id) as stream:
                        events = await read_all(stream)
                except UnsupportedOperationError:
                    return
                last = events[-1]
                assert isinstance(last, Task | TaskStatusUpdateEvent)
                ends.append(last.status.state)

            with trio.fail_after(60):
                async with trio.open_nursery() as nursery:
                    nursery.start_soon(answer)
                    nursery.start_soon(calls.cancel, asked.id)
            assert ends in ([], [TaskState.CANCELED])


async def test_message_that_makes_a_task_too_large_is_refused(
    autojump_clock: trio.testing.MockClock,
) -> None:
    async def reader(task: TaskContext) -> str:
        return (await anext(aiter(task.messages))).text

    async with open_in_process(reader, settings(max_task_bytes=1000)) as server:
        calls = server.calls()
        task = await calls.send_for_task("go", detached=True)
        await trio.testing.wait_all_tasks_blocked()
        with pytest.raises(InvalidParamsError) as refused:
            await calls.send("x" * 2000, task_id=task.id)
        assert refused.value.violations[0].field == "message"
        done = await calls.send_for_task("small", task_id=task.id)

    assert done.text == "small"
    assert [m.text for m in done.history] == ["go", "small"]
