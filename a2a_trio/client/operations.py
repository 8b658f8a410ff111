"""The client of one peer: every operation as a method (A2A section 3)."""

import math
import random
import uuid
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from typing import Unpack, final

import trio

from a2a_trio.client.auditing import AuditedCall, Auditor
from a2a_trio.client.call import Outgoing, Rpc, as_task
from a2a_trio.client.cards import CardCache, Routes
from a2a_trio.client.compose import Content, MessageOptions, compose, request_for
from a2a_trio.client.conversation import Conversation
from a2a_trio.client.fold import TaskFold
from a2a_trio.client.headers import Headers
from a2a_trio.client.options import ClientOptions
from a2a_trio.client.paging import ListFilters, all_tasks
from a2a_trio.client.pool import HttpPool, Progress
from a2a_trio.client.reply import Reply
from a2a_trio.client.retry import Retries
from a2a_trio.client.stream import EventStream, StreamParts
from a2a_trio.client.waiting import TaskWatch
from a2a_trio.errors import PeerProtocolError, PeerTimeoutError
from a2a_trio.wire.agent_card import AgentCard
from a2a_trio.wire.methods import Operation, Result
from a2a_trio.wire.model import EMPTY, JsonObject, Task
from a2a_trio.wire.requests import (
    CancelTaskRequest,
    GetTaskRequest,
    ListTasksRequest,
    ListTasksResponse,
    SendMessageRequest,
    SubscribeToTaskRequest,
)

__all__ = ["Client"]


def _utc_now() -> datetime:
    return datetime.now(UTC)


def _ignore(_fold: TaskFold) -> None: ...


