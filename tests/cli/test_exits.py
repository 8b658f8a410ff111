"""Exit codes: every error and every task state has the documented one."""

import pytest

from a2a_trio.cli.exits import (
    MEANINGS,
    ExitCode,
    OutputError,
    UsageError,
    exit_for_error,
    exit_for_state,
    leaves,
)
from a2a_trio.errors import (
    ERROR_TABLE,
    A2AError,
    PeerProtocolError,
    PeerTimeoutError,
    PeerUnreachableError,
    RemoteError,
    SettingsError,
)
from a2a_trio.wire.model import TaskState


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (UsageError("x"), 2),
        (SettingsError("x"), 2),
        (OutputError("x"), 74),
        (PeerUnreachableError("x"), 3),
        (PeerTimeoutError("x"), 3),
        (PeerProtocolError("x"), 3),
        (RemoteError("x", code=-31999), 4),
        *[(row.error(), 4) for row in ERROR_TABLE],
    ],
    ids=lambda value: type(value).__name__,
)
def test_every_error_has_its_code(error: A2AError, code: int) -> None:
    """What went wrong can be told from the exit code alone."""
    assert exit_for_error(error) == code


@pytest.mark.parametrize("state", TaskState)
def test_only_a_task_that_ended_badly_is_a_failure(state: TaskState) -> None:
    """Failed, rejected and canceled tasks give 1; unfinished ones are no failure."""
    bad = {TaskState.FAILED, TaskState.REJECTED, TaskState.CANCELED}

    assert exit_for_state(state) == (1 if state in bad else 0)


def test_every_code_has_a_meaning() -> None:
    """The documented table leaves no code out."""
    assert set(MEANINGS) == set(ExitCode)


def test_leaves_of_nested_groups() -> None:
    """Groups inside groups are flattened in order."""
    one, two, three = ValueError("1"), KeyError("2"), OSError("3")
    nested = BaseExceptionGroup("outer", [one, ExceptionGroup("inner", [two, three])])

    assert list(leaves(nested)) == [one, two, three]
    assert list(leaves(one)) == [one]
