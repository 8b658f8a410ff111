"""The life of a task as one table (A2A section 4.1.3 and 3.1).

Every change of a task, from whatever side it comes, is an event that goes through ``apply``. A
state's row names the events that it accepts and the state that each leads to. A missing entry
raises ``InvalidTransitionError`` and changes nothing; the terminal states have empty rows, so
whichever terminal event is applied first is the only one, and a late answer of an agent, a cancel
after the end or an expired window can do no harm.

The record that goes through is a value: a task, the number of stream events that led to it (its
version, which is also the SSE id of the newest one), and what the rules need to remember about it.
Each event yields at least one stream event, so the version names one state of the task exactly.
"""

from collections.abc import Mapping
from datetime import datetime
from functools import cached_property
from types import MappingProxyType
from typing import Final, TypeAlias, final

import attrs

from a2a_trio.errors import InvalidTransitionError
from a2a_trio.rules.folding import artifact_weight, chunk_weight, fold, message_weight
from a2a_trio.wire.methods import Dialect
from a2a_trio.wire.model import (
    Artifact,
    Message,
    StreamEvent,
    Task,
    TaskArtifactUpdateEvent,
    TaskState,
    TaskStatus,
    TaskStatusUpdateEvent,
)

# --- the record -----------------------------------------------------------------------------


MAX_UNFOLDED: Final = 512
"""Updates of artifacts that a record keeps as they came; one more, and all of them are folded."""


@final
@attrs.frozen(kw_only=True, eq=False)
class TaskRecord:
    """A task together with what only its server knows about it.

    Folding a chunk into its artifact copies the text that is there. So the newest updates are kept
    as they came until somebody looks at the task: a long stream costs linear time.
    """

    folded: Task = attrs.field(alias="task")
    """The task, save for the artifact updates in ``unfolded``."""
    unfolded: tuple[TaskArtifactUpdateEvent, ...] = ()
    owner: str
    """Identity of the caller that created the task; nobody else can see it."""
    dialect: Dialect = Dialect.V1
    """The dialect it was created in, for later calls that do not say."""
    version: int = 0
    """How many stream events the task has had."""
    sealed: frozenset[str] = frozenset()
    """Ids of artifacts whose last chunk has been given."""
    size: int = 0
    """Roughly how many bytes its artifacts and history keep in memory."""

    @cached_property
    def task(self) -> Task:
        """The task as it is."""
        if not self.unfolded:
            return self.folded
        return attrs.evolve(self.folded, artifacts=fold(self.folded.artifacts, *self.unfolded))

    @property
    def id(self) -> str:
        """Shorthand for the task's id."""
        return self.folded.id

    @property
    def state(self) -> TaskState:
        """Shorthand for the task's state."""
        return self.folded.status.state

    def has_artifact(self, artifact_id: str) -> bool:
        """Return whether the task has an artifact of this id; folds nothing."""
        return any(u.artifact.artifact_id == artifact_id for u in reversed(self.unfolded)) or any(
            a.artifact_id == artifact_id for a in self.folded.artifacts
        )

    def __eq__(self, other: object) -> bool:
        """Compare what is recorded, not how much of it is folded."""
        return isinstance(other, TaskRecord) and self._values() == other._values()

    __hash__ = None  # type: ignore[assignment] # a task holds JSON objects

    def _values(self) -> tuple[object, ...]:
        return self.task, self.owner, self.dialect, self.version, self.sealed, self.size


@final
@attrs.frozen(kw_only=True)
class RecordLimits:
    """What one task may keep."""

    max_history: int = 200
    """Messages; past it the oldest are dropped (A2A section 3.7 lets the server decide)."""
    max_bytes: int = 16 * 1024 * 1024
    """Artifacts and history; past it ``apply`` raises ``TaskTooLargeError``."""


class TaskTooLargeError(InvalidTransitionError):
    """The event would make the task larger than it may be."""


# --- events ---------------------------------------------------------------------------------


