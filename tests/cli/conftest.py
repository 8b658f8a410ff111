"""What the tests of the command line share: running it, and a client that needs no peer."""

import io
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import datetime
from pathlib import Path
from typing import TypeAlias

import attrs
import pytest

from a2a_trio.cli.console import Console
from a2a_trio.errors import A2AError
from a2a_trio.wire.agent_card import AgentCapabilities, AgentCard, AgentInterface, AgentSkill
from a2a_trio.wire.model import (
    Artifact,
    Message,
    Part,
    Role,
    StreamEvent,
    Task,
    TaskState,
    TaskStatus,
)
from a2a_trio.wire.requests import ListTasksResponse

PATIENCE = 120
"""Seconds after which a process that hangs is given up; no test passes or fails by speed."""


@attrs.frozen
class Screen:
    """A console whose streams are kept."""

    console: Console
    out: io.StringIO
    err: io.StringIO


ScreenMaker: TypeAlias = Callable[..., Screen]


@pytest.fixture
def screen() -> ScreenMaker:
    """Return a maker of consoles: ``screen(json=True)``, ``screen(colour=True)``."""

    def make(*, json: bool = False, quiet: bool = False, colour: bool = False) -> Screen:
        out, err = io.StringIO(), io.StringIO()
        console = Console(
            out=out, err=err, json=json, quiet=quiet, out_colour=colour, err_colour=colour
        )
        return Screen(console, out, err)

    return make


CommandLine: TypeAlias = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """Return the environment of a process that shares no state with this machine's user."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("A2A_", "NO_COLOR"))}
    return {**kept, "A2A_HOME": str(tmp_path / "home"), "PYTHONWARNINGS": "error"}


@pytest.fixture
def a2a(tmp_path: Path, environment: Mapping[str, str]) -> CommandLine:
    """Return a function that runs ``a2a-trio`` in a process of its own."""

    def run(
        *words: str, stdin: str = "", env: Mapping[str, str] | None = None
    ) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "a2a_trio", *words],
            input=stdin,
            capture_output=True,
            text=True,
            cwd=tmp_path,
            env={**environment, **(env or {})},
            timeout=PATIENCE,
            check=False,
        )

    return run


def text_message(text: str, *, role: Role = Role.AGENT) -> Message:
    """Return a message of one text part."""
    return Message(message_id="m-1", role=role, parts=(Part(text=text),))


def make_task(
    state: TaskState = TaskState.COMPLETED, *, text: str = "", said: str = "", task_id: str = "t-1"
) -> Task:
    """Return a task in a state, with an artifact or a status message if texts are given."""
    artifacts = (Artifact(artifact_id="reply", parts=(Part(text=text),)),) if text else ()
    status = TaskStatus(
        state=state,
        message=text_message(said) if said else None,
        timestamp=datetime.fromisoformat("2025-01-31T12:00:00Z"),
    )
    return Task(id=task_id, context_id="c-1", status=status, artifacts=artifacts)


def make_card() -> AgentCard:
    """Return a card with one of everything that is shown."""
    return AgentCard(
        name="reviewer",
        description="Reviews changes.",
        version="2.1",
        supported_interfaces=(
            AgentInterface(
                url="http://127.0.0.1:9910/", protocol_binding="JSONRPC", protocol_version="1.0"
            ),
        ),
        capabilities=AgentCapabilities(streaming=True),
        default_input_modes=("text/plain",),
        default_output_modes=("text/plain",),
        skills=(
            AgentSkill(id="review", name="Review", description="Reads a diff", tags=("code",)),
        ),
    )


@attrs.frozen
class FakeReply:
    """What the fake client's ``send`` returns."""

    task: Task | None = None
    message: Message | None = None


@attrs.define
class FakeClient:
    """A client that answers from a script and remembers what it was asked."""

    reply: FakeReply = FakeReply()
    task: Task = attrs.field(factory=make_task)
    events: Sequence[StreamEvent] = ()
    pages: Sequence[ListTasksResponse] = ()
    error: A2AError | None = None
    broken: A2AError | None = None
    """How the stream ends after its events, if not well."""
    calls: list[tuple[object, ...]] = attrs.field(factory=list)

    def _called(self, *what: object) -> None:
        self.calls.append(what)
        if self.error is not None:
            raise self.error

    @asynccontextmanager
    async def connect(self) -> AsyncIterator["FakeClient"]:
        yield self

    async def card(self) -> AgentCard:
        self._called("card")
        return make_card()

    async def send(self, content: str, /, *, context_id: str = "", task_id: str = "") -> FakeReply:
        self._called("send", content, context_id, task_id)
        return self.reply

    @asynccontextmanager
    async def stream(
        self, content: str, /, *, context_id: str = "", task_id: str = ""
    ) -> AsyncIterator[AsyncIterator[StreamEvent]]:
        self._called("stream", content, context_id, task_id)
        yield self._each_event()

    async def _each_event(self) -> AsyncIterator[StreamEvent]:
        for event in self.events:
            yield event
        if self.broken is not None:
            raise self.broken

    async def send_detached(
        self, content: str, /, *, context_id: str = "", task_id: str = ""
    ) -> Task:
        self._called("send_detached", content, context_id, task_id)
        return self.task

    async def get(self, task_id: str, /) -> Task:
        self._called("get", task_id)
        return self.task

    async def wait(self, task_id: str, /, *, timeout: float | None = None) -> Task:  # noqa: ASYNC109 - the client's own signature
        self._called("wait", task_id, timeout)
        return self.task

    async def cancel(self, task_id: str, /) -> Task:
        self._called("cancel", task_id)
        return self.task

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
        self._called("list", context_id, status, page_size, page_token, status_timestamp_after)
        assert include_artifacts
        return self.pages[0]

    async def list_all(
        self,
        *,
        max_tasks: int = 10_000,
        context_id: str = "",
        status: TaskState = TaskState.UNSPECIFIED,
        status_timestamp_after: datetime | None = None,
        include_artifacts: bool | None = None,
    ) -> tuple[Task, ...]:
        self._called("list_all", context_id, status, status_timestamp_after)
        assert include_artifacts
        return tuple(task for page in self.pages for task in page.tasks)[:max_tasks]
