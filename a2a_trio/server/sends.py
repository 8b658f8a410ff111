"""What becomes of a message: a new run, an answer, a line in an inbox, a repeat, or a refusal.

The order is part of the contract. A repeat is recognised first, because it must not take a slot or
count as a turn. Then the task it names is looked up. Then a slot is taken; only then do the guards
against loops count the message, so that a call that was refused for want of a slot has left no
trace.
"""

from collections.abc import Callable
from contextlib import ExitStack
from typing import Final, TypeAlias, final

import attrs
import trio

from a2a_trio.errors import (
    InternalError,
    InvalidParamsError,
    ProtocolError,
    PushNotificationNotSupportedError,
    UnsupportedOperationError,
)
from a2a_trio.rules.dedup import MAX_KEY, Conflict, Dedup, Known
from a2a_trio.rules.lifecycle import TaskRecord
from a2a_trio.server.calls import CallContext
from a2a_trio.server.ownership import owned
from a2a_trio.server.run import Mode, Request, Run, Turn
from a2a_trio.server.runs import RunEngine
from a2a_trio.server.store import TaskStore
from a2a_trio.server.subscriptions import Subscriptions, Tap
from a2a_trio.wire.model import Message, Task
from a2a_trio.wire.requests import SendMessageRequest

__all__ = ["Guard", "Sends"]

_GONE: Final = "The task of this message is gone"

Guard: TypeAlias = Callable[[Message, CallContext], str]
"""Counts a message and says why it is refused; ``""`` is welcome."""

OpenTap: TypeAlias = Callable[[str], Tap | None]
"""Begins to listen to a task, if the call is a stream."""


@final
@attrs.frozen(kw_only=True)
class _Accepted:
    """What a message became: a task, perhaps alive, or a reply that was given before."""

    outcome: Task | Message
    run: Run | None = None
    turn: Turn | None = None
    tap: Tap | None = None


