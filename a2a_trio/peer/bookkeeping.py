"""Observers of runs: several as one, and the one that counts and audits."""

from collections.abc import Callable
from datetime import datetime
from typing import final

from a2a_trio.rules.audit import AuditEntry, preview
from a2a_trio.server.metrics import Metrics
from a2a_trio.server.run import Mode, Run, RunObserver
from a2a_trio.wire.model import Message, StreamEvent

__all__ = ["Bookkeeping", "Observers"]


@final
class Observers:
    """Several observers as one."""

    def __init__(self, observers: tuple[RunObserver, ...]) -> None:
        self._observers = observers

    def began(self, run: Run) -> None:
        """See ``RunObserver.began``."""
        for observer in self._observers:
            observer.began(run)

    def heard(self, run: Run, message: Message) -> None:
        """See ``RunObserver.heard``."""
        for observer in self._observers:
            observer.heard(run, message)

    def said(self, run: Run, events: tuple[StreamEvent, ...]) -> None:
        """See ``RunObserver.said``."""
        for observer in self._observers:
            observer.said(run, events)

    def ended(self, run: Run, seconds: float) -> None:
        """See ``RunObserver.ended``."""
        for observer in self._observers:
            observer.ended(run, seconds)


@final
class Bookkeeping:
    """Counts every end; audits those of detached runs, since no call was there to see them.

    Args:
        metrics: the counters.
        audit: takes an entry; must neither block nor raise.
        redact: makes text fit for the audit log.
        utc: the present instant.
    """

    def __init__(
        self,
        metrics: Metrics,
        audit: Callable[[AuditEntry], None],
        redact: Callable[[str], str],
        utc: Callable[[], datetime],
    ) -> None:
        self._metrics = metrics
        self._audit = audit
        self._redact = redact
        self._utc = utc

    def began(self, run: Run) -> None:
        """Do nothing: the call that started it is audited."""

    def heard(self, run: Run, message: Message) -> None:
        """Do nothing: the call that brought it is audited."""

    def said(self, run: Run, events: tuple[StreamEvent, ...]) -> None:
        """Do nothing: what is said is not audited, only how it ends."""

    def ended(self, run: Run, seconds: float) -> None:
        """Count the end, and audit that of a detached run."""
        task = run.record.task
        self._metrics.task_entered(task.state)
        if run.turn.mode is not Mode.DETACHED:
            return
        caller = run.request.caller
        self._audit(
            AuditEntry(
                at=self._utc(),
                direction="inbound",
                phase="outcome",
                identity=caller.identity,
                provenance=caller.provenance,
                address=caller.address,
                task_id=task.id,
                context_id=task.context_id,
                state=task.state.short,
                duration_ms=seconds * 1000.0,
                preview=preview(task.text, self._redact),
            )
        )
