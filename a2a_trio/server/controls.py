"""What an agent's side gets of its run: facts to read, and events to say.

The agents room knows this shape as a protocol of its own; the two meet in the composition root.
"""

from collections.abc import Callable
from typing import TypeVar, final

import attrs
import trio

from a2a_trio.rules.admission import Caller
from a2a_trio.rules.lifecycle import (
    ArtifactAdded,
    AuthNeeded,
    Completed,
    Failed,
    InputNeeded,
    Progressed,
    Rejected,
    TaskEvent,
)
from a2a_trio.server.engine import Engine
from a2a_trio.server.run import Request, Run
from a2a_trio.wire.model import Message, Task

Question = TypeVar("Question", bound=InputNeeded | AuthNeeded)

__all__ = ["Framer", "RunControls"]

Framer = Callable[[str, Request], str]
"""Makes the text of a message safe to show to a model, given whom it came from."""


@final
class RunControls:
    """One run as its agent sees it.

    Args:
        engine: the engine that drives the run.
        run: the run.
        frame: frames the caller's text as untrusted input.
    """

    def __init__(self, engine: Engine, run: Run, frame: Framer) -> None:
        self._engine = engine
        self._run = run
        self._frame = frame
        self._inbox: trio.MemoryReceiveChannel[Message] | None = None

    @property
    def task(self) -> Task:
        """The task as it is now."""
        return self._run.record.task

    @property
    def message(self) -> Message:
        """The message that the agent works on."""
        return self._run.request.message

    @property
    def request(self) -> Request:
        """The message with what came around it."""
        return self._run.request

    @property
    def caller(self) -> Caller:
        """Who sent it."""
        return self._run.request.caller

    def framed(self, text: str) -> str:
        """Return a text of the caller, framed as untrusted input."""
        return self._frame(text, self._run.request)

    def new_id(self) -> str:
        """Return a fresh id."""
        return self._engine.new_id()

    async def say(self, *events: TaskEvent) -> None:
        """Publish events in one step, each filtered as the caller may see it."""
        filtered = tuple(e for event in events if (e := self._filtered(event)) is not None)
        await self._engine.say(self._run, *filtered)

    async def ask(self, question: InputNeeded | AuthNeeded) -> Message:
        """Wait for the caller's next message."""
        return await self._engine.ask(self._run, self.asked(question))

    def asked(self, question: Question) -> Question:
        """Return a question as the caller may see it."""
        if question.message is None:
            return question
        return attrs.evolve(question, message=self._run.filter.message(question.message))

    def filtered(self, events: tuple[TaskEvent, ...]) -> tuple[TaskEvent, ...]:
        """Return last events as the caller may see them, for the engine to publish."""
        return tuple(e for event in events if (e := self._filtered(event)) is not None)

    def inbox(self) -> trio.MemoryReceiveChannel[Message]:
        """Return the channel of messages that come while the agent works; opens it once."""
        if self._inbox is None:
            self._inbox = self._engine.open_inbox(self._run)
        return self._inbox

    async def end(self, event: Failed | Rejected) -> None:
        """End the task now, after what was held back; the agent may go on, unheard."""
        filter_ = self._run.filter
        held = self._run.held_chunks()
        message = None if event.message is None else filter_.message(event.message)
        await self._engine.say(self._run, *held, attrs.evolve(event, message=message))

    def _filtered(self, event: TaskEvent) -> TaskEvent | None:
        """Return the event as the caller may see it; None while all of a chunk is held back."""
        filter_ = self._run.filter
        match event:
            case ArtifactAdded(artifact, append, last):
                shown = filter_.artifact(artifact, append=append, last=last)
                append = self._run.appends(shown, append=append)
                return ArtifactAdded(shown, append, last) if shown.parts else None
            case Progressed(message):
                return Progressed(filter_.message(message))
            case Completed(message) if message is not None:
                return Completed(filter_.message(message))
            case _:
                return event
