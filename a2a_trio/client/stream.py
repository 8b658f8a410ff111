"""A stream of events as its consumer sees it: opened, iterated, resumed, closed."""

import contextlib
import random
from collections.abc import Callable
from types import TracebackType
from typing import Final, Self, final

import attrs
import trio

from a2a_trio.client.auditing import AuditedCall
from a2a_trio.client.call import Outgoing, Rpc, StreamAnswer
from a2a_trio.client.failures import TransientPeerError
from a2a_trio.client.fold import TaskFold
from a2a_trio.client.options import ClientOptions
from a2a_trio.client.reader import Received, StreamReader
from a2a_trio.errors import (
    A2AError,
    PeerProtocolError,
    PeerTimeoutError,
    UnsupportedOperationError,
)
from a2a_trio.rules.backoff import Backoff
from a2a_trio.wire.methods import Operation
from a2a_trio.wire.model import Message, StreamEvent, Task, TaskState
from a2a_trio.wire.requests import SubscribeToTaskRequest

__all__ = ["EventStream", "StreamParts"]

_BROKEN: Final = (TransientPeerError, PeerTimeoutError)
"""Ends of a connection that may only be an accident."""


@final
@attrs.frozen(kw_only=True)
class StreamParts:
    """What an ``EventStream`` is made of; given by the client."""

    rpc: Rpc
    readers: trio.Nursery
    options: ClientOptions
    rng: random.Random
    url: str
    audited: AuditedCall | None
    on_event: Callable[[TaskFold], None]


