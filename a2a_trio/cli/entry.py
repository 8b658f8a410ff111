"""Entry point: parse, run one command, turn whatever happened into an exit code."""

import importlib
import os
import sys
import traceback
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final, TypeAlias, cast

from a2a_trio.cli import parser
from a2a_trio.cli.console import Console
from a2a_trio.cli.exits import ExitCode, OutputClosedError, exit_for_error, leaves
from a2a_trio.errors import A2AError, DecodeError, PeerError, ProtocolError, RemoteError

if TYPE_CHECKING:
    import argparse

    from a2a_trio.wire.model import JsonValue

Runner: TypeAlias = "Callable[[argparse.Namespace, Console], ExitCode]"

_MAX_VIOLATIONS: Final = 20
"""Bad fields that an error message names; a peer decides how many there are."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run ``a2a-trio`` and return its exit code.

    Args:
        argv: the words after the program's name; the process's own if omitted.

    Returns:
        One of ``ExitCode``.

    Raises:
        SystemExit: from argparse, for ``--help``, ``--version`` (0) and a wrong line (2).
    """
    program = parser.build().parser
    words = sys.argv[1:] if argv is None else argv
    for position, word in enumerate(words, 1):
        if not _is_text(word):
            program.error(f"argument {position} is not valid {sys.getfilesystemencoding()}")
    namespace = program.parse_args(words)
    console = Console.of_process(
        os.environ,
        json=bool(getattr(namespace, "json", False)),
        quiet=bool(getattr(namespace, "quiet", False)),
    )
    return run(_dispatch, namespace, console)


def run(runner: Runner, namespace: "argparse.Namespace", console: Console) -> ExitCode:
    """Run one command and return the exit code of whatever it did or raised."""
    try:
        # Fails where there is no standard output at all, before anything is done.
        console.write("")
        code = runner(namespace, console)
        console.write("")
    except (Exception, KeyboardInterrupt, BaseExceptionGroup) as error:  # noqa: BLE001 - the last frame: each kind has its exit code
        code = settle(error, console)
    if code in (ExitCode.BROKEN_PIPE, ExitCode.OUTPUT):
        _forget_stdout()
    return code


def settle(error: BaseException, console: Console) -> ExitCode:
    """Report why a command ended and return its exit code.

    Nurseries wrap what is raised inside them in groups; the most telling leaf decides.
    """
    found = list(leaves(error))
    if any(isinstance(leaf, KeyboardInterrupt) for leaf in found):
        console.clear_progress()
        return ExitCode.INTERRUPTED
    if any(isinstance(leaf, OutputClosedError) for leaf in found):
        return ExitCode.BROKEN_PIPE
    expected = [leaf for leaf in found if isinstance(leaf, A2AError)]
    if len(expected) == len(found):
        first = expected[0]
        code = exit_for_error(first)
        console.error(_describe(first), _fields(first, code))
        return code
    traceback.print_exception(error)
    console.error("this is a defect of a2a-trio; the traceback above says where")
    return ExitCode.INTERNAL


def _describe(error: A2AError) -> str:
    # Peers choose these texts, so they must not be able to steer the terminal.
    from a2a_trio.cli.text import visible  # noqa: PLC0415 - only a failing command needs it

    text = str(error) or type(error).__name__
    if isinstance(error, PeerError) and error.url and error.url not in text:
        text = f"{error.url}: {text}"
    lines = [visible(text)]
    if isinstance(error, ProtocolError):
        violations = error.violations[:_MAX_VIOLATIONS]
        lines += [visible(f"  {v.field or '$'}: {v.description}") for v in violations]
        if error.retry_after is not None:
            lines.append(f"  try again in {error.retry_after:g} s")
    return "\n".join(lines)


def _fields(error: A2AError, exit_code: ExitCode) -> "dict[str, JsonValue]":
    fields: dict[str, JsonValue] = {"kind": type(error).__name__, "exit": exit_code.value}
    if isinstance(error, ProtocolError | RemoteError):
        fields["code"] = error.code
    if isinstance(error, ProtocolError) and error.retry_after is not None:
        fields["retryAfter"] = error.retry_after
    if isinstance(error, ProtocolError | DecodeError) and error.violations:
        fields["violations"] = [
            {"field": v.field, "description": v.description}
            for v in error.violations[:_MAX_VIOLATIONS]
        ]
    return fields


def _is_text(word: str) -> bool:
    """Return False for bytes that Python could not decode and has hidden in surrogates."""
    try:
        word.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def _dispatch(namespace: "argparse.Namespace", console: Console) -> ExitCode:
    """Import the command that was asked for, and only that, and run it."""
    module, _, name = namespace.target.partition(":")
    runner = cast("Runner", getattr(importlib.import_module(module), name))
    return runner(namespace, console)


def _forget_stdout() -> None:
    """Point standard output at nothing, so that the flush at exit does not complain."""
    if sys.stdout is None:
        return
    nothing = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nothing, sys.stdout.fileno())
    os.close(nothing)
