"""Records of outbound calls: in the journal of a running peer, or written by a command at its end.

A command that makes one call needs no writer task and no thread. Its few entries wait in memory and
go to the files in one append when the command is done, also when it failed or was interrupted; a
disk that does not take them costs the entries and nothing else.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from a2a_trio.client.options import Said
from a2a_trio.config.schema import Settings
from a2a_trio.journal import ConversationLine, Journal
from a2a_trio.journal.service import open_files
from a2a_trio.peer.calling import Recorder
from a2a_trio.rules.audit import AuditEntry

__all__ = ["recorder_of", "recording"]

MAX_ENTRIES: Final = 1_000
"""Audit entries, and messages, of one command; ``tasks --all`` makes one call per page. Further ones
are left out."""


def recorder_of(journal: Journal) -> Recorder:
    """Return what records calls in an open journal."""
    return Recorder(
        audit=journal.record,
        said=lambda peer, said: journal.converse(_line(peer, said)),
    )


@contextmanager
def recording(home: Path, settings: Settings) -> Iterator[Recorder]:
    """Record the calls of one command, and write them when the block ends.

    Args:
        home: the state folder; created if it is not there.
        settings: how large the audit log may grow.
    """
    entries: list[AuditEntry] = []
    lines: list[ConversationLine] = []

    def audit(entry: AuditEntry) -> None:
        if len(entries) < MAX_ENTRIES:
            entries.append(entry)

    def said(peer: str, said: Said) -> None:
        if len(lines) < MAX_ENTRIES:
            lines.append(_line(peer, said))

    try:
        yield Recorder(audit=audit, said=said)
    finally:
        if entries:
            server = settings.server
            files = open_files(home, max_bytes=server.audit_max_bytes, keep=server.audit_keep)
            files.write([*entries, *lines], 0)


def _line(peer: str, said: Said) -> ConversationLine:
    return ConversationLine(
        at=said.at,
        context_id=said.context_id,
        role=said.role,
        text=said.text,
        task_id=said.task_id,
        peer=peer,
    )
