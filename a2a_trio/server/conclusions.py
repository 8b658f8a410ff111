"""How runs end: the one place that writes a verdict."""

from contextlib import suppress
from typing import final

import attrs

from a2a_trio._log import get_logger
from a2a_trio.errors import InternalError, InvalidTransitionError
from a2a_trio.rules.endings import Finished, Replied
from a2a_trio.rules.lifecycle import Completed, TaskEvent, TaskTooLargeError
from a2a_trio.server.parking import Parking
from a2a_trio.server.records import Records
from a2a_trio.server.run import Mode, Run
from a2a_trio.server.subscriptions import Subscriptions

__all__ = ["Conclusions"]

_log = get_logger("a2a_trio.runs")


@final
class Conclusions:
    """Writes the ends of runs.

    Args:
        records: the writer.
        parking: told that a run waits no longer.
        subscriptions: told where a store failed, so that no stream ends as if all were well.
    """

    def __init__(self, records: Records, parking: Parking, subscriptions: Subscriptions) -> None:
        self._records = records
        self._parking = parking
        self._subscriptions = subscriptions

    async def conclude(self, run: Run, verdict: Finished | Replied) -> None:
        """Write the end of a run that is leaving and has given its slot back.

        The slot comes first: whoever sees the end finds it free.
        """
        self._parking.leave(run)
        if not run.concluded:
            run.concluded = True
            await self.write(run, verdict)
        elif run.failure is not None:
            # The store failed before; it may be well again, and then the task must not seem alive.
            with suppress(Exception):
                await self._records.publish(run, run.failure_event("internal error"))

    async def write(self, run: Run, verdict: Finished | Replied) -> None:
        """Write an end unless the task already has one; a failing store breaks the run off."""
        if run.record.state.is_terminal:
            return
        try:
            if isinstance(verdict, Replied):
                await self._reply(run, verdict)
            else:
                await self._finish(run, verdict.events)
        except Exception as exc:  # noqa: BLE001 - whatever a store raises is this run's trouble only
            self.break_off(run, exc)

    def break_off(self, run: Run, cause: Exception) -> None:
        """Give up on a run whose store failed: its callers get an error, never a false end."""
        _log.error("task store failed", task=run.id, exc_info=cause)
        run.failure = InternalError()
        run.concluded = True
        self._subscriptions.fail(run.id, InternalError())
        run.settle()

    async def _finish(self, run: Run, events: tuple[TaskEvent, ...]) -> None:
        """Publish what was held back and the last events, or else that they do not fit."""
        held = run.held_chunks()
        if run.record.state.is_interrupted:
            held, events = (), events[-1:]
        try:
            await self._records.publish(run, *held, *events)
        except TaskTooLargeError as exc:
            await self._records.publish(run, run.failure_event(str(exc)))
        except InvalidTransitionError:
            # Either another process ended the task, or the agent's own last events were wrong.
            if not run.record.state.is_terminal:
                text = "the agent's last events do not fit its task"
                await self._records.publish(run, run.failure_event(text))

    async def _reply(self, run: Run, verdict: Replied) -> None:
        """Answer with a Message where no task has been shown yet, else end the task with it."""
        shown = run.record.version > 1 or self._subscriptions.of_task(run.id) > 0
        if shown or run.turn.mode is not Mode.BLOCKING:
            await self._finish(run, (Completed(verdict.message),))
            return
        await self._records.forget(run)
        run.reply = attrs.evolve(verdict.message, task_id="")
        if run.request.on_reply is not None:
            run.request.on_reply(run.reply)
        run.settle()
