"""The last frame: whatever a command does or raises, the process ends with its documented code."""

import argparse
import errno
import io
import json
import os
import pty
import re
import subprocess
import sys
from collections.abc import Mapping

import attrs
import pytest

from a2a_trio._version import __version__
from a2a_trio.cli.console import Console
from a2a_trio.cli.entry import run, settle
from a2a_trio.cli.exits import ExitCode, OutputClosedError, OutputError, UsageError
from a2a_trio.errors import (
    FieldViolation,
    InvalidParamsError,
    PeerUnreachableError,
    RateLimitedError,
    TaskNotFoundError,
)
from tests.cli.conftest import PATIENCE, CommandLine, ScreenMaker


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (KeyboardInterrupt(), ExitCode.INTERRUPTED),
        (BaseExceptionGroup("g", [KeyboardInterrupt(), UsageError("x")]), ExitCode.INTERRUPTED),
        (OutputClosedError(), ExitCode.BROKEN_PIPE),
        (ExceptionGroup("g", [OutputClosedError()]), ExitCode.BROKEN_PIPE),
        (UsageError("x"), ExitCode.USAGE),
        (ExceptionGroup("g", [ExceptionGroup("g", [TaskNotFoundError()])]), ExitCode.REFUSED),
        (PeerUnreachableError("x"), ExitCode.UNREACHABLE),
        (ZeroDivisionError(), ExitCode.INTERNAL),
        (ExceptionGroup("g", [UsageError("x"), ZeroDivisionError()]), ExitCode.INTERNAL),
    ],
    ids=repr,
)
def test_what_ends_a_command_decides_the_code(
    screen: ScreenMaker, error: BaseException, code: ExitCode
) -> None:
    """Nurseries wrap errors in groups; the code is that of what is inside."""
    assert settle(error, screen().console) is code


def test_a_defect_shows_its_traceback(
    screen: ScreenMaker, capsys: pytest.CaptureFixture[str]
) -> None:
    """What nobody foresaw is not hidden."""

    def broken(_namespace: argparse.Namespace, _console: Console) -> ExitCode:
        raise ZeroDivisionError("by zero")

    assert run(broken, argparse.Namespace(), screen().console) is ExitCode.INTERNAL
    assert "ZeroDivisionError: by zero" in capsys.readouterr().err


def test_refusal_names_bad_fields_and_when_to_come_back(screen: ScreenMaker) -> None:
    """A refusal says what the caller can do about it."""
    s = screen()

    settle(
        InvalidParamsError(
            violations=(FieldViolation(field="message.parts", description="empty"),)
        ),
        s.console,
    )
    settle(RateLimitedError(retry_after=12.5), s.console)

    assert s.err.getvalue() == (
        "a2a-trio: Invalid parameters\n  message.parts: empty\n"
        "a2a-trio: Rate limited\n  try again in 12.5 s\n"
    )


def test_refusal_in_json_mode_is_one_object(screen: ScreenMaker) -> None:
    """Machines get the code, the kind and the exit code."""
    s = screen(json=True)

    settle(RateLimitedError(retry_after=12.5), s.console)

    assert json.loads(s.err.getvalue()) == {
        "error": {
            "message": "Rate limited\n  try again in 12.5 s",
            "kind": "RateLimitedError",
            "exit": 4,
            "code": -32051,
            "retryAfter": 12.5,
        }
    }


def test_text_of_a_peer_cannot_steer_the_terminal(screen: ScreenMaker) -> None:
    """Error texts come from the other side and are shown, not obeyed."""
    s = screen()

    settle(TaskNotFoundError("\x1b]0;owned\x07"), s.console)

    assert s.err.getvalue() == "a2a-trio: \\x1b]0;owned\\x07\n"


def test_version(a2a: CommandLine) -> None:
    """--version names the package's and the protocol's version."""
    done = a2a("--version")

    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == f"a2a-trio {__version__} (A2A 1.0)\n"


def test_no_command_is_a_usage_error(a2a: CommandLine) -> None:
    """Alone, the program says how it is used."""
    done = a2a()

    assert done.returncode == 2
    assert done.stdout == ""
    assert "usage: a2a-trio" in done.stderr


HEAVY = ("httpx", "quart", "quart_trio", "hypercorn", "trio", "cattrs", "prometheus_client", "ssl")