@final
class EventStream:
    """The events of one task, in the order the peer made them.

    ::

        async with client.stream("Explain") as events:
            async for event in events:
                ...
        print(events.task.text)

    The first event is usually the Task, may be the Message of an agent that makes no tasks, and may
    be an update where the task was there before. Events are deltas; ``task`` is what they add up
    to. The iteration ends when the task has ended, when it asks for input, after a Message, or when
    the peer ends the stream of a task that waits. Waiting for an event may be cancelled (by
    ``move_on_after``, say) and repeated; no event is lost.

    A stream that ends while its task is at work has lost something. If the peer's card declares
    event replay, the stream is taken up again where it broke, ``retry_attempts`` times in a row;
    otherwise iterating raises, and ``client.subscribe`` or ``client.wait`` go on.

    Raises (from entering and iterating):
        ProtocolError: the peer refused, or ended the stream with an error.
        PeerTimeoutError: the stream was silent for ``stream_idle_timeout`` seconds.
        PeerProtocolError: the stream broke, is not A2A, or is larger than the limits.
        PeerUnreachableError: no connection was made.

    Resources: the connection is given back when the context is left, whatever was read. The task
    itself goes on; ``client.cancel`` ends it.
    """

    def __init__(self, parts: StreamParts, outgoing: Outgoing) -> None:
        options = parts.options
        self._parts = parts
        self._outgoing = outgoing
        self._fold = TaskFold(options.max_folded_bytes, parts.url)
        self._backoff = Backoff(options.retry_base, options.retry_cap, parts.rng)
        self._left = options.retry_attempts
        self._entered = False
        self._over = False
        self._reader: StreamReader | None = None
        self._answer: StreamAnswer | None = None
        self._single: StreamEvent | None = None
        # Set while the stream is broken and is to be taken up again.
        self._resume_at = 0.0
        self._resumed_after: int | None = None
        self._last_event_id = outgoing.last_event_id

    @property
    def task(self) -> Task | None:
        """The task as the events so far describe it; None before the first, or for a Message."""
        return self._fold.task

    @property
    def message(self) -> Message | None:
        """The direct answer of an agent that made no task."""
        return self._fold.message

    @property
    def state(self) -> TaskState | None:
        """The state of the task so far; None before the first event, or for a Message."""
        return self._fold.state

    @property
    def context_id(self) -> str:
        """The conversation, ``""`` before the first event."""
        return self._fold.context_id

    @property
    def last_event_id(self) -> str:
        """The SSE id of the newest event, for ``client.subscribe``; ``""`` if the peer sends none."""
        return self._last_event_id

    async def __aenter__(self) -> Self:
        if self._entered:
            raise RuntimeError("a stream is entered once")
        self._entered = True
        with contextlib.ExitStack() as on_failure:
            if self._parts.audited is not None:
                on_failure.enter_context(self._parts.audited)
            self._start(await self._parts.rpc.open_stream(self._outgoing))
            on_failure.pop_all()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._over = True
        self._single = None
        reader, self._reader = self._reader, None
        try:
            if reader is not None:
                await reader.aclose()
        finally:
            audited = self._parts.audited
            if audited is not None:
                audited.result(self._fold.task or self._fold.message)
                audited.__exit__(kind, error, traceback)

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> StreamEvent:
        if not self._entered:
            raise RuntimeError("a stream is iterated inside `async with`")
        while not self._over:
            if self._single is not None:
                await trio.lowlevel.checkpoint()
                event, self._single = self._single, None
                self._over = True
                self._note(Received(event, ""))
                return event
            if self._reader is None:
                await self._resume()
                continue
            try:
                received = await self._reader.events.receive()
            except trio.EndOfChannel:
                self._end_of(self._reader)
                continue
            except trio.ClosedResourceError:
                break  # the context was left meanwhile
            if not self._is_repeated(received):
                self._note(received)
                return received.event
        raise StopAsyncIteration

    def _start(self, answer: StreamAnswer) -> None:
        self._answer = answer
        if answer.exchange is None:
            self._single = answer.first
            return
        self._reader = StreamReader(answer, answer.exchange, self._parts.options)
        self._parts.readers.start_soon(self._reader.run)

    def _note(self, received: Received) -> None:
        try:
            self._fold.apply(received.event)
        except PeerProtocolError:
            self._over = True
            raise
        self._last_event_id = received.id or self._last_event_id
        self._left = self._parts.options.retry_attempts
        self._backoff.succeeded()
        self._parts.on_event(self._fold)

    def _is_repeated(self, received: Received) -> bool:
        """Tell an event that was seen before the stream broke; ids are task versions."""
        if self._resumed_after is None:
            return False
        version = _version(received.id)
        return version is not None and version <= self._resumed_after

    def _end_of(self, reader: StreamReader) -> None:
        """Decide what the end of a connection means.

        Raises:
            A2AError: the stream is over, and not as it should be.
        """
        self._reader = None
        problem = reader.error
        if problem is None and self._is_complete():
            self._over = True
            return
        if problem is None:
            state = self._fold.state
            said = f"while the task was {state.short}" if state is not None else "without an event"
            problem = PeerProtocolError(f"the stream ended {said}", url=self._parts.url)
        resumable = reader.error is None or isinstance(problem, _BROKEN)
        if not resumable or not self._left or self._again() is None:
            self._over = True
            raise problem
        self._left -= 1
        self._resume_at = trio.current_time() + self._backoff.failed()

    def _is_complete(self) -> bool:
        state = self._fold.state
        if state is None:
            return self._fold.message is not None
        return state.is_settled

    def _again(self) -> Outgoing | None:
        """Return the request that takes a broken stream up again, or None if there is none."""
        if self._answer is None:
            return None
        route = self._answer.route
        if self._fold.task_id:
            if not route.replays:
                return None
            return Outgoing(
                operation=Operation.SUBSCRIBE_TO_TASK,
                params=SubscribeToTaskRequest(id=self._fold.task_id),
                last_event_id=self._last_event_id,
            )
        # Nothing has come yet: asking once more is safe, or recognised by the peer.
        may_repeat = self._outgoing.is_safe or route.deduplicates
        return self._outgoing if may_repeat and self._fold.message is None else None

    async def _resume(self) -> None:
        """Take a broken stream up again. Cancelled, it is still broken, and can be resumed."""
        await trio.sleep_until(self._resume_at)
        outgoing = self._again()
        if outgoing is None:
            raise AssertionError("checked when the stream broke")
        rpc = self._parts.rpc
        try:
            answer = await rpc.open_stream(outgoing)
        except UnsupportedOperationError:
            if not self._fold.task_id:
                self._over = True
                raise
            # The task ended meanwhile, and an ended task has no stream (A2A section 3.1.6).
            self._single = await rpc.get_task(self._fold.task_id)
            return
        except A2AError:
            self._over = True
            raise
        self._resumed_after = _version(self._last_event_id)
        self._start(answer)


def _version(event_id: str) -> int | None:
    return int(event_id) if event_id.isascii() and event_id.isdigit() else None
