"""``a2a-trio status``, ``cancel`` and ``tasks``: look at tasks that run at a peer."""

import argparse
from collections.abc import Sequence
from datetime import datetime
from typing import Final, final

import attrs

from a2a_trio.cli import render
from a2a_trio.cli.connect import Connect, PeerClient, options_from, run_client, waiting
from a2a_trio.cli.console import Console
from a2a_trio.cli.exits import ExitCode, exit_for_state
from a2a_trio.cli.target import connection
from a2a_trio.cli.text import label
from a2a_trio.wire import codec
from a2a_trio.wire.model import Task, TaskState

MAX_TASKS: Final = 10_000
"""Tasks that ``--all`` shows; a peer decides how many there are."""


@final
@attrs.frozen(kw_only=True)
class StatusOptions:
    """Which task to show; ``wait`` is how long to wait for it, in seconds."""

    peer: str
    task: str
    wait: float | None = None


@final
@attrs.frozen(kw_only=True)
class CancelOptions:
    """Which task to cancel."""

    peer: str
    task: str


@final
@attrs.frozen(kw_only=True)
class TasksOptions:
    """Which tasks to list."""

    peer: str
    context: str = ""
    state: TaskState | None = None
    after: datetime | None = None
    page_size: int | None = None
    page_token: str = ""
    all: bool = False


def run_status(namespace: argparse.Namespace, console: Console) -> ExitCode:
    """Run ``a2a-trio status``."""
    options = options_from(StatusOptions, namespace)
    return run_client(status, options, console, connection(namespace, console))


def run_cancel(namespace: argparse.Namespace, console: Console) -> ExitCode:
    """Run ``a2a-trio cancel``."""
    options = options_from(CancelOptions, namespace)
    return run_client(cancel, options, console, connection(namespace, console))


def run_tasks(namespace: argparse.Namespace, console: Console) -> ExitCode:
    """Run ``a2a-trio tasks``."""
    options = options_from(TasksOptions, namespace)
    return run_client(list_tasks, options, console, connection(namespace, console))


async def status(options: StatusOptions, console: Console, connect: Connect) -> ExitCode:
    """Show a task, after waiting for it if that was asked.

    A wait that ends before the task does is not a failure of the task.
    """
    async with connect() as client:
        if options.wait is None:
            task = await client.get(options.task)
        else:
            seconds = options.wait
            task = await waiting(
                console,
                f"waiting for task {options.task}",
                lambda: client.wait(options.task, timeout=seconds),
            )
    _show(task, console)
    return exit_for_state(task.state)


async def cancel(options: CancelOptions, console: Console, connect: Connect) -> ExitCode:
    """Cancel a task and show what became of it."""
    async with connect() as client:
        task = await waiting(
            console, f"canceling task {options.task}", lambda: client.cancel(options.task)
        )
    if console.json:
        console.record(codec.encode(task))
    else:
        console.line(f"{label(task.id)} {task.state.short}")
    return ExitCode.OK if task.state is TaskState.CANCELED else exit_for_state(task.state)


async def list_tasks(options: TasksOptions, console: Console, connect: Connect) -> ExitCode:
    """Show a page of tasks, or all of them."""
    async with connect() as client:
        if options.all:
            return await _list_all(options, console, client)
        page = await client.list(
            context_id=options.context,
            status=options.state or TaskState.UNSPECIFIED,
            page_size=options.page_size,
            page_token=options.page_token,
            status_timestamp_after=options.after,
            include_artifacts=True,
        )
    if console.json:
        # The whole answer: machines need the token of the next page, too.
        console.record(codec.encode(page))
        return ExitCode.OK
    _show_all(page.tasks, console)
    if page.next_page_token:
        console.note(
            f"{len(page.tasks)} of {page.total_size}; next page:"
            f" --page-token {label(page.next_page_token)}"
        )
    return ExitCode.OK


async def _list_all(options: TasksOptions, console: Console, client: PeerClient) -> ExitCode:
    tasks = await client.list_all(
        max_tasks=MAX_TASKS,
        context_id=options.context,
        status=options.state or TaskState.UNSPECIFIED,
        status_timestamp_after=options.after,
        include_artifacts=True,
    )
    _show_all(tasks, console)
    if len(tasks) == MAX_TASKS:
        console.warn(f"only the newest {MAX_TASKS} tasks are shown")
    return ExitCode.OK


def _show(task: Task, console: Console) -> None:
    if console.json:
        console.record(codec.encode(task))
    else:
        for line in render.task_lines(task):
            console.line(line)


def _show_all(tasks: Sequence[Task], console: Console) -> None:
    if console.json:
        for task in tasks:
            console.record(codec.encode(task))
    elif tasks:
        for line in render.task_table(tasks):
            console.line(line)
    else:
        console.note("no tasks")
