# ruff: noqa: ARG001 - a test asks for the virtual clock by naming its fixture
"""Cancelling, racing, and stopping: one terminal event whatever happens, and nothing left over."""

from typing import TYPE_CHECKING

import pytest
import trio

from a2a_trio import ServerSettings, Settings, TaskContext
from a2a_trio.errors import (
    InvalidTransitionError,
    ServerBusyError,
    TaskNotCancelableError,
    TaskNotFoundError,
    UnsupportedOperationError,
)
from a2a_trio.rules.lifecycle import TaskRecord
from a2a_trio.server.store import MemoryStore
from a2a_trio.testing.direct import DirectCalls, read_all
from a2a_trio.testing.in_process import open_in_process
from a2a_trio.wire.model import StreamEvent, Task, TaskState, TaskStatusUpdateEvent

if TYPE_CHECKING:
    from a2a_trio.rules.audit import AuditEntry

ROUNDS = 30


def settings(**server: object) -> Settings:
    return Settings(server=ServerSettings(**server))  # type: ignore[arg-type] # names are checked by attrs


async def hang(task: TaskContext) -> None:
    await task.update("hanging")
    await trio.sleep_forever()


async def test_cancel_answers_after_the_clean_up(autojump_clock: trio.testing.MockClock) -> None:
    cleaned = []

    async def tidy(task: TaskContext) -> None:
        try:
            await trio.sleep_forever()
        finally:
            with trio.CancelScope(shield=True):
                await trio.sleep(2)
            cleaned.append(trio.current_time())

    async with open_in_process(tidy) as server:
        calls = server.calls()
        task = await calls.send_for_task("x", detached=True)
        before = trio.current_time()
        canceled = await calls.cancel(task.id)
        assert cleaned == [pytest.approx(before + 2)]
        assert server.engine.statistics().live == 0

    assert canceled.state is TaskState.CANCELED


async def test_agent_that_ignores_its_cancellation_holds_nobody(
    autojump_clock: trio.testing.MockClock,
) -> None:
    refused: list[Exception] = []

    async def stubborn(task: TaskContext) -> str:
        with trio.CancelScope(shield=True):
            await trio.sleep(60)
        try:
            await task.update("still here")
        except InvalidTransitionError as exc:
            refused.append(exc)
        return "too late"

    async with open_in_process(stubborn, settings(cancel_grace_sec=5, max_concurrent=1)) as server:
        calls = server.calls()
        task = await calls.send_for_task("x", detached=True)
        before = trio.current_time()
        canceled = await calls.cancel(task.id)
        assert trio.current_time() == pytest.approx(before + 5)
        assert canceled.state is TaskState.CANCELED
        with pytest.raises(ServerBusyError):
            await calls.send("the agent still works, so its slot is taken")
        await trio.sleep(60)
        assert server.engine.statistics().slots_in_use == 0
        late = await calls.get(task.id)

    assert late.state is TaskState.CANCELED
    assert not late.artifacts


