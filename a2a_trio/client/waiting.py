"""Waits for a task to end: listens where the peer streams, asks again and again where it does not."""

from typing import Final, final

import trio

from a2a_trio.client.call import Outgoing, Rpc
from a2a_trio.client.cards import Routes
from a2a_trio.client.options import ClientOptions
from a2a_trio.client.stream import EventStream, StreamParts
from a2a_trio.errors import PeerError, TaskNotFoundError, UnsupportedOperationError
from a2a_trio.wire.methods import Operation
from a2a_trio.wire.model import Task
from a2a_trio.wire.requests import SubscribeToTaskRequest

__all__ = ["TaskWatch"]

_SHORTEST_POLL: Final = 0.25
"""Seconds; a shorter interval is lengthened to this."""
_GROWTH: Final = 1.5


@final
class TaskWatch:
    """Follows one task.

    Args:
        rpc: makes the calls.
        routes: tells whether the peer streams.
        stream_parts: for a subscription.
        options: intervals.
        task_id: the task.
        poll: seconds between two questions, never listening; None listens where it can, and else
            asks at growing intervals.
    """

    def __init__(
        self,
        *,
        rpc: Rpc,
        routes: Routes,
        stream_parts: StreamParts,
        options: ClientOptions,
        task_id: str,
        poll: float | None,
    ) -> None:
        self._rpc = rpc
        self._routes = routes
        self._stream_parts = stream_parts
        self._task_id = task_id
        self._interval = options.poll_interval if poll is None else max(poll, _SHORTEST_POLL)
        self._cap = options.poll_interval_cap if poll is None else self._interval
        self._may_listen = poll is None
        self.last: Task | None = None
        """The newest known state of the task."""

    async def run(self) -> Task:
        """Return the task once it has ended or waits for its caller.

        Raises:
            ProtocolError, PeerError: asking failed, its retries included.

        Cancellation: ``last`` is the newest known state.
        """
        task = self.last = await self._rpc.get_task(self._task_id)
        while not task.state.is_settled:
            if not (self._may_listen and await self._listen()):
                await trio.sleep(self._interval)
                self._interval = min(self._interval * _GROWTH, max(self._cap, self._interval))
            # Also after listening: what the peer keeps is more than what a stream adds up to.
            task = self.last = await self._rpc.get_task(self._task_id)
        return task

    async def _listen(self) -> bool:
        """Follow a subscription to its end; return False if there was none."""
        route = await self._routes.current()
        if not route.streaming:
            self._may_listen = False
            return False
        outgoing = Outgoing(
            operation=Operation.SUBSCRIBE_TO_TASK, params=SubscribeToTaskRequest(id=self._task_id)
        )
        events = EventStream(self._stream_parts, outgoing)
        try:
            async with events:
                async for _ in events:
                    if events.state is not None and events.state.is_settled:
                        break
        except TaskNotFoundError:
            raise
        except (PeerError, UnsupportedOperationError):
            # It may have ended in between, or streaming does not work: asking tells.
            self._may_listen = False
        finally:
            self.last = events.task or self.last
        return True
