"""Invariant: any bytes are a conversation file, and a message read from one is written unchanged.

Reading skips what is no message and never fails. A message that was read comes back the same when
it is written and read again, in one line of printable ASCII. Any text as a context id names a file
that is in its folder and its own.
"""

from datetime import timedelta
from typing import Final

from a2a_trio.journal.conversations import file_name
from a2a_trio.journal.lines import MAX_FIELD, MAX_TEXT, conversation_line, parse_conversation
from fuzz.harness import Target

KEPT: Final = timedelta(milliseconds=1)
"""Time stamps are kept to the millisecond."""
LONGEST_NAME: Final = 200


def check(data: bytes) -> None:
    """Read the bytes as a file, write every message that is in it, and name a file after them."""
    for message in parse_conversation(data, context_id="c"):
        line = conversation_line(message)
        assert line.endswith(b"\n")
        assert line.isascii()
        assert line[:-1].decode().isprintable()
        (again,) = parse_conversation(line, context_id="c")
        if len(message.text) <= MAX_TEXT:
            assert again.text == message.text
        if max(map(len, (message.role, message.task_id, message.peer))) <= MAX_FIELD:
            assert (again.role, again.task_id) == (message.role, message.task_id)
            assert again.peer == message.peer
        assert abs(again.at - message.at) < KEPT
    text = data.decode("utf-8", "surrogateescape")
    name = file_name(text)
    assert "/" not in name
    assert "\0" not in name
    assert not name.startswith(".")
    assert name.endswith(".jsonl")
    assert len(name) < LONGEST_NAME
    assert file_name(text + "x") != name


TARGET = Target(
    name="journal",
    check=check,
    words=(
        b'{"ts":"2030-01-02T03:04:05.678Z","role":"user","text":"hi","taskId":"t","peer":"p"}',
        b'{"text":"', b'"ts":', b'"role":"agent"', b'"contextId":"c"', b"\n", b"\\ud800", b"\\u0000",
        b"1893553445678", b"-1e300", b'"0001-01-01T00:00:00+23:59"', b'"9999-12-31T23:59:59-23:59"',
        b"NaN", b"Infinity", b"[[[[", b"../", b"ctx-",
    ),
    names=("ts", "role", "text", "taskId", "peer", "contextId"),
)  # fmt: skip