@final
@attrs.frozen
class Started:
    """A run began to work on the task."""


@final
@attrs.frozen
class Progressed:
    """The agent said what it is doing."""

    message: Message


@final
@attrs.frozen
class ArtifactAdded:
    """The agent produced an artifact, or a chunk of one."""

    artifact: Artifact
    append: bool = False
    last: bool = False


@final
@attrs.frozen
class MessageReceived:
    """The caller sent another message to the working agent."""

    message: Message


@final
@attrs.frozen
class InputNeeded:
    """The agent asks its caller a question."""

    message: Message | None = None


@final
@attrs.frozen
class AuthNeeded:
    """The agent needs a credential or a permission."""

    message: Message | None = None


@final
@attrs.frozen
class Answered:
    """The caller answered; the agent goes on."""

    message: Message


@final
@attrs.frozen
class Resumed:
    """The agent goes on without an answer."""


@final
@attrs.frozen
class Completed:
    """The agent is done."""

    message: Message | None = None


@final
@attrs.frozen
class Failed:
    """The task failed; the message says why."""

    message: Message | None = None


@final
@attrs.frozen
class Canceled:
    """The caller canceled the task."""


@final
@attrs.frozen
class Rejected:
    """The task is refused; the message says why."""

    message: Message | None = None


TaskEvent: TypeAlias = (
    Started
    | Progressed
    | ArtifactAdded
    | MessageReceived
    | InputNeeded
    | AuthNeeded
    | Answered
    | Resumed
    | Completed
    | Failed
    | Canceled
    | Rejected
)

# --- the table ------------------------------------------------------------------------------

_ENDINGS: Final[Mapping[type[TaskEvent], TaskState]] = {
    Failed: TaskState.FAILED,
    Canceled: TaskState.CANCELED,
}
_INTERRUPTED: Final[Mapping[type[TaskEvent], TaskState]] = {
    Answered: TaskState.WORKING,
    Resumed: TaskState.WORKING,
    **_ENDINGS,
}

TRANSITIONS: Final[Mapping[TaskState, Mapping[type[TaskEvent], TaskState]]] = MappingProxyType(
    {
        TaskState.SUBMITTED: {
            Started: TaskState.WORKING,
            Rejected: TaskState.REJECTED,
            **_ENDINGS,
        },
        TaskState.WORKING: {
            Progressed: TaskState.WORKING,
            ArtifactAdded: TaskState.WORKING,
            MessageReceived: TaskState.WORKING,
            InputNeeded: TaskState.INPUT_REQUIRED,
            AuthNeeded: TaskState.AUTH_REQUIRED,
            Completed: TaskState.COMPLETED,
            Rejected: TaskState.REJECTED,
            **_ENDINGS,
        },
        TaskState.INPUT_REQUIRED: _INTERRUPTED,
        TaskState.AUTH_REQUIRED: _INTERRUPTED,
        TaskState.COMPLETED: {},
        TaskState.FAILED: {},
        TaskState.CANCELED: {},
        TaskState.REJECTED: {},
    }
)


def apply(
    record: TaskRecord, event: TaskEvent, at: datetime, limits: RecordLimits
) -> tuple[TaskRecord, tuple[StreamEvent, ...]]:
    """Return the record after the event, and the stream events that tell of it.

    Args:
        record: the task before; it is not changed.
        event: what happened.
        at: when, for the status timestamp; an instant before the last one counts as that one.
        limits: what the task may keep.

    Raises:
        InvalidTransitionError: the state does not accept the event, or a chunk follows the last one.
        TaskTooLargeError: the task would keep more than ``limits.max_bytes``.
    """
    target = TRANSITIONS[record.state].get(type(event))
    if target is None:
        raise InvalidTransitionError(
            f"a task in state {record.state.short} does not accept {type(event).__name__}"
        )
    if isinstance(event, ArtifactAdded):
        return _add_artifact(record, event, limits)
    return _change_status(record, event, target, at, limits)