@pytest.mark.parametrize("words", [["--help"], ["send", "--help"], ["completion", "bash"]])
def test_help_and_completion_load_no_network_library(
    words: list[str], environment: Mapping[str, str]
) -> None:
    """What people wait for at a prompt stays quick: no HTTP library, no event loop is imported."""
    probe = (
        "import sys, a2a_trio.cli\n"
        "try: code = a2a_trio.cli.main(sys.argv[1:])\n"
        "except SystemExit as ended: code = ended.code\n"
        "print('LOADED', *sorted(m for m in sys.modules if '.' not in m), file=sys.stderr)\n"
        "sys.exit(code)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", probe, *words],
        capture_output=True,
        text=True,
        env=environment,
        timeout=PATIENCE,
        check=True,
    )
    loaded = set(re.findall(r"\S+", done.stderr.rpartition("LOADED")[2]))

    assert "argparse" in loaded
    assert loaded.isdisjoint(HEAVY)


def test_a_closed_pipe_ends_quietly(environment: Mapping[str, str]) -> None:
    """``a2a-trio ... | head -1`` leaves no traceback."""
    script = (
        "import os, sys, argparse, io, a2a_trio.cli.entry as m\n"
        "from a2a_trio.cli.console import Console\n"
        "read, write = os.pipe(); os.close(read); os.dup2(write, 1)\n"
        "def chatty(_namespace, console):\n"
        "    while True: console.line('y')\n"
        "sys.exit(m.run(chatty, argparse.Namespace(), Console.of_process({})))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        env=environment,
        timeout=PATIENCE,
        check=False,
    )

    assert (done.returncode, done.stderr) == (141, "")


@pytest.mark.parametrize(("no_color", "coloured"), [("", True), ("1", False)])
def test_colours_on_a_terminal_unless_unwanted(
    environment: Mapping[str, str], *, no_color: str, coloured: bool
) -> None:
    """Seen by a real terminal, an error is red; NO_COLOR turns that off."""
    ours, theirs = pty.openpty()
    try:
        done = subprocess.run(
            [sys.executable, "-m", "a2a_trio", "discover", "nobody"],
            stdout=subprocess.DEVNULL,
            stderr=theirs,
            env={**environment, "TERM": "xterm", "NO_COLOR": no_color},
            timeout=PATIENCE,
            check=False,
        )
        shown = os.read(ours, 65_536).decode()
    finally:
        os.close(ours)
        os.close(theirs)

    assert done.returncode == 2
    assert "neither a URL" in shown
    assert ("\x1b[31m" in shown) is coloured


def test_a_full_disk_is_said_and_has_its_code(screen: ScreenMaker) -> None:
    """What cannot be written is no defect of this program."""
    s = screen()

    class Full(io.StringIO):
        def write(self, _text: str) -> int:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def told(_namespace: argparse.Namespace, console: Console) -> ExitCode:
        attrs.evolve(console, out=Full()).line("result")
        return ExitCode.OK

    with pytest.raises(OutputError) as caught:
        told(argparse.Namespace(), s.console)
    assert settle(caught.value, s.console) is ExitCode.OUTPUT
    assert s.err.getvalue() == "a2a-trio: standard output: No space left on device\n"


def test_json_is_utf8_in_any_locale(environment: Mapping[str, str]) -> None:
    """A console that cannot spell a letter does not change what machines read."""
    script = (
        "import sys; from a2a_trio.cli.console import Console\n"
        "Console.of_process({}, json=True).record({'text': 'grün'})\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        env={**environment, "PYTHONIOENCODING": "ascii"},
        timeout=PATIENCE,
        check=True,
    )

    assert json.loads(done.stdout.decode("utf-8")) == {"text": "grün"}


def test_text_survives_any_locale(environment: Mapping[str, str]) -> None:
    """People on an ASCII terminal get escapes instead of a traceback."""
    script = (
        "import sys; from a2a_trio.cli.console import Console\n"
        "c = Console.of_process({}); c.line('grün'); c.note('grün')\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        env={**environment, "PYTHONIOENCODING": "ascii"},
        timeout=PATIENCE,
        check=True,
    )

    assert (done.stdout, done.stderr) == (b"gr\\xfcn\n", b"gr\\xfcn\n")


def test_interrupted_progress_is_taken_away(screen: ScreenMaker) -> None:
    """After Ctrl-C the prompt does not start behind a half line."""
    s = screen(colour=True)

    settle(KeyboardInterrupt(), s.console)

    assert s.err.getvalue() == "\r\x1b[K"
    assert isinstance(s.console.err, io.StringIO)
