"""One run: a task that is alive, with everything that can end it.

A run is driven by one child of the runs nursery (``server/runs``). What others may do to it while
it lives is decided here, synchronously: answer its question, put a message in its inbox, force its
end. The verdict at the end is one function over what happened.
"""

from collections.abc import Callable
from enum import Enum, auto
from typing import Final, Protocol, final

import attrs
import trio

from a2a_trio.errors import InvalidTransitionError, UnsupportedOperationError
from a2a_trio.rules.admission import Caller
from a2a_trio.rules.endings import Asked, Ending, Finished, Replied
from a2a_trio.rules.lifecycle import ArtifactAdded, Failed, TaskEvent, TaskRecord
from a2a_trio.server.leases import Lease
from a2a_trio.server.subscriptions import Tap
from a2a_trio.wire.model import Artifact, JsonObject, Message, StreamEvent, Task

__all__ = [
    "Mode",
    "OutboundFilter",
    "Question",
    "Request",
    "Run",
    "RunObserver",
    "Turn",
]

_BUSY: Final = "The task is busy and its agent does not read further messages"
_FULL: Final = "The task is busy and its inbox is full"
_ENDING: Final = "The task is ending"


class Mode(Enum):
    """How the caller of a message waits for what comes of it."""

    BLOCKING = auto()
    STREAMING = auto()
    DETACHED = auto()


class OutboundFilter(Protocol):
    """What everything passes that an agent says on one task; stateful over artifact chunks."""

    def message(self, message: Message, /) -> Message:
        """Return the message as the caller may see it."""
        ...

    def artifact(self, artifact: Artifact, /, *, append: bool, last: bool) -> Artifact:
        """Return the chunk as the caller may see it now; no parts is "nothing yet"."""
        ...

    def pending(self) -> tuple[Artifact, ...]:
        """Return what was held back so far, as chunks to append; called once, at the end."""
        ...


class RunObserver(Protocol):
    """Is told what happens to runs, as it happens; must neither block nor raise."""

    def began(self, run: "Run", /) -> None:
        """A message started a run."""
        ...

    def heard(self, run: "Run", message: Message, /) -> None:
        """The caller of a live run sent another message."""
        ...

    def said(self, run: "Run", events: tuple[StreamEvent, ...], /) -> None:
        """Events of the run's task were published."""
        ...

    def ended(self, run: "Run", seconds: float, /) -> None:
        """The run has left, or its end was forced on it, after so many seconds; told once."""
        ...


@final
@attrs.frozen(kw_only=True)
class Request:
    """One message of a caller with what came around it."""

    message: Message
    caller: Caller
    mode: Mode
    metadata: JsonObject
    accepted_output_modes: tuple[str, ...] = ()
    extensions: tuple[str, ...] = ()
    tap: Tap | None = None
    """The subscriber that the message brought along; primed with the task as the message left it."""
    on_reply: Callable[[Message], None] | None = None
    """Told of a direct Message answer, before anybody gets it."""


@final
@attrs.define(eq=False)
class Turn:
    """What becomes of one message: the agent works on it, then the task settles."""

    mode: Mode
    begun: trio.Event = attrs.field(factory=trio.Event)
    """The task is WORKING on the message, or has already settled."""
    timed: trio.Event = attrs.field(factory=trio.Event)
    """The window of this turn has been opened, or the turn has settled without one."""
    settled: trio.Event = attrs.field(factory=trio.Event)
    """The task has ended, or waits for its caller."""
    outcome: Task | None = None
    """The task as it was when it settled; it may have gone on since."""

    def settle(self, task: Task) -> None:
        """Wake everybody who waits for this turn; only the first call counts."""
        if self.outcome is None:
            self.outcome = task
        self.begun.set()
        self.timed.set()
        self.settled.set()


@final
@attrs.define(eq=False)
class Question:
    """An open question of the agent; the first message that comes is the answer."""

    answer: Message | None = None
    answered: trio.Event = attrs.field(factory=trio.Event)


