# ruff: noqa: ARG001 - a test asks for the virtual clock by naming its fixture
"""What a message becomes: repeats, ownership, contexts, loops, and lists of tasks."""

from datetime import timedelta

import pytest
import trio

from a2a_trio import ServerSettings, Settings, TaskContext, echo
from a2a_trio.errors import (
    InvalidParamsError,
    PushNotificationNotSupportedError,
    TaskNotFoundError,
    UnsupportedOperationError,
)
from a2a_trio.testing.direct import DirectCalls, read_all
from a2a_trio.testing.in_process import open_in_process
from a2a_trio.testing.scripted import scripted
from a2a_trio.wire.extensions import DELEGATION_EXTENSION
from a2a_trio.wire.model import Message, Part, Role, Task, TaskState
from a2a_trio.wire.requests import (
    ListTasksRequest,
    SendMessageConfiguration,
    SendMessageRequest,
    TaskPushNotificationConfig,
)


def settings(**server: object) -> Settings:
    return Settings(server=ServerSettings(**server))  # type: ignore[arg-type] # names are checked by attrs


# --- repeats ------------------------------------------------------------------------------------


async def test_a_repeated_send_returns_the_first_task_and_runs_nothing(
    autojump_clock: trio.testing.MockClock,
) -> None:
    runs = []

    async def counting(task: TaskContext) -> str:
        runs.append(task.id)
        await trio.sleep(5)
        return "done"

    async with open_in_process(counting, settings(max_concurrent=1)) as server:
        calls = server.calls()
        with trio.move_on_after(1):
            await calls.send("x", key="k", digest=b"1")
        repeat = await calls.send_for_task("x", key="k", digest=b"1")
        assert repeat.state is TaskState.COMPLETED
        after = await calls.send_for_task("x", key="k", digest=b"1")
        async with calls.stream("other") as stream:
            await read_all(stream)

    assert runs[0] == repeat.id == after.id
    assert len(runs) == 2


async def test_the_same_key_with_another_payload_is_refused(
    autojump_clock: trio.testing.MockClock,
) -> None:
    async with open_in_process(echo) as server:
        calls = server.calls()
        await calls.send("x", key="k", digest=b"1")
        with pytest.raises(InvalidParamsError) as refused:
            await calls.send("y", key="k", digest=b"2")
        assert refused.value.violations[0].field == "Idempotency-Key"
        await server.calls("somebody else").send("y", key="k", digest=b"2")
        await trio.sleep(601)
        await calls.send("y", key="k", digest=b"2")


async def test_a_refused_send_is_not_remembered(autojump_clock: trio.testing.MockClock) -> None:
    async with open_in_process(scripted, settings(max_concurrent=1)) as server:
        calls = server.calls()
        await calls.send("sleep:5", detached=True)
        with pytest.raises(Exception, match="busy"):
            await calls.send("", key="k")
        await trio.sleep(6)
        task = await calls.send_for_task("", key="k")
        assert task.state is TaskState.COMPLETED


async def test_a_repeated_message_answer_is_the_same_message(
    autojump_clock: trio.testing.MockClock,
) -> None:
    async def replying(task: TaskContext) -> Message:
        return Message(message_id=task.id, role=Role.AGENT, parts=(Part(text="hello"),))

    async with open_in_process(replying) as server:
        calls = server.calls()
        first = await calls.send("x", key="k")
        again = await calls.send("x", key="k")

    assert isinstance(first, Message)
    assert again == first


async def test_message_ids_count_as_keys_only_where_asked(
    autojump_clock: trio.testing.MockClock,
) -> None:
    async def twice(calls: DirectCalls) -> set[str]:
        request = SendMessageRequest(message=calls.message("x"))
        answers = [
            (await calls.operations.send_message(request, calls.context())).payload
            for _ in range(2)
        ]
        return {a.id for a in answers if isinstance(a, Task)}

    async with open_in_process(echo) as server:
        assert len(await twice(server.calls())) == 2
    async with open_in_process(echo, settings(dedup_message_ids=True)) as server:
        assert len(await twice(server.calls())) == 1


# --- ownership ------------------------------------------------------------------------------------


async def test_a_foreign_task_does_not_exist(autojump_clock: trio.testing.MockClock) -> None:
    async with open_in_process(scripted) as server:
        mine, theirs = server.calls("alice"), server.calls("bob")
        task = await mine.send_for_task("ask")
        with pytest.raises(TaskNotFoundError):
            await theirs.get(task.id)
        with pytest.raises(TaskNotFoundError):
            await theirs.cancel(task.id)
        with pytest.raises(TaskNotFoundError):
            await theirs.send("me!", task_id=task.id)
        with pytest.raises(TaskNotFoundError):
            async with theirs.subscribe(task.id):
                pytest.fail("subscribed to a foreign task")
        with pytest.raises(TaskNotFoundError):
            async with theirs.stream("me!", task_id=task.id):
                pytest.fail("streamed a foreign task")
        assert (await theirs.list()).tasks == ()
        assert (await theirs.list(ListTasksRequest(context_id=task.context_id))).total_size == 0
        assert (await mine.get(task.id)).state is TaskState.INPUT_REQUIRED
        assert server.engine.statistics().subscribers == 0


