"""Make text from a peer safe to show on a terminal."""

import re
import unicodedata
from typing import Final

_KEPT: Final = frozenset("\n\t")
# Format characters that reorder or hide what stands beside them; joiners stay, emoji need them.
_REORDERING: Final = frozenset(
    "\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
)
# JSON itself escapes only what is below a space, and a terminal obeys more than that.
_STEERING: Final = re.compile(f"[\x00-\x1f\x7f-\x9f{''.join(sorted(_REORDERING))}]")

LABEL_LENGTH: Final = 200
"""Characters of a one-line label; names and descriptions longer than this are cut."""


def visible(text: str) -> str:
    """Return the text with control and reordering characters spelled out as escapes.

    A peer's reply is untrusted: an escape sequence in it could rewrite what stands on the screen.
    Line feeds and tabs stay; CRLF becomes LF.
    """
    text = text.replace("\r\n", "\n")
    return "".join(ch if _is_harmless(ch) else _escape(ch) for ch in text)


def spelled_out(line: str) -> str:
    """Return one line of compact JSON with control and reordering characters spelled out as escapes.

    They can only stand inside its strings, so it is the same value for whoever reads it as JSON.
    """
    return _STEERING.sub(lambda found: f"\\u{ord(found[0]):04x}", line)


def label(text: str, limit: int = LABEL_LENGTH) -> str:
    """Return the text on one line, at most ``limit`` characters."""
    line = visible(" ".join(text.split()))
    return line if len(line) <= limit else line[: limit - 1] + "…"


def _is_harmless(ch: str) -> bool:
    if ch in _KEPT:
        return True
    return ch not in _REORDERING and unicodedata.category(ch) not in ("Cc", "Cs")


def _escape(ch: str) -> str:
    code = ord(ch)
    return f"\\x{code:02x}" if code <= 0xFF else f"\\u{code:04x}"  # noqa: PLR2004 - one byte
