"""Invariant: what every class reads from JSON survives being written and read again.

Everything else is refused with a documented error.
"""

from typing import Any, Final

from a2a_trio import wire
from a2a_trio.errors import DecodeError, InvalidParamsError, JSONParseError
from a2a_trio.wire.codec import decode, decode_request, dumps, encode, loads
from fuzz.harness import Target

KINDS: Final[tuple[type[Any], ...]] = (
    wire.SendMessageRequest,
    wire.ListTasksRequest,
    wire.TaskPushNotificationConfig,
    wire.StreamResponse,
    wire.ListTasksResponse,
    wire.Task,
)


def check(data: bytes) -> None:
    """Read the bytes as every kind of object."""
    try:
        value = loads(data)
    except (JSONParseError, InvalidParamsError):
        return
    assert loads(dumps(value)) == value
    for kind in KINDS:
        for read in (decode, decode_request):
            try:
                found = read(value, kind)
            except DecodeError:
                continue
            assert decode(loads(dumps(encode(found))), kind) == found


TARGET = Target(
    name="codec",
    check=check,
    names=(
        "message", "messageId", "message_id", "role", "parts", "text", "raw", "url", "data", "metadata",
        "mediaType", "status", "state", "timestamp", "artifacts", "artifactId", "history", "historyLength",
        "configuration", "returnImmediately", "acceptedOutputModes", "tasks", "task", "statusUpdate",
        "artifactUpdate", "append", "pageSize", "totalSize", "authentication", "extensions", "id",
    ),
    words=(
        b'"messageId"', b'"message_id"', b'"parts"', b'"raw"', b'"data":null', b'"url"', b'"role":1',
        b'"ROLE_USER"', b'"status"', b'"TASK_STATE_WORKING"', b'"timestamp":"2026-01-01T00:00:00.1+01:00"',
        b"{", b"}", b"[", b"]", b",", b":", b"null", b"true", b"5.0", b"1e30", b"18446744073709551616",
        b'"\\ud800"', b'"_-8"', b'{"a":' * 70, b"[" * 70,
    ),
)  # fmt: skip