@final
class Sends:
    """Decides what a message becomes, and waits for what its caller wants to see.

    Args:
        engine: starts runs and gives them messages.
        store: where tasks are kept.
        subscriptions: the taps of the store.
        dedup: recognises repeated sends.
        guard: the guards against loops; a refused message becomes a REJECTED task.
        dedup_message_ids: a message id counts as a key where no key was sent.
    """

    def __init__(
        self,
        *,
        engine: RunEngine,
        store: TaskStore,
        subscriptions: Subscriptions,
        dedup: Dedup,
        guard: Guard,
        dedup_message_ids: bool = False,
    ) -> None:
        self._engine = engine
        self._store = store
        self._subscriptions = subscriptions
        self._dedup = dedup
        self._guard = guard
        self._dedup_message_ids = dedup_message_ids

    async def send(
        self, request: SendMessageRequest, context: CallContext, mode: Mode
    ) -> Task | Message:
        """Give a message to the agent; return the task as far as the mode waits, or the reply."""
        accepted = await self._accept(request, context, mode, _no_tap)
        if accepted.run is None or accepted.turn is None:
            return accepted.outcome
        run, turn = accepted.run, accepted.turn
        if mode is Mode.DETACHED:
            await turn.begun.wait()
        else:
            await self._settled(run, turn)
        if run.failure is not None:
            raise InternalError
        if run.reply is not None:
            return run.reply
        if turn.outcome is None or mode is Mode.DETACHED:
            return run.record.task
        return turn.outcome

    async def stream(
        self, request: SendMessageRequest, context: CallContext
    ) -> tuple[Tap, Run | None]:
        """Give a message to the agent; return a tap of its task, and the run if there is one.

        The tap is the caller's to close.
        """
        with ExitStack() as undo:

            def open_tap(task_id: str) -> Tap:
                tap = self._subscriptions.open(task_id)
                undo.callback(tap.close)
                return tap

            accepted = await self._accept(request, context, Mode.STREAMING, open_tap)
            if accepted.turn is not None:
                await accepted.turn.begun.wait()
            if accepted.run is not None and accepted.run.failure is not None:
                raise InternalError
            if isinstance(accepted.outcome, Message):
                raise UnsupportedOperationError(_GONE)
            tap = accepted.tap or open_tap(accepted.outcome.id)
            # A repeat, whose task was there before, or a task that ended before the message could
            # be worked on: what there is to see is in the store.
            if not tap.primed and await self._store.attach(accepted.outcome.id, tap) is None:
                raise UnsupportedOperationError(_GONE)
            undo.pop_all()
        return tap, accepted.run

    async def _accept(
        self, request: SendMessageRequest, context: CallContext, mode: Mode, open_tap: OpenTap
    ) -> _Accepted:
        configuration = request.configuration
        if configuration and configuration.task_push_notification_config is not None:
            raise PushNotificationNotSupportedError
        repeated = await self._repeated(request, context)
        if repeated is not None:
            return repeated
        if request.message.task_id:
            return await self._continue(request, context, mode, open_tap)
        return await self._begin(request, context, mode, open_tap)

    # --- repeats --------------------------------------------------------------------------------

    def _key(self, request: SendMessageRequest, context: CallContext) -> str:
        """Return what a repeat of this send would share with it; ``""`` if nothing counts.

        Raises:
            InvalidParamsError: it is too long to be remembered.
        """
        if context.idempotency_key:
            return f"key:{context.idempotency_key}"
        if not self._dedup_message_ids:
            return ""
        if len(request.message.message_id) > MAX_KEY:
            raise InvalidParamsError.of("message.messageId", f"at most {MAX_KEY} characters")
        return f"id:{request.message.message_id}"

    async def _repeated(
        self, request: SendMessageRequest, context: CallContext
    ) -> _Accepted | None:
        key, identity = self._key(request, context), context.caller.identity
        known = self._dedup.look_up(identity, key, context.payload_digest, trio.current_time())
        if isinstance(known, Conflict):
            raise InvalidParamsError.of("Idempotency-Key", "was used for another message")
        if not isinstance(known, Known):
            return None
        run = self._engine.live(known.task_id)
        if run is not None:
            return _Accepted(outcome=run.record.task, run=run, turn=run.turn)
        record = await self._store.get(known.task_id)
        outcome = known.reply if record is None else record.task
        if outcome is None:
            self._dedup.forget(identity, key)
            return None
        return _Accepted(outcome=outcome)

    def _remember(self, request: SendMessageRequest, context: CallContext, task_id: str) -> Known:
        key = self._key(request, context)
        now = trio.current_time()
        identity = context.caller.identity
        return self._dedup.remember(identity, key, context.payload_digest, task_id, now)

    # --- new tasks ------------------------------------------------------------------------------

    async def _begin(
        self, send: SendMessageRequest, context: CallContext, mode: Mode, open_tap: OpenTap
    ) -> _Accepted:
        records = self._engine.records
        # From here to ``start`` nothing is awaited: a slot that was taken has its run.
        task_id = records.new_id()
        tap = open_tap(task_id)
        record = records.first(send.message, context, task_id)
        if not records.fits(record):
            raise InvalidParamsError.of("message", "is larger than a task may be")
        message = record.task.history[0]
        lease = self._engine.take_slot()
        with ExitStack() as undo:
            undo.callback(lease.give_back)
            refusal = self._guard(message, context)
            known = self._remember(send, context, task_id)
            if not refusal:
                request = _request(send, context, mode, tap, message, on_reply=known.answered_with)
                run = self._engine.start(record, request, lease)
                undo.pop_all()
                return _Accepted(outcome=record.task, run=run, turn=run.turn, tap=tap)
        return _Accepted(outcome=await records.reject(record, refusal, tap), tap=tap)

    # --- tasks that exist -----------------------------------------------------------------------

    async def _continue(
        self, send: SendMessageRequest, context: CallContext, mode: Mode, open_tap: OpenTap
    ) -> _Accepted:
        record = await owned(self._store, self._engine, send.message.task_id, context)
        task = record.task
        if send.message.context_id not in ("", task.context_id):
            raise InvalidParamsError.of("message.contextId", "is not the context of this task")
        if record.state.is_terminal:
            raise UnsupportedOperationError("The task has ended; send a new message instead")
        message = attrs.evolve(send.message, context_id=task.context_id)
        if not self._engine.records.fits(record, message):
            raise InvalidParamsError.of("message", "would make the task larger than it may be")
        tap = open_tap(task.id)
        request = _request(send, context, mode, tap, message)
        self._remember(send, context, task.id)
        try:
            run, turn = await self._hand_over(record, request, context)
        except ProtocolError:
            # Nothing happened, so a repeat is not one.
            self._dedup.forget(context.caller.identity, self._key(send, context))
            raise
        return _Accepted(outcome=task, run=run, turn=turn, tap=tap)

    async def _hand_over(
        self, record: TaskRecord, request: Request, context: CallContext
    ) -> tuple[Run, Turn]:
        run = self._engine.live(record.task.id)
        if run is not None:
            self._refuse_loop(request.message, context)
            return run, await self._engine.deliver(run, request)
        # A task that was left waiting, as after a restart: its message starts a new run.
        if not record.state.is_interrupted:
            raise UnsupportedOperationError("The task is busy elsewhere")
        lease = self._engine.take_slot()
        try:
            self._refuse_loop(request.message, context)
        except UnsupportedOperationError:
            lease.give_back()
            raise
        run = self._engine.start(record, request, lease)
        return run, run.turn

    def _refuse_loop(self, message: Message, context: CallContext) -> None:
        refusal = self._guard(message, context)
        if refusal:
            raise UnsupportedOperationError(refusal)

    async def _settled(self, run: Run, turn: Turn) -> None:
        """Wait until a turn settles; an agent that shields itself cannot keep its caller."""
        await turn.timed.wait()
        while not turn.settled.is_set():
            with trio.move_on_at(self._engine.patience(run)):
                await turn.settled.wait()
            self._engine.live(run.id)
            if run.forced is not None and not turn.settled.is_set():
                await run.over.wait()
                return


def _no_tap(_task_id: str) -> None:
    """Listen to nothing: what a call does that is no stream."""


def _request(
    send: SendMessageRequest,
    context: CallContext,
    mode: Mode,
    tap: Tap | None,
    message: Message,
    *,
    on_reply: Callable[[Message], None] | None = None,
) -> Request:
    """Return a send as the run sees it, its message placed in its task."""
    configuration = send.configuration
    return Request(
        message=message,
        caller=context.caller,
        mode=mode,
        metadata=send.metadata,
        accepted_output_modes=configuration.accepted_output_modes if configuration else (),
        extensions=context.extensions,
        tap=tap,
        on_reply=on_reply,
    )
