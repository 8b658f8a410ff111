"""Sources of events around a tap, for what one stream needs and the others do not."""

from typing import final

import attrs

from a2a_trio.rules.lifecycle import Canceled
from a2a_trio.server.calls import EventSource, Published
from a2a_trio.server.run import Run
from a2a_trio.server.runs import RunEngine
from a2a_trio.server.views import task_view
from a2a_trio.wire.model import Task

__all__ = ["CancellingSource", "LeadingSource"]


@final
class LeadingSource:
    """A tap whose Task events show at most so much history (A2A section 3.2.4)."""

    def __init__(self, tap: EventSource, history_length: int | None) -> None:
        self._tap = tap
        self._history_length = history_length

    async def receive(self) -> Published | None:
        """See ``EventSource.receive``."""
        item = await self._tap.receive()
        if item is None or self._history_length is None or not isinstance(item.event, Task):
            return item
        shown = task_view(item.event, self._history_length)
        return item if shown is item.event else Published(item.version, shown)

    def close(self) -> None:
        """See ``EventSource.close``."""
        self._tap.close()


@final
@attrs.define(eq=False)
class CancellingSource:
    """A source whose caller cancels the task by going away (``server.streamDisconnect``)."""

    _source: EventSource
    _engine: RunEngine
    _run: Run
    _ended: bool = False

    async def receive(self) -> Published | None:
        """See ``EventSource.receive``."""
        item = await self._source.receive()
        self._ended = item is None
        return item

    def close(self) -> None:
        """See ``EventSource.close``; a stream that was not read to its end cancels its task."""
        if not self._ended:
            self._ended = True
            self._engine.kill(self._run, Canceled())
        self._source.close()
