"""The journal as a service: a bounded queue, one writer task, one thread call per batch.

``record`` only puts a value into a queue; the request that it came from never waits for a disk
and never fails because of one. The writer takes what has piled up and writes it in one go. When
writing fails the journal becomes unhealthy, keeps a bounded number of entries, tries again with
every batch and every few seconds, and becomes healthy again by itself. What did not fit is
counted, and the count stands in the next line that is written.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final, TypeAlias, final

import attrs
import trio

from a2a_trio._disk import FileOps, Folder, Problem
from a2a_trio._groups import plain_errors
from a2a_trio._log import get_logger
from a2a_trio._threads import Offload, in_thread
from a2a_trio.journal.conversations import Conversations
from a2a_trio.journal.files import Entry, JournalFiles
from a2a_trio.journal.lines import ConversationLine
from a2a_trio.journal.rolling import RollingFile
from a2a_trio.journal.transcripts import TranscriptLine, Transcripts
from a2a_trio.rules.audit import AuditEntry
from a2a_trio.rules.redaction import Redactor

MAX_QUEUED: Final = 4_096
"""Values waiting for the writer; past that new ones are dropped and counted."""
MAX_QUEUED_CHARS: Final = 8_388_608
"""Characters of text in them: peers choose how long a message or an id is."""
MAX_BATCH: Final = 512
"""Values written by one thread call."""
RETRY_SEC: Final = 5.0
"""Seconds between attempts while writing fails and nothing new arrives."""
DRAIN_SEC: Final = 2.0
"""Seconds that the end of the journal may take; a disk that hangs cannot hold a shutdown up."""
AUDIT_FILE: Final = "a2a_audit.jsonl"
CONVERSATIONS_FOLDER: Final = "a2a_conversations"
TRANSCRIPTS_FOLDER: Final = "a2a_sessions"
KEEP_DAYS: Final = 30.0
"""Days for which transcripts are kept unless somebody says otherwise."""


@final
@attrs.frozen
class _Flush:
    """A place in the queue: everything before it has been written or given up."""

    reached: trio.Event


_Item: TypeAlias = Entry | _Flush


@final
class Journal:
    """Audit log, conversations, transcripts; made by ``open_journal``, used from the Trio thread only."""

    def __init__(self, files: JournalFiles, offload: Offload) -> None:
        self._files = files
        self._offload = offload
        self._send, self._receive = trio.open_memory_channel[_Item](MAX_QUEUED)
        self._scope = trio.CancelScope(shield=True)
        self._queued_chars = 0
        self._dropped = 0
        self._reported = 0
        self._problem: Problem | None = None
        self._log = get_logger("a2a_trio.journal")

    @property
    def healthy(self) -> bool:
        """Whether the last attempt to write the audit log succeeded."""
        return self._problem is None

    @property
    def problem(self) -> str:
        """Why it is not healthy, a fixed text; "" while it is."""
        return self._problem or ""

    @property
    def dropped(self) -> int:
        """How many entries, messages and lines were not written since the journal was opened."""
        return self._dropped

    def record(self, entry: AuditEntry) -> None:
        """Queue an audit entry; never blocks, never raises. A full queue drops it and counts."""
        self._queue(entry)

    def converse(self, line: ConversationLine) -> None:
        """Queue a message of a conversation; as ``record``."""
        self._queue(line)

    def transcribe(self, line: TranscriptLine) -> None:
        """Queue a line of a run's transcript; as ``record``."""
        self._queue(line)

    async def conversation(
        self, context_id: str, *, limit: int = 50, peer: str | None = None
    ) -> tuple[ConversationLine, ...]:
        """Return the last messages of a conversation, oldest first; none if it is unknown.

        Args:
            context_id: any text; it cannot name a file outside the conversations.
            limit: how many messages at most.
            peer: only those with this peer. Another peer may have named the same context.

        Messages queued before the call are included. A file that cannot be read safely counts
        as unknown. Cancellation: nothing is left behind.
        """
        await self.flush()
        try:
            found = await self._offload(self._files.read, context_id, limit, peer)
        except OSError:
            self._log.warning("conversation cannot be read", context_id=context_id)
            return ()
        return tuple(found)

    async def flush(self) -> None:
        """Wait until everything queued before has been written or given up."""
        mark = _Flush(trio.Event())
        try:
            await self._send.send(mark)
        except (trio.ClosedResourceError, trio.BrokenResourceError):
            return
        await mark.reached.wait()

    def close(self) -> None:
        """Take nothing more; the writer gets ``DRAIN_SEC`` for what is queued. May be repeated."""
        self._send.close()
        self._scope.deadline = min(self._scope.deadline, trio.current_time() + DRAIN_SEC)

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Write until ``close`` is called; started with ``nursery.start``.

        Cancellation: from outside only before it has started. Afterwards it is shielded, because
        those who record are still cleaning up; ``close`` ends it within ``DRAIN_SEC``.
        """
        with self._receive:
            self._note(await self._offload(self._files.probe))
            await self._sweep()
            with self._scope:
                task_status.started()
                await self._write_all()
            self._abandon()

    async def _sweep(self) -> None:
        problem = await self._offload(self._files.sweep)
        if problem is not None:
            self._log.warning("old transcripts cannot be deleted", problem=str(problem))

    async def _write_all(self) -> None:
        is_open = True
        while is_open:
            batch: list[_Item] = []
            is_open = await self._collect(batch)
            await self._write(batch)
        self._dropped += await self._offload(self._files.finish)

    async def _collect(self, batch: list[_Item]) -> bool:
        """Wait for something to write and take all there is; False: nothing more will come."""
        with trio.move_on_after(RETRY_SEC if self._problem else float("inf")):
            try:
                batch.append(await self._receive.receive())
                while len(batch) < MAX_BATCH:
                    batch.append(self._receive.receive_nowait())
            except trio.EndOfChannel:
                return False
            except trio.WouldBlock:
                pass
        return True

    async def _write(self, batch: list[_Item]) -> None:
        items = [item for item in batch if not isinstance(item, _Flush)]
        self._queued_chars -= sum(map(_chars, items))
        known = self._dropped
        try:
            news = known - self._reported
            outcome = await self._offload(self._files.write, items, news)
            # More may have been dropped meanwhile: those are told next time.
            self._reported = known + outcome.lost
            self._dropped += outcome.lost
            self._note(outcome.problem)
        finally:
            _release(batch)

    def _note(self, problem: Problem | None) -> None:
        """Remember the state of the disk; a change is logged once, not with every batch."""
        if problem != self._problem:
            if problem is None:
                self._log.info("journal recovered", dropped=self._dropped)
            else:
                self._log.warning("journal cannot be written", problem=str(problem))
        self._problem = problem

    def _abandon(self) -> None:
        """Count what is still queued when the time to drain is over, and let waiters go."""
        left: list[_Item] = []
        try:
            while True:
                left.append(self._receive.receive_nowait())
        except (trio.EndOfChannel, trio.WouldBlock):
            pass
        _release(left)
        lost = sum(not isinstance(item, _Flush) for item in left)
        self._dropped += lost
        if self._scope.cancelled_caught:
            self._log.warning("journal closed before everything was written", left=lost)

    def _queue(self, item: Entry) -> None:
        chars = _chars(item)
        if self._queued_chars + chars > MAX_QUEUED_CHARS:
            self._dropped += 1
            return
        try:
            self._send.send_nowait(item)
        except (trio.WouldBlock, trio.ClosedResourceError, trio.BrokenResourceError):
            self._dropped += 1
        else:
            self._queued_chars += chars


def _chars(item: Entry) -> int:
    if isinstance(item, TranscriptLine):
        return item.chars
    if isinstance(item, ConversationLine):
        return len(item.text) + len(item.context_id) + len(item.task_id)
    return len(item.preview) + len(item.context_id) + len(item.task_id) + len(item.error)


def _release(items: list[_Item]) -> None:
    for item in items:
        if isinstance(item, _Flush):
            item.reached.set()


@asynccontextmanager
async def open_journal(
    home: Path,
    *,
    max_bytes: int,
    keep: int,
    keep_days: float = KEEP_DAYS,
    redactor: Redactor | None = None,
    ops: FileOps | None = None,
    offload: Offload = in_thread,
) -> AsyncIterator[Journal]:
    """Open the journal of a home folder for the length of a block.

    A folder that cannot be written is no error: the journal is then not ``healthy``.

    Args:
        home: the state folder; created with mode 0700 if it is not there.
        max_bytes: size at which ``a2a_audit.jsonl`` is rotated.
        keep: how many rotated files stay, as ``a2a_audit.jsonl.1`` and up.
        keep_days: age in days at which transcripts are deleted, 0 for never.
        redactor: what transcripts pass; one without secrets of ours if omitted.
        ops: the file operations; the operating system's if omitted.
        offload: how blocking work is run. Under a virtual clock hand in one that runs it at
            once: such a clock does not see that a thread is busy and would skip the drain.

    Raises:
        Whatever the block raises, as it is.

    **Resources**: leaving the block writes what is queued, for at most ``DRAIN_SEC``.
    **Cancellation**: the block is cancelled first; what it records while it cleans up is still
    written, within the same bound.
    """
    files = open_files(
        home, max_bytes=max_bytes, keep=keep, keep_days=keep_days, redactor=redactor, ops=ops
    )
    journal = Journal(files, offload)
    with plain_errors():
        async with trio.open_nursery() as nursery:
            await nursery.start(journal.run)
            try:
                yield journal
            finally:
                journal.close()


def open_files(
    home: Path,
    *,
    max_bytes: int,
    keep: int,
    keep_days: float = KEEP_DAYS,
    redactor: Redactor | None = None,
    ops: FileOps | None = None,
) -> JournalFiles:
    """Return the files of a home folder, for a program that writes them itself, at once.

    Args: see ``open_journal``. Nothing is opened or created before the first write.
    """
    ops = ops or FileOps()
    redactor = redactor or Redactor()
    return JournalFiles(
        folder=Folder(home, ops, ours=False),
        audit=RollingFile(AUDIT_FILE, max_bytes, keep, ops),
        conversations=Conversations(Folder(home / CONVERSATIONS_FOLDER, ops, ours=True)),
        transcripts=Transcripts(
            Folder(home / TRANSCRIPTS_FOLDER, ops, ours=True),
            redactor.text,
            redactor.value,
            keep_days,
        ),
    )
