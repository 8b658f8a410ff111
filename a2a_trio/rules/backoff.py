"""How long to wait before trying again: doubling delays with jitter, up to a cap."""

import math
import re
from typing import Final, Protocol, final

MAX_RETRY_AFTER: Final = 3_600.0
"""Seconds; a server that asks for more is asked again after this."""

_SECONDS: Final = re.compile(r"[0-9]{1,9}(?:\.[0-9]{1,6})?", re.ASCII)


class Random(Protocol):
    """What is used of ``random.Random``."""

    def random(self) -> float:
        """Return a number in [0, 1)."""
        ...


@final
class Backoff:
    """Delays between attempts: base, 2 base, 4 base ... cap, each less up to half by chance.

    The chance keeps many clients of one failed server apart. Delays never shrink until an attempt
    succeeds: a delay lies in [half, full] of its step, and the next step's half is this one's full.

    Args:
        base: seconds of the first step.
        cap: seconds of the largest step.
        rng: source of the jitter.
        retry_after_cap: seconds; the most that a server's ``Retry-After`` is obeyed.

    Raises:
        ValueError: not 0 < base <= cap < inf.
    """

    def __init__(
        self, base: float, cap: float, rng: Random, *, retry_after_cap: float = MAX_RETRY_AFTER
    ) -> None:
        if not 0 < base <= cap < math.inf:
            raise ValueError("a back-off needs 0 < base <= cap")
        self._base = base
        self._cap = cap
        self._rng = rng
        self._retry_after_cap = retry_after_cap
        self._step = base
        self._last = 0.0
        self.failures = 0
        """Attempts that failed since the last success."""

    def failed(self, retry_after: float | None = None) -> float:
        """Note a failure and return the seconds to wait.

        Args:
            retry_after: what the server asked for, in seconds; it counts only if it is longer than
                the delay that is due anyway. Not a number, or None: nothing was asked for.
        """
        self.failures += 1
        jittered = self._step * (0.5 + 0.5 * self._rng.random())
        self._last = max(self._last, jittered)
        self._step = min(self._cap, self._step * 2)  # clamped, so it never overflows
        asked = 0.0 if retry_after is None or math.isnan(retry_after) else retry_after
        return max(self._last, min(asked, self._retry_after_cap))

    def succeeded(self) -> None:
        """Begin again with the first step."""
        self._step = self._base
        self._last = 0.0
        self.failures = 0


def parse_retry_after(value: str | None) -> float | None:
    """Return the seconds of a numeric ``Retry-After``; a date or nonsense is None."""
    text = (value or "").strip()
    return float(text) if _SECONDS.fullmatch(text) else None
