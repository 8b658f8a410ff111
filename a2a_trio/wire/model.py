"""Messages, tasks, artifacts and stream events of A2A v1.0 as frozen values (A2A section 4).

Attribute names are the snake_case of the JSON member names; ``codec`` does the spelling. ``None``,
``""`` and empty tuples stand for absent members, except where the protocol tells absent from the
default: ``Part`` content, ``history_length``, ``page_size``, ``include_artifacts`` and the three
capability flags.
"""

from collections.abc import Mapping
from datetime import UTC, datetime
from enum import Enum, StrEnum
from types import MappingProxyType
from typing import Final, TypeAlias, Union, final

import attrs

# A Union, not a string: classes below combine it with ``|`` at run time.
JsonValue: TypeAlias = Union[bool, int, float, str, "list[JsonValue]", "dict[str, JsonValue]", None]
JsonObject: TypeAlias = Mapping[str, JsonValue]

EMPTY: Final[JsonObject] = MappingProxyType({})

A_TUPLE: Final = attrs.validators.instance_of(tuple)
"""A list member would let a published value change under its readers."""


class Unset(Enum):
    """The type of ``UNSET``: tells "no data member" from ``data: null``."""

    UNSET = "UNSET"

    def __repr__(self) -> str:
        return "UNSET"


UNSET: Final = Unset.UNSET


class Role(StrEnum):
    """Who sent a message."""

    UNSPECIFIED = "ROLE_UNSPECIFIED"
    USER = "ROLE_USER"
    AGENT = "ROLE_AGENT"


class TaskState(StrEnum):
    """The state of a task (A2A section 4.1.3). Declaration order is the proto's number."""

    UNSPECIFIED = "TASK_STATE_UNSPECIFIED"
    SUBMITTED = "TASK_STATE_SUBMITTED"
    WORKING = "TASK_STATE_WORKING"
    COMPLETED = "TASK_STATE_COMPLETED"
    FAILED = "TASK_STATE_FAILED"
    CANCELED = "TASK_STATE_CANCELED"
    INPUT_REQUIRED = "TASK_STATE_INPUT_REQUIRED"
    REJECTED = "TASK_STATE_REJECTED"
    AUTH_REQUIRED = "TASK_STATE_AUTH_REQUIRED"

    @property
    def is_terminal(self) -> bool:
        """True if the task has ended and can never change again."""
        return self in TERMINAL_STATES

    @property
    def is_interrupted(self) -> bool:
        """True if the task waits for its caller."""
        return self in INTERRUPTED_STATES

    @property
    def is_settled(self) -> bool:
        """True if the agent is not at work: the task has ended, or waits for its caller."""
        return self.is_terminal or self.is_interrupted

    @property
    def short(self) -> str:
        """The state as people read it: ``input-required``."""
        return self.value.removeprefix("TASK_STATE_").replace("_", "-").lower()


TERMINAL_STATES: Final = frozenset(
    {TaskState.COMPLETED, TaskState.FAILED, TaskState.CANCELED, TaskState.REJECTED}
)
INTERRUPTED_STATES: Final = frozenset({TaskState.INPUT_REQUIRED, TaskState.AUTH_REQUIRED})


