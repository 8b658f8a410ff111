# ruff: noqa: ARG001 - a test asks for the virtual clock by naming its fixture
"""Subscribers: snapshot and tap, order, replay, laggards, bounds, and a store that breaks."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
import trio

from a2a_trio import ServerSettings, Settings, TaskContext
from a2a_trio.errors import InternalError, ServerBusyError, UnsupportedOperationError
from a2a_trio.rules.lifecycle import TaskRecord
from a2a_trio.server.store import MemoryStore
from a2a_trio.testing.direct import read_all
from a2a_trio.testing.in_process import open_in_process
from a2a_trio.testing.scripted import scripted
from a2a_trio.wire.model import (
    StreamEvent,
    Task,
    TaskArtifactUpdateEvent,
    TaskState,
    TaskStatusUpdateEvent,
)


def settings(**server: object) -> Settings:
    return Settings(server=ServerSettings(**server))  # type: ignore[arg-type] # names are checked by attrs


async def steady(task: TaskContext) -> str:
    for number in range(20):
        await trio.sleep(1)
        await task.artifact("log", f"{number} ", append=number > 0)
    return "done"


async def test_every_subscriber_sees_the_same_from_its_snapshot_on(
    autojump_clock: trio.testing.MockClock,
) -> None:
    seen: dict[int, list[StreamEvent]] = {}

    async with open_in_process(steady) as server, trio.open_nursery() as nursery:
        calls = server.calls()
        task = await calls.send_for_task("x", detached=True)

        async def listen(delay: int) -> None:
            await trio.sleep(delay + 0.5)
            async with calls.subscribe(task.id) as source:
                seen[delay] = await read_all(source)

        for delay in range(0, 20, 5):
            nursery.start_soon(listen, delay)

    for delay, events in seen.items():
        assert isinstance(events[0], Task)
        assert [a.text for a in events[0].artifacts] in (
            [],
            ["".join(f"{n} " for n in range(delay))],
        )
        assert events[1:] == seen[0][-len(events) + 1 :]
        last = events[-1]
        assert isinstance(last, TaskStatusUpdateEvent)
        assert last.status.state is TaskState.COMPLETED


async def test_reconnecting_with_the_last_event_id_loses_nothing(
    autojump_clock: trio.testing.MockClock,
) -> None:
    async with open_in_process(steady) as server:
        calls = server.calls()
        texts: list[str] = []
        last = -1
        async with calls.stream("x") as source:
            while len(texts) < 5:
                item = await source.receive()
                assert item is not None
                last = item.version
                if isinstance(item.event, TaskArtifactUpdateEvent):
                    texts.append(item.event.artifact.text)
                    task_id = item.event.task_id
        await trio.sleep(5)
        async with calls.subscribe(task_id, last_event_id=last) as source:
            for _ in range(3):
                item = await source.receive()
                assert item is not None
                assert item.version == last + 1
                last = item.version
                assert isinstance(item.event, TaskArtifactUpdateEvent)
                texts.append(item.event.artifact.text)
        await trio.sleep(100)
        async with calls.subscribe(task_id, last_event_id=last) as source:
            rest = await read_all(source)
        async with calls.subscribe(task_id, last_event_id=last + len(rest)) as source:
            assert await read_all(source) == []
        with pytest.raises(UnsupportedOperationError):
            async with calls.subscribe(task_id):
                pytest.fail("subscribed to an ended task")

    texts += [
        e.artifact.text
        for e in rest
        if isinstance(e, TaskArtifactUpdateEvent) and e.artifact.artifact_id == "log"
    ]
    assert texts == [f"{n} " for n in range(20)]
    assert isinstance(rest[-1], TaskStatusUpdateEvent)


@pytest.mark.parametrize("last", [0, 500, -3])
async def test_what_is_no_longer_known_is_replaced_by_a_snapshot(
    autojump_clock: trio.testing.MockClock, last: int
) -> None:
    async with open_in_process(scripted, settings(max_task_events=10)) as server:
        calls = server.calls()
        task = await calls.send_for_task("spam:50 hang", detached=True)
        await trio.testing.wait_all_tasks_blocked()
        async with calls.subscribe(task.id, last_event_id=last) as source:
            first = await source.receive()

    assert first is not None
    assert isinstance(first.event, Task)
    assert first.event.artifacts[0].text == "".join(f"chunk {n} " for n in range(50))


async def test_a_laggard_is_cut_with_an_error_and_delays_nobody(
    autojump_clock: trio.testing.MockClock,
) -> None:
    async with open_in_process(scripted, settings(subscriber_buffer=10)) as server:
        calls = server.calls()
        async with calls.stream("spam:100") as lagging:
            await trio.testing.wait_all_tasks_blocked()
            (task,) = (await calls.list()).tasks
            assert task.state is TaskState.COMPLETED
            for _ in range(11):
                assert await lagging.receive() is not None
            with pytest.raises(ServerBusyError, match="fell behind"):
                await lagging.receive()
            assert await lagging.receive() is None
        assert server.engine.statistics().subscribers == 0


async def test_subscribers_are_bounded_per_task_and_in_all(
    autojump_clock: trio.testing.MockClock,
) -> None:
    limits = settings(max_subscribers=3, max_subscribers_per_task=2, max_concurrent=5)
    async with open_in_process(scripted, limits) as server:
        calls = server.calls()
        one = await calls.send_for_task("hang", detached=True)
        two = await calls.send_for_task("hang", detached=True)
        async with calls.subscribe(one.id), calls.subscribe(one.id):
            with pytest.raises(ServerBusyError, match="subscribers"):
                async with calls.subscribe(one.id):
                    pytest.fail("one too many for a task")
            async with calls.subscribe(two.id):
                with pytest.raises(ServerBusyError, match="subscribers"):
                    async with calls.stream("hang"):
                        pytest.fail("one too many in all")
                assert server.engine.statistics().live == 2
        assert server.engine.statistics().subscribers == 0
        async with calls.subscribe(one.id):
            assert server.engine.statistics().subscribers == 1


async def test_subscribing_against_finishing_never_loses_the_end(
    autojump_clock: trio.testing.MockClock,
) -> None:
    async with open_in_process(scripted) as server:
        calls = server.calls()
        for number in range(60):
            task = await calls.send_for_task("sleep:5", detached=True)
            await trio.sleep(5 if number % 2 else 5 - 1e-9)
            try:
                async with calls.subscribe(task.id) as source:
                    events = await read_all(source)
            except UnsupportedOperationError:
                assert (await calls.get(task.id)).state is TaskState.COMPLETED
                continue
            last = events[-1]
            assert isinstance(last, Task | TaskStatusUpdateEvent)
            assert last.status.state is TaskState.COMPLETED


async def test_published_snapshots_do_not_change(autojump_clock: trio.testing.MockClock) -> None:
    async with open_in_process(steady) as server:
        calls = server.calls()
        task = await calls.send_for_task("x", detached=True)
        await trio.sleep(3.5)
        before = await calls.get(task.id)
        copy = before.artifacts[0].text
        await trio.sleep(10)

    assert before.artifacts[0].text == copy == "0 1 2 "


async def test_subscriber_of_a_waiting_task_gets_its_snapshot_and_harms_nothing(
    autojump_clock: trio.testing.MockClock,
) -> None:
    async with open_in_process(scripted) as server:
        calls = server.calls()
        asked = await calls.send_for_task("ask")
        async with calls.subscribe(asked.id) as source:
            (snapshot,) = await read_all(source)
            assert isinstance(snapshot, Task)
            done = await calls.send_for_task("here", task_id=asked.id)

    assert snapshot.state is TaskState.INPUT_REQUIRED
    assert done.state is TaskState.COMPLETED


# --- a store that breaks ------------------------------------------------------------------------------


class BrokenDiskError(Exception):
    """What the broken store raises."""


@contextmanager
def breaking(monkeypatch: pytest.MonkeyPatch, state: TaskState) -> Iterator[None]:
    """Let the store fail when a task is to enter a state."""
    append = MemoryStore.append

    async def failing(
        self: MemoryStore,
        record: TaskRecord,
        events: tuple[StreamEvent, ...],
        *,
        expected_version: int,
    ) -> None:
        if record.state is state:
            raise BrokenDiskError("/secret/path is full")
        await append(self, record, events, expected_version=expected_version)

    with monkeypatch.context() as patch:
        patch.setattr(MemoryStore, "append", failing)
        yield


async def test_store_that_cannot_begin_a_task_fails_its_caller_only(
    autojump_clock: trio.testing.MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with open_in_process(scripted) as server:
        calls = server.calls()
        with breaking(monkeypatch, TaskState.WORKING):
            with pytest.raises(InternalError, match="Internal error"):
                await calls.send("")
            with pytest.raises(InternalError):
                async with calls.stream(""):
                    pytest.fail("streamed a task that could not begin")
        assert server.engine.statistics().live == 0
        assert server.engine.statistics().slots_in_use == 0
        assert (await calls.send_for_task("")).state is TaskState.COMPLETED


async def test_store_that_cannot_write_an_end_never_looks_like_one(
    autojump_clock: trio.testing.MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with open_in_process(scripted) as server:
        calls = server.calls()
        with breaking(monkeypatch, TaskState.COMPLETED):
            with pytest.raises(InternalError):
                await calls.send("say:hello")
            async with calls.stream("say:hello") as source:
                with pytest.raises(InternalError):
                    await read_all(source)
        assert server.engine.statistics().slots_in_use == 0


async def test_task_whose_store_failed_for_a_moment_does_not_seem_alive(
    autojump_clock: trio.testing.MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with open_in_process(scripted) as server:
        calls = server.calls()
        with breaking(monkeypatch, TaskState.WORKING), pytest.raises(InternalError):
            await calls.send("")
        (task,) = (await calls.list()).tasks
        assert task.state is TaskState.FAILED
