"""Who listens to which task: bounded taps that never hold anybody up.

A tap is one subscriber's bounded buffer. Publishing never waits: a subscriber whose buffer is full
is cut with a last error and may subscribe again, so a slow reader costs nobody else anything. Every
tap of a task gets the same events in the same order (A2A section 3.5.2).
"""

from collections import deque
from collections.abc import Callable, Iterable
from typing import final

import attrs
import trio

from a2a_trio.errors import ProtocolError, ServerBusyError
from a2a_trio.rules.lifecycle import closes_stream
from a2a_trio.server.calls import Published

__all__ = ["SubscriptionLimits", "Subscriptions", "Tap"]


@final
@attrs.frozen(kw_only=True)
class SubscriptionLimits:
    """How many may listen, and how far behind they may be."""

    buffer: int = 256
    """Events that one subscriber may lag behind."""
    per_task: int = 16
    total: int = 256


@final
class Tap:
    """One subscriber's end of a task's events; an ``EventSource``.

    Nothing is published to a tap before it is primed, so a subscriber sees either a snapshot or a
    replay first and then every later event exactly once.
    """

    def __init__(self, task_id: str, buffer: int, on_close: Callable[["Tap"], None]) -> None:
        self.task_id = task_id
        self._send, self._events = trio.open_memory_channel[Published](buffer)
        self._backlog: deque[Published] = deque()
        self._on_close = on_close
        self._error: ProtocolError | None = None
        self._live = False
        self._finished = False
        self._ended = False
        self.primed = False
        """It has been given its beginning."""

    def prime(self, first: Iterable[Published], *, ends: bool) -> None:
        """Give what comes before the live events; ``ends`` if nothing can follow."""
        self._backlog.extend(first)
        self.primed = True
        self._live = not (ends or self._finished)
        if ends:
            self._send.close()

    def offer(self, item: Published) -> None:
        """Hand an event over without waiting; a full buffer cuts this subscriber off."""
        if not self._live:
            return
        try:
            self._send.send_nowait(item)
        except trio.WouldBlock:
            self.fail(ServerBusyError("this subscriber fell behind and was cut off", retry_after=1))
        except trio.BrokenResourceError:
            self._live = False
        else:
            if closes_stream(item.event):
                self.finish()

    def finish(self) -> None:
        """End the stream after what is already buffered, or after its beginning."""
        self._live = False
        self._finished = True
        self._send.close()

    def fail(self, error: ProtocolError) -> None:
        """End the stream with an error after what is already buffered."""
        self._error = error
        self.finish()

    async def receive(self) -> Published | None:
        """Wait for the next event; None is the clean end.

        Raises:
            ProtocolError: this subscriber was cut off; nothing follows.
        """
        if self._ended:
            return None
        if self._backlog:
            item = self._backlog.popleft()
        else:
            try:
                item = await self._events.receive()
            except trio.EndOfChannel:
                self._ended = True
                if self._error is not None:
                    raise self._error from None
                return None
        self._ended = closes_stream(item.event)
        return item

    def close(self) -> None:
        """Stop listening; may be called again."""
        self._live = False
        self._ended = True
        self._backlog.clear()
        self._send.close()
        self._events.close()
        self._on_close(self)


@final
class Subscriptions:
    """All taps of a server, counted in all and per task.

    Args:
        limits: when either count is reached, a newcomer is refused with ``ServerBusyError``.
    """

    def __init__(self, limits: SubscriptionLimits) -> None:
        self._limits = limits
        self._taps: dict[str, list[Tap]] = {}
        self.count = 0

    def open(self, task_id: str) -> Tap:
        """Return a new tap of a task, not yet primed; whoever opens it closes it.

        Raises:
            ServerBusyError: too many subscribers, of this task or in all.
        """
        taps = self._taps.get(task_id, [])
        if self.count >= self._limits.total or len(taps) >= self._limits.per_task:
            raise ServerBusyError("too many subscribers", retry_after=1)
        tap = Tap(task_id, self._limits.buffer, self._forget)
        self._taps.setdefault(task_id, taps).append(tap)
        self.count += 1
        return tap

    def of_task(self, task_id: str) -> int:
        """Return how many listen to a task."""
        return len(self._taps.get(task_id, ()))

    def publish(self, task_id: str, items: Iterable[Published]) -> None:
        """Offer events to every tap of a task, in order."""
        for item in items:
            for tap in tuple(self._taps.get(task_id, ())):
                tap.offer(item)

    def fail(self, task_id: str, error: ProtocolError) -> None:
        """End every tap of a task with an error, as when its store is broken."""
        for tap in self._taps.get(task_id, ()):
            tap.fail(error)

    def finish_all(self, last: Callable[[str], Published | None]) -> None:
        """End every tap cleanly, with a last snapshot of its task where there is one."""
        for task_id, taps in self._taps.items():
            snapshot = last(task_id)
            for tap in taps:
                if snapshot is not None:
                    tap.offer(snapshot)
                tap.finish()

    def _forget(self, tap: Tap) -> None:
        taps = self._taps.get(tap.task_id)
        if taps is None or tap not in taps:
            return
        taps.remove(tap)
        self.count -= 1
        if not taps:
            del self._taps[tap.task_id]