# --- contexts and tasks -----------------------------------------------------------------------------


async def test_context_is_made_kept_and_checked(autojump_clock: trio.testing.MockClock) -> None:
    async with open_in_process(scripted) as server:
        calls = server.calls(context_per_call=False)
        first = await calls.send_for_task("ask")
        assert first.context_id
        second = await calls.send_for_task("", context_id=first.context_id)
        assert second.context_id == first.context_id
        assert second.id != first.id
        with pytest.raises(InvalidParamsError) as refused:
            await calls.send("x", task_id=first.id, context_id="another")
        assert refused.value.violations[0].field == "message.contextId"
        answered = await calls.send_for_task("x", task_id=first.id)
        assert answered.context_id == first.context_id
        assert all(m.context_id == first.context_id for m in answered.history)
        assert all(m.task_id == first.id for m in answered.history)


async def test_message_to_an_ended_or_unknown_task(autojump_clock: trio.testing.MockClock) -> None:
    async with open_in_process(echo) as server:
        calls = server.calls()
        task = await calls.send_for_task("x")
        with pytest.raises(UnsupportedOperationError):
            await calls.send("y", task_id=task.id)
        with pytest.raises(TaskNotFoundError):
            await calls.send("y", task_id="unknown")


async def test_push_configuration_is_refused(autojump_clock: trio.testing.MockClock) -> None:
    async with open_in_process(echo) as server:
        calls = server.calls()
        push = TaskPushNotificationConfig(url="https://example.com/hook")
        configuration = SendMessageConfiguration(task_push_notification_config=push)
        request = SendMessageRequest(message=calls.message("x"), configuration=configuration)
        with pytest.raises(PushNotificationNotSupportedError):
            await calls.operations.send_message(request, calls.context())


async def test_first_message_larger_than_a_task_is_refused_and_leaves_nothing(
    autojump_clock: trio.testing.MockClock,
) -> None:
    async with open_in_process(echo, settings(max_task_bytes=1000)) as server:
        calls = server.calls()
        with pytest.raises(InvalidParamsError) as refused:
            await calls.send("x" * 2000)
        assert refused.value.violations[0].field == "message"
        assert server.stored == 0
        assert server.engine.statistics().slots_in_use == 0


async def test_a_guard_that_breaks_costs_no_slot(
    autojump_clock: trio.testing.MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_arguments: object) -> None:
        raise ZeroDivisionError

    async with open_in_process(echo) as server:
        with monkeypatch.context() as patch:
            patch.setattr("a2a_trio.rules.anti_loop.AntiLoop.record", broken)
            with pytest.raises(ZeroDivisionError):
                await server.calls().send("x")
        assert server.engine.statistics().slots_in_use == 0
        await server.calls().send("x")


# --- loops ------------------------------------------------------------------------------------------


async def test_turns_of_a_conversation_are_capped_and_idleness_forgives(
    autojump_clock: trio.testing.MockClock,
) -> None:
    limits = settings(max_pingpong_turns=3, anti_loop_idle_sec=60)
    async with open_in_process(echo, limits) as server:
        calls = server.calls()
        states = [(await calls.send_for_task("x", context_id="c")).state for _ in range(5)]
        other = await server.calls("bob").send_for_task("x", context_id="c")
        await trio.sleep(61)
        later = await calls.send_for_task("x", context_id="c")

    assert states == [TaskState.COMPLETED] * 3 + [TaskState.REJECTED] * 2
    assert other.state is TaskState.COMPLETED
    assert later.state is TaskState.COMPLETED


async def test_a_refused_stream_shows_the_rejected_task(
    autojump_clock: trio.testing.MockClock,
) -> None:
    async with open_in_process(echo, settings(max_pingpong_turns=1)) as server:
        calls = server.calls(context_per_call=False)
        first = await calls.send_for_task("x", context_id="c")
        assert first.state is TaskState.COMPLETED
        source = await calls.operations.send_streaming_message(
            SendMessageRequest(message=calls.message("x", context_id="c")), calls.context()
        )
        events = await read_all(source)
        source.close()
        assert server.engine.statistics().slots_in_use == 0

    (task,) = events
    assert isinstance(task, Task)
    assert task.state is TaskState.REJECTED
    assert task.text


async def test_work_that_went_in_a_circle_is_rejected(
    autojump_clock: trio.testing.MockClock,
) -> None:
    async with open_in_process(echo) as server:
        calls = server.calls()
        for chain in (["a", server.assembly.self_id, "b"], ["x"] * 20):
            message = Message(
                message_id="m",
                role=Role.USER,
                parts=(Part(text="x"),),
                metadata={DELEGATION_EXTENSION: {"hops": len(chain), "chain": [*chain]}},
            )
            answer = await calls.operations.send_message(
                SendMessageRequest(message=message), calls.context()
            )
            assert isinstance(answer.payload, Task)
            assert answer.payload.state is TaskState.REJECTED


