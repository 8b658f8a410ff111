"""Previews in the audit log never show half a secret."""

from datetime import UTC, datetime

import attrs
import pytest
from hypothesis import given, strategies as st

from a2a_trio.rules.audit import PREVIEW_CHARS, AuditEntry, preview

SECRET = "sk-" + "s" * 40


def redact(text: str) -> str:
    return text.replace(SECRET, "[redacted]")


def test_a_short_text_is_kept() -> None:
    assert preview("hello", redact) == "hello"
    assert preview("", redact) == ""


def test_a_long_text_is_cut_with_an_ellipsis() -> None:
    cut = preview("x" * 1_000, redact)
    assert len(cut) == PREVIEW_CHARS
    assert cut.endswith("x…")
    assert preview("x" * PREVIEW_CHARS, redact) == "x" * PREVIEW_CHARS
    assert preview("xyz", redact, limit=1) == "…"
    assert preview("xyz", redact, limit=0) == ""


def test_a_secret_across_the_cut_is_redacted_first() -> None:
    cut = preview("x" * 290 + SECRET, redact)
    assert "sk-" not in cut


def test_a_huge_text_is_not_redacted_as_a_whole() -> None:
    seen: list[int] = []

    def count(text: str) -> str:
        seen.append(len(text))
        return text

    preview("x" * 5_000_000, count)
    assert sum(seen) < 100_000


def test_a_huge_text_of_nothing_but_secrets_is() -> None:
    """Where redaction leaves almost nothing, the end of the window could show a torn secret."""
    text = SECRET * 3_000
    assert len(text) > 100_000
    assert preview("x" + text, lambda t: t.replace(SECRET, "")) == "x"


@given(st.integers(0, 100), st.integers(1, 400), st.integers(0, 20) | st.integers(1_500, 1_600))
def test_no_part_of_a_secret_is_shown(before: int, limit: int, secrets: int) -> None:
    text = "x" * before + SECRET * secrets
    cut = preview(text, lambda t: t.replace(SECRET, ""), limit)
    assert "s" not in cut
    assert len(cut) <= limit


def test_an_entry_is_a_frozen_value() -> None:
    entry = AuditEntry(
        at=datetime(2026, 1, 1, tzinfo=UTC), direction="inbound", phase="request", identity="alice"
    )
    assert attrs.evolve(entry, state="completed").state == "completed"
    with pytest.raises(attrs.exceptions.FrozenInstanceError):
        entry.state = "x"  # type: ignore[misc] # the point of the test
