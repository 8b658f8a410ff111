"""Journal lines: what is written, how it is cut, what is read back."""

import json
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given, strategies as st

from a2a_trio.journal.lines import (
    MAX_FIELD,
    MAX_TEXT,
    ConversationLine,
    audit_line,
    conversation_line,
    parse_conversation,
)
from a2a_trio.rules.audit import AuditEntry

AT = datetime(2030, 1, 2, 3, 4, 5, 678_901, tzinfo=UTC)
any_text = st.text(st.characters(), max_size=40)


def test_an_audit_line_names_every_member_that_says_something() -> None:
    """Names of pi-a2a where it has one; empty members are left out."""
    entry = AuditEntry(
        at=AT,
        direction="inbound",
        phase="outcome",
        identity="alice",
        provenance="token",
        address="127.0.0.1",
        method="SendMessage",
        task_id="t1",
        context_id="c1",
        state="TASK_STATE_COMPLETED",
        duration_ms=12.345678,
        preview="hello",
    )
    assert json.loads(audit_line(entry)) == {
        "ts": "2030-01-02T03:04:05.678Z",
        "direction": "inbound",
        "phase": "outcome",
        "identity": "alice",
        "provenance": "token",
        "address": "127.0.0.1",
        "method": "SendMessage",
        "taskId": "t1",
        "contextId": "c1",
        "state": "TASK_STATE_COMPLETED",
        "durationMs": 12.346,
        "preview": "hello",
    }


def test_times_of_other_zones_are_written_in_utc() -> None:
    """One zone in the file, whoever made the entry."""
    at = AT.astimezone(timezone(timedelta(hours=5)))
    entry = AuditEntry(at=at, direction="inbound", phase="request", identity="a")
    assert json.loads(audit_line(entry))["ts"] == "2030-01-02T03:04:05.678Z"


def test_drops_stand_in_the_line() -> None:
    """The first line after a loss says how much was lost."""
    entry = AuditEntry(at=AT, direction="outbound", phase="request", identity="bob")
    assert json.loads(audit_line(entry, dropped=7))["dropped"] == 7
    assert "dropped" not in json.loads(audit_line(entry))


@given(any_text, any_text)
def test_a_line_is_one_line_of_printable_ascii(identity: str, preview: str) -> None:
    """No text of a peer can end a line early, hide in it, or make it unwritable."""
    line = audit_line(
        AuditEntry(at=AT, direction="inbound", phase="request", identity=identity, preview=preview)
    )
    assert line.endswith(b"\n")
    assert all(0x20 <= byte < 0x7F for byte in line[:-1])
    assert json.loads(line).get("identity", "") == identity


def test_long_members_are_cut() -> None:
    """A peer that sends a long id cannot grow the log by it."""
    entry = AuditEntry(
        at=AT, direction="inbound", phase="request", identity="a", context_id="x" * 100_000
    )
    assert json.loads(audit_line(entry))["contextId"] == "x" * MAX_FIELD + "…"
    line = ConversationLine(at=AT, context_id="c", role="user", text="y" * 100_000)
    assert json.loads(conversation_line(line))["text"] == "y" * MAX_TEXT + "…"


@given(any_text, any_text, any_text)
def test_a_message_reads_back_as_it_was(text: str, task_id: str, peer: str) -> None:
    """Any text survives, also an empty one."""
    line = ConversationLine(
        at=datetime(2030, 1, 1, tzinfo=UTC),
        context_id="c",
        role="agent",
        text=text,
        task_id=task_id,
        peer=peer,
    )
    assert list(parse_conversation(conversation_line(line), context_id="c")) == [line]


@given(st.lists(st.binary(max_size=30)))
def test_lines_that_are_no_messages_are_skipped(noise: list[bytes]) -> None:
    """Torn and foreign lines never hide the good ones between them."""
    good = conversation_line(ConversationLine(at=AT, context_id="c", role="user", text="keep"))
    data = b"\n".join([*noise, good.rstrip(), *noise])
    assert [m.text for m in parse_conversation(data, context_id="c")] == ["keep"]


@pytest.mark.parametrize(
    "stamp", ['"2030-01-02T03:04:05.678Z"', '"2030-01-02T03:04:05.678"', "1893553445678"]
)
def test_time_stamps_of_other_writers_are_understood(stamp: str) -> None:
    """ISO 8601 with or without a zone, or milliseconds."""
    data = b'{"ts":%s,"role":"user","text":"hi"}' % stamp.encode()
    (message,) = parse_conversation(data, context_id="c")
    assert message.at == AT.replace(microsecond=678_000)


@pytest.mark.parametrize("stamp", ["null", '"soon"', "1e400", "[]", '"0001-01-01T00:00:00+23:59"'])
def test_a_bad_time_stamp_does_not_hide_the_message(stamp: str) -> None:
    """The text is what a reader came for."""
    data = b'{"ts":%s,"role":"user","text":"hi"}' % stamp.encode()
    (message,) = parse_conversation(data, context_id="c")
    assert message.text == "hi"
    assert list(parse_conversation(conversation_line(message), context_id="c")) == [message]


def test_nesting_that_exhausts_the_parser_is_a_bad_line() -> None:
    """A hostile line is skipped like any other bad one."""
    data = b"[" * 200_000 + b'\n{"text":"hi"}'
    assert [m.text for m in parse_conversation(data, context_id="c")] == ["hi"]
