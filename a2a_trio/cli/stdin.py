"""Text from standard input: bounded, UTF-8 whatever the locale, and a plain error without it."""

import sys
from typing import BinaryIO

from a2a_trio.cli.exits import UsageError


def from_stdin(limit: int) -> str:
    """Return all of this process's standard input; see ``read_text``.

    Raises:
        UsageError: it is closed, cannot be read, is too long or not UTF-8.
    """
    # Python leaves None there when the process was started without one, as with "<&-".
    if sys.stdin is None:
        raise UsageError("standard input is closed")
    return read_text(sys.stdin.buffer, limit)


def read_text(source: BinaryIO, limit: int) -> str:
    """Return all that can be read as text, without the line feed at its end.

    Args:
        source: what to read.
        limit: how many bytes it may have.

    Raises:
        UsageError: it cannot be read, is too long or not UTF-8.
    """
    try:
        content = source.read(limit + 1)
    except OSError as error:
        raise UsageError(f"standard input: {error.strerror or 'cannot be read'}") from None
    if len(content) > limit:
        raise UsageError(f"standard input is longer than {limit} bytes")
    try:
        return content.decode("utf-8").removesuffix("\n")
    except UnicodeDecodeError as error:
        raise UsageError(f"standard input is not UTF-8 at byte {error.start}") from None