@final
class Client:
    """Calls one peer. Made by ``open_client``; may be used by many tasks at once.

    Every method may be cancelled at any point and leaves the client usable. Besides what each
    names, all of them raise:

    * ``ProtocolError`` subclasses: what the peer answered, e.g. ``TaskNotFoundError``;
    * ``PeerUnreachableError``: no connection was made, nothing was delivered;
    * ``PeerTimeoutError``: no answer in time, delivery is unknown;
    * ``PeerProtocolError``: the answer is not A2A, or the connection broke;
    * ``RemoteError``: an error code that is not known here.

    What is safe to repeat is repeated (``ClientOptions.retry_attempts``): get, list, cancel,
    subscribe and the card always; a send only if no connection was made, if the peer was busy, or
    if its card declares that it recognises a repeated ``Idempotency-Key``.
    """

    def __init__(
        self,
        url: str,
        *,
        pool: HttpPool,
        headers: Headers,
        options: ClientOptions,
        readers: trio.Nursery,
        utc: Callable[[], datetime] = _utc_now,
    ) -> None:
        rng = random.Random()  # noqa: S311 - spreads retries, guards nothing
        self._url = url
        self._options = options
        self._readers = readers
        self._rng = rng
        self._cards = CardCache(pool, url, headers, options, utc)
        self._routes = Routes(self._cards, url, options)
        self._retries = Retries(options=options, rng=rng, url=url)
        self._rpc = Rpc(
            pool=pool,
            routes=self._routes,
            headers=headers,
            retries=self._retries,
            options=options,
            utc=utc,
        )
        self._auditor = Auditor(options=options, peer=url, utc=utc)

    @property
    def url(self) -> str:
        """The peer's URL as configured."""
        return self._url

    async def card(self) -> AgentCard:
        """Return the peer's card in v1.0 form, kept for as long as its HTTP headers allow.

        Raises:
            PeerProtocolError: the peer has no card, or it cannot be read.
        """

        async def once(progress: Progress) -> AgentCard:
            progress.began = True
            return await self._cards.get()

        return await self._retries.run(
            once, repeatable=lambda: True, limit=self._options.call_timeout, what="the card"
        )

    # --- sending ----------------------------------------------------------------------------

    async def send(
        self,
        content: Content,
        *,
        context_id: str = "",
        task_id: str = "",
        history_length: int | None = None,
        accepted_output_modes: Iterable[str] = (),
        metadata: JsonObject | None = None,
        idempotency_key: str | None = None,
        return_immediately: bool = False,
    ) -> Reply:
        """Send a message and wait until the task has ended or waits for its caller.

        Args:
            content: text, parts, or a whole message.
            context_id: the conversation to continue.
            task_id: the task to continue.
            history_length: messages of history wanted in the answer; None leaves it to the peer.
            accepted_output_modes: media types wanted.
            metadata: of the message.
            idempotency_key: identifies this message over all its repetitions; a new one by default.
            return_immediately: answer when the task exists, do not wait for it.

        Raises:
            ValueError: there is nothing to send.
        """
        outgoing = self._sending(
            Operation.SEND_MESSAGE,
            content,
            context_id=context_id,
            task_id=task_id,
            return_immediately=return_immediately,
            history_length=history_length,
            accepted_output_modes=accepted_output_modes,
            metadata=metadata,
            idempotency_key=idempotency_key,
        )
        result = await self._call(outgoing)
        return Reply.of(result)

    async def send_detached(
        self,
        content: Content,
        *,
        context_id: str = "",
        task_id: str = "",
        **options: Unpack[MessageOptions],
    ) -> Task:
        """Send a message and return its task at once, usually still at work.

        ``wait`` and ``subscribe`` follow it, ``cancel`` ends it; nothing here keeps it alive.

        Args: as ``send``.

        Raises:
            PeerProtocolError: the agent answered with a message and made no task;
                ``send(..., return_immediately=True)`` takes either.
        """
        reply = await self.send(
            content, context_id=context_id, task_id=task_id, return_immediately=True, **options
        )
        if reply.task is None:
            raise PeerProtocolError("the peer answered a message, not a task", url=self._url)
        return reply.task

    def stream(
        self,
        content: Content,
        *,
        context_id: str = "",
        task_id: str = "",
        **options: Unpack[MessageOptions],
    ) -> EventStream:
        """Return a stream of the events that a message leads to; it is sent on entering it.

        Args: as ``send``.

        Raises:
            ValueError: there is nothing to send.
        """
        return self.stream_observed(
            content, _ignore, context_id=context_id, task_id=task_id, **options
        )

    def stream_observed(
        self,
        content: Content,
        on_event: Callable[[TaskFold], None],
        *,
        context_id: str = "",
        task_id: str = "",
        **options: Unpack[MessageOptions],
    ) -> EventStream:
        """As ``stream``, and tell somebody of every event; for ``Conversation``."""
        outgoing = self._sending(
            Operation.SEND_STREAMING_MESSAGE,
            content,
            context_id=context_id,
            task_id=task_id,
            **options,
        )
        return EventStream(self._stream_parts(outgoing, on_event), outgoing)

    def conversation(self, context_id: str = "", task_id: str = "") -> Conversation:
        """Return a helper that carries the context and the waiting task from message to message."""
        return Conversation(self, context_id, task_id)

    # --- tasks ------------------------------------------------------------------------------

    def subscribe(self, task_id: str, *, last_event_id: str | None = None) -> EventStream:
        """Return a stream of the further events of a task; the first is usually the Task.

        Args:
            task_id: a task that has not ended (else the peer answers ``UnsupportedOperationError``).
            last_event_id: ``EventStream.last_event_id`` of an earlier stream; a peer that replays
                begins after it.
        """
        outgoing = Outgoing(
            operation=Operation.SUBSCRIBE_TO_TASK,
            params=SubscribeToTaskRequest(id=task_id),
            last_event_id=last_event_id or "",
        )
        return EventStream(self._stream_parts(outgoing, _ignore, task_id=task_id), outgoing)

    async def get(self, task_id: str, history_length: int | None = None) -> Task:
        """Return a task.

        Args:
            task_id: the task.
            history_length: messages of history wanted; None leaves it to the peer, 0 is none.
        """
        params = GetTaskRequest(id=task_id, history_length=history_length)
        outgoing = Outgoing(operation=Operation.GET_TASK, params=params)
        return as_task(await self._call(outgoing, task_id=task_id))

    async def wait(
        self,
        task_id: str,
        *,
        timeout: float | None = None,  # noqa: ASYNC109 - its end is an outcome, not an error
        poll: float | None = None,
    ) -> Task:
        """Wait until a task has ended or waits for its caller, and return it.

        Args:
            task_id: the task.
            timeout: seconds after which the last known state is returned; None waits for ever.
            poll: ask every so many seconds (0.25 at least); by default the task is listened to if
                the peer's card declares streaming, and else asked for at growing intervals.

        Raises:
            PeerTimeoutError: the timeout passed before the peer answered anything.
        """
        with self._auditor.call(Operation.GET_TASK, task_id=task_id) as audited:
            watch = TaskWatch(
                rpc=self._rpc,
                routes=self._routes,
                stream_parts=self._stream_parts(None, _ignore),
                options=self._options,
                task_id=task_id,
                poll=poll,
            )
            with trio.move_on_after(math.inf if timeout is None else timeout):
                await watch.run()
            if watch.last is None:
                raise PeerTimeoutError(f"no state of the task within {timeout} s", url=self._url)
            audited.result(watch.last)
            return watch.last

    async def cancel(self, task_id: str, *, metadata: JsonObject | None = None) -> Task:
        """Ask the peer to cancel a task and return what became of it.

        Raises:
            TaskNotCancelableError: it has ended already.
        """
        params = CancelTaskRequest(id=task_id, metadata=metadata or EMPTY)
        outgoing = Outgoing(operation=Operation.CANCEL_TASK, params=params)
        return as_task(await self._call(outgoing, task_id=task_id))

    async def list(
        self,
        *,
        page_size: int | None = None,
        page_token: str = "",
        **filters: Unpack[ListFilters],
    ) -> ListTasksResponse:
        """Return one page of this caller's tasks, the newest first.

        Args:
            page_size: 1 to 100; None is the peer's own.
            page_token: ``next_page_token`` of the page before.
            filters: see ``ListFilters``.
        """
        return await self._list(
            ListTasksRequest(page_size=page_size, page_token=page_token, **filters)
        )

    async def list_all(
        self, *, max_tasks: int = 10_000, **filters: Unpack[ListFilters]
    ) -> tuple[Task, ...]:
        """Return this caller's tasks of all pages, the newest first.

        Args:
            max_tasks: how many are returned at most; further pages are not asked for.
            filters: see ``ListFilters``.

        Raises:
            PeerProtocolError: the peer's pages go in a circle.
        """
        params = ListTasksRequest(**filters)
        return await all_tasks(self._list, params, max_tasks=max_tasks, url=self._url)

    # --- inside -----------------------------------------------------------------------------

    def _sending(
        self,
        operation: Operation,
        content: Content,
        *,
        context_id: str,
        task_id: str,
        return_immediately: bool = False,
        **options: Unpack[MessageOptions],
    ) -> Outgoing:
        message = compose(
            content,
            context_id=context_id,
            task_id=task_id,
            metadata=options.get("metadata"),
            options=self._options,
        )
        return Outgoing(
            operation=operation,
            params=request_for(message, options, return_immediately=return_immediately),
            idempotency_key=options.get("idempotency_key") or str(uuid.uuid4()),
            extensions=message.extensions,
        )

    async def _list(self, params: ListTasksRequest) -> ListTasksResponse:
        outgoing = Outgoing(operation=Operation.LIST_TASKS, params=params)
        result = await self._call(outgoing, context_id=params.context_id)
        if not isinstance(result, ListTasksResponse):
            raise TypeError(f"the codec answered {type(result).__name__} for a list")
        return result

    async def _call(self, outgoing: Outgoing, *, task_id: str = "", context_id: str = "") -> Result:
        with self._audited(outgoing, task_id=task_id, context_id=context_id) as audited:
            result = await self._rpc.call(outgoing)
            audited.result(result)
            return result

    def _audited(
        self, outgoing: Outgoing, *, task_id: str = "", context_id: str = ""
    ) -> AuditedCall:
        params = outgoing.params
        if not isinstance(params, SendMessageRequest):
            return self._auditor.call(outgoing.operation, task_id=task_id, context_id=context_id)
        message = params.message
        return self._auditor.call(
            outgoing.operation,
            task_id=message.task_id,
            context_id=message.context_id,
            text=message.text,
        )

    def _stream_parts(
        self,
        outgoing: Outgoing | None,
        on_event: Callable[[TaskFold], None],
        *,
        task_id: str = "",
    ) -> StreamParts:
        return StreamParts(
            rpc=self._rpc,
            readers=self._readers,
            options=self._options,
            rng=self._rng,
            url=self._url,
            audited=self._audited(outgoing, task_id=task_id) if outgoing is not None else None,
            on_event=on_event,
        )