def utc_milliseconds(value: datetime) -> datetime:
    """Return the instant in UTC, cut to the milliseconds that the wire carries (A2A section 5.6.1).

    Raises:
        ValueError: the value has no time zone; guessing one would depend on the machine.
    """
    if value.tzinfo is not UTC:
        if value.tzinfo is None:
            raise ValueError("a timestamp needs a time zone")
        value = value.astimezone(UTC)
    return value.replace(microsecond=value.microsecond // 1000 * 1000)


def timestamp_text(value: datetime) -> str:
    """Write an instant in UTC with milliseconds and ``Z`` (A2A section 5.6.1)."""
    utc = value if value.tzinfo is UTC else value.astimezone(UTC)
    return utc.isoformat(timespec="milliseconds").removesuffix("+00:00") + "Z"


def maybe_utc(value: datetime | None) -> datetime | None:
    """Apply ``utc_milliseconds`` unless the value is absent."""
    return None if value is None else utc_milliseconds(value)


def join_text(parts: "tuple[Part, ...]") -> str:
    """Join the text parts with line feeds; other parts are left out."""
    return "\n".join(part.text for part in parts if part.text is not None)


# --- messages -------------------------------------------------------------------------------


@final
@attrs.frozen(kw_only=True)
class Part:
    """One piece of content: exactly one of ``text``, ``raw``, ``url``, ``data`` (A2A section 4.1.6).

    Raises:
        ValueError: none or several of the four are given.
    """

    text: str | None = None
    raw: bytes | None = None
    url: str | None = None
    data: JsonValue | Unset = UNSET
    metadata: JsonObject = EMPTY
    filename: str = ""
    media_type: str = ""

    def __attrs_post_init__(self) -> None:
        members = (
            (self.text is not None)
            + (self.raw is not None)
            + (self.url is not None)
            + (self.data is not UNSET)
        )
        if members != 1:
            raise ValueError("a Part has exactly one of text, raw, url, data")


@final
@attrs.frozen(kw_only=True)
class Message:
    """One message between a caller and an agent (A2A section 4.1.4)."""

    message_id: str
    role: Role
    parts: tuple[Part, ...] = attrs.field(validator=A_TUPLE)
    context_id: str = ""
    task_id: str = ""
    metadata: JsonObject = EMPTY
    extensions: tuple[str, ...] = attrs.field(default=(), validator=A_TUPLE)
    reference_task_ids: tuple[str, ...] = attrs.field(default=(), validator=A_TUPLE)

    @property
    def text(self) -> str:
        """The text parts, joined with line feeds."""
        return join_text(self.parts)


@final
@attrs.frozen(kw_only=True)
class Artifact:
    """One result of a task (A2A section 4.1.7); ``artifact_id`` is unique within the task."""

    artifact_id: str
    parts: tuple[Part, ...] = attrs.field(validator=A_TUPLE)
    name: str = ""
    description: str = ""
    metadata: JsonObject = EMPTY
    extensions: tuple[str, ...] = attrs.field(default=(), validator=A_TUPLE)

    @property
    def text(self) -> str:
        """The text parts, joined with line feeds."""
        return join_text(self.parts)


# --- tasks ----------------------------------------------------------------------------------


@final
@attrs.frozen(kw_only=True)
class TaskStatus:
    """The state of a task, when it was entered, and what the agent said about it."""

    state: TaskState
    message: Message | None = None
    timestamp: datetime | None = attrs.field(default=None, converter=maybe_utc)


@final
@attrs.frozen(kw_only=True)
class Task:
    """A unit of work with a state, results and a history (A2A section 4.1.1)."""

    id: str
    status: TaskStatus
    context_id: str = ""
    artifacts: tuple[Artifact, ...] = attrs.field(default=(), validator=A_TUPLE)
    history: tuple[Message, ...] = attrs.field(default=(), validator=A_TUPLE)
    metadata: JsonObject = EMPTY

    @property
    def state(self) -> TaskState:
        """Shorthand for ``status.state``."""
        return self.status.state

    @property
    def text(self) -> str:
        """The text of the artifacts or, if they have none, of the status message."""
        texts = [a.text for a in self.artifacts]
        joined = "\n".join(t for t in texts if t)
        if joined or self.status.message is None:
            return joined
        return self.status.message.text


@final
@attrs.frozen(kw_only=True)
class TaskStatusUpdateEvent:
    """A task entered a state, or reported progress in it (A2A section 4.2.1)."""

    task_id: str
    context_id: str
    status: TaskStatus
    metadata: JsonObject = EMPTY


@final
@attrs.frozen(kw_only=True)
class TaskArtifactUpdateEvent:
    """A task produced an artifact or a chunk of one (A2A section 4.2.2)."""

    task_id: str
    context_id: str
    artifact: Artifact
    append: bool = False
    last_chunk: bool = False
    metadata: JsonObject = EMPTY


StreamEvent: TypeAlias = Task | Message | TaskStatusUpdateEvent | TaskArtifactUpdateEvent
"""What a stream carries: the payload of a ``StreamResponse``."""


def exactly_one(owner: str, *members: object) -> None:
    """Refuse a oneof with no member or several."""
    if sum(member is not None for member in members) != 1:
        raise ValueError(f"a {owner} has exactly one member")


@final
@attrs.frozen(kw_only=True)
class StreamResponse:
    """One frame of a stream: exactly one member (A2A section 3.2.3)."""

    task: Task | None = None
    message: Message | None = None
    status_update: TaskStatusUpdateEvent | None = None
    artifact_update: TaskArtifactUpdateEvent | None = None

    def __attrs_post_init__(self) -> None:
        exactly_one(
            "StreamResponse", self.task, self.message, self.status_update, self.artifact_update
        )

    @property
    def payload(self) -> StreamEvent:
        """The member that is there."""
        for member in (self.task, self.message, self.status_update, self.artifact_update):
            if member is not None:
                return member
        raise AssertionError("checked at construction")
