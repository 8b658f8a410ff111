"""The pool of slots that bounds how many runs work at once.

One pool serves blocking, streaming and detached runs alike. A run that was parked comes back
through ``enqueue`` and is served before any newcomer, in the order of asking; ``take`` therefore
refuses while anybody waits, so that a flood of new sends cannot starve a resuming run.
"""

from collections import deque
from collections.abc import Callable
from typing import final

__all__ = ["Slots", "Waiter"]


@final
class Waiter:
    """A place in the line for a slot. ``granted`` turns true once, when the slot is its own."""

    __slots__ = ("_on_granted", "granted")

    def __init__(self, on_granted: Callable[[], None]) -> None:
        self.granted = False
        self._on_granted = on_granted

    def grant(self) -> None:
        """Hand the slot over and tell the one who waits."""
        self.granted = True
        self._on_granted()


@final
class Slots:
    """Counts slots; all methods are synchronous, so no checkpoint lies between test and take.

    Args:
        capacity: how many runs may work at once, at least 1. The line of waiters is bounded by the
            number of parked runs, which the run engine bounds.
    """

    def __init__(self, capacity: int) -> None:
        if capacity < 1:
            raise ValueError("capacity must be at least 1")
        self.capacity = capacity
        self.in_use = 0
        self._line: deque[Waiter] = deque()

    @property
    def waiting(self) -> int:
        """How many resuming runs stand in line."""
        return len(self._line)

    def take(self) -> bool:
        """Take a slot if one is free and nobody waits for it."""
        if self.in_use >= self.capacity or self._line:
            return False
        self.in_use += 1
        return True

    def enqueue(self, on_granted: Callable[[], None]) -> Waiter:
        """Stand in line for a slot; ``on_granted`` is called once, perhaps at once."""
        waiter = Waiter(on_granted)
        if self.take():
            waiter.grant()
        else:
            self._line.append(waiter)
        return waiter

    def leave(self, waiter: Waiter) -> None:
        """Leave the line, or give back a slot that was granted meanwhile."""
        if waiter.granted:
            self.release()
        else:
            self._line.remove(waiter)

    def release(self) -> None:
        """Give a slot back: to the first in line, else to the pool."""
        if self.in_use < 1:
            raise RuntimeError("a slot was released twice")
        if self._line:
            self._line.popleft().grant()
        else:
            self.in_use -= 1
