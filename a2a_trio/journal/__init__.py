"""The audit log and the conversations on disk: one writer task, file I/O in a thread."""

from a2a_trio.journal.lines import ConversationLine
from a2a_trio.journal.service import Journal, open_journal

__all__ = ["ConversationLine", "Journal", "open_journal"]
