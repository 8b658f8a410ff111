"""From a command line to a connected client: whom to call, with which token, for how long."""

import argparse
from collections.abc import AsyncIterable, Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from datetime import datetime
from typing import Final, Protocol, TypeAlias, TypeVar, TypeVarTuple

import attrs
import trio

from a2a_trio.cli.console import Console
from a2a_trio.cli.exits import ExitCode
from a2a_trio.wire.agent_card import AgentCard
from a2a_trio.wire.model import Message, StreamEvent, Task, TaskState
from a2a_trio.wire.requests import ListTasksResponse

T = TypeVar("T")
Given = TypeVarTuple("Given")
Options = TypeVar("Options", bound=attrs.AttrsInstance)

TICK: Final = 1.0
"""Seconds between two changes of the progress line."""


def run_client(
    command: Callable[[*Given], Awaitable[ExitCode]],
    *given: *Given,
) -> ExitCode:
    """Run a command that calls a peer, in an event loop of its own.

    Raises:
        KeyboardInterrupt: Ctrl-C; only where the command waits, because in the middle of another
            library's code it would leave a half-started call behind, which Python warns of.
    """
    return trio.run(command, *given, restrict_keyboard_interrupt_to_checkpoints=True)


class Reply(Protocol):
    """What came back for a message: a task or, from agents without tasks, a message."""

    @property
    def task(self) -> Task | None:
        """The task, if the agent made one."""

    @property
    def message(self) -> Message | None:
        """The message, if the agent answered without a task."""


class PeerClient(Protocol):
    """The part of ``a2a_trio.client.Client`` that commands use."""

    async def card(self) -> AgentCard:
        """Return the peer's card."""
        ...

    async def send(self, content: str, /, *, context_id: str = "", task_id: str = "") -> Reply:
        """Send a message and wait for the reply."""
        ...

    def stream(
        self, content: str, /, *, context_id: str = "", task_id: str = ""
    ) -> AbstractAsyncContextManager[AsyncIterable[StreamEvent]]:
        """Send a message and iterate over what the agent does."""
        ...

    async def send_detached(
        self, content: str, /, *, context_id: str = "", task_id: str = ""
    ) -> Task:
        """Send a message and return the task that runs."""
        ...

    async def get(self, task_id: str, /) -> Task:
        """Return a task."""
        ...

    async def wait(self, task_id: str, /, *, timeout: float | None = None) -> Task:  # noqa: ASYNC109 - how long to watch; expiry is an outcome
        """Return a task once it has ended or asks something, or after ``timeout`` seconds."""
        ...

    async def cancel(self, task_id: str, /) -> Task:
        """Cancel a task and return it."""
        ...

    async def list(
        self,
        *,
        context_id: str = "",
        status: TaskState = TaskState.UNSPECIFIED,
        page_size: int | None = None,
        page_token: str = "",
        status_timestamp_after: datetime | None = None,
        include_artifacts: bool | None = None,
    ) -> ListTasksResponse:
        """Return one page of tasks."""
        ...

    async def list_all(
        self,
        *,
        max_tasks: int = 10_000,
        context_id: str = "",
        status: TaskState = TaskState.UNSPECIFIED,
        status_timestamp_after: datetime | None = None,
        include_artifacts: bool | None = None,
    ) -> tuple[Task, ...]:
        """Return the tasks of all pages."""
        ...


Connect: TypeAlias = Callable[[], AbstractAsyncContextManager[PeerClient]]
"""Opens the client of one command."""


def options_from(kind: type[Options], namespace: argparse.Namespace) -> Options:
    """Return an attrs class filled with the arguments of the same names."""
    fields = attrs.fields(kind)
    return kind(**{field.name: getattr(namespace, field.name) for field in fields})


async def waiting(console: Console, text: str, operation: Callable[[], Awaitable[T]]) -> T:
    """Await the operation and meanwhile show people how long it takes.

    Cancellation: passes to the operation; the progress line is taken away.
    """
    if not console.live:
        return await operation()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(_tick, console, text)
        try:
            result = await operation()
        finally:
            console.clear_progress()
        nursery.cancel_scope.cancel()
    return result


async def _tick(console: Console, text: str) -> None:
    start = trio.current_time()
    while True:
        console.progress(f"{text} … {trio.current_time() - start:.0f} s")
        await trio.sleep(TICK)
