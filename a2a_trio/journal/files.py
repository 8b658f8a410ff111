"""What the writer's thread does with a batch: audit entries are kept and retried, bounded."""

from collections import deque
from collections.abc import Sequence
from typing import Final, TypeAlias, final

import attrs

from a2a_trio._disk import Folder, Problem, problem_of
from a2a_trio.journal.conversations import Conversations
from a2a_trio.journal.lines import ConversationLine, audit_line
from a2a_trio.journal.rolling import RollingFile
from a2a_trio.journal.transcripts import TranscriptLine, Transcripts
from a2a_trio.rules.audit import AuditEntry

Entry: TypeAlias = AuditEntry | ConversationLine | TranscriptLine
"""Everything that the journal writes."""

MAX_PENDING: Final = 1_024
"""Entries kept for the next attempt while writing fails; past that new ones are lost."""


@final
@attrs.frozen
class Outcome:
    """What became of a batch."""

    problem: Problem | None
    """Why the audit log cannot be written, None if it can."""
    lost: int
    """Values that are given up: entries past ``MAX_PENDING``, messages and lines that failed."""


@final
@attrs.define(eq=False)
class JournalFiles:
    """The files of one journal. Called by one thread at a time."""

    folder: Folder
    audit: RollingFile
    conversations: Conversations
    transcripts: Transcripts
    _pending: deque[AuditEntry] = attrs.field(factory=deque, init=False)
    _untold: int = attrs.field(default=0, init=False)
    """Losses that no line in the file tells of yet."""

    def probe(self) -> Problem | None:
        """Find out whether the audit log can be written, before the first entry."""
        return self._append()

    def sweep(self) -> Problem | None:
        """Delete old transcripts; see ``Transcripts.sweep``."""
        return self.transcripts.sweep()

    def write(self, batch: Sequence[Entry], dropped: int) -> Outcome:
        """Write a batch after what is pending.

        Args:
            batch: in order. What is no audit entry is not tried again if it cannot be written.
            dropped: how many values the caller has dropped since the last call.
        """
        entries = [item for item in batch if isinstance(item, AuditEntry)]
        said = [item for item in batch if isinstance(item, ConversationLine)]
        steps = [item for item in batch if isinstance(item, TranscriptLine)]
        lost = self.conversations.append(said) if said else 0
        lost += self.transcripts.append(steps) if steps else 0
        self._untold += dropped + lost
        self._pending.extend(entries)
        problem = self._append()
        surplus = max(0, len(self._pending) - MAX_PENDING)
        for _ in range(surplus):
            self._pending.pop()
        self._untold += surplus
        return Outcome(problem, lost + surplus)

    def read(self, context_id: str, limit: int, peer: str | None) -> list[ConversationLine]:
        """Return the last messages of a conversation; see ``Conversations.read``."""
        return self.conversations.read(context_id, limit=limit, peer=peer)

    def finish(self) -> int:
        """Bring the audit log to the disk, if it will; return how many entries are given up."""
        try:
            with self.folder.opened(create=False) as fd:
                self.audit.sync(folder=fd)
        except OSError:
            # ``write`` has said what is wrong; at the end nobody is left to be told again.
            pass
        return len(self._pending)

    def _append(self) -> Problem | None:
        """Write what is pending; what could not be written stays pending."""
        try:
            with self.folder.opened() as fd:
                done = self.audit.append(self._lines(), folder=fd)
        except OSError as error:
            return problem_of(error)
        for _ in range(done.lines):
            self._pending.popleft()
        if done.lines:
            self._untold = 0
        return problem_of(done.error) if done.error is not None else None

    def _lines(self) -> list[bytes]:
        """Encode what is pending; the first line tells what was lost before it."""
        return [
            audit_line(entry, dropped=0 if n else self._untold)
            for n, entry in enumerate(self._pending)
        ]
