"""The search for secrets in text that arrives in pieces.

Theory of operation. Two scanners read the same text. Each knows up to where its answer is final
(``decided``): whatever comes later can neither make nor unmake a secret before that offset. Text is
published up to the smaller of the two and the rest is held back:

* ``_Exact`` holds what may be the beginning of one of our own secrets;
* ``_Shapes`` holds the last run (see ``secret_shapes``), usually the last word.

An answer depends only on offsets in the text and never on how it was cut into pieces, so a stream
publishes exactly what the whole text would become.

Bounds. A run is judged when it ends or in windows of ``MAX_RUN`` characters that overlap by
``RECOGNISED``; a secret that reaches the end of a window is swallowed from there to its own end,
however long it is. So what is held never exceeds ``MAX_RUN`` or the longest own secret. In a private
key block every line is dropped at once; the block ends at its END line or at the first text that
cannot belong to one.
"""

import json
import re
from collections.abc import Iterable
from typing import Final, final
from urllib.parse import quote

import attrs

from a2a_trio.rules.secret_shapes import (
    LOOKBACK,
    PRIVATE_KEY_BEGINS,
    RECOGNISED,
    RUN,
    Span,
    find_secrets,
)

__all__ = ["LEAST_SECRET", "MAX_RUN", "MAX_SECRET", "OwnSecrets", "SecretStream"]

MAX_RUN: Final = 4096
MAX_SECRET: Final = 8192
"""Longer own secrets are recognised by their first ``MAX_SECRET`` characters."""
LEAST_SECRET: Final = 8
"""Shorter own secrets are not searched for: they would hit ordinary words."""

_KEEP: Final = LOOKBACK + 32
_MAX_GAP: Final = 64
"""White space and escapes between two lines of a private key block."""

_FULL_WINDOW: Final = re.compile(rf"{RUN}{{{MAX_RUN}}}")
_LONG_RUN: Final = re.compile(rf"(?<!{RUN}){RUN}{{{MAX_RUN}}}")
_RUN_HERE: Final = re.compile(rf"{RUN}*+")
_GAP_HERE: Final = re.compile(rf"(?:(?!{RUN}).)*+", re.DOTALL)
_RUN_CHARACTERS: Final = "".join(c for c in map(chr, range(128)) if re.match(RUN, c))
_SWALLOWED: Final = re.compile(r"[A-Za-z0-9_./+=~-]*+")
_KEY_LINE: Final = re.compile(r"[A-Za-z0-9+/=]++")
_KEY_HEADERS: Final = ("Proc-Type:", "DEK-Info:", "Version:", "Comment:", "Charset:")
_LEAST_KEY_LINE: Final = 16
_PRIVATE_KEY: Final = "private-key"


@final
@attrs.frozen
class OwnSecrets:
    """The secrets of this peer's settings, prepared for the search."""

    values: tuple[str, ...]
    """Each value as it is, JSON-escaped and percent-encoded; longest first."""
    pattern: re.Pattern[str] | None
    longest: int

    @classmethod
    def prepare(cls, secrets: Iterable[str]) -> "OwnSecrets":
        """Take every secret of at least ``LEAST_SECRET`` characters."""
        found: set[str] = set()
        for secret in secrets:
            if len(secret) >= LEAST_SECRET:
                known = secret[:MAX_SECRET]
                found |= {known, json.dumps(known)[1:-1], quote(known, safe="")}
        values = tuple(sorted(found, key=lambda value: (-len(value), value)))
        pattern = re.compile("|".join(map(re.escape, values))) if values else None
        return cls(values, pattern, max(map(len, values), default=0))


