"""Calling a server's operations directly: typed values in and out, no JSON and no HTTP.

For tests of what an agent and the run engine do, where the wire would only be in the way.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import count
from typing import final

from a2a_trio.rules.callers import LOCAL, Caller, Provenance
from a2a_trio.server.calls import CallContext, EventSource, Operations
from a2a_trio.wire.methods import Dialect
from a2a_trio.wire.model import Message, Part, Role, StreamEvent, Task
from a2a_trio.wire.requests import (
    CancelTaskRequest,
    GetTaskRequest,
    ListTasksRequest,
    ListTasksResponse,
    SendMessageConfiguration,
    SendMessageRequest,
    SubscribeToTaskRequest,
)

__all__ = ["DirectCalls", "read_all"]


@final
class DirectCalls:
    """One caller of a server's operations.

    Args:
        operations: the operations.
        identity: who calls.
        context_per_call: every new message gets a context of its own, so that the cap on the turns
            of one conversation is not met by accident.
    """

    def __init__(
        self, operations: Operations, identity: str = "tester", *, context_per_call: bool = True
    ) -> None:
        self.operations = operations
        self._identity = identity
        self._context_per_call = context_per_call
        self._numbers = count(1)

    def message(self, text: str, *, task_id: str = "", context_id: str = "") -> Message:
        """Return a message of this caller."""
        number = next(self._numbers)
        if not task_id and not context_id and self._context_per_call:
            context_id = f"{self._identity}-context-{number}"
        return Message(
            message_id=f"{self._identity}-{number}",
            role=Role.USER,
            parts=(Part(text=text),),
            task_id=task_id,
            context_id=context_id,
        )

    def context(
        self, *, key: str = "", digest: bytes = b"", last_event_id: int | None = None
    ) -> CallContext:
        """Return the context of a call by this caller."""
        return CallContext(
            caller=Caller(
                identity=self._identity,
                provenance=Provenance.TOKEN,
                address=LOCAL,
                display=self._identity,
            ),
            dialect=Dialect.V1,
            idempotency_key=key,
            payload_digest=digest,
            last_event_id=last_event_id,
        )

    async def send(
        self,
        text: str,
        *,
        task_id: str = "",
        context_id: str = "",
        detached: bool = False,
        key: str = "",
        digest: bytes = b"",
    ) -> Task | Message:
        """Send a text and wait as the mode says."""
        answer = await self.operations.send_message(
            SendMessageRequest(
                message=self.message(text, task_id=task_id, context_id=context_id),
                configuration=SendMessageConfiguration(return_immediately=detached),
            ),
            self.context(key=key, digest=digest),
        )
        return answer.payload

    async def send_for_task(
        self,
        text: str,
        *,
        task_id: str = "",
        context_id: str = "",
        detached: bool = False,
        key: str = "",
        digest: bytes = b"",
    ) -> Task:
        """Like ``send`` where the answer is known to be a task.

        Raises:
            TypeError: it is a message.
        """
        answer = await self.send(
            text,
            task_id=task_id,
            context_id=context_id,
            detached=detached,
            key=key,
            digest=digest,
        )
        if not isinstance(answer, Task):
            raise TypeError("the agent answered with a message")
        return answer

    @asynccontextmanager
    async def stream(self, text: str, *, task_id: str = "") -> AsyncIterator[EventSource]:
        """Send a text and listen to what happens, for the length of a block."""
        source = await self.operations.send_streaming_message(
            SendMessageRequest(message=self.message(text, task_id=task_id)), self.context()
        )
        try:
            yield source
        finally:
            source.close()

    @asynccontextmanager
    async def subscribe(
        self, task_id: str, *, last_event_id: int | None = None
    ) -> AsyncIterator[EventSource]:
        """Listen to a task, for the length of a block."""
        source = await self.operations.subscribe_to_task(
            SubscribeToTaskRequest(id=task_id), self.context(last_event_id=last_event_id)
        )
        try:
            yield source
        finally:
            source.close()

    async def get(self, task_id: str, history_length: int | None = None) -> Task:
        """Get a task."""
        request = GetTaskRequest(id=task_id, history_length=history_length)
        return await self.operations.get_task(request, self.context())

    async def list(self, request: ListTasksRequest | None = None) -> ListTasksResponse:
        """List tasks."""
        return await self.operations.list_tasks(request or ListTasksRequest(), self.context())

    async def cancel(self, task_id: str) -> Task:
        """Cancel a task."""
        return await self.operations.cancel_task(CancelTaskRequest(id=task_id), self.context())


async def read_all(source: EventSource) -> list[StreamEvent]:
    """Read a source to its end."""
    events = []
    while (item := await source.receive()) is not None:
        events.append(item.event)
    return events
