"""Page tokens: round trips, and nothing else is accepted."""

from datetime import UTC, datetime

import pytest
from hypothesis import given, strategies as st

from a2a_trio.rules.paging import Cursor, cursor_of, decode_token, encode_token
from a2a_trio.wire.model import Task, TaskState, TaskStatus

cursors = st.builds(Cursor, st.integers(0, 10**15), st.text(max_size=60))


@given(cursors)
def test_tokens_round_trip(cursor: Cursor) -> None:
    token = encode_token(cursor)
    if len(token) <= 512:
        assert decode_token(token) == cursor


def test_the_end_and_the_beginning_are_empty() -> None:
    assert encode_token(None) == ""
    assert decode_token("") is None


@given(st.text(max_size=700))
def test_any_text_is_a_token_or_is_refused(text: str) -> None:
    try:
        cursor = decode_token(text)
    except ValueError as exc:
        assert "page token" in str(exc)  # noqa: PT017 - either outcome is fine, but no other error
    else:
        assert encode_token(cursor) == text


@pytest.mark.parametrize("text", ["MTIz", "OmE", "x", "====", "é", "LTE6YQ=="])
def test_examples_of_bad_tokens(text: str) -> None:
    with pytest.raises(ValueError, match="page token"):
        decode_token(text)


def test_a_task_without_a_timestamp_is_oldest() -> None:
    def task(stamp: datetime | None) -> Task:
        return Task(id="t", status=TaskStatus(state=TaskState.WORKING, timestamp=stamp))

    early, late = datetime(2026, 1, 1, tzinfo=UTC), datetime(2026, 1, 2, tzinfo=UTC)
    assert cursor_of(task(None)) < cursor_of(task(early)) < cursor_of(task(late))
    assert cursor_of(task(datetime(1970, 1, 1, 0, 0, 1, 5000, tzinfo=UTC))) == Cursor(1005, "t")
