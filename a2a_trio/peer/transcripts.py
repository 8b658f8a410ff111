"""The observer that writes down every run: one transcript each, a line per event as it happens."""

from collections.abc import Callable
from datetime import datetime
from typing import Final, final

import attrs

from a2a_trio.journal import TranscriptLine, transcript_name
from a2a_trio.rules.framing import clean_label
from a2a_trio.server.run import Run
from a2a_trio.wire.model import (
    Artifact,
    Message,
    Part,
    StreamEvent,
    Task,
    TaskArtifactUpdateEvent,
    TaskStatus,
    TaskStatusUpdateEvent,
)

__all__ = ["Transcriber"]

MAX_NAME: Final = 512
"""Characters kept of an id or a name; callers and agents choose some of them."""


@final
@attrs.define
class _Open:
    """The transcript of a run that is alive."""

    file: str
    lines: int = 0


@final
class Transcriber:
    """Hands the journal a line for everything that happens to a run.

    What the agent said arrives as its caller may see it; what the caller said arrives as it came.
    The journal redacts both. Ids, names and states are labels of one line.

    Args:
        write: takes a line; must neither block nor raise.
        utc: the present instant.
    """

    def __init__(
        self, write: Callable[[TranscriptLine], None], utc: Callable[[], datetime]
    ) -> None:
        self._write = write
        self._utc = utc
        self._open: dict[str, _Open] = {}

    def began(self, run: Run) -> None:
        """Open the transcript: who asks what, how it is known who asks, in which conversation."""
        self._open[run.id] = _Open(transcript_name(self._utc(), run.id))
        caller = run.request.caller
        self._line(
            run,
            "begin",
            taskId=run.id,
            contextId=run.record.task.context_id,
            identity=caller.identity,
            provenance=caller.provenance.value,
            address=caller.address,
            display=caller.display,
            mode=run.turn.mode.name.lower(),
        )
        self.heard(run, run.request.message)

    def heard(self, run: Run, message: Message) -> None:
        """Write down a message of the caller."""
        self._line(run, "message", message.parts, role="user", messageId=message.message_id)

    def said(self, run: Run, events: tuple[StreamEvent, ...]) -> None:
        """Write down what was published."""
        for event in events:
            match event:
                case TaskStatusUpdateEvent():
                    self._status(run, event.status)
                case TaskArtifactUpdateEvent():
                    self._artifact(run, event.artifact, append=event.append, last=event.last_chunk)
                case Message():
                    self._line(run, "message", event.parts, role=event.role.value)
                case Task():
                    self._status(run, event.status)

    def ended(self, run: Run, seconds: float) -> None:
        """Close the transcript: the state, how long it took, how many lines there should be."""
        if run.reply is not None:
            self._line(run, "message", run.reply.parts, role="agent")
        state = "replied" if run.reply is not None else run.record.task.state.short
        opened = self._open.get(run.id)
        self._line(
            run,
            "end",
            last=True,
            state=state,
            seconds=round(seconds, 3),
            lines=0 if opened is None else opened.lines + 1,
        )
        self._open.pop(run.id, None)

    def _status(self, run: Run, status: TaskStatus) -> None:
        parts = () if status.message is None else status.message.parts
        self._line(run, "status", parts, state=status.state.short)

    def _artifact(self, run: Run, artifact: Artifact, *, append: bool, last: bool) -> None:
        self._line(
            run,
            "artifact",
            artifact.parts,
            artifactId=artifact.artifact_id,
            name=artifact.name,
            append=append,
            lastChunk=last,
        )

    def _line(
        self,
        run: Run,
        kind: str,
        parts: tuple[Part, ...] = (),
        *,
        last: bool = False,
        **facts: str | float | bool,
    ) -> None:
        opened = self._open.get(run.id)
        if opened is None:
            return
        opened.lines += 1
        self._write(
            TranscriptLine(
                file=opened.file,
                at=self._utc(),
                kind=kind,
                facts={
                    name: clean_label(value, MAX_NAME) if isinstance(value, str) else value
                    for name, value in facts.items()
                },
                parts=parts,
                last=last,
            )
        )
