"""Exit codes: the one table, and which error or task state leads to which code."""

from collections.abc import Iterator, Mapping
from enum import IntEnum
from types import MappingProxyType
from typing import Final

from a2a_trio.errors import (
    A2AError,
    PeerProtocolError,
    PeerTimeoutError,
    PeerUnreachableError,
    ProtocolError,
    RemoteError,
    SettingsError,
)
from a2a_trio.wire.model import TaskState


class ExitCode(IntEnum):
    """What the process tells its caller."""

    OK = 0
    TASK_FAILED = 1
    USAGE = 2
    UNREACHABLE = 3
    REFUSED = 4
    INTERNAL = 70
    OUTPUT = 74
    INTERRUPTED = 130
    BROKEN_PIPE = 141


MEANINGS: Final[Mapping[ExitCode, str]] = MappingProxyType(
    {
        ExitCode.OK: "The command did what was asked. A task that still works or waits for an"
        " answer is no failure.",
        ExitCode.TASK_FAILED: "The task ended failed, rejected or canceled (for `cancel`, canceled"
        " is what was asked).",
        ExitCode.USAGE: "The command line, a settings file or the agent to serve is wrong; nothing"
        " was sent.",
        ExitCode.UNREACHABLE: "No connection, no answer in time, or what answered does not speak"
        " A2A.",
        ExitCode.REFUSED: "The peer refused the request: wrong token, unknown task, rate limit,"
        " all slots taken, unsupported operation.",
        ExitCode.INTERNAL: "A defect of this program; the traceback is on standard error.",
        ExitCode.OUTPUT: "Standard output cannot be written, for example because it is closed or the"
        " disk is full.",
        ExitCode.INTERRUPTED: "Ctrl-C ended a client command, a second one ended `serve` at once, or"
        " `serve` was told to stop and a task did not let go.",
        ExitCode.BROKEN_PIPE: "Whoever read standard output closed it, as in `... | head -1`.",
    }
)


class UsageError(A2AError):
    """What was asked for cannot be done as written; the text says what to write instead."""


class OutputError(A2AError):
    """Standard output cannot be written; the text says why."""


class OutputClosedError(Exception):
    """Standard output has no reader any more."""


_BY_CLASS: Final[tuple[tuple[type[A2AError], ExitCode], ...]] = (
    (UsageError, ExitCode.USAGE),
    (OutputError, ExitCode.OUTPUT),
    (SettingsError, ExitCode.USAGE),
    (PeerUnreachableError, ExitCode.UNREACHABLE),
    (PeerTimeoutError, ExitCode.UNREACHABLE),
    (PeerProtocolError, ExitCode.UNREACHABLE),
    (RemoteError, ExitCode.REFUSED),
    (ProtocolError, ExitCode.REFUSED),
)

_FAILURES: Final = frozenset({TaskState.FAILED, TaskState.REJECTED, TaskState.CANCELED})


def exit_for_error(error: A2AError) -> ExitCode:
    """Return the code of an error that a command ended with."""
    for kind, code in _BY_CLASS:
        if isinstance(error, kind):
            return code
    return ExitCode.INTERNAL


def exit_for_state(state: TaskState) -> ExitCode:
    """Return the code of a task in this state; unfinished work is no failure."""
    return ExitCode.TASK_FAILED if state in _FAILURES else ExitCode.OK


def leaves(error: BaseException) -> Iterator[BaseException]:
    """Yield the exceptions inside nested groups, or the exception itself."""
    if isinstance(error, BaseExceptionGroup):
        for inner in error.exceptions:
            yield from leaves(inner)
    else:
        yield error
