"""Puts the events of one stream together to the task they describe (A2A section 4.2).

Streams hand out deltas; what they add up to is kept here and nowhere in the events, so that no
text is ever shown twice. Chunks fold by the server's own rules, and in linear time: text is joined
when somebody looks.
"""

from typing import final

import attrs

from a2a_trio.errors import PeerProtocolError
from a2a_trio.rules.folding import Draft, artifact_weight, chunk_weight, message_weight
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

__all__ = ["TaskFold"]


@final
class _Draft:
    """An artifact that grows, and what it weighs."""

    def __init__(self, artifact: Artifact) -> None:
        self._draft = Draft(artifact)
        self.weight = artifact_weight(artifact)
        self.artifact = self._draft.artifact

    def append(self, chunk: Artifact) -> None:
        """Add a chunk."""
        self._draft.append(chunk)
        self.weight += chunk_weight(chunk)


@final
class TaskFold:
    """What a stream has said so far.

    Args:
        max_bytes: bound on what is kept; past it the stream fails.
        url: the peer, for errors.
    """

    def __init__(self, max_bytes: int, url: str) -> None:
        self._max_bytes = max_bytes
        self._url = url
        self._base: Task | None = None  # without artifacts
        self._base_weight = 0
        self._drafts: dict[str, _Draft] = {}  # bounded by max_bytes
        self._drafts_weight = 0
        self._task: Task | None = None  # None while it has to be put together again
        self.message: Message | None = None
        """The answer of an agent that made no task."""

    @property
    def task(self) -> Task | None:
        """The task so far; None before the first event of one."""
        if self._base is not None and self._task is None:
            artifacts = tuple(draft.artifact() for draft in self._drafts.values())
            self._task = attrs.evolve(self._base, artifacts=artifacts)
        return self._task

    @property
    def state(self) -> TaskState | None:
        """State of the task; None without one. Cheaper than ``task.state``."""
        return self._base.state if self._base is not None else None

    @property
    def task_id(self) -> str:
        """Id of the task, or ``""``."""
        return self._base.id if self._base is not None else ""

    @property
    def context_id(self) -> str:
        """Context of the task or message, or ``""``."""
        if self._base is not None:
            return self._base.context_id
        return self.message.context_id if self.message is not None else ""

    def apply(self, event: StreamEvent) -> None:
        """Take one event.

        Raises:
            PeerProtocolError: it belongs to another task, or there is more than may be kept.
        """
        self._task = None
        match event:
            case Message():
                self.message = event
            case Task():
                self._check_id(event.id)
                self._replace(event)
            case TaskStatusUpdateEvent():
                self._check_id(event.task_id)
                base = self._base or _unseen(event.task_id, event.context_id)
                self._rebase(attrs.evolve(base, status=event.status))
            case TaskArtifactUpdateEvent():
                self._check_id(event.task_id)
                if self._base is None:
                    self._rebase(_unseen(event.task_id, event.context_id))
                self._add(event)
        if self._base_weight + self._drafts_weight > self._max_bytes:
            raise PeerProtocolError(
                f"the task is larger than the {self._max_bytes} bytes that are kept", url=self._url
            )

    def _check_id(self, task_id: str) -> None:
        if self._base is not None and self._base.id != task_id:
            raise PeerProtocolError("the stream changed to another task", url=self._url)

    def _replace(self, task: Task) -> None:
        self._drafts = {artifact.artifact_id: _Draft(artifact) for artifact in task.artifacts}
        self._drafts_weight = sum(draft.weight for draft in self._drafts.values())
        self._rebase(attrs.evolve(task, artifacts=()))

    def _rebase(self, base: Task) -> None:
        known = self._base
        if known is None or known.history is not base.history:
            self._history_weight = sum(map(message_weight, base.history))
        said = base.status.message
        self._base_weight = self._history_weight + (message_weight(said) if said else 0)
        self._base = base

    def _add(self, event: TaskArtifactUpdateEvent) -> None:
        draft = self._drafts.get(event.artifact.artifact_id)
        before = draft.weight if draft is not None else 0
        if draft is not None and event.append:
            draft.append(event.artifact)
        else:
            draft = self._drafts[event.artifact.artifact_id] = _Draft(event.artifact)
        self._drafts_weight += draft.weight - before


def _unseen(task_id: str, context_id: str) -> Task:
    """Return the task that an update belongs to when no snapshot came before it."""
    return Task(id=task_id, context_id=context_id, status=TaskStatus(state=TaskState.UNSPECIFIED))
