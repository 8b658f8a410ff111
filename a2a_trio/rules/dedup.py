"""Recognising a send that was repeated after a lost answer.

A caller names its send with a key of its own. The same key from the same caller within the window
means the same send: it gets the first one's task, and nothing runs again. The same key with another
payload is a mistake of the caller. Entries leave in the order they came, so the table is bounded by
time and by number; where it is full the oldest leaves early, and a repeat of that one runs again.
"""

from collections import OrderedDict
from typing import Final, TypeAlias, final

import attrs

from a2a_trio.wire.model import Message

__all__ = ["MAX_KEY", "Conflict", "Dedup", "Known", "New", "Verdict"]

MAX_KEY: Final = 255
"""Longest key accepted, in characters: it is held in memory for the whole window."""


@final
@attrs.frozen
class New:
    """Not seen before."""


@final
@attrs.frozen
class Conflict:
    """Seen with another payload."""


@final
@attrs.define(eq=False)
class Known:
    """Seen: the first send's task, or the message that it was answered with."""

    digest: bytes
    task_id: str
    expires: float
    reply: Message | None = None

    def answered_with(self, reply: Message) -> None:
        """Note the message that the send was answered with instead of a task."""
        self.reply = reply


Verdict: TypeAlias = New | Conflict | Known


@final
class Dedup:
    """The sends of the last ``window`` seconds, by caller and key.

    Args:
        window: seconds; 0 recognises nothing.
        max_entries: how many are remembered.
    """

    def __init__(self, window: float, *, max_entries: int = 10_000) -> None:
        self._window = window
        self._max_entries = max_entries
        self._entries: OrderedDict[tuple[str, str], Known] = OrderedDict()

    def __len__(self) -> int:
        return len(self._entries)

    def look_up(self, identity: str, key: str, digest: bytes, now: float) -> Verdict:
        """Return what is known of a send; an empty key is never known."""
        if not key or not self._window:
            return New()
        self._expire(now)
        known = self._entries.get((identity, key))
        if known is None:
            return New()
        return known if known.digest == digest else Conflict()

    def remember(self, identity: str, key: str, digest: bytes, task_id: str, now: float) -> Known:
        """Note that a send was accepted as a task; the entry can take its message answer later."""
        known = Known(digest, task_id, now + self._window)
        if key and self._window:
            self._entries.pop((identity, key), None)
            while len(self._entries) >= self._max_entries:
                self._entries.popitem(last=False)
            self._entries[identity, key] = known
        return known

    def forget(self, identity: str, key: str) -> None:
        """Drop a send whose task is no longer there; repeating it runs it again."""
        self._entries.pop((identity, key), None)

    def _expire(self, now: float) -> None:
        while self._entries:
            oldest = next(iter(self._entries))
            if self._entries[oldest].expires > now:
                return
            del self._entries[oldest]
