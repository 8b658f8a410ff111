"""What is written down about one call: two audit entries and one count."""

from collections.abc import Callable
from datetime import datetime
from typing import Final, Literal, TypeAlias, final

from a2a_trio.errors import ProtocolError
from a2a_trio.rules.admission import Caller
from a2a_trio.rules.audit import AuditEntry, preview
from a2a_trio.server.metrics import OK, Metrics, outcome_of
from a2a_trio.wire.methods import Params, Result
from a2a_trio.wire.model import (
    Message,
    StreamEvent,
    Task,
    TaskStatusUpdateEvent,
)
from a2a_trio.wire.requests import SendMessageRequest, SendMessageResponse

__all__ = ["CallTrace", "Recorder"]

_Phase: TypeAlias = Literal["request", "outcome"]


@final
class Recorder:
    """Where calls are written down.

    Args:
        metrics: the counters.
        audit: takes one entry; must neither block nor raise.
        redact: makes text fit for the audit log.
        now: monotonic seconds.
        utc: the present instant.
    """

    def __init__(
        self,
        *,
        metrics: Metrics,
        audit: Callable[[AuditEntry], None],
        redact: Callable[[str], str],
        now: Callable[[], float],
        utc: Callable[[], datetime],
    ) -> None:
        self.metrics: Final = metrics
        self.audit: Final = audit
        self.redact: Final = redact
        self.now: Final = now
        self.utc: Final = utc


@final
class CallTrace:
    """One JSON-RPC call from admission to its last byte; ``end`` is called exactly once."""

    def __init__(self, recorder: Recorder, caller: Caller) -> None:
        self._recorder: Final = recorder
        self._caller: Final = caller
        self._started: Final = recorder.now()
        self._ended = False
        self.method = ""
        self._task_id = ""
        self._context_id = ""
        self._state = ""
        self._events = -1

    def begin(self, params: Params) -> None:
        """Write down the request, once its parameters are known."""
        text = ""
        if isinstance(params, SendMessageRequest):
            self._task_id = params.message.task_id
            self._context_id = params.message.context_id
            text = params.message.text
        else:
            # Every other request names its task in one of two members, or in none.
            self._task_id = getattr(params, "task_id", "") or getattr(params, "id", "")
        self._write("request", shown=preview(text, self._recorder.redact) if text else "")

    def result(self, result: Result | StreamEvent) -> None:
        """Take note of what the caller is answered."""
        match result:
            case SendMessageResponse():
                self.result(result.payload)
            case Task(id=task_id, context_id=context_id):
                self._task_id, self._context_id = task_id, context_id
                self._state = result.state.short
            case TaskStatusUpdateEvent():
                self._state = result.status.state.short
            case Message(context_id=context_id):
                self._context_id = context_id
                self._state = "message"
            case _:
                pass  # says nothing about the state

    def streaming(self) -> None:
        """Take note that the answer is a stream."""
        self._events = 0
        self._recorder.metrics.stream_opened()

    def event(self, event: StreamEvent) -> None:
        """Take note of an event of the stream."""
        self._events += 1
        self.result(event)

    def end(self, error: ProtocolError | None = None, *, outcome: str = OK) -> None:
        """Write down the outcome; a second call is ignored."""
        if self._ended:
            return
        self._ended = True
        seconds = self._recorder.now() - self._started
        if error is not None:
            outcome = outcome_of(error)
        if self._events >= 0:
            self._recorder.metrics.stream_closed(self._events)
        self._recorder.metrics.request(self.method, outcome, seconds)
        self._write(
            "outcome",
            duration_ms=seconds * 1000.0,
            error=error.message if error is not None else "" if outcome == OK else outcome,
        )

    def _write(
        self, phase: _Phase, *, shown: str = "", duration_ms: float | None = None, error: str = ""
    ) -> None:
        caller = self._caller
        self._recorder.audit(
            AuditEntry(
                at=self._recorder.utc(),
                direction="inbound",
                phase=phase,
                identity=caller.identity,
                provenance=caller.provenance,
                address=caller.address,
                method=self.method,
                task_id=self._task_id,
                context_id=self._context_id,
                state=self._state,
                duration_ms=duration_ms,
                preview=shown,
                error=error,
            )
        )