# --- lists --------------------------------------------------------------------------------------------


async def test_pages_cover_every_task_once_newest_first(
    autojump_clock: trio.testing.MockClock,
) -> None:
    async with open_in_process(echo) as server:
        calls = server.calls()
        sent = []
        for _ in range(25):
            sent.append((await calls.send_for_task("x")).id)
            await trio.sleep(1)
        seen: list[str] = []
        token, sizes = "", []
        while True:
            page = await calls.list(ListTasksRequest(page_size=10, page_token=token))
            assert page.total_size == 25
            assert page.page_size == 10
            seen += [t.id for t in page.tasks]
            sizes.append(len(page.tasks))
            token = page.next_page_token
            if not token:
                break

    assert sizes == [10, 10, 5]
    assert seen == sent[::-1]


async def test_list_filters(autojump_clock: trio.testing.MockClock) -> None:
    async with open_in_process(scripted) as server:
        calls = server.calls()
        early = await calls.send_for_task("spam:1", context_id="c1")
        await trio.sleep(10)
        late = await calls.send_for_task("raise", context_id="c2")
        stamp = late.status.timestamp
        assert stamp is not None

        async def ids(request: ListTasksRequest) -> list[str]:
            return [t.id for t in (await calls.list(request)).tasks]

        assert await ids(ListTasksRequest(context_id="c1")) == [early.id]
        assert await ids(ListTasksRequest(status=TaskState.FAILED)) == [late.id]
        assert await ids(ListTasksRequest(status_timestamp_after=stamp)) == [late.id]
        after = stamp + timedelta(milliseconds=1)
        assert await ids(ListTasksRequest(status_timestamp_after=after)) == []
        plain = await calls.list(ListTasksRequest(context_id="c1"))
        assert plain.tasks[0].artifacts == ()
        full = await calls.list(ListTasksRequest(context_id="c1", include_artifacts=True))
        assert full.tasks[0].artifacts
        assert full.tasks[0].history
        none = await calls.list(ListTasksRequest(context_id="c1", history_length=0))
        assert none.tasks[0].history == ()


@pytest.mark.parametrize(
    ("request_", "field"),
    [
        (ListTasksRequest(page_size=0), "pageSize"),
        (ListTasksRequest(page_size=101), "pageSize"),
        (ListTasksRequest(page_size=-1), "pageSize"),
        (ListTasksRequest(page_token="nonsense"), "pageToken"),
        (ListTasksRequest(history_length=-1), "historyLength"),
    ],
)
async def test_bad_list_parameters_are_named(
    autojump_clock: trio.testing.MockClock, request_: ListTasksRequest, field: str
) -> None:
    async with open_in_process(echo) as server:
        with pytest.raises(InvalidParamsError) as refused:
            await server.calls().list(request_)

    assert refused.value.violations[0].field == field


@pytest.mark.parametrize(("length", "shown"), [(None, 3), (0, 0), (1, 1), (2, 2), (9, 3)])
async def test_history_length(
    autojump_clock: trio.testing.MockClock, length: int | None, shown: int
) -> None:
    async with open_in_process(scripted) as server:
        calls = server.calls()
        task = await calls.send_for_task("say:one say:two")
        got = await calls.get(task.id, length)

    assert [m.text for m in got.history] == ["say:one say:two", "one", "two"][3 - shown :]


# --- filtering ------------------------------------------------------------------------------------


async def test_the_first_thing_that_is_said_is_filtered(
    autojump_clock: trio.testing.MockClock,
) -> None:
    secret = "sk-" + "a1b2c3d4" * 4

    async def leaking(task: TaskContext) -> None:
        await task.update(secret)
        await task.update(secret)

    async with open_in_process(leaking) as server:
        task = await server.calls().send_for_task("x")
    assert [m.text for m in task.history[1:]] == ["[redacted-api-key]"] * 2


# --- eviction -----------------------------------------------------------------------------------------


async def test_ended_tasks_are_bounded_fairly_and_live_ones_stay(
    autojump_clock: trio.testing.MockClock,
) -> None:
    limits = settings(max_tasks=10, max_concurrent=5)
    async with open_in_process(scripted, limits) as server:
        loud, quiet = server.calls("loud"), server.calls("quiet")
        kept = await quiet.send_for_task("")
        live = await loud.send_for_task("hang", detached=True)
        for _ in range(30):
            await loud.send("")
        assert server.stored == 11
        assert (await quiet.get(kept.id)).state is TaskState.COMPLETED
        assert (await loud.get(live.id)).state is TaskState.WORKING


async def test_ended_tasks_expire(autojump_clock: trio.testing.MockClock) -> None:
    async with open_in_process(scripted, settings(task_ttl_sec=100)) as server:
        calls = server.calls()
        task = await calls.send_for_task("")
        await trio.sleep(99)
        await calls.get(task.id)
        await trio.sleep(2)
        with pytest.raises(TaskNotFoundError):
            await calls.get(task.id)
        assert server.stored == 0
