"""Where tasks are kept: the store's contract, and the bounded store in memory.

The contract is asynchronous and versioned so that a database can stand behind it. A record is only
ever replaced by its successor: ``append`` names the version that it was made from and is refused if
the store has another one, so two writers cannot overwrite each other. The stream events that led to
a version are appended with it, in one step, and published to the task's taps in that order.
"""

from collections import OrderedDict, deque
from collections.abc import Callable
from datetime import datetime
from typing import Final, Protocol, final

import attrs

from a2a_trio.errors import A2AError
from a2a_trio.rules.folding import artifact_weight, message_weight
from a2a_trio.rules.lifecycle import TaskRecord, closes_stream
from a2a_trio.rules.paging import Cursor, cursor_of
from a2a_trio.server.calls import Published
from a2a_trio.server.subscriptions import Subscriptions, Tap
from a2a_trio.wire.model import (
    StreamEvent,
    TaskArtifactUpdateEvent,
    TaskState,
    TaskStatusUpdateEvent,
)

__all__ = [
    "MemoryStore",
    "StoreLimits",
    "TaskPage",
    "TaskQuery",
    "TaskStore",
    "VersionConflictError",
]


class VersionConflictError(A2AError):
    """The stored record is not the one that the new version was made from."""


@final
@attrs.frozen(kw_only=True)
class TaskQuery:
    """Which tasks to list (A2A section 3.1.4)."""

    owner: str
    limit: int
    context_id: str = ""
    state: TaskState = TaskState.UNSPECIFIED
    updated_since: datetime | None = None
    """Inclusive."""
    after: Cursor | None = None
    """The last task of the page before."""


@final
@attrs.frozen(kw_only=True)
class TaskPage:
    """One page, newest status first."""

    records: tuple[TaskRecord, ...]
    next: Cursor | None
    total: int
    """How many tasks match, on all pages."""


class TaskStore(Protocol):
    """What the server needs of a place for tasks.

    Every method may be cancelled, and then has either happened or not. An exception that is not
    named here fails the task or the call at hand and nothing else; the cause is logged.
    """

    async def create(self, record: TaskRecord, tap: Tap | None = None, /) -> None:
        """Keep a new record; prime the tap with its task in the same step.

        Raises:
            VersionConflictError: a record with this task id exists.
        """
        ...

    async def get(self, task_id: str, /) -> TaskRecord | None:
        """Return the current record, or None."""
        ...

    async def append(
        self, record: TaskRecord, events: tuple[StreamEvent, ...], /, *, expected_version: int
    ) -> None:
        """Replace the record of version ``expected_version`` and publish the events that led here.

        Raises:
            VersionConflictError: the stored record has another version, or is gone.
        """
        ...

    async def list(self, query: TaskQuery, /) -> TaskPage:
        """Return one page of an owner's tasks."""
        ...

    async def delete(self, task_id: str, /) -> None:
        """Forget a task; unknown ids are ignored."""
        ...

    async def attach(
        self, task_id: str, tap: Tap, /, *, after: int | None = None
    ) -> TaskRecord | None:
        """Prime a tap with a snapshot and make it live, in one step; None if there is no task.

        Args:
            task_id: the task.
            tap: a tap of this task, not yet primed.
            after: a version; if every later event is still known, those come instead of the
                snapshot.
        """
        ...


@final
@attrs.frozen(kw_only=True)
class StoreLimits:
    """What the store in memory keeps. Tasks that have not ended are never dropped."""

    max_ended: int = 500
    """Ended tasks; past it the oldest of the owner who has most is dropped."""
    ttl: float = 86_400.0
    """Seconds that an ended task is kept; 0 is no limit."""
    max_events: int = 1000
    """Events per task that can be replayed; past it the oldest are dropped."""
    max_event_bytes: int = 16 * 1024 * 1024
    """The same bound in bytes."""


_EVENT_OVERHEAD: Final = 2048
"""What an event weighs besides its content: its objects, its ids, its frame."""


@final
class _EventLog:
    """The newest events of one task, bounded in number and bytes."""

    __slots__ = ("_bytes", "_items", "_limits")

    def __init__(self, limits: StoreLimits) -> None:
        self._limits = limits
        self._items: deque[tuple[int, Published]] = deque()
        self._bytes = 0

    def add(self, item: Published) -> None:
        size = _event_weight(item.event)
        self._items.append((size, item))
        self._bytes += size
        while len(self._items) > self._limits.max_events or (
            self._bytes > self._limits.max_event_bytes and self._items
        ):
            dropped, _ = self._items.popleft()
            self._bytes -= dropped

    def since(self, version: int, current: int) -> tuple[Published, ...] | None:
        """Return every event after a version, or None if one of them is no longer known."""
        missed = current - version
        if not 0 <= missed <= len(self._items):
            return None
        return tuple(item for _, item in tuple(self._items)[len(self._items) - missed :])


def _event_weight(event: StreamEvent) -> int:
    """Return roughly what an event keeps in memory: itself, and what it was encoded to."""
    match event:
        case TaskArtifactUpdateEvent(artifact=artifact):
            content = artifact_weight(artifact)
        case TaskStatusUpdateEvent(status=status) if status.message is not None:
            content = message_weight(status.message)
        case _:
            content = 0
    return _EVENT_OVERHEAD + 2 * content


