"""The console: results and notes never mix, colours only where they are understood."""

import io
import json

import pytest

from a2a_trio.cli.console import Console, Style, wants_colour
from a2a_trio.cli.exits import OutputClosedError
from tests.cli.conftest import ScreenMaker


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        return True


class ClosedPipe(io.StringIO):
    """A stream whose reader has gone."""

    def write(self, _text: str) -> int:
        raise BrokenPipeError


@pytest.mark.parametrize(
    ("stream", "environ", "expected"),
    [
        (Terminal(), {}, True),
        (Terminal(), {"NO_COLOR": ""}, True),
        (Terminal(), {"NO_COLOR": "1"}, False),
        (Terminal(), {"TERM": "dumb"}, False),
        (io.StringIO(), {}, False),
    ],
)
def test_colour_only_on_a_terminal_that_wants_it(
    *, stream: io.StringIO, environ: dict[str, str], expected: bool
) -> None:
    """NO_COLOR, TERM=dumb and anything that is no terminal switch colours off."""
    assert wants_colour(stream, environ) is expected


def test_result_and_notes_are_apart(screen: ScreenMaker) -> None:
    """Results go to standard output, notes to standard error."""
    s = screen()

    s.console.line("result")
    s.console.note("note")

    assert (s.out.getvalue(), s.err.getvalue()) == ("result\n", "note\n")


def test_colour_wraps_only_styled_text(screen: ScreenMaker) -> None:
    """Plain text stays plain on a terminal too."""
    s = screen(colour=True)

    s.console.line("plain")
    s.console.line("bad", Style.BAD)

    assert s.out.getvalue() == "plain\n\x1b[31mbad\x1b[0m\n"


def test_json_mode_drops_notes_and_keeps_warnings(screen: ScreenMaker) -> None:
    """A machine gets no chatter, but what is wrong is still said on standard error."""
    s = screen(json=True)

    s.console.note("note")
    s.console.warn("careful")
    s.console.record({"a": 1})

    assert s.err.getvalue() == "warning: careful\n"
    assert json.loads(s.out.getvalue()) == {"a": 1}


def test_quiet_drops_notes_but_not_errors(screen: ScreenMaker) -> None:
    """--quiet is about chatter, not about failure."""
    s = screen(quiet=True)

    s.console.note("note")
    s.console.warn("careful")
    s.console.error("broken")

    assert s.err.getvalue() == "a2a-trio: broken\n"


def test_json_of_a_peer_cannot_steer_the_terminal(screen: ScreenMaker) -> None:
    """Results and errors carry what a peer said; a terminal must not obey it."""
    s = screen(json=True)

    s.console.record({"text": "\x9b2J\u202e"})
    s.console.error("\x9b2J\u202e")

    assert s.out.getvalue() == '{"text":"\\u009b2J\\u202e"}\n'
    assert s.err.getvalue() == '{"error":{"message":"\\u009b2J\\u202e"}}\n'


def test_error_is_an_object_in_json_mode(screen: ScreenMaker) -> None:
    """Machines read errors as JSON, on standard error."""
    s = screen(json=True)

    s.console.error("broken", {"exit": 4})

    assert json.loads(s.err.getvalue()) == {"error": {"message": "broken", "exit": 4}}
    assert s.out.getvalue() == ""


def test_progress_only_for_somebody_who_watches(screen: ScreenMaker) -> None:
    """A progress line is rewritten on a terminal and never written to a file."""
    watched, piped = screen(colour=True), screen()

    for s in (watched, piped):
        s.console.progress("waiting")
        s.console.clear_progress()

    assert watched.err.getvalue() == "\r\x1b[K\x1b[2mwaiting\x1b[0m\r\x1b[K"
    assert piped.err.getvalue() == ""


def test_closed_output_is_told_apart_from_a_broken_connection() -> None:
    """A reader that went away is its own error; sockets raise BrokenPipeError too."""
    console = Console(out=ClosedPipe(), err=io.StringIO())

    with pytest.raises(OutputClosedError):
        console.line("x")


def test_closed_standard_error_does_not_stop_the_work() -> None:
    """Nobody reads the notes, the result still arrives."""
    out = io.StringIO()
    console = Console(out=out, err=ClosedPipe())

    console.note("note")
    console.line("result")

    assert out.getvalue() == "result\n"
