"""Runs that wait for their caller: INPUT_REQUIRED and AUTH_REQUIRED.

A parked run gives its slot back and its window stands still; it waits under the input window
instead. The question is open before its state is published, so an answer that comes within
microseconds finds it; and the slot is free before the state is published, so whoever answers at
once does not find the pool full because of the very run that asked. The answer is published at
once; the run then stands in line for a slot, before any newcomer.
"""

from contextlib import suppress
from typing import Final, final

import trio

from a2a_trio.errors import InvalidTransitionError
from a2a_trio.rules.lifecycle import Answered, AuthNeeded, InputNeeded, Resumed, TaskTooLargeError
from a2a_trio.server.engine import Engine, RunLimits
from a2a_trio.server.records import Records
from a2a_trio.server.run import Question, Run
from a2a_trio.wire.model import Message

__all__ = ["Parking"]

RESUME_WRITE_SEC: Final = 5.0
"""How long a store may take to write that an agent gave up waiting."""


@final
class Parking:
    """The parked runs of one engine, bounded by ``limits.max_parked``."""

    def __init__(self, engine: Engine, records: Records, limits: RunLimits) -> None:
        self._engine = engine
        self._records = records
        self._limits = limits
        self.count = 0

    async def ask(self, run: Run, question: InputNeeded | AuthNeeded) -> Message:
        """Park a run until its caller's next message, and return that message.

        Raises:
            InvalidTransitionError: the task has ended, already waits, or may not wait because
                ``limits.max_parked`` tasks do.

        Cancelling an ask leaves the question; the task is WORKING again, and the agent's next use
        of its task waits for a slot.
        """
        turn, opened = run.turn, self._park(run)
        try:
            await self._records.publish(run, question)
            turn.settle(run.record.task)
            await self._wait(run, opened)
        except BaseException:
            # Whatever went wrong, the question is closed and the task is not left waiting; the slot
            # is taken back before the agent goes on, if it does.
            run.question = None
            with trio.move_on_after(RESUME_WRITE_SEC, shield=True):
                await self._give_up(run, opened)
            raise
        run.question = None
        if opened.answer is None:
            raise InvalidTransitionError("the task has ended")
        await self._answer(run, opened.answer)
        return opened.answer

    async def reopen(self, run: Run) -> None:
        """Begin a run on a stored task that waits for its caller: its message is the answer."""
        await self._records.publish(run, Answered(run.request.message))
        await self._records.attach(run, run.request.tap)

    async def unpark(self, run: Run) -> None:
        """Wait for a slot if the run gave its own back and still has none.

        Raises:
            InvalidTransitionError: the task has ended, perhaps while it stood in line.
        """
        run.refuse_if_over()
        if run.parked:
            await run.lease.take_back()
            self.leave(run)
            if run.is_over:
                run.lease.give_back()
                run.refuse_if_over()

    def leave(self, run: Run) -> None:
        """Count a run as parked no longer, and close its question."""
        run.question = None
        if run.parked:
            run.parked = False
            self.count -= 1

    def _park(self, run: Run) -> Question:
        if run.question is not None:
            raise InvalidTransitionError("the task already waits for an answer")
        if not run.parked:
            if self.count >= self._limits.max_parked:
                raise InvalidTransitionError("too many tasks wait for their callers")
            run.parked = True
            self.count += 1
        run.question = opened = Question()
        run.lease.give_back()
        run.window.deadline = float("inf")
        return opened

    async def _wait(self, run: Run, opened: Question) -> None:
        limit = self._limits.input_timeout or float("inf")
        with trio.move_on_after(limit):
            await opened.answered.wait()
        if opened.answer is None:
            text = f"input timeout: no answer came within {limit:g} seconds"
            self._engine.kill(run, run.failure_event(text))
            # The user scope is cancelled now, so this does not return.
            await trio.lowlevel.checkpoint()

    async def _answer(self, run: Run, answer: Message) -> None:
        try:
            await self._records.publish(run, Answered(answer))
        except TaskTooLargeError as exc:
            self._engine.kill(run, run.failure_event(str(exc)))
            raise
        await self._records.attach(run, run.request.tap)
        run.turn.begun.set()
        await self.unpark(run)
        # Standing in line for a slot does not count.
        self._engine.reset_window(run)

    async def _give_up(self, run: Run, opened: Question) -> None:
        """Publish that the agent goes on by itself, unless the whole run ends.

        An answer that came in the very moment is not lost: it stands in the history, and whoever
        sent it waits for what the agent makes of it.
        """
        if run.forced is not None or run.user.cancel_called or run.window.cancel_called:
            return
        self._engine.reset_window(run)
        answer = opened.answer
        with suppress(InvalidTransitionError):  # ended meanwhile
            await self._records.publish(run, Resumed() if answer is None else Answered(answer))
        if answer is not None:
            await self._records.attach(run, run.request.tap)
            run.turn.begun.set()