def _add_artifact(
    record: TaskRecord, event: ArtifactAdded, limits: RecordLimits
) -> tuple[TaskRecord, tuple[StreamEvent, ...]]:
    artifact, artifact_id = event.artifact, event.artifact.artifact_id
    if event.append and artifact_id in record.sealed:
        raise InvalidTransitionError("a chunk was appended to an artifact after its last chunk")
    update = TaskArtifactUpdateEvent(
        task_id=record.id,
        context_id=record.folded.context_id,
        artifact=artifact,
        append=event.append,
        last_chunk=event.last,
    )
    known = record.has_artifact(artifact_id)
    if known and event.append:
        size = record.size + chunk_weight(artifact)
    else:
        size = record.size + artifact_weight(artifact)
        if known:
            size -= sum(
                artifact_weight(a) for a in record.task.artifacts if a.artifact_id == artifact_id
            )
    _check_size(size, limits)
    sealed = record.sealed
    if event.last != (artifact_id in sealed):
        sealed ^= {artifact_id}
    unfolded = (*record.unfolded, update)
    after = attrs.evolve(
        record, unfolded=unfolded, sealed=sealed, size=size, version=record.version + 1
    )
    if len(unfolded) > MAX_UNFOLDED:
        after = attrs.evolve(after, task=after.task, unfolded=())
    return after, (update,)


def _change_status(
    record: TaskRecord, event: TaskEvent, state: TaskState, at: datetime, limits: RecordLimits
) -> tuple[TaskRecord, tuple[StreamEvent, ...]]:
    # Progress between two chunks folds nothing; a task that stays as it is holds nothing twice.
    going_on = state is TaskState.WORKING
    task, unfolded = (record.folded, record.unfolded) if going_on else (record.task, ())
    said, heard = _messages(event)
    before = task.status.timestamp
    status = TaskStatus(
        state=state, message=said, timestamp=at if before is None else max(at, before)
    )
    # A status message is current until the next status; then it is history, in the order said.
    new = tuple(m for m in (task.status.message, heard) if m is not None)
    size = (
        record.size
        + (message_weight(heard) if heard else 0)
        + (message_weight(said) if said else 0)
    )
    if not state.is_terminal:
        _check_size(size, limits)
    history = (*task.history, *new) if new else task.history
    dropped = history[: max(0, len(history) - limits.max_history)]
    changed = attrs.evolve(task, status=status, history=history[len(dropped) :])
    after = attrs.evolve(
        record,
        task=changed,
        unfolded=unfolded,
        size=size - sum(map(message_weight, dropped)),
        version=record.version + 1,
    )
    update = TaskStatusUpdateEvent(task_id=task.id, context_id=task.context_id, status=status)
    return after, (update,)


def _messages(event: TaskEvent) -> tuple[Message | None, Message | None]:
    """Return what the agent said and what the caller said."""
    match event:
        case MessageReceived(message) | Answered(message):
            return None, message
        case (
            Progressed(message)
            | InputNeeded(message)
            | AuthNeeded(message)
            | Completed(message)
            | Failed(message)
            | Rejected(message)
        ):
            return message, None
        case _:
            return None, None


def _check_size(size: int, limits: RecordLimits) -> None:
    if size > limits.max_bytes:
        raise TaskTooLargeError(
            f"the task would keep more than {limits.max_bytes} bytes of artifacts and history"
        )


def closes_stream(event: StreamEvent) -> bool:
    """True if a stream ends after this event.

    Terminal states end every stream. INPUT_REQUIRED does too: the caller has to speak next. After
    AUTH_REQUIRED a stream stays open, because the agent may go on by itself (A2A section 7.6.1).
    """
    match event:
        case Task(status=status) | TaskStatusUpdateEvent(status=status):
            return status.state.is_terminal or status.state is TaskState.INPUT_REQUIRED
        case Message():
            return True
        case _:
            return False