@final
class SecretStream:
    """One text in pieces; gives each piece back without its secrets.

    ``feed`` publishes what is decided and holds the rest back; ``held`` tells whether it did.
    """

    def __init__(self, own: OwnSecrets) -> None:
        self._exact = _Exact(own)
        self._shapes = _Shapes()
        self._spans: list[Span] = []
        self._held = ""
        self._offset = 0  # of ``_held`` in the whole text

    @property
    def held(self) -> bool:
        """True if text was fed that has not been published."""
        return self._held != ""

    def feed(self, texts: list[str], *, final: bool = False) -> list[str]:
        """Take consecutive pieces and return what of each may be published.

        A secret that begins in one piece and ends in another is removed from both; its marker stands
        where it began. Text held back from earlier comes at the beginning of the first piece.

        Args:
            texts: the pieces; not empty if text is held.
            final: nothing follows, so nothing is held.
        """
        if len(texts) == 0:
            texts = [""] if final else []
        fresh = "".join(texts)
        self._spans += self._exact.feed(fresh, final=final)
        self._spans += self._shapes.feed(fresh, final=final)
        edits, decided = self._settle(min(self._exact.decided, self._shapes.decided))
        ends = []
        border = self._offset + len(self._held)
        for text in texts:
            border += len(text)
            ends.append(min(border, decided))
        whole = self._held + fresh
        pieces = _cut(whole, self._offset, ends, edits)
        self._held = whole[decided - self._offset :]
        self._offset = decided
        return pieces

    def _settle(self, decided: int) -> tuple[list[Span], int]:
        """Join overlapping spans; return the final ones and how far the text is decided."""
        self._spans.sort(key=lambda span: (span.start, span.end))
        joined: list[Span] = []
        for span in self._spans:
            if joined and span.start < joined[-1].end:
                last = joined[-1]
                joined[-1] = Span(last.start, max(last.end, span.end), last.label or span.label)
            else:
                joined.append(span)
        done = [span for span in joined if span.end <= decided]
        self._spans = [span for span in joined if span.end > decided]
        if self._spans:
            decided = min(decided, self._spans[0].start)
        return done, decided


def _cut(whole: str, offset: int, ends: list[int], edits: list[Span]) -> list[str]:
    """Apply the edits to ``whole``, which begins at ``offset``, and cut the result at ``ends``."""
    pieces: list[str] = []
    position = offset
    waiting = iter(edits)
    edit = next(waiting, None)
    for end in ends:
        out: list[str] = []
        while edit is not None and edit.start < end:
            out.append(whole[position - offset : edit.start - offset])
            if edit.label:
                out.append(f"[redacted-{edit.label}]")
            position = edit.end
            edit = next(waiting, None)
        if position < end:
            out.append(whole[position - offset : end - offset])
            position = end
        pieces.append("".join(out))
    return pieces


@final
class _Exact:
    """Finds our own secrets, character by character; the longest of those that begin together."""

    def __init__(self, own: OwnSecrets) -> None:
        self._own = own
        self._first = frozenset(value[0] for value in own.values)
        self._text = ""
        self.decided = 0

    def feed(self, text: str, *, final: bool) -> list[Span]:
        if self._own.pattern is None:
            self.decided += len(text)
            return []
        self._text += text
        spans: list[Span] = []
        position = 0
        while True:
            held = len(self._text) if final else self._beginning(position)
            match = self._own.pattern.search(self._text, position)
            if match is None or match.start() >= held:
                break
            spans.append(Span(self.decided + match.start(), self.decided + match.end(), "secret"))
            position = match.end()
        held = max(held, position)
        self._text = self._text[held:]
        self.decided += held
        return spans

    def _beginning(self, position: int) -> int:
        """Return the first place from which the rest of the text begins one of the secrets."""
        text = self._text
        for at in range(max(position, len(text) - self._own.longest + 1), len(text)):
            if text[at] in self._first:
                rest = text[at:]
                if any(v.startswith(rest) and len(v) > len(rest) for v in self._own.values):
                    return at
        return len(text)


