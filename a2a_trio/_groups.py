"""Letting one failure out of our own nurseries as it is.

A nursery wraps whatever comes out of it in a group, also where it is an implementation detail. Who
calls us sees the failure itself, with its own cause and context; only several real failures at once
stay a group.
"""

from collections.abc import Iterator
from contextlib import contextmanager

import trio

__all__ = ["only_failure", "plain_errors"]


def only_failure(error: BaseException, levels: int) -> BaseException:
    """Return the one failure inside nested groups, or the innermost group that has several.

    A cancellation beside a failure is that failure's doing and does not count.

    Args:
        error: what came out of our nurseries.
        levels: how many nurseries of ours it came through; groups deeper than that are the
            caller's own and stay.
    """
    for _ in range(levels):
        if not isinstance(error, BaseExceptionGroup):
            return error
        real = [e for e in error.exceptions if not isinstance(e, trio.Cancelled)]
        if len(real or error.exceptions) > 1:
            return error
        error = (real or list(error.exceptions))[0]
    return error


@contextmanager
def plain_errors(levels: int = 1) -> Iterator[None]:
    """Raise what comes out of the block as ``only_failure`` of it, with its own context."""
    try:
        yield
    except BaseExceptionGroup as group:
        alone = only_failure(group, levels)
        if alone is group:
            raise
        context = alone.__context__
        try:
            raise alone
        finally:
            # What the block was handling when it raised, not the group.
            alone.__context__ = context
