"""The operations: what each A2A method does to tasks and runs (A2A section 3.1).

Every operation on a task goes through ``_owned``: a task of another caller is a task that does not
exist, for every method alike. Sends decide synchronously (is it a repeat, is there a slot, is the
conversation still welcome) and then only wait; the run itself never depends on the one who waits.
"""

from collections.abc import Callable
from contextlib import ExitStack
from typing import Final, final

from a2a_trio.errors import (
    InvalidParamsError,
    InvalidTransitionError,
    TaskNotCancelableError,
    TaskNotFoundError,
    UnsupportedOperationError,
)
from a2a_trio.rules.lifecycle import TaskRecord
from a2a_trio.rules.paging import decode_token, encode_token
from a2a_trio.server.calls import CallContext, EventSource
from a2a_trio.server.ownership import owned
from a2a_trio.server.run import Mode
from a2a_trio.server.runs import RunEngine
from a2a_trio.server.sends import Sends
from a2a_trio.server.store import TaskQuery, TaskStore, VersionConflictError
from a2a_trio.server.streams import CancellingSource, LeadingSource
from a2a_trio.server.subscriptions import Subscriptions
from a2a_trio.server.views import task_view
from a2a_trio.wire.methods import Dialect
from a2a_trio.wire.model import Task, TaskState
from a2a_trio.wire.requests import (
    CancelTaskRequest,
    GetTaskRequest,
    ListTasksRequest,
    ListTasksResponse,
    SendMessageConfiguration,
    SendMessageRequest,
    SendMessageResponse,
    SubscribeToTaskRequest,
)

__all__ = ["TaskOperations"]

DEFAULT_PAGE: Final = 50
MAX_PAGE: Final = 100
_NO_CONFIGURATION: Final = SendMessageConfiguration()


@final
class TaskOperations:
    """The operations of one server.

    Args:
        engine: starts and ends runs.
        store: where tasks are kept.
        subscriptions: the taps of the store.
        sends: decides what a message becomes.
        dialects: the dialect that a task was created in, by its id.
        cancel_on_disconnect: the caller of a stream that goes away cancels its task.
    """

    def __init__(
        self,
        *,
        engine: RunEngine,
        store: TaskStore,
        subscriptions: Subscriptions,
        sends: Sends,
        dialects: Callable[[str], Dialect | None],
        cancel_on_disconnect: bool = False,
    ) -> None:
        self._engine = engine
        self._store = store
        self._subscriptions = subscriptions
        self._sends = sends
        self._dialects = dialects
        self._cancel_on_disconnect = cancel_on_disconnect

    def stored_dialect(self, task_id: str) -> Dialect | None:
        """Return the dialect that a task was created in, or None for an unknown task."""
        return self._dialects(task_id)

    async def send_message(
        self, request: SendMessageRequest, context: CallContext
    ) -> SendMessageResponse:
        """Run the agent on a message and wait until its task settles, or only until it has begun.

        Cancelling stops the waiting and nothing else. See A2A section 3.1.1 and 3.2.2.
        """
        configuration = request.configuration or _NO_CONFIGURATION
        _check_history_length(configuration.history_length, "configuration.historyLength")
        mode = Mode.DETACHED if configuration.return_immediately else Mode.BLOCKING
        outcome = await self._sends.send(request, context, mode)
        if not isinstance(outcome, Task):
            return SendMessageResponse(message=outcome)
        return SendMessageResponse(task=task_view(outcome, configuration.history_length))

    async def send_streaming_message(
        self, request: SendMessageRequest, context: CallContext
    ) -> EventSource:
        """Run the agent on a message; the Task comes first, then what happens to it.

        The source is the caller's to close. See A2A section 3.1.2.
        """
        configuration = request.configuration or _NO_CONFIGURATION
        _check_history_length(configuration.history_length, "configuration.historyLength")
        tap, run = await self._sends.stream(request, context)
        source: EventSource = LeadingSource(tap, configuration.history_length)
        if run is not None and self._cancel_on_disconnect:
            source = CancellingSource(source, self._engine, run)
        return source

    async def get_task(self, request: GetTaskRequest, context: CallContext) -> Task:
        """Return a task of this caller (A2A section 3.1.3)."""
        _check_history_length(request.history_length, "historyLength")
        record = await self._owned(request.id, context)
        return task_view(record.task, request.history_length)

    async def list_tasks(
        self, request: ListTasksRequest, context: CallContext
    ) -> ListTasksResponse:
        """Return one page of this caller's tasks, newest status first (A2A section 3.1.4)."""
        _check_history_length(request.history_length, "historyLength")
        size = DEFAULT_PAGE if request.page_size is None else request.page_size
        if not 1 <= size <= MAX_PAGE:
            raise InvalidParamsError.of("pageSize", f"must be from 1 to {MAX_PAGE}")
        try:
            after = decode_token(request.page_token)
        except ValueError as exc:
            raise InvalidParamsError.of("pageToken", str(exc)) from None
        page = await self._store.list(
            TaskQuery(
                owner=context.caller.identity,
                limit=size,
                context_id=request.context_id,
                state=request.status,
                updated_since=request.status_timestamp_after,
                after=after,
            )
        )
        keep = bool(request.include_artifacts)
        return ListTasksResponse(
            tasks=tuple(
                task_view(record.task, request.history_length, artifacts=keep)
                for record in page.records
            ),
            next_page_token=encode_token(page.next),
            page_size=size,
            total_size=page.total,
        )

    async def cancel_task(self, request: CancelTaskRequest, context: CallContext) -> Task:
        """Cancel a task of this caller; answers when it is CANCELED (A2A section 3.1.5).

        That is after the agent's clean-up, or after the cancel grace if that is sooner. Cancelling
        this call does not take the cancel back.
        """
        record = await self._owned(request.id, context)
        if record.state.is_terminal:
            raise TaskNotCancelableError
        run = self._engine.live(request.id)
        if run is not None:
            task = await self._engine.cancel(run)
        else:
            try:
                task = await self._engine.records.cancel(record)
            except (InvalidTransitionError, VersionConflictError):
                raise TaskNotCancelableError from None
        if task.state is not TaskState.CANCELED:
            raise TaskNotCancelableError
        return task

    async def subscribe_to_task(
        self, request: SubscribeToTaskRequest, context: CallContext
    ) -> EventSource:
        """Listen to a task of this caller; its snapshot comes first (A2A section 3.1.6).

        With ``Last-Event-ID`` the events after it come instead, if they are all still known. The
        source is the caller's to close.
        """
        self._engine.refuse_if_stopping()
        record = await self._owned(request.id, context)
        if record.state.is_terminal and context.last_event_id is None:
            raise UnsupportedOperationError("The task has ended; get it instead")
        with ExitStack() as undo:
            tap = self._subscriptions.open(request.id)
            undo.callback(tap.close)
            attached = await self._store.attach(request.id, tap, after=context.last_event_id)
            if attached is None:
                raise TaskNotFoundError
            undo.pop_all()
        return tap

    async def _owned(self, task_id: str, context: CallContext) -> TaskRecord:
        return await owned(self._store, self._engine, task_id, context)


def _check_history_length(length: int | None, field: str) -> None:
    if length is not None and length < 0:
        raise InvalidParamsError.of(field, "must not be negative")
