"""What the endpoint and the operations say to each other: typed calls in, events out."""

from typing import Protocol, final

import attrs

from a2a_trio.rules.admission import Caller
from a2a_trio.wire.codec import dumps
from a2a_trio.wire.dialects import encode_event
from a2a_trio.wire.methods import Dialect
from a2a_trio.wire.model import StreamEvent, Task
from a2a_trio.wire.requests import (
    CancelTaskRequest,
    GetTaskRequest,
    ListTasksRequest,
    ListTasksResponse,
    SendMessageRequest,
    SendMessageResponse,
    SubscribeToTaskRequest,
)

__all__ = ["CallContext", "EventSource", "Operations", "Published"]


@final
@attrs.frozen(kw_only=True)
class CallContext:
    """Who calls, in which dialect, and what came in headers."""

    caller: Caller
    dialect: Dialect
    idempotency_key: str = ""
    """The ``Idempotency-Key`` header; ``""`` is none."""
    payload_digest: bytes = b""
    """SHA-256 of the parameters, only where a repeated send may have to be recognised."""
    extensions: tuple[str, ...] = ()
    """The extensions that the caller asked for and that the card declares."""
    last_event_id: int | None = None
    """Task version in ``Last-Event-ID``; None where the header is absent or not ours."""


@final
@attrs.define(eq=False)
class Published:
    """One event of a task's stream; N subscribers share one and it is encoded once per dialect."""

    version: int
    """Version of the task after this event, sent as the SSE ``id``; below 0 none is sent."""
    event: StreamEvent
    _encoded: dict[Dialect, bytes] = attrs.field(factory=dict, init=False, repr=False)

    def encoded(self, dialect: Dialect) -> bytes:
        """Return the event as JSON in a dialect; at most one encoding per dialect is kept."""
        data = self._encoded.get(dialect)
        if data is None:
            data = self._encoded[dialect] = dumps(encode_event(dialect, self.event))
        return data


class EventSource(Protocol):
    """One subscriber's end of a task's events. ``close`` is always called, by whoever got it."""

    async def receive(self) -> Published | None:
        """Wait for the next event; None is the clean end.

        Raises:
            ProtocolError: the stream cannot go on; it is the last thing the subscriber sees.
        """
        ...

    def close(self) -> None:
        """Stop listening; synchronous, may be called again, never ends the task."""
        ...


class Operations(Protocol):
    """The operations as the endpoint calls them, one method each (A2A section 3.1).

    Each raises a ProtocolError for what the caller is to see. Whatever else escapes is answered
    with ``InternalError`` and logged. Cancelling a call only means that the caller has gone.
    """

    async def send_message(
        self, request: SendMessageRequest, context: CallContext, /
    ) -> SendMessageResponse:
        """Run the agent and wait for an answer, a task that ended or one that waits."""
        ...

    async def send_streaming_message(
        self, request: SendMessageRequest, context: CallContext, /
    ) -> EventSource:
        """Start the agent; the first event is the Task or the Message."""
        ...

    async def get_task(self, request: GetTaskRequest, context: CallContext, /) -> Task:
        """Return a task of this caller."""
        ...

    async def list_tasks(
        self, request: ListTasksRequest, context: CallContext, /
    ) -> ListTasksResponse:
        """Return one page of this caller's tasks."""
        ...

    async def cancel_task(self, request: CancelTaskRequest, context: CallContext, /) -> Task:
        """Cancel a task of this caller and return it."""
        ...

    async def subscribe_to_task(
        self, request: SubscribeToTaskRequest, context: CallContext, /
    ) -> EventSource:
        """Listen to a task of this caller; the first event is the Task."""
        ...

    def stored_dialect(self, task_id: str, /) -> Dialect | None:
        """Return the dialect that a task was created in, or None for an unknown task."""
        ...
