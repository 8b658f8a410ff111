"""The run engine: every task that is alive is one child of the runs nursery.

::

    runs nursery                       outlives every HTTP connection
    `- _drive(run)                     holds a slot through ``with run.lease``
       `- user scope                   CancelTask, stop, limits: ``kill``
          `- window scope              replyTimeoutSec or asyncTimeoutSec, stands still while parked
             `- the agent

The guarantees follow from this shape. A caller that leaves only stops waiting: the run is not its
child. A slot is given back by ``with`` however the run ends, and before the end can be seen, so
nobody who saw the end finds the pool full. Whatever ends the agent, ``_drive`` goes on to exactly
one place that writes the end, and the life cycle table accepts only one. An agent that ignores its
cancellation cannot hold its caller: after a grace the end is written over its head, and whatever
it does later changes nothing.
"""

import math
from collections.abc import Callable
from typing import Final, final

import attrs
import trio

from a2a_trio._log import get_logger
from a2a_trio.errors import (
    InvalidTransitionError,
    ServerBusyError,
    UnsupportedOperationError,
)
from a2a_trio.rules.endings import Finished, Replied
from a2a_trio.rules.lifecycle import (
    AuthNeeded,
    Canceled,
    InputNeeded,
    MessageReceived,
    Started,
    TaskEvent,
    TaskRecord,
    TaskTooLargeError,
)
from a2a_trio.rules.slots import Slots
from a2a_trio.server.calls import Published
from a2a_trio.server.conclusions import Conclusions
from a2a_trio.server.controls import Framer
from a2a_trio.server.engine import RunLimits
from a2a_trio.server.invocations import Invocations, Runner
from a2a_trio.server.leases import Lease
from a2a_trio.server.parking import Parking
from a2a_trio.server.records import Records
from a2a_trio.server.run import Mode, OutboundFilter, Request, Run, Turn
from a2a_trio.server.subscriptions import Subscriptions
from a2a_trio.wire.model import Message, Task, TaskState

__all__ = ["RunEngine", "Statistics"]

_log = get_logger("a2a_trio.runs")

BUSY_RETRY_SEC: Final = 1.0
"""When a refused caller may try again; how long a slot stays taken is not known."""
FINAL_WRITE_SEC: Final = 5.0
"""How long a store may take to write an end that nothing can cancel."""


@final
@attrs.frozen(kw_only=True)
class Statistics:
    """How much is going on."""

    live: int
    parked: int
    slots_in_use: int
    slots_waiting: int
    subscribers: int


