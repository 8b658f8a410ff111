"""A run's hold on a slot: given back however the run ends, lent out while it is parked."""

from types import TracebackType
from typing import final

import trio

from a2a_trio.rules.slots import Slots, Waiter

__all__ = ["Lease"]


@final
class Lease:
    """A slot that is already taken, as a context manager that gives it back.

    Args:
        slots: the pool, from which the caller has just taken one slot for this lease.
    """

    def __init__(self, slots: Slots) -> None:
        self._slots = slots
        self.held = True

    def __enter__(self) -> "Lease":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.give_back()

    def give_back(self) -> None:
        """Return the slot to the pool; nothing happens if it is not held."""
        if self.held:
            self.held = False
            self._slots.release()

    async def take_back(self) -> None:
        """Wait for a slot, before any newcomer, unless one is held.

        Cancelling leaves the line, and gives back a slot that was granted at the same moment.
        """
        if self.held:
            return
        granted = trio.Event()
        waiter: Waiter | None = self._slots.enqueue(granted.set)
        try:
            await granted.wait()
            self.held, waiter = True, None
        finally:
            if waiter is not None:
                self._slots.leave(waiter)
