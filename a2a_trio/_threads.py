"""Running what blocks away from the Trio thread: disks, and libraries that know no other way."""

from collections.abc import Awaitable, Callable
from typing import Protocol, TypeVar, TypeVarTuple

import trio

__all__ = ["Offload", "in_thread"]

_T = TypeVar("_T")
_Ts = TypeVarTuple("_Ts")


class Offload(Protocol):
    """Runs a function that blocks, away from the Trio thread."""

    def __call__(self, function: Callable[[*_Ts], _T], /, *args: *_Ts) -> Awaitable[_T]:
        """Run it and return what it returns."""
        ...


async def in_thread(function: Callable[[*_Ts], _T], /, *args: *_Ts) -> _T:
    """Run a function in a worker thread; cancelling leaves it to finish there alone."""
    return await trio.to_thread.run_sync(function, *args, abandon_on_cancel=True)