@final
@attrs.define(eq=False, kw_only=True)
class Run:
    """A live task. Scopes, from outside in: ``user`` (cancel, stop), then ``window`` (time)."""

    record: TaskRecord
    """The newest version known to this process."""
    request: Request
    """The message that the agent works on."""
    turn: Turn
    lease: Lease
    filter: OutboundFilter
    say: Callable[[str], Message]
    """Makes a message of the agent on this task out of a text."""
    started_at: float
    user: trio.CancelScope = attrs.field(factory=trio.CancelScope)
    window: trio.CancelScope = attrs.field(factory=trio.CancelScope)
    window_text: str = ""
    """What is said when the window expires."""
    forced: TaskEvent | None = None
    """The end that somebody decided on: a cancel, a stop, a limit. Beats all that the agent does."""
    unopened: set[str] = attrs.field(factory=set)
    """Artifacts whose beginning is still held back; as many as the filter holds."""
    question: Question | None = None
    parked: bool = False
    inbox: trio.MemorySendChannel[Message] | None = None
    concluded: bool = False
    """The verdict is being written; nothing can change it any more."""
    reported: bool = False
    """The observer was told that it ended."""
    reply: Message | None = None
    """The direct Message answer, if the agent gave one."""
    failure: Exception | None = None
    """The store failed: what the caller is told instead of a task."""
    over: trio.Event = attrs.field(factory=trio.Event)
    """The run has left, or its end was forced on it after the grace."""
    left: trio.Event = attrs.field(factory=trio.Event)
    """The run's task is gone and its slot is free."""

    @property
    def id(self) -> str:
        """The task's id."""
        return self.record.id

    @property
    def is_over(self) -> bool:
        """True if nothing that the agent says can be heard any more."""
        return self.concluded or self.record.state.is_terminal

    def refuse_if_over(self) -> None:
        """Refuse an agent that goes on after its task.

        Raises:
            InvalidTransitionError: the task has ended.
        """
        if self.is_over:
            raise InvalidTransitionError("the task has ended")

    def deliver(self, request: Request) -> tuple[Turn, bool]:
        """Give the run another message of its caller.

        Returns:
            The turn to wait for, and whether the message is for the inbox and not an answer.

        Raises:
            UnsupportedOperationError: the agent does not read messages now.
        """
        if self.forced is not None or self.concluded:
            raise UnsupportedOperationError(_ENDING)
        question = self.question
        if question is not None and question.answer is None:
            question.answer = request.message
            self.request = request
            self.turn = Turn(request.mode)
            question.answered.set()
            return self.turn, False
        if self.inbox is None:
            raise UnsupportedOperationError(_BUSY)
        buffered = self.inbox.statistics()
        if buffered.current_buffer_used >= buffered.max_buffer_size:
            raise UnsupportedOperationError(_FULL)
        return self.turn, True

    def put_in_inbox(self, message: Message) -> None:
        """Hand a message to the working agent.

        Raises:
            UnsupportedOperationError: it reads no more, or has too much to read.
        """
        if self.inbox is None:
            raise UnsupportedOperationError(_BUSY)
        try:
            self.inbox.send_nowait(message)
        except trio.WouldBlock:
            raise UnsupportedOperationError(_FULL) from None
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            raise UnsupportedOperationError(_BUSY) from None

    def appends(self, chunk: Artifact, *, append: bool) -> bool:
        """Return whether a chunk adds to what its readers have, given what was held back before.

        A chunk that begins an artifact may have been held back whole; then the next one begins it.
        """
        key = chunk.artifact_id
        if not append:
            self.unopened.add(key)
        begins = key in self.unopened or not self.record.has_artifact(key)
        if chunk.parts:
            self.unopened.discard(key)
        return not begins

    def held_chunks(self) -> tuple[ArtifactAdded, ...]:
        """Return what the filter held back, as the last chunks; called once, at the end."""
        return tuple(
            ArtifactAdded(chunk, self.appends(chunk, append=True))
            for chunk in self.filter.pending()
        )

    def settle(self) -> None:
        """Wake everybody who waits for the present turn."""
        self.turn.settle(self.record.task)

    def verdict(self, ending: Ending | None, crash: str | None) -> Finished | Replied:
        """Return how the task ends, given what the agent did.

        A decision of somebody else comes first: it was there before the end. Then the window: an
        agent that was cut short must not pass for one that is done, whatever it returned. Then the
        agent's own failure, then its own ending.
        """
        if self.forced is not None:
            return Finished((self.forced,))
        if self.window.cancel_called:
            return self.failed(self.window_text)
        if crash is not None:
            return self.failed(crash)
        if ending is None or isinstance(ending, Asked):
            return self.failed("the agent ended without an answer")
        return ending

    def failed(self, text: str) -> Finished:
        """Return the ending of a task that failed, with a text for its caller."""
        return Finished((self.failure_event(text),))

    def failure_event(self, text: str) -> Failed:
        """Return the event of a failure, its text filtered like everything an agent says."""
        return Failed(self.filter.message(self.say(text)))
