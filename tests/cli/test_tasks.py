"""``status``, ``cancel`` and ``tasks``."""

import json

import pytest
import trio

from a2a_trio.cli import tasks
from a2a_trio.cli.connect import TICK, waiting
from a2a_trio.cli.exits import ExitCode
from a2a_trio.cli.tasks import CancelOptions, StatusOptions, TasksOptions
from a2a_trio.errors import TaskNotFoundError
from a2a_trio.wire.model import TaskState
from a2a_trio.wire.requests import ListTasksResponse
from tests.cli.conftest import FakeClient, ScreenMaker, make_task

PAGE = ListTasksResponse(
    tasks=(make_task(text="one"), make_task(TaskState.WORKING, task_id="t-2")),
    next_page_token="next",
    page_size=2,
    total_size=3,
)
LAST_PAGE = ListTasksResponse(
    tasks=(make_task(TaskState.FAILED, task_id="t-3"),),
    next_page_token="",
    page_size=2,
    total_size=3,
)


async def test_status_shows_facts_and_text(screen: ScreenMaker) -> None:
    """One look, no waiting."""
    s = screen()
    client = FakeClient(task=make_task(text="result"))

    code = await tasks.status(StatusOptions(peer="p", task="t-1"), s.console, client.connect)

    assert code is ExitCode.OK
    assert s.out.getvalue().startswith("task     t-1\nstate    completed\n")
    assert s.out.getvalue().endswith("\n\nresult\n")
    assert client.calls == [("get", "t-1")]


async def test_status_waits_as_long_as_told(screen: ScreenMaker) -> None:
    """A wait that ends first is no failure of the task."""
    s = screen(json=True)
    client = FakeClient(task=make_task(TaskState.WORKING))
    options = StatusOptions(peer="p", task="t-1", wait=2.5)

    assert await tasks.status(options, s.console, client.connect) is ExitCode.OK
    assert client.calls == [("wait", "t-1", 2.5)]
    assert json.loads(s.out.getvalue())["status"]["state"] == "TASK_STATE_WORKING"


async def test_status_of_a_failed_task_is_1(screen: ScreenMaker) -> None:
    """A script that polls sees the failure."""
    client = FakeClient(task=make_task(TaskState.FAILED, said="no"))
    options = StatusOptions(peer="p", task="t-1")

    assert await tasks.status(options, screen().console, client.connect) is ExitCode.TASK_FAILED


@pytest.mark.parametrize(
    ("state", "code"),
    [
        (TaskState.CANCELED, ExitCode.OK),
        (TaskState.WORKING, ExitCode.OK),
        (TaskState.COMPLETED, ExitCode.OK),
        (TaskState.FAILED, ExitCode.TASK_FAILED),
    ],
)
async def test_cancel_shows_what_became_of_the_task(
    screen: ScreenMaker, state: TaskState, code: ExitCode
) -> None:
    """Canceled is what was asked for."""
    s = screen()
    client = FakeClient(task=make_task(state))

    assert (
        await tasks.cancel(CancelOptions(peer="p", task="t-1"), s.console, client.connect) is code
    )
    assert s.out.getvalue() == f"t-1 {state.short}\n"


async def test_cancel_of_an_unknown_task_is_an_error(screen: ScreenMaker) -> None:
    """The peer's refusal reaches the last frame."""
    client = FakeClient(error=TaskNotFoundError())

    with pytest.raises(TaskNotFoundError):
        await tasks.cancel(CancelOptions(peer="p", task="x"), screen().console, client.connect)


async def test_tasks_shows_one_page_and_how_to_get_the_next(screen: ScreenMaker) -> None:
    """A page, its table, and the token of the next one."""
    s = screen()
    client = FakeClient(pages=(PAGE, LAST_PAGE))

    code = await tasks.list_tasks(TasksOptions(peer="p"), s.console, client.connect)

    assert code is ExitCode.OK
    assert [line.split()[0] for line in s.out.getvalue().splitlines()] == ["TASK", "t-1", "t-2"]
    assert s.err.getvalue() == "2 of 3; next page: --page-token next\n"


async def test_tasks_as_json_is_the_whole_page(screen: ScreenMaker) -> None:
    """Machines get the token of the next page with the tasks."""
    s = screen(json=True)
    client = FakeClient(pages=(PAGE, LAST_PAGE))

    await tasks.list_tasks(TasksOptions(peer="p"), s.console, client.connect)

    page = json.loads(s.out.getvalue())
    assert [task["id"] for task in page["tasks"]] == ["t-1", "t-2"]
    assert (page["nextPageToken"], page["totalSize"]) == ("next", 3)


async def test_tasks_passes_its_filters_on(screen: ScreenMaker) -> None:
    """The peer filters, not the command."""
    client = FakeClient(pages=(LAST_PAGE,))
    options = TasksOptions(
        peer="p", context="c", state=TaskState.FAILED, page_size=7, page_token="tok"
    )

    await tasks.list_tasks(options, screen().console, client.connect)

    assert client.calls == [("list", "c", TaskState.FAILED, 7, "tok", None)]


async def test_all_tasks_follow_each_other(screen: ScreenMaker) -> None:
    """--all leaves no page out; with --json each task is a line."""
    table, lines = screen(), screen(json=True)
    client = FakeClient(pages=(PAGE, LAST_PAGE))
    options = TasksOptions(peer="p", all=True)

    await tasks.list_tasks(options, table.console, client.connect)
    await tasks.list_tasks(options, lines.console, client.connect)

    assert len(table.out.getvalue().splitlines()) == 4
    ids = [json.loads(line)["id"] for line in lines.out.getvalue().splitlines()]
    assert ids == ["t-1", "t-2", "t-3"]


async def test_table_has_a_bound(screen: ScreenMaker, monkeypatch: pytest.MonkeyPatch) -> None:
    """A peer with endless pages cannot fill the memory."""
    monkeypatch.setattr(tasks, "MAX_TASKS", 2)
    s = screen()
    client = FakeClient(pages=(PAGE, LAST_PAGE))

    await tasks.list_tasks(TasksOptions(peer="p", all=True), s.console, client.connect)

    assert len(s.out.getvalue().splitlines()) == 3
    assert "only the newest 2 tasks" in s.err.getvalue()


async def test_no_tasks_is_said(screen: ScreenMaker) -> None:
    """An empty list is not an empty screen."""
    s = screen()
    empty = ListTasksResponse(tasks=(), next_page_token="", page_size=50, total_size=0)

    await tasks.list_tasks(TasksOptions(peer="p"), s.console, FakeClient(pages=(empty,)).connect)

    assert (s.out.getvalue(), s.err.getvalue()) == ("", "no tasks\n")


async def test_waiting_counts_seconds_for_who_watches(
    screen: ScreenMaker, autojump_clock: trio.abc.Clock
) -> None:
    """The line changes every second and is gone at the end."""
    del autojump_clock
    s = screen(colour=True)

    async def slow() -> str:
        await trio.sleep(TICK * 2.5)
        return "done"

    assert await waiting(s.console, "waiting", slow) == "done"
    assert "waiting … 2 s" in s.err.getvalue()
    assert s.err.getvalue().endswith("\r\x1b[K")


async def test_waiting_writes_nothing_for_a_file(screen: ScreenMaker) -> None:
    """Log files are not filled with seconds."""
    s = screen()

    async def quick() -> int:
        await trio.lowlevel.checkpoint()
        return 1

    assert await waiting(s.console, "waiting", quick) == 1
    assert s.err.getvalue() == ""
