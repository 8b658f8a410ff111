"""What is kept on disk: audit log, conversations, transcripts; one writer task, I/O in a thread."""

from a2a_trio.journal.lines import ConversationLine
from a2a_trio.journal.service import Journal, open_journal
from a2a_trio.journal.transcripts import TranscriptLine, transcript_name

__all__ = ["ConversationLine", "Journal", "TranscriptLine", "open_journal", "transcript_name"]