@final
@attrs.define(eq=False)
class _Entry:
    record: TaskRecord
    log: _EventLog


@final
class MemoryStore:
    """A ``TaskStore`` in memory, bounded; no method ever suspends, so each is one step.

    Args:
        subscriptions: the taps that appended events are published to.
        limits: what is kept.
        now: a monotonic clock in seconds, for the time to live.
    """

    def __init__(
        self, subscriptions: Subscriptions, limits: StoreLimits, now: Callable[[], float]
    ) -> None:
        self._subscriptions = subscriptions
        self._limits = limits
        self._now = now
        self._entries: dict[str, _Entry] = {}
        # Owner and time by task id, in the order of ending, for what expires.
        self._ended: OrderedDict[str, tuple[str, float]] = OrderedDict()
        # Per owner, so that one caller cannot flush the ended tasks of all the others.
        self._ended_of: dict[str, OrderedDict[str, None]] = {}

    def __len__(self) -> int:
        return len(self._entries)

    async def create(self, record: TaskRecord, tap: Tap | None = None) -> None:
        """See ``TaskStore.create``."""
        if record.id in self._entries:
            raise VersionConflictError("a task with this id exists")
        self._drop_expired()
        self._entries[record.id] = _Entry(record, _EventLog(self._limits))
        if record.state.is_terminal:
            self._note_end(record)
        if tap is not None:
            snapshot = Published(record.version, record.task)
            tap.prime((snapshot,), ends=closes_stream(record.task))

    async def get(self, task_id: str) -> TaskRecord | None:
        """See ``TaskStore.get``."""
        return self.peek(task_id)

    def peek(self, task_id: str) -> TaskRecord | None:
        """Return the current record at once, or None; what a store in memory can do."""
        self._drop_expired()
        entry = self._entries.get(task_id)
        return None if entry is None else entry.record

    async def append(
        self, record: TaskRecord, events: tuple[StreamEvent, ...], *, expected_version: int
    ) -> None:
        """See ``TaskStore.append``."""
        entry = self._entries.get(record.id)
        if entry is None or entry.record.version != expected_version:
            raise VersionConflictError("the task has changed meanwhile")
        entry.record = record
        first = record.version - len(events) + 1
        items = [Published(first + index, event) for index, event in enumerate(events)]
        for item in items:
            entry.log.add(item)
        if record.state.is_terminal:
            self._note_end(record)
        self._subscriptions.publish(record.id, items)

    async def list(self, query: TaskQuery) -> TaskPage:
        """See ``TaskStore.list``."""
        self._drop_expired()
        keyed = [
            (cursor_of(entry.record.task), entry.record)
            for entry in self._entries.values()
            if _matches(entry.record, query)
        ]
        keyed.sort(key=lambda pair: pair[0], reverse=True)
        total = len(keyed)
        if query.after is not None:
            keyed = [pair for pair in keyed if pair[0] < query.after]
        page = keyed[: query.limit]
        more = len(keyed) > len(page) and bool(page)
        return TaskPage(
            records=tuple(record for _, record in page),
            next=page[-1][0] if more else None,
            total=total,
        )

    async def delete(self, task_id: str) -> None:
        """See ``TaskStore.delete``."""
        self._drop(task_id)

    async def attach(
        self, task_id: str, tap: Tap, *, after: int | None = None
    ) -> TaskRecord | None:
        """See ``TaskStore.attach``."""
        record = self.peek(task_id)
        if record is None:
            return None
        log = self._entries[task_id].log
        missed = None if after is None else log.since(after, record.version)
        first = (Published(record.version, record.task),) if missed is None else missed
        tap.prime(first, ends=closes_stream(record.task))
        return record

    def _note_end(self, record: TaskRecord) -> None:
        self._ended[record.task.id] = (record.owner, self._now())
        self._ended_of.setdefault(record.owner, OrderedDict())[record.id] = None
        while len(self._ended) > self._limits.max_ended:
            owner = max(self._ended_of, key=lambda name: len(self._ended_of[name]))
            self._drop(next(iter(self._ended_of[owner])))

    def _drop_expired(self) -> None:
        if not self._limits.ttl:
            return
        horizon = self._now() - self._limits.ttl
        while self._ended:
            oldest, (_, ended_at) = next(iter(self._ended.items()))
            if ended_at > horizon:
                return
            self._drop(oldest)

    def _drop(self, task_id: str) -> None:
        self._entries.pop(task_id, None)
        ended = self._ended.pop(task_id, None)
        if ended is not None:
            of_owner = self._ended_of[ended[0]]
            del of_owner[task_id]
            if not of_owner:
                del self._ended_of[ended[0]]


def _matches(record: TaskRecord, query: TaskQuery) -> bool:
    task = record.task
    if record.owner != query.owner:
        return False
    if query.context_id and task.context_id != query.context_id:
        return False
    if query.state is not TaskState.UNSPECIFIED and task.state is not query.state:
        return False
    if query.updated_since is None:
        return True
    changed = task.status.timestamp
    return changed is not None and changed >= query.updated_since
