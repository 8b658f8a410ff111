"""Argument types and groups of arguments that several commands share."""

import argparse
import math
from datetime import UTC, datetime
from typing import Final

from a2a_trio.rules.ports import MAX_PORT
from a2a_trio.wire.model import TaskState

STATES: Final = tuple(s for s in TaskState if s is not TaskState.UNSPECIFIED)


def seconds(text: str) -> float:
    """Read a duration in seconds: a finite number, 0 or more."""
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not (math.isfinite(value) and value >= 0):
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of seconds, 0 or more")
    return value


def port(text: str) -> int:
    """Read a TCP port; 0 lets the system choose."""
    value = _whole(text)
    if value is None or value > MAX_PORT:
        raise argparse.ArgumentTypeError(f"{text!r} is not a port, 0 to {MAX_PORT}")
    return value


def count(text: str) -> int:
    """Read a number of things: whole, 0 or more."""
    value = _whole(text)
    if value is None:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number, 0 or more")
    return value


def moment(text: str) -> datetime:
    """Read an ISO 8601 time; one without an offset is UTC."""
    try:
        value = datetime.fromisoformat(text)
        # In UTC, because that is how it is sent and the calendar ends there.
        return value.astimezone(UTC) if value.tzinfo else value.replace(tzinfo=UTC)
    except (ValueError, OverflowError):
        raise argparse.ArgumentTypeError(
            f"{text!r} is not a time such as 2025-01-31T12:00:00Z"
        ) from None


def state(text: str) -> TaskState:
    """Read a task state by its short name."""
    for candidate in STATES:
        if candidate.short == text:
            return candidate
    names = ", ".join(candidate.short for candidate in STATES)
    raise argparse.ArgumentTypeError(f"{text!r} is not one of {names}")


def _whole(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdecimal() else None


def add_output(parser: argparse.ArgumentParser) -> None:
    """Add what every command understands about its output."""
    group = parser.add_argument_group("output")
    group.add_argument(
        "--json", action="store_true", help="machine-readable: one JSON object per line"
    )
    group.add_argument(
        "-q",
        "--quiet",
        action="store_true",
        help="no progress, hints or warnings on standard error",
    )


def add_settings(parser: argparse.ArgumentParser) -> None:
    """Add where the settings come from."""
    parser.add_argument(
        "--settings",
        metavar="FILE",
        help="settings file (default: settings.json in the state directory)",
    )


def add_token(parser: argparse.ArgumentParser, purpose: str) -> None:
    """Add the ways to give a bearer token."""
    group = parser.add_mutually_exclusive_group()
    group.add_argument(
        "--token",
        help=f"{purpose}; other users of this machine can read it in the process list, so prefer"
        " --token-file or the variable A2A_BEARER_TOKEN",
    )
    group.add_argument(
        "--token-file",
        metavar="FILE",
        help="file whose first line is the token",
    )


def add_peer(parser: argparse.ArgumentParser) -> None:
    """Add whom to call and how."""
    parser.add_argument(
        "peer",
        metavar="PEER",
        help="address of the peer, or a name from the list of `a2a-trio peers`",
    )
    add_token(parser, "bearer token for the peer")
    parser.add_argument(
        "--timeout",
        type=seconds,
        metavar="SECONDS",
        help="give up after this long; 0 waits for ever (default: the settings below timeouts)",
    )
    add_settings(parser)
    add_output(parser)


def add_task(parser: argparse.ArgumentParser) -> None:
    """Add the task that the command is about."""
    parser.add_argument("task", metavar="TASK", help="id of the task")
