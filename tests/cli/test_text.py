"""Text from peers cannot steer the terminal."""

import json
import unicodedata

from hypothesis import given, strategies as st

from a2a_trio.cli.text import label, spelled_out, visible
from a2a_trio.wire.codec import dumps


@given(st.text())
def test_visible_text_has_no_control_characters(text: str) -> None:
    """Whatever a peer sends, only line feeds and tabs are left of the control characters."""
    shown = visible(text)

    assert not [ch for ch in shown if unicodedata.category(ch) in ("Cc", "Cs") and ch not in "\n\t"]
    shown.encode("utf-8")


@given(st.text(alphabet=st.characters(categories=["L", "N", "P", "Zs"])))
def test_harmless_text_is_unchanged(text: str) -> None:
    """Letters, digits and punctuation of every script stay as they are."""
    assert visible(text) == text


def test_escape_sequences_are_spelled_out() -> None:
    """A sequence that would clear the screen is shown instead of obeyed."""
    assert visible("a\x1b[2Jb\r\nc\td\u202e") == "a\\x1b[2Jb\nc\td\\u202e"


@given(st.text())
def test_json_for_machines_steers_no_terminal_either(text: str) -> None:
    """Every value stays what it is, and what a terminal would obey is spelled out."""
    line = dumps({text: [text]}).decode()
    shown = spelled_out(line)

    assert json.loads(shown) == json.loads(line)
    assert not [ch for ch in shown if unicodedata.category(ch) == "Cc"]
    assert not [ch for ch in shown if unicodedata.bidirectional(ch)[:3] in _BIDI]


_BIDI = {"LRE", "LRO", "RLE", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI"}


def test_json_escapes_what_json_itself_would_not() -> None:
    """DEL, the eight-bit control codes, and everything that reorders text."""
    line = dumps("a\x1b\x7f\x85\x9b\u202e\u2066\u200fü\U0001f468\u200d\U0001f469").decode()

    assert spelled_out(line) == (
        '"a\\u001b\\u007f\\u0085\\u009b\\u202e\\u2066\\u200fü\U0001f468\u200d\U0001f469"'
    )


def test_joiners_stay() -> None:
    """Emoji made of several code points are not torn apart."""
    family = "\U0001f468\u200d\U0001f469\u200d\U0001f467"

    assert visible(family) == family


@given(st.text(), st.integers(min_value=1, max_value=50))
def test_label_is_one_short_line(text: str, limit: int) -> None:
    """A label never breaks a table."""
    shown = label(text, limit)

    assert len(shown) <= limit
    assert "\n" not in shown
    assert "\t" not in shown


def test_label_marks_what_it_cut() -> None:
    """A cut is visible."""
    assert label("abcdef", 4) == "abc…"
    assert label("abcd", 4) == "abcd"
