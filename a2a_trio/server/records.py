"""Writing the records of tasks: every change is an event applied, stored and published in one step."""

from collections.abc import Callable
from datetime import datetime
from typing import final

import attrs

from a2a_trio.rules.folding import message_weight
from a2a_trio.rules.lifecycle import (
    Canceled,
    RecordLimits,
    Rejected,
    TaskEvent,
    TaskRecord,
    apply,
)
from a2a_trio.server.calls import CallContext
from a2a_trio.server.run import Run, RunObserver
from a2a_trio.server.store import TaskStore, VersionConflictError
from a2a_trio.server.subscriptions import Tap
from a2a_trio.wire.model import Message, Part, Role, StreamEvent, Task, TaskState, TaskStatus

__all__ = ["Records"]


@final
class Records:
    """The writer of task records.

    Args:
        store: where they are kept.
        utc: the wall clock, for status timestamps.
        new_id: makes the ids of tasks, contexts and messages.
        limits: what one task may keep.
        observer: told what is published.
    """

    def __init__(
        self,
        store: TaskStore,
        *,
        utc: Callable[[], datetime],
        new_id: Callable[[], str],
        limits: RecordLimits,
        observer: RunObserver,
    ) -> None:
        self._store = store
        self._utc = utc
        self.new_id = new_id
        self._limits = limits
        self.observer = observer

    def agent_message(self, task: Task, text: str) -> Message:
        """Return a message of the agent on a task."""
        return Message(
            message_id=self.new_id(),
            role=Role.AGENT,
            parts=(Part(text=text),),
            context_id=task.context_id,
            task_id=task.id,
        )

    def first(self, message: Message, context: CallContext, task_id: str) -> TaskRecord:
        """Return the first record of a task for a message, in SUBMITTED; nothing is stored."""
        context_id = message.context_id or self.new_id()
        heard = attrs.evolve(message, context_id=context_id, task_id=task_id)
        status = TaskStatus(state=TaskState.SUBMITTED, timestamp=self._utc())
        task = Task(id=task_id, context_id=context_id, status=status, history=(heard,))
        return TaskRecord(
            task=task,
            owner=context.caller.identity,
            dialect=context.dialect,
            size=message_weight(heard),
        )

    def fits(self, record: TaskRecord, message: Message | None = None) -> bool:
        """Return whether a task, with one more message, is within what one task may keep."""
        more = 0 if message is None else message_weight(message)
        return record.size + more <= self._limits.max_bytes

    async def create(self, run: Run) -> None:
        """Store a run's first record, and prime the tap of its message with it."""
        await self._store.create(run.record, run.request.tap)

    async def attach(self, run: Run, tap: Tap | None) -> None:
        """Prime the tap that a message brought, if it brought one, with the task as it is."""
        if tap is not None:
            await self._store.attach(run.id, tap)

    async def reject(self, record: TaskRecord, reason: str, tap: Tap | None) -> Task:
        """Store a new task that is refused before any run, in REJECTED."""
        said = self.agent_message(record.task, reason)
        rejected, _ = apply(record, Rejected(said), self._utc(), self._limits)
        await self._store.create(rejected, tap)
        return rejected.task

    async def cancel(self, record: TaskRecord) -> Task:
        """Cancel a task that waits in the store and has no run.

        Raises:
            InvalidTransitionError: it has ended.
            VersionConflictError: it changed meanwhile.
        """
        after, events = apply(record, Canceled(), self._utc(), self._limits)
        await self._store.append(after, events, expected_version=record.version)
        return after.task

    async def forget(self, run: Run) -> None:
        """Remove the record of a run that turned out to need none."""
        await self._store.delete(run.id)

    async def publish(self, run: Run, *events: TaskEvent) -> None:
        """Apply events to a run's task, keep the result and tell the subscribers, in one step.

        Raises:
            InvalidTransitionError: the task does not accept them; nothing changed.
            TaskTooLargeError: the task would become too large; nothing changed.
        """
        while True:
            before = run.record
            after, published = before, tuple[StreamEvent, ...]()
            for event in events:
                after, more = apply(after, event, self._utc(), self._limits)
                published += more
            if await self._replaced(before, after, published):
                run.record = after
                self.observer.said(run, published)
                if after.state.is_terminal:
                    run.settle()
                return
            # Somebody else moved the task on; what we say must be said of what is there now.
            current = await self._store.get(run.id)
            if current is None or current.version == before.version:
                raise VersionConflictError("the task is gone")
            run.record = current

    async def _replaced(
        self, before: TaskRecord, after: TaskRecord, published: tuple[StreamEvent, ...]
    ) -> bool:
        try:
            await self._store.append(after, published, expected_version=before.version)
        except VersionConflictError:
            return False
        return True