@final
class RunEngine:
    """Starts runs, lets their callers act on them, and sees that each one ends.

    Args:
        jobs: the runs nursery; its owner drains the engine before closing it.
        runner: invokes the agent.
        records: the writer of task records.
        subscriptions: the taps of the records' store.
        limits: see ``RunLimits``.
        filter_for: what everything said to a caller's task passes.
        frame: frames a caller's text as untrusted input.
    """

    def __init__(
        self,
        *,
        jobs: trio.Nursery,
        runner: Runner,
        records: Records,
        subscriptions: Subscriptions,
        limits: RunLimits,
        filter_for: Callable[[Request], OutboundFilter],
        frame: Framer,
    ) -> None:
        self.limits = limits
        self.records = records
        self._jobs = jobs
        self._subscriptions = subscriptions
        self._filter_for = filter_for
        self._slots = Slots(limits.max_concurrent)
        # Bounded by the slots, the parked runs, and killed runs whose agents have not left yet.
        self._runs: dict[str, Run] = {}
        self._parking = Parking(self, records, limits)
        self._invocations = Invocations(self, runner, frame)
        self._conclusions = Conclusions(records, self._parking, subscriptions)
        self._draining = False
        self._idle = trio.Event()

    # --- what callers do ----------------------------------------------------------------------

    @property
    def draining(self) -> bool:
        """True once ``drain`` was called: new work is refused."""
        return self._draining

    def statistics(self) -> Statistics:
        """Return how much is going on now."""
        return Statistics(
            live=len(self._runs),
            parked=self._parking.count,
            slots_in_use=self._slots.in_use,
            slots_waiting=self._slots.waiting,
            subscribers=self._subscriptions.count,
        )

    def live(self, task_id: str) -> Run | None:
        """Return the run of a task, if it has one; ends it if its window passed unheeded."""
        run = self._runs.get(task_id)
        if run is not None and trio.current_time() >= self.patience(run):
            self.kill(run, run.failure_event(run.window_text))
        return run

    def patience(self, run: Run) -> float:
        """Return until when a caller waits before the end is forced on an agent that shields."""
        return run.window.deadline + self.limits.cancel_grace

    def refuse_if_stopping(self) -> None:
        """Refuse new work while the server stops.

        Raises:
            ServerBusyError: the server is stopping.
        """
        if self._draining:
            raise ServerBusyError("The server is stopping", retry_after=BUSY_RETRY_SEC)

    def take_slot(self) -> Lease:
        """Take a slot for a run about to start; there is no checkpoint between test and take.

        Raises:
            ServerBusyError: all slots are taken, or the server is stopping.
        """
        self.refuse_if_stopping()
        if not self._slots.take():
            raise ServerBusyError(
                f"Server busy: max {self._slots.capacity} concurrent tasks",
                retry_after=BUSY_RETRY_SEC,
            )
        return Lease(self._slots)

    def start(self, record: TaskRecord, request: Request, lease: Lease) -> Run:
        """Start the run of a new task, or of a stored one that waits for its caller.

        Synchronous: once it returns, the run lives in the runs nursery, whatever becomes of the
        caller, and the lease is the run's.
        """
        run = Run(
            record=record,
            request=request,
            turn=Turn(request.mode),
            lease=lease,
            filter=self._filter_for(request),
            say=lambda text: self.records.agent_message(record.task, text),
            started_at=trio.current_time(),
        )
        self._runs[run.id] = run
        self.records.observer.began(run)
        self._jobs.start_soon(self._drive, run, name=f"run {run.id}")
        return run

    async def deliver(self, run: Run, request: Request) -> Turn:
        """Give a live run another message.

        Raises:
            UnsupportedOperationError: the agent does not read messages now, or the task has ended.
            ServerBusyError: the server is stopping.
        """
        self.refuse_if_stopping()
        turn, to_inbox = run.deliver(request)
        if to_inbox:
            try:
                await self.records.publish(run, MessageReceived(request.message))
            except InvalidTransitionError as exc:
                raise UnsupportedOperationError(f"The task takes no message now: {exc}") from exc
            run.put_in_inbox(request.message)
            await self.records.attach(run, request.tap)
        self.records.observer.heard(run, request.message)
        return turn

    def kill(self, run: Run, verdict: TaskEvent) -> None:
        """Decide that a run ends with this event, unless its end is already decided."""
        if run.forced is None and not run.concluded:
            run.forced = verdict
            run.user.cancel()
            self._jobs.start_soon(self._enforce, run, name=f"end of {run.id}")

    async def cancel(self, run: Run) -> Task:
        """Cancel a run and wait until it has left, at most for the grace; return its task.

        The task may have ended otherwise meanwhile; its state tells.
        """
        self.kill(run, Canceled())
        await run.over.wait()
        return run.record.task

    async def drain(self, grace: float) -> None:
        """Stop taking work, end the streams, give runs a grace of seconds, then end them.

        Streams get a last snapshot. Parked runs wait for callers that can no longer reach them, so
        they are ended at once. Returns when every run has left or has used up its cancel grace.
        """
        self._draining = True
        self._subscriptions.finish_all(self._last_snapshot)
        self._stop_runs(lambda run: run.parked)
        with trio.move_on_after(grace):
            await self._wait_idle()
        self._stop_runs(lambda _run: True)
        with trio.move_on_after(self.limits.cancel_grace):
            await self._wait_idle()

    # --- what the agent's side does -----------------------------------------------------------

    async def say(self, run: Run, *events: TaskEvent) -> None:
        """Publish what the agent says; a run whose task becomes too large ends.

        Raises:
            InvalidTransitionError: the task does not accept it, perhaps because it has ended.
        """
        await trio.lowlevel.checkpoint_if_cancelled()
        await self._parking.unpark(run)
        try:
            await self.records.publish(run, *events)
        except TaskTooLargeError as exc:
            self.kill(run, run.failure_event(str(exc)))
            raise
        await trio.lowlevel.cancel_shielded_checkpoint()

    async def ask(self, run: Run, question: InputNeeded | AuthNeeded) -> Message:
        """Park a run until its caller's next message; see ``Parking.ask``."""
        await trio.lowlevel.checkpoint_if_cancelled()
        await self._parking.unpark(run)
        return await self._parking.ask(run, question)

    def new_id(self) -> str:
        """Return a fresh id."""
        return self.records.new_id()

    def open_inbox(self, run: Run) -> trio.MemoryReceiveChannel[Message]:
        """Let the run's agent read messages that come while it works."""
        run.inbox, messages = trio.open_memory_channel[Message](self.limits.max_inbox)
        if run.is_over:
            run.inbox.close()
        return messages

    def reset_window(self, run: Run) -> None:
        """Start the window of the present turn now."""
        detached = run.turn.mode is Mode.DETACHED
        seconds = self.limits.async_timeout if detached else self.limits.reply_timeout
        name = "detached-task" if detached else "reply"
        run.window.deadline = trio.current_time() + seconds if seconds else math.inf
        run.turn.timed.set()
        run.window_text = f"{name} timeout: the task exceeded its window of {seconds:g} seconds"

    # --- the child of the nursery -------------------------------------------------------------

    async def _drive(self, run: Run) -> None:
        verdict: Finished | Replied | None = None
        try:
            with run.lease:
                if await self._open(run):
                    verdict = await self._invocations.work(run)
        finally:
            if verdict is None:  # the nursery was cancelled before the agent got to its end
                verdict = run.failed("server stopped")
            with trio.move_on_after(FINAL_WRITE_SEC, shield=True) as write:
                await self._conclusions.conclude(run, verdict)
            if write.cancelled_caught:
                self._conclusions.break_off(run, TimeoutError("an end was not written in time"))
            self._leave(run)

    async def _open(self, run: Run) -> bool:
        try:
            if run.record.state is TaskState.SUBMITTED:
                await self.records.create(run)
                await self.records.publish(run, Started())
            else:
                await self._parking.reopen(run)
        except Exception as exc:  # noqa: BLE001 - whatever a store raises is this run's trouble only
            self._conclusions.break_off(run, exc)
            return False
        run.turn.begun.set()
        return True

    def _leave(self, run: Run) -> None:
        self._runs.pop(run.id, None)
        if run.inbox is not None:
            run.inbox.close()
        run.left.set()
        run.over.set()
        self._report_end(run)
        if not self._runs:
            self._idle.set()

    def _report_end(self, run: Run) -> None:
        if not run.reported:
            run.reported = True
            self.records.observer.ended(run, trio.current_time() - run.started_at)

    async def _enforce(self, run: Run) -> None:
        """End a killed run that does not leave within the grace."""
        with trio.move_on_after(self.limits.cancel_grace):
            await run.left.wait()
        if run.forced is not None and not run.concluded:
            # The verdict stands and what the run still does is ignored. Its slot stays taken until
            # it has left, because its agent may still be working.
            await self._conclusions.write(run, Finished((run.forced,)))
            # Now, since a process that is made to end never sees the run leave.
            self._report_end(run)
        run.over.set()

    # --- stopping -----------------------------------------------------------------------------

    def _stop_runs(self, which: Callable[[Run], bool]) -> None:
        for run in tuple(self._runs.values()):
            if which(run):
                self.kill(run, run.failure_event("server stopped"))

    def _last_snapshot(self, task_id: str) -> Published | None:
        run = self._runs.get(task_id)
        return None if run is None else Published(run.record.version, run.record.task)

    async def _wait_idle(self) -> None:
        while self._runs:
            self._idle = trio.Event()
            await self._idle.wait()
