"""A sliding-window rate limit per identity: pure, exact, bounded.

Every accepted hit is remembered until it is one window old. Identities are kept in the order of
their last accepted hit, so those whose window has emptied are always at the front: each call drops
them there, which keeps the table as small as it can be at amortised constant cost, and no identity
with a hit in its window is ever dropped to make room for another.
"""

import math
from collections import OrderedDict, deque
from typing import Final, TypeAlias, final

import attrs

MAX_IDENTITIES: Final = 10_000
"""Live identities in one limiter. Each holds at most ``per_window`` floats."""


@final
@attrs.frozen
class Allowed:
    """The hit was accepted and counted."""


@final
@attrs.frozen
class Limited:
    """The hit was refused and not counted."""

    retry_after: float
    """Seconds until the same hit is accepted if nobody else hits; ``inf`` if it never is."""


Verdict: TypeAlias = Allowed | Limited

_ALLOWED: Final = Allowed()


def delay_until(due: float, now: float) -> float:
    """Return the smallest float d >= 0 with ``now + d >= due``, so that a repeat is never early."""
    delay = max(0.0, due - now)
    while now + delay < due:  # a subtraction may round down by one unit
        delay = math.nextafter(delay, math.inf)
    return delay


@final
class RateLimiter:
    """Accept at most ``per_window`` hits of one identity in any window.

    An identity's answers depend on its own accepted hits only, until ``max_identities`` others are
    live; then an identity without a hit in its window is refused until one of them falls silent.

    Args:
        per_window: hits per window; 0 or less refuses every hit (there is no "unlimited").
        window: seconds; a hit exactly this old no longer counts.
        max_identities: live identities remembered; the memory bound is this times ``per_window``.

    Raises:
        ValueError: ``window`` or ``max_identities`` is not positive.
    """

    def __init__(
        self, per_window: int, *, window: float = 60.0, max_identities: int = MAX_IDENTITIES
    ) -> None:
        if not (window > 0 and math.isfinite(window)) or max_identities < 1:
            raise ValueError("window and max_identities must be positive")
        self._per_window = per_window
        self._window = window
        self._max_identities = max_identities
        # identity -> times at which its accepted hits stop counting, ascending, never empty
        self._live: OrderedDict[str, deque[float]] = OrderedDict()
        self._latest = -math.inf

    def __len__(self) -> int:
        """Identities remembered."""
        return len(self._live)

    def hit(self, identity: str, now: float) -> Verdict:
        """Count one hit if it is within the limit.

        Args:
            identity: who hits.
            now: seconds of a clock that does not run backwards; an earlier time than seen before
                counts as that one.
        """
        now = self._advance(now)
        if self._per_window <= 0:
            return Limited(math.inf)
        due = self._live.get(identity)
        if due is None:
            return self._admit(identity, now)
        self._expire(due, now)
        if len(due) >= self._per_window:
            return Limited(delay_until(due[0], now))
        due.append(now + self._window)
        self._live.move_to_end(identity)
        return _ALLOWED

    def peek(self, identity: str, now: float) -> Verdict:
        """Tell whether the identity has used up its window; counts nothing.

        An identity without a hit in its window is allowed here even while the table is full.
        """
        now = self._advance(now)
        if self._per_window <= 0:
            return Limited(math.inf)
        due = self._live.get(identity)
        if due is None:
            return _ALLOWED
        self._expire(due, now)
        return Limited(delay_until(due[0], now)) if len(due) >= self._per_window else _ALLOWED

    def _admit(self, identity: str, now: float) -> Verdict:
        if len(self._live) >= self._max_identities:
            first_to_leave = next(iter(self._live.values()))
            return Limited(delay_until(first_to_leave[-1], now))
        self._live[identity] = deque((now + self._window,))
        return _ALLOWED

    def _advance(self, now: float) -> float:
        """Return the time to use, having dropped the identities whose window is empty."""
        now = self._latest = max(now, self._latest)
        while self._live:
            identity = next(iter(self._live))
            if self._live[identity][-1] > now:
                break
            del self._live[identity]
        return now

    @staticmethod
    def _expire(due: deque[float], now: float) -> None:
        while due and due[0] <= now:
            due.popleft()
