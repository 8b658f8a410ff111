"""Cursors of ListTasks: a position in the order of tasks, opaque to the caller.

A cursor names a place and not a task, so a page token stays good when the task it was made from
changes or goes (A2A section 3.1.4).
"""

import base64
import binascii
from datetime import UTC, datetime
from typing import Final, final

import attrs

from a2a_trio.wire.model import Task

MAX_TOKEN: Final = 512
"""Longest page token that is looked at; ours are under 100 characters."""
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


@final
@attrs.frozen(order=True)
class Cursor:
    """A place in the order by status time, then by id; later places compare greater."""

    milliseconds: int
    task_id: str


def cursor_of(task: Task) -> Cursor:
    """Return a task's place; a task without a timestamp is older than all others."""
    stamp = task.status.timestamp
    if stamp is None:
        return Cursor(0, task.id)
    delta = stamp - _EPOCH
    return Cursor(
        delta.days * 86_400_000 + delta.seconds * 1000 + delta.microseconds // 1000, task.id
    )


def encode_token(cursor: Cursor | None) -> str:
    """Return the page token of a cursor; None, the end, is ``""``."""
    if cursor is None:
        return ""
    plain = f"{cursor.milliseconds}:{cursor.task_id}"
    return base64.urlsafe_b64encode(plain.encode()).decode().rstrip("=")


def decode_token(token: str) -> Cursor | None:
    """Return the cursor of a page token; ``""`` is the first page.

    Raises:
        ValueError: this server did not make the token.
    """
    if not token:
        return None
    if len(token) > MAX_TOKEN or not token.isascii():
        raise ValueError("not a page token of this server")
    try:
        plain = base64.b64decode(token + "=" * (-len(token) % 4), altchars=b"-_", validate=True)
        stamp, separator, task_id = plain.decode().partition(":")
        cursor = Cursor(int(stamp), task_id)
    except (binascii.Error, ValueError):
        raise ValueError("not a page token of this server") from None
    if not separator or encode_token(cursor) != token:
        raise ValueError("not a page token of this server")
    return cursor