@final
class _Shapes:
    """Finds what has the form of a credential; see the module's theory of operation."""

    def __init__(self) -> None:
        self._text = ""
        self._base = 0  # offset of ``_text`` in the whole
        self._at = 0  # decided, in ``_text``
        self._floor = 0  # nothing before it is context, in ``_text``
        self._long_run = -1  # where the next long run begins, if that is ahead of ``_at``
        self._swallow = False
        self._in_key = False
        self._key_lines = 0
        self._header = False

    @property
    def decided(self) -> int:
        return self._base + self._at

    def feed(self, text: str, *, final: bool) -> list[Span]:
        self._text += text
        self._long_run = -1
        spans: list[Span] = []
        while self._at < len(self._text) and self._step(spans, final=final):
            pass
        drop = max(self._at - _KEEP, 0)
        if drop:
            self._text = self._text[drop:]
            self._base += drop
            self._at -= drop
            self._floor = max(self._floor - drop, 0)
        return spans

    def _step(self, spans: list[Span], *, final: bool) -> bool:
        """Decide one more stretch; False if that needs more text."""
        if self._swallow:
            return self._swallow_on(spans)
        if self._in_key:
            return self._key_step(spans, final=final)
        end, window = self._stretch(final=final)
        if end == self._at:
            return False
        begins = PRIVATE_KEY_BEGINS.search(self._text, max(self._at - LOOKBACK, self._floor), end)
        if begins is not None and begins.end() > self._at:
            self._judge(spans, begins.end(), begins.end())
            self._in_key, self._key_lines, self._header = True, 0, False
            self._floor = self._at
        elif window:
            self._judge(spans, end, end - RECOGNISED)
        else:
            self._judge(spans, end, end)
        return True

    def _stretch(self, *, final: bool) -> tuple[int, bool]:
        """Return the end of what can be judged now, and whether it cuts a long run."""
        here = _FULL_WINDOW.match(self._text, self._at)
        if here is not None:
            return here.end(), True
        if self._long_run < self._at:
            ahead = _LONG_RUN.search(self._text, self._at)
            self._long_run = len(self._text) if ahead is None else ahead.start()
        if self._long_run < len(self._text):
            return self._long_run, False
        if final:
            return len(self._text), False
        return max(len(self._text.rstrip(_RUN_CHARACTERS)), self._at), False

    def _judge(self, spans: list[Span], end: int, cut: int) -> None:
        """Search up to ``end``; what begins at ``cut`` or later is left for the next search."""
        decided = cut
        for span in find_secrets(self._text, self._at, end, floor=self._floor):
            if span.start >= cut:
                continue
            spans.append(Span(span.start + self._base, span.end + self._base, span.label))
            decided = max(decided, span.end)
            # Only a cut run goes on after the end of the search.
            self._swallow |= cut < end and span.end == end
        self._at = decided

    def _swallow_on(self, spans: list[Span]) -> bool:
        match = _SWALLOWED.match(self._text, self._at)
        end = self._at if match is None else match.end()
        if end > self._at:
            spans.append(Span(self._base + self._at, self._base + end, ""))
            self._at = end
        self._swallow = end == len(self._text)
        return not self._swallow

    # --- private key blocks ---------------------------------------------------------------

    def _key_step(self, spans: list[Span], *, final: bool) -> bool:
        """Drop one line of a private key block, or leave the block."""
        text, at = self._text, self._at
        gap = _GAP_HERE.match(text, at, at + _MAX_GAP + 1)
        begin = at if gap is None else gap.end()
        if begin - at > _MAX_GAP:
            return self._leave_key()
        if begin == len(text):
            return final and self._leave_key()
        found = _RUN_HERE.match(text, begin, begin + MAX_RUN)
        end = begin if found is None else found.end()
        if end == len(text) and not final and end - begin < MAX_RUN:
            return False
        line = text[begin:end].partition("-----")[0]
        if not self._belongs(text[at:begin], line):
            return self._leave_key()
        label = "" if self._key_lines else _PRIVATE_KEY
        self._key_lines += 1
        self._at = begin + len(line)
        spans.append(Span(self._base + at, self._base + self._at, label))
        return True

    def _belongs(self, gap: str, line: str) -> bool:
        """Tell whether a run can be a line, or part of a header line, of a private key block."""
        new_line = any(c in "\n\r\\" for c in gap)
        if self._header and not new_line:
            return line != ""
        self._header = line.lstrip("nr").startswith(_KEY_HEADERS) or line in _KEY_HEADERS
        if self._header:
            return True
        if _KEY_LINE.fullmatch(line) is None:
            return False
        return len(line) >= _LEAST_KEY_LINE or (self._key_lines > 0 and (new_line or gap == ""))

    def _leave_key(self) -> bool:
        self._in_key = False
        self._floor = self._at
        return True
