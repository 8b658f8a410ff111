"""What an agent's exception becomes: a text on its own task, and nothing to anybody else."""

from typing import Final

import trio

__all__ = ["MAX_FAILURE_TEXT", "crash_text"]

MAX_FAILURE_TEXT: Final = 500
"""Characters of an agent's exception that its caller may see, before they are filtered."""


def crash_text(error: BaseException, *, stopping: bool) -> str:
    """Return what is said of an agent that raised, or raise what was not the agent's doing.

    ``sys.exit()``, an ``asyncio.CancelledError`` or any other exception of an agent is its own task's
    failure. Not its own are the operator's Ctrl-C, and the cancellation of the runs nursery; a
    ``Cancelled`` at any other time is a stray one, of a scope that has ended.

    Args:
        error: what came out of the agent.
        stopping: the runs nursery is being cancelled.

    Raises:
        KeyboardInterrupt, trio.Cancelled: as they were raised, perhaps in a group.
    """
    if _holds(error, KeyboardInterrupt) or (stopping and _holds(error, trio.Cancelled)):
        raise error
    return f"the agent failed: {_text_of(error)}"[:MAX_FAILURE_TEXT]


def _holds(error: BaseException, kind: type[BaseException]) -> bool:
    if isinstance(error, BaseExceptionGroup):
        return error.subgroup(kind) is not None
    return isinstance(error, kind)


def _text_of(error: BaseException) -> str:
    """Return the exception's own text; an exception may fail at that too."""
    try:
        return str(error) or type(error).__name__
    except Exception:  # noqa: BLE001 - its __str__ is the agent's code
        return type(error).__name__
