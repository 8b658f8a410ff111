"""Where commands write: results to standard output, everything else to standard error.

A result is what a pipeline wants to have: the reply, the task, the card. Notes (progress,
warnings, hints) never mix with it. In JSON mode a result is one JSON object per line and notes
are left out.
"""

import errno
import io
import sys
from collections.abc import Mapping
from enum import StrEnum
from typing import Final, TextIO, final

import attrs

from a2a_trio.cli.exits import OutputClosedError, OutputError
from a2a_trio.cli.text import spelled_out
from a2a_trio.wire.model import JsonValue


class Style(StrEnum):
    """What a piece of text is, for terminals that can show it."""

    PLAIN = ""
    STRONG = "1"
    DIM = "2"
    GOOD = "32"
    BAD = "31"
    WAIT = "33"


_CLEAR_LINE: Final = "\r\x1b[K"


def wants_colour(stream: TextIO, environ: Mapping[str, str]) -> bool:
    """Return True if escape sequences make sense there.

    ``NO_COLOR`` with any value but the empty one switches them off, and so does ``TERM=dumb``.
    """
    return stream.isatty() and not environ.get("NO_COLOR") and environ.get("TERM") != "dumb"


@final
class _Closed(io.StringIO):
    """What a process has that was started without a standard output."""

    def write(self, _text: str, /) -> int:
        raise OSError(errno.EBADF, "it is closed")


@final
class _Nowhere(io.StringIO):
    """What a process has that was started without a standard error."""

    def write(self, text: str, /) -> int:
        return len(text)


@final
@attrs.frozen(kw_only=True)
class Console:
    """The two output streams of a command.

    Args:
        out: standard output.
        err: standard error.
        json: results are JSON lines and notes are dropped.
        quiet: notes and warnings are dropped, errors are not.
        out_colour: ``out`` understands escape sequences.
        err_colour: ``err`` understands escape sequences, so a progress line may be rewritten.
    """

    out: TextIO
    err: TextIO
    json: bool = False
    quiet: bool = False
    out_colour: bool = False
    err_colour: bool = False

    @classmethod
    def of_process(
        cls, environ: Mapping[str, str], *, json: bool = False, quiet: bool = False
    ) -> "Console":
        """Return the console on this process's own streams.

        JSON is UTF-8 whatever the locale says; what the locale cannot spell is escaped. Without a
        standard error, nothing is told; without a standard output, writing a result fails.
        """
        # Python leaves None there when the process was started without them, as with ">&-".
        stdout = _Closed() if sys.stdout is None else sys.stdout
        stderr = _Nowhere() if sys.stderr is None else sys.stderr
        if isinstance(stdout, io.TextIOWrapper):
            encoding = "utf-8" if json else stdout.encoding
            stdout.reconfigure(encoding=encoding, errors="backslashreplace")
        if isinstance(stderr, io.TextIOWrapper):
            stderr.reconfigure(errors="backslashreplace")
        return cls(
            out=stdout,
            err=stderr,
            json=json,
            quiet=quiet,
            out_colour=wants_colour(stdout, environ),
            err_colour=wants_colour(stderr, environ),
        )

    @property
    def live(self) -> bool:
        """True if somebody watches standard error and may be shown a line that changes."""
        return self.err_colour and not (self.json or self.quiet)

    def line(self, text: str = "", style: Style = Style.PLAIN) -> None:
        """Write one line of a result for people."""
        self.write(_paint(text, style, on=self.out_colour) + "\n")

    def write(self, text: str) -> None:
        """Write a piece of a result and hand it on at once.

        Raises:
            OutputClosedError: nobody reads standard output any more.
            OutputError: it cannot be written for another reason.
        """
        try:
            self.out.write(text)
            self.out.flush()
        except BrokenPipeError as error:
            raise OutputClosedError from error
        except OSError as error:
            raise OutputError(f"standard output: {error.strerror}") from None

    def record(self, value: JsonValue) -> None:
        """Write one JSON object of a result on a line of its own."""
        self.write(_json(value) + "\n")

    def note(self, text: str, style: Style = Style.DIM) -> None:
        """Tell people something that is not the result."""
        if not (self.json or self.quiet):
            self._tell(_paint(text, style, on=self.err_colour))

    def warn(self, text: str) -> None:
        """Tell people something they should not miss; JSON mode does not hide it, quiet does."""
        if not self.quiet:
            self._tell(_paint("warning:", Style.WAIT, on=self.err_colour) + f" {text}")

    def error(self, text: str, fields: Mapping[str, JsonValue] | None = None) -> None:
        """Report why the command fails: a line for people, an ``error`` object in JSON mode."""
        if self.json:
            failure: dict[str, JsonValue] = {"message": text, **(fields or {})}
            self._tell(_json({"error": failure}))
        else:
            self._tell(_paint("a2a-trio:", Style.BAD, on=self.err_colour) + f" {text}")

    def progress(self, text: str) -> None:
        """Replace the progress line; nothing happens unless ``live``."""
        if self.live:
            self.err.write(_CLEAR_LINE + _paint(text, Style.DIM, on=True))
            self.err.flush()

    def clear_progress(self) -> None:
        """Take the progress line away."""
        if self.live:
            self.err.write(_CLEAR_LINE)
            self.err.flush()

    def _tell(self, text: str) -> None:
        prefix = _CLEAR_LINE if self.live else ""
        try:
            self.err.write(f"{prefix}{text}\n")
            self.err.flush()
        except OSError:
            # Nobody can read the notes: that is no reason to stop working.
            return


def _paint(text: str, style: Style, *, on: bool) -> str:
    return f"\x1b[{style.value}m{text}\x1b[0m" if on and style is not Style.PLAIN else text


def _json(value: JsonValue) -> str:
    # Imported here: the codec is slow to import, and help and completion must be fast.
    from a2a_trio.wire.codec import dumps  # noqa: PLC0415 - reason above

    return spelled_out(dumps(value).decode("utf-8"))
