"""Stop two agents from answering each other for ever: a cap on the turns of one conversation.

A conversation is one contextId of one identity, so nobody can use up somebody else's. Its turns
are counted until it has been idle for ``idle_ttl``, refused attempts included: a loop that goes on
asking stays refused, one that stops is forgiven. Nothing else forgives. A full table refuses new
conversations instead of forgetting old ones, so a flood of new contexts or identities reopens none.
"""

import math
from collections import OrderedDict
from hashlib import blake2b
from typing import Final, final

import attrs

MAX_CAP: Final = 20
"""Largest cap on turns; larger settings are clamped to it."""

MAX_CONTEXTS: Final = 100_000
"""Conversations remembered, at about 300 bytes each: 28 new ones a second for an hour."""

_KEY_BYTES: Final = 16
"""Keys are digests, since contextIds are as long as their sender likes."""


@final
@attrs.frozen
class Turn:
    """The verdict on one turn."""

    n: int
    """Which turn of its conversation this is; 0 if the table is full."""
    allowed: bool

    @property
    def reason(self) -> str:
        """Why the turn is refused, for the caller; "" if it is allowed."""
        if self.allowed:
            return ""
        if self.n == 0:
            return "too many conversations are open; no new one is accepted for now"
        return f"turn {self.n} of this conversation is beyond the limit"


@final
@attrs.define
class _Count:
    turns: int
    forgotten_at: float


@final
class AntiLoop:
    """Count the turns of conversations.

    Args:
        cap: turns allowed, clamped to 1..20.
        max_contexts: conversations remembered; the memory bound.
        idle_ttl: seconds without a turn after which a conversation is forgotten; 0 forgets at once,
            which turns the guard off.

    Raises:
        ValueError: ``max_contexts`` is not positive or ``idle_ttl`` is negative or no number.
    """

    def __init__(
        self, cap: int, *, max_contexts: int = MAX_CONTEXTS, idle_ttl: float = 3_600.0
    ) -> None:
        if max_contexts < 1 or not idle_ttl >= 0:
            raise ValueError("max_contexts must be positive and idle_ttl not negative")
        self.cap = max(1, min(MAX_CAP, cap))
        """The cap in force."""
        self._max_contexts = max_contexts
        self._idle_ttl = idle_ttl
        # In the order of the last turn, so those to forget are at the front.
        self._counts: OrderedDict[bytes, _Count] = OrderedDict()
        self._latest = -math.inf

    def __len__(self) -> int:
        """Conversations remembered."""
        return len(self._counts)

    def record(self, identity: str, context_id: str, now: float) -> Turn:
        """Count a turn and say whether it may run. Amortised constant time.

        Args:
            identity: who sends.
            context_id: the conversation, as sent or as newly made.
            now: seconds of a clock that does not run backwards.
        """
        now = self._latest = max(now, self._latest)
        self._forget(now)
        key = _key(identity, context_id)
        count = self._counts.get(key)
        if count is None:
            if len(self._counts) >= self._max_contexts:
                return Turn(0, allowed=False)
            count = self._counts[key] = _Count(0, now)
        count.turns += 1
        count.forgotten_at = now + self._idle_ttl
        self._counts.move_to_end(key)
        return Turn(count.turns, allowed=count.turns <= self.cap)

    def _forget(self, now: float) -> None:
        while self._counts:
            key = next(iter(self._counts))
            if self._counts[key].forgotten_at > now:
                return
            del self._counts[key]


def _key(identity: str, context_id: str) -> bytes:
    name = identity.encode("utf-8", "surrogatepass")
    digest = blake2b(len(name).to_bytes(8), digest_size=_KEY_BYTES)
    digest.update(name)
    digest.update(context_id.encode("utf-8", "surrogatepass"))
    return digest.digest()
