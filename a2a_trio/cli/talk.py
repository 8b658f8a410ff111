"""``a2a-trio send``: one message, and its reply whole, streamed, or later."""

import argparse
from typing import Final, TypeAlias, final

import attrs

from a2a_trio.cli import render
from a2a_trio.cli.connect import Connect, options_from, run_client, waiting
from a2a_trio.cli.console import Console, Style
from a2a_trio.cli.exits import ExitCode, UsageError, exit_for_state
from a2a_trio.cli.stdin import from_stdin
from a2a_trio.cli.target import connection
from a2a_trio.cli.text import label, visible
from a2a_trio.wire import codec
from a2a_trio.wire.model import (
    Message,
    StreamEvent,
    StreamResponse,
    Task,
    TaskArtifactUpdateEvent,
    TaskState,
    TaskStatus,
    TaskStatusUpdateEvent,
)
from a2a_trio.wire.requests import SendMessageResponse

MAX_STDIN_BYTES: Final = 5 * 1024 * 1024
"""Text taken from standard input; a peer with default settings refuses a larger body anyway."""


@final
@attrs.frozen(kw_only=True)
class SendOptions:
    """What to send and how."""

    text: str
    peer: str
    stream: bool = False
    detach: bool = False
    context: str = ""
    task: str = ""


def run(namespace: argparse.Namespace, console: Console) -> ExitCode:
    """Run ``a2a-trio send``."""
    options = options_from(SendOptions, namespace)
    if options.text == "-":
        options = attrs.evolve(options, text=from_stdin(MAX_STDIN_BYTES))
    if not options.text:
        raise UsageError("there is nothing to send: TEXT is empty")
    return run_client(send, options, console, connection(namespace, console))


async def send(options: SendOptions, console: Console, connect: Connect) -> ExitCode:
    """Send the message and show what comes back.

    Cancellation: the connection is closed; a task that was started goes on at the peer.
    """
    if options.detach:
        return await _detach(options, console, connect)
    if options.stream:
        return await _stream(options, console, connect)
    async with connect() as client:
        reply = await waiting(
            console,
            f"waiting for {options.peer}",
            lambda: client.send(options.text, context_id=options.context, task_id=options.task),
        )
    if console.json:
        console.record(codec.encode(SendMessageResponse(task=reply.task, message=reply.message)))
    elif reply.task is None:
        console.line(render.message_text(reply.message))
    else:
        _show_task(reply.task, options.peer, console)
    return ExitCode.OK if reply.task is None else exit_for_state(reply.task.state)


async def _detach(options: SendOptions, console: Console, connect: Connect) -> ExitCode:
    async with connect() as client:
        task = await client.send_detached(
            options.text, context_id=options.context, task_id=options.task
        )
    if console.json:
        console.record(codec.encode(task))
    else:
        # Always the id, also of a task that has already ended: scripts take it from here.
        console.line(label(task.id))
        console.note(f"{task.state.short}; look at it with:")
        console.note(f"  a2a-trio status {options.peer} {label(task.id)} --wait 300")
    return exit_for_state(task.state)


async def _stream(options: SendOptions, console: Console, connect: Connect) -> ExitCode:
    view: EventView = JsonView(console) if console.json else TextView(console, options.peer)
    try:
        async with (
            connect() as client,
            client.stream(options.text, context_id=options.context, task_id=options.task) as events,
        ):
            async for event in events:
                view.show(event)
    except BaseException:
        view.cut_off()
        raise
    return view.finish()


def _show_task(task: Task, peer: str, console: Console) -> None:
    text = render.task_text(task)
    if text:
        console.line(text)
    _conclude(task.id, task.context_id, task.state, peer, console)


def _conclude(task_id: str, context_id: str, state: TaskState, peer: str, console: Console) -> None:
    style = Style.BAD if exit_for_state(state) else Style.DIM
    console.note(f"{state.short} · task {label(task_id)} · context {label(context_id)}", style)
    if state is TaskState.INPUT_REQUIRED:
        console.note(f'answer with: a2a-trio send {peer} --task {label(task_id)} "..."')


def as_response(event: StreamEvent) -> StreamResponse:
    """Return an event in the frame that streams carry it in."""
    match event:
        case Task():
            return StreamResponse(task=event)
        case Message():
            return StreamResponse(message=event)
        case TaskStatusUpdateEvent():
            return StreamResponse(status_update=event)
        case TaskArtifactUpdateEvent():
            return StreamResponse(artifact_update=event)


@final
class JsonView:
    """Shows a stream as one JSON object per line."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._state: TaskState | None = None

    def show(self, event: StreamEvent) -> None:
        """Write one event."""
        self._console.record(codec.encode(as_response(event)))
        if isinstance(event, Task | TaskStatusUpdateEvent):
            self._state = event.status.state

    def cut_off(self) -> None:
        """Do nothing: what was written is complete lines."""

    def finish(self) -> ExitCode:
        """Return the exit code of the last state that was seen."""
        return ExitCode.OK if self._state is None else exit_for_state(self._state)


@final
class TextView:
    """Shows a stream as the text that grows and, on standard error, what the agent does."""

    def __init__(self, console: Console, peer: str) -> None:
        self._console = console
        self._peer = peer
        self._task_id = ""
        self._context_id = ""
        self._status: TaskStatus | None = None
        self._shown = False
        self._open_line = False

    def show(self, event: StreamEvent) -> None:
        """Write one event."""
        match event:
            case Message():
                self._end_line()
                self._write_line(render.message_text(event))
            case Task():
                self._adopt(event.id, event.context_id, event.status)
                for artifact in event.artifacts:
                    self._write_line(render.parts_text(artifact.parts))
            case TaskStatusUpdateEvent():
                self._adopt(event.task_id, event.context_id, event.status)
            case TaskArtifactUpdateEvent():
                self._chunk(event)

    def finish(self) -> ExitCode:
        """End the text and return the exit code of the last state that was seen."""
        self._end_line()
        if self._status is None:
            return ExitCode.OK
        state = self._status.state
        text = render.message_text(self._status.message)
        if text and (state.is_interrupted or (state.is_terminal and not self._shown)):
            self._console.line(text)
        _conclude(self._task_id, self._context_id, state, self._peer, self._console)
        return exit_for_state(state)

    def cut_off(self) -> None:
        """Say, after Ctrl-C or a lost connection, that the task goes on without a listener."""
        self._end_line()
        if self._status is not None and not self._status.state.is_terminal:
            self._console.note(
                f"the task goes on: a2a-trio status {self._peer} {label(self._task_id)} --wait 300"
            )

    def _adopt(self, task_id: str, context_id: str, status: TaskStatus) -> None:
        self._task_id = task_id
        self._context_id = context_id
        self._status = status
        if not (status.state.is_terminal or status.state.is_interrupted):
            note = render.state_note(status.state, render.message_text(status.message))
            self._console.note(note)

    def _chunk(self, event: TaskArtifactUpdateEvent) -> None:
        if not event.append:
            self._end_line()
        for part in event.artifact.parts:
            if part.text is None:
                self._end_line()
                self._write_line(render.part_text(part))
            else:
                self._write(visible(part.text))
        if event.last_chunk:
            self._end_line()

    def _write(self, text: str) -> None:
        if text:
            self._console.write(text)
            self._shown = True
            self._open_line = not text.endswith("\n")

    def _write_line(self, text: str) -> None:
        if text:
            self._console.line(text)
            self._shown = True

    def _end_line(self) -> None:
        if self._open_line:
            self._console.line()
            self._open_line = False


EventView: TypeAlias = JsonView | TextView
