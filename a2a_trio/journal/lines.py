r"""One line of JSON per audit entry and per message of a conversation; pure.

The lines are plain ASCII (``\u`` escapes): a terminal that shows the file meets no control or
bidirectional characters, and a lone surrogate from a peer cannot make a line unwritable. The
members that pi-a2a knows keep its names; the others are ours.
"""

import json
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Final, final

import attrs

from a2a_trio.rules.audit import AuditEntry
from a2a_trio.wire.model import timestamp_text

MAX_FIELD: Final = 512
"""Characters kept of an id, a name or an error; peers choose some of them."""
MAX_TEXT: Final = 65_536
"""Characters kept of a message in a conversation."""
_CUT: Final = "…"
# Made once: ``json.dumps`` makes a new one per call for any but its default separators.
_encode: Final = json.JSONEncoder(separators=(",", ":")).encode


@final
@attrs.frozen(kw_only=True)
class ConversationLine:
    """One message of a conversation as it is kept on disk."""

    at: datetime
    context_id: str
    role: str
    """``user`` or ``agent``."""
    text: str
    task_id: str = ""
    peer: str = ""
    """Name of the peer that the conversation is with."""


def audit_line(entry: AuditEntry, *, dropped: int = 0) -> bytes:
    """Return the line of an entry.

    Args:
        entry: the exchange; its preview is already redacted and cut.
        dropped: how many entries before this one could not be written; shown if not 0.
    """
    members: dict[str, str | float | None] = {
        "ts": timestamp_text(entry.at),
        "direction": entry.direction,
        "phase": entry.phase,
        "identity": entry.identity,
        "provenance": entry.provenance,
        "address": entry.address,
        "method": entry.method,
        "taskId": entry.task_id,
        "contextId": entry.context_id,
        "state": entry.state,
        "durationMs": None if entry.duration_ms is None else round(entry.duration_ms, 3),
        "preview": entry.preview,
        "error": entry.error,
    }
    if dropped:
        members["dropped"] = dropped
    return _line(members)


def conversation_line(line: ConversationLine) -> bytes:
    """Return the line of one message."""
    members = {
        "ts": timestamp_text(line.at),
        "role": line.role,
        "taskId": line.task_id,
        "peer": line.peer,
        "contextId": line.context_id,
    }
    return _line(members | {"text": _cut(line.text, MAX_TEXT)})


def parse_conversation(data: bytes, *, context_id: str) -> Iterable[ConversationLine]:
    """Read lines back, oldest first; whatever is no message is skipped.

    Lines of pi-a2a have no ``contextId``; the file that they are in says it.
    """
    for raw in data.split(b"\n"):
        try:
            value = json.loads(raw)
        except (ValueError, RecursionError):
            continue
        if isinstance(value, dict) and isinstance(value.get("text"), str):
            yield _conversation(value, context_id)


def _conversation(value: Mapping[str, object], context_id: str) -> ConversationLine:
    return ConversationLine(
        at=_moment(value.get("ts")),
        context_id=context_id,
        role=_text(value.get("role")),
        text=_text(value.get("text")),
        task_id=_text(value.get("taskId")),
        peer=_text(value.get("peer")),
    )


def _line(members: Mapping[str, str | float | None]) -> bytes:
    """Encode the members that say something; ``text`` is a message's own and keeps its length."""
    kept = {
        name: _cut(value, MAX_FIELD) if isinstance(value, str) and name != "text" else value
        for name, value in members.items()
        if value not in (None, "") or name == "text"
    }
    return encode_line(kept)


def encode_line(members: Mapping[str, object]) -> bytes:
    """Return any JSON object as one line of ASCII."""
    return _encode(members).encode("ascii") + b"\n"


def _cut(text: str, limit: int) -> str:
    return text if len(text) <= limit else text[:limit] + _CUT


def _moment(value: object) -> datetime:
    """Read a time stamp: ours is ISO 8601; milliseconds since 1970 are understood too."""
    try:
        if isinstance(value, str):
            at = datetime.fromisoformat(value)
            return (at if at.tzinfo is not None else at.replace(tzinfo=UTC)).astimezone(UTC)
        if isinstance(value, int | float):
            return datetime.fromtimestamp(value / 1000, tz=UTC)
    except (ValueError, OverflowError, OSError):
        pass
    return datetime.fromtimestamp(0, tz=UTC)


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""
