"""Tells the audit hook of every call to a peer: once when it leaves, once how it ended."""

from collections.abc import Callable
from datetime import datetime
from types import TracebackType
from typing import Literal, Self, final

import attrs
import trio

from a2a_trio.client.options import ClientOptions, Said
from a2a_trio.errors import A2AError
from a2a_trio.rules.audit import AuditEntry, preview
from a2a_trio.wire.jsonrpc import peer_text
from a2a_trio.wire.methods import Operation, Result, method_of
from a2a_trio.wire.model import Message, Task
from a2a_trio.wire.requests import SendMessageResponse

__all__ = ["AuditedCall", "Auditor"]


@final
@attrs.frozen(kw_only=True)
class Auditor:
    """Makes audited calls to one peer."""

    options: ClientOptions
    peer: str
    """The peer's URL as configured."""
    utc: Callable[[], datetime]

    def call(
        self, operation: Operation, *, task_id: str = "", context_id: str = "", text: str = ""
    ) -> "AuditedCall":
        """Return the record of one call; the call is made inside its context."""
        entry = AuditEntry(
            at=self.utc(),
            direction="outbound",
            phase="request",
            identity=self.peer,
            address=self.peer,
            method=operation.value,
            task_id=task_id,
            context_id=context_id,
            preview=preview(text, self.options.recorded) if text else "",
        )
        return AuditedCall(self, entry, text, converses=method_of(operation).sends)


@final
class AuditedCall:
    """One call. Entering reports the request, leaving reports the outcome, an error too."""

    def __init__(
        self, auditor: Auditor, entry: AuditEntry, message: str, *, converses: bool
    ) -> None:
        self._auditor = auditor
        self._converses = converses
        self._entry = entry
        self._message = message
        self._began = 0.0
        self._state = ""
        self._text = ""
        self._answered = False

    def __enter__(self) -> Self:
        self._began = trio.current_time()
        self._auditor.options.audit(self._entry)
        return self

    def result(self, result: Result | Task | Message | None) -> None:
        """Note what came back."""
        payload = result.payload if isinstance(result, SendMessageResponse) else result
        self._answered = payload is not None
        if isinstance(payload, Task):
            self._state = payload.state.short
            self._text = payload.text
            self._entry = attrs.evolve(
                self._entry,
                task_id=payload.id or self._entry.task_id,
                context_id=payload.context_id or self._entry.context_id,
            )
        elif isinstance(payload, Message):
            self._text = payload.text
            context_id = payload.context_id or self._entry.context_id
            self._entry = attrs.evolve(self._entry, context_id=context_id)

    def __exit__(
        self,
        _kind: type[BaseException] | None,
        error: BaseException | None,
        _traceback: TracebackType | None,
    ) -> None:
        options = self._auditor.options
        options.audit(
            attrs.evolve(
                self._entry,
                at=self._auditor.utc(),
                phase="outcome",
                state=self._state,
                duration_ms=(trio.current_time() - self._began) * 1000,
                preview=preview(self._text, options.recorded) if self._text else "",
                error="" if error is None else _describe(error),
            )
        )
        if self._answered and self._converses:
            self._tell("user", self._message, self._entry.at)
            self._tell("agent", self._text, self._auditor.utc())

    def _tell(self, role: Literal["user", "agent"], text: str, at: datetime) -> None:
        if text:
            options = self._auditor.options
            options.said(
                Said(
                    at=at,
                    role=role,
                    text=options.recorded(text),
                    context_id=self._entry.context_id,
                    task_id=self._entry.task_id,
                )
            )


def _describe(error: BaseException) -> str:
    """Name the error; only our own texts are known to be safe to keep."""
    name = type(error).__name__
    return f"{name}: {peer_text(str(error))}" if isinstance(error, A2AError) else name