async def test_forced_end_is_recorded_when_it_is_forced(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """The process may be ended before such an agent leaves; its record must not be missing then."""
    entries: list[AuditEntry] = []

    def states() -> list[str]:
        return [e.state for e in entries if e.phase == "outcome" and not e.method]

    async def stubborn(task: TaskContext) -> str:
        with trio.CancelScope(shield=True):
            await trio.sleep(60)
        return "too late"

    async with open_in_process(
        stubborn, settings(cancel_grace_sec=5), audit=entries.append
    ) as server:
        calls = server.calls()
        task = await calls.send_for_task("x", detached=True)
        await calls.cancel(task.id)
        assert states() == ["canceled"]
        await trio.sleep(60)
        assert server.engine.statistics().live == 0
        assert states() == ["canceled"]


async def test_agent_that_shields_past_its_window_cannot_hold_its_caller(
    autojump_clock: trio.testing.MockClock,
) -> None:
    async def stubborn(task: TaskContext) -> str:
        with trio.CancelScope(shield=True):
            await trio.sleep(1000)
        return "late"

    limits = settings(reply_timeout_sec=30, cancel_grace_sec=5)
    async with open_in_process(stubborn, limits) as server:
        before = trio.current_time()
        task = await server.calls().send_for_task("x")
        assert trio.current_time() <= before + 30 + 2 * 5 + 1

    assert task.state is TaskState.FAILED
    assert "30 seconds" in task.text


async def test_cancel_of_an_ended_task_is_refused(autojump_clock: trio.testing.MockClock) -> None:
    async with open_in_process(hang) as server:
        calls = server.calls()
        task = await calls.send_for_task("x", detached=True)
        await calls.cancel(task.id)
        with pytest.raises(TaskNotCancelableError):
            await calls.cancel(task.id)
        with pytest.raises(TaskNotFoundError):
            await calls.cancel("no such task")
        with pytest.raises(TaskNotFoundError):
            await server.calls("somebody else").cancel(task.id)


async def test_two_cancels_at_once_both_succeed(autojump_clock: trio.testing.MockClock) -> None:
    async with open_in_process(hang) as server:
        calls = server.calls()
        task = await calls.send_for_task("x", detached=True)
        answers: list[Task] = []

        async def cancel() -> None:
            answers.append(await calls.cancel(task.id))

        async with trio.open_nursery() as nursery:
            nursery.start_soon(cancel)
            nursery.start_soon(cancel)

    assert [a.state for a in answers] == [TaskState.CANCELED, TaskState.CANCELED]


async def terminal_events(calls_stream: object) -> list[TaskState]:
    events = await read_all(calls_stream)  # type: ignore[arg-type] # an EventSource
    return [
        e.status.state
        for e in events
        if isinstance(e, TaskStatusUpdateEvent) and e.status.state.is_terminal
    ]


@pytest.mark.parametrize("first", ["cancel", "window"])
async def test_cancel_beats_a_window_of_the_same_tick(
    autojump_clock: trio.testing.MockClock, first: str
) -> None:
    """Whichever wakes first: a cancel that was asked for in the tick of the window wins."""
    async with open_in_process(hang, settings(reply_timeout_sec=10)) as server:
        calls = server.calls()
        for _ in range(ROUNDS):
            async with calls.stream("x") as stream:
                item = await stream.receive()
                assert item is not None
                assert isinstance(item.event, Task)
                run = server.engine.live(item.event.id)
                assert run is not None
                deadline = run.window.deadline

                async def cancel(task_id: str = item.event.id, at: float = deadline) -> None:
                    await trio.sleep_until(at if first == "window" else at - 1e-9)
                    await calls.cancel(task_id)

                async with trio.open_nursery() as nursery:
                    nursery.start_soon(cancel)
                    states = await terminal_events(stream)
            assert states == [TaskState.CANCELED]


@pytest.mark.parametrize("order", ["cancel first", "return first"])
async def test_cancel_against_return(autojump_clock: trio.testing.MockClock, order: str) -> None:
    async def returns(task: TaskContext) -> str:
        await trio.sleep_until(float(task.raw_text))
        return "done"

    seen = set()
    async with open_in_process(returns, settings(max_pingpong_turns=20)) as server:
        calls = server.calls()
        for _ in range(ROUNDS):
            at = trio.current_time() + 5
            task = await calls.send_for_task(str(at), detached=True)
            await trio.sleep_until(at if order == "cancel first" else at + 1e-6)
            try:
                answer = await calls.cancel(task.id)
            except TaskNotCancelableError:
                answer = await calls.get(task.id)
                assert answer.state is TaskState.COMPLETED
            else:
                assert answer.state is TaskState.CANCELED
            assert (await calls.get(task.id)).state is answer.state
            seen.add(answer.state)
            assert server.engine.statistics().slots_in_use == 0

    if order == "return first":
        assert seen == {TaskState.COMPLETED}


@pytest.mark.parametrize("order", ["answer first", "cancel first"])
async def test_answer_against_cancel(autojump_clock: trio.testing.MockClock, order: str) -> None:
    async def asker(task: TaskContext) -> str:
        await task.ask("?")
        await trio.sleep(1)
        return "answered"

    refused: list[str] = []
    async with open_in_process(asker) as server:
        calls = server.calls()
        for _ in range(ROUNDS):
            asked = await calls.send_for_task("go")

            async def answer(task_id: str = asked.id) -> None:
                with trio.move_on_after(100):
                    try:
                        await calls.send("here", task_id=task_id)
                    except UnsupportedOperationError:
                        refused.append(task_id)

            async with trio.open_nursery() as nursery:
                if order == "answer first":
                    nursery.start_soon(answer)
                    await trio.testing.wait_all_tasks_blocked()
                    canceled = await calls.cancel(asked.id)
                else:
                    nursery.start_soon(answer)
                    canceled = await calls.cancel(asked.id)
            assert canceled.state is TaskState.CANCELED
            assert server.engine.statistics().live == 0
            assert server.engine.statistics().slots_in_use == 0
            assert server.engine.statistics().slots_waiting == 0


async def test_drain_refuses_ends_streams_and_stops_runs(
    autojump_clock: trio.testing.MockClock,
) -> None:
    async def slow(task: TaskContext) -> str:
        await trio.sleep(float(task.raw_text))
        return "in time"

    async with open_in_process(slow) as server, trio.open_nursery() as nursery:
        calls = server.calls()
        quick = await calls.send_for_task("0.5", detached=True)
        endless = await calls.send_for_task("1000", detached=True)
        async with calls.subscribe(endless.id) as stream:
            nursery.start_soon(server.engine.drain, 1.0)
            await trio.testing.wait_all_tasks_blocked()
            assert server.assembly.engine is not None
            with pytest.raises(ServerBusyError):
                await calls.send("1")
            with pytest.raises(ServerBusyError):
                async with calls.subscribe(endless.id):
                    pytest.fail("subscribed to a stopping server")
            events = await read_all(stream)
        assert [type(event) for event in events] == [Task, Task], "a snapshot first and last"
        assert isinstance(events[-1], Task)
        assert events[-1].state is TaskState.WORKING
        await trio.sleep(2)
        assert (await calls.get(quick.id)).state is TaskState.COMPLETED
        stopped = await calls.get(endless.id)

    assert stopped.state is TaskState.FAILED
    assert stopped.text == "server stopped"


async def send_and_drain(order: str) -> object:
    """Race a send against a drain, and return what the sender got."""
    outcome: list[object] = []
    async with open_in_process(hang) as server:
        calls = server.calls()

        async def send() -> None:
            try:
                outcome.append((await calls.send_for_task("x")).state)
            except ServerBusyError as exc:
                outcome.append(exc)

        async def drain() -> None:
            await server.engine.drain(0.0)

        async with trio.open_nursery() as nursery:
            first, second = (drain, send) if order == "drain first" else (send, drain)
            nursery.start_soon(first)
            if order == "send well before":
                await trio.testing.wait_all_tasks_blocked()
            nursery.start_soon(second)
        assert server.engine.statistics().live == 0
    (answer,) = outcome
    return answer


@pytest.mark.parametrize("order", ["drain first", "send first", "send well before"])
async def test_drain_against_send(autojump_clock: trio.testing.MockClock, order: str) -> None:
    for _ in range(ROUNDS):
        answer = await send_and_drain(order)
        assert answer is TaskState.FAILED or isinstance(answer, ServerBusyError)
        if order == "send well before":
            assert answer is TaskState.FAILED


async def test_drain_in_the_tick_of_a_stream_ends_its_task(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """Between the start of a stream's run and its first event: the task is kept and ends."""
    for steps in range(6):
        async with open_in_process(hang) as server, trio.open_nursery() as nursery:
            calls = server.calls()
            seen: list[object] = []

            async def stream(calls: DirectCalls = calls, seen: list[object] = seen) -> None:
                try:
                    async with calls.stream("x") as source:
                        seen += await read_all(source)
                except ServerBusyError as exc:
                    seen.append(exc)

            nursery.start_soon(stream)
            for _ in range(steps):
                await trio.lowlevel.checkpoint()
            await server.engine.drain(0.0)
            await trio.testing.wait_all_tasks_blocked()
            assert seen
            for task in (await calls.list()).tasks:
                assert task.state is TaskState.FAILED
                assert task.text == "server stopped"


async def test_closing_without_drain_still_writes_the_end(
    autojump_clock: trio.testing.MockClock,
) -> None:
    ended = []
    async with open_in_process(hang) as server:
        task = await server.calls().send_for_task("x", detached=True)
        run = server.engine.live(task.id)
        assert run is not None
        ended.append(run)

    assert ended[0].record.state is TaskState.FAILED
    assert ended[0].record.task.text == "server stopped"


async def test_closing_waits_for_a_store_that_takes_its_time(
    autojump_clock: trio.testing.MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The end of a task is written although everything around it is being cancelled."""
    append = MemoryStore.append

    async def slow(
        self: MemoryStore,
        record: TaskRecord,
        events: tuple[StreamEvent, ...],
        *,
        expected_version: int,
    ) -> None:
        await trio.sleep(1)
        await append(self, record, events, expected_version=expected_version)

    async with open_in_process(hang) as server:
        task = await server.calls().send_for_task("x", detached=True)
        run = server.engine.live(task.id)
        monkeypatch.setattr(MemoryStore, "append", slow)

    assert run is not None
    assert run.record.task.text == "server stopped"
