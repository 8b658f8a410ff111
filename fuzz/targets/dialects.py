"""Invariant: parameters, results and events of any dialect are read, or refused as documented.

The JSON that was read does not change, and what was read can be written in every dialect.
"""

from contextlib import suppress

from a2a_trio.errors import (
    DecodeError,
    InvalidParamsError,
    JSONParseError,
    VersionNotSupportedError,
)
from a2a_trio.wire import dialects
from a2a_trio.wire.codec import dumps, loads
from a2a_trio.wire.methods import METHODS, Dialect
from a2a_trio.wire.model import JsonValue
from fuzz.harness import Target


def check_event(dialect: Dialect, value: JsonValue) -> None:
    """An event that was read is written in every dialect and read back in it."""
    try:
        event = dialects.decode_event(dialect, value)
    except DecodeError:
        return
    for other in Dialect:
        form = loads(dumps(dialects.encode_event(other, event)))
        assert type(dialects.decode_event(other, form)) is type(event)


def check(data: bytes) -> None:
    """Read the value in every role."""
    try:
        value = loads(data)
    except (JSONParseError, InvalidParamsError):
        return
    before = dumps(value)
    for dialect in Dialect:
        for method in METHODS:
            with suppress(InvalidParamsError):
                params = dialects.decode_params(method, dialect, value)
                dumps(dialects.encode_params(method, dialect, params))
            with suppress(DecodeError):
                result = dialects.decode_result(method, dialect, value)
                if not method.streaming:
                    dumps(dialects.encode_result(method, dialect, result))
        check_event(dialect, value)
    try:
        dialects.choose_dialect(
            "message/send", None, value, strict=False, stored=lambda _id: Dialect.V03
        )
    except VersionNotSupportedError as error:
        raise AssertionError("no version was asked for") from error
    assert dumps(value) == before


TARGET = Target(
    name="dialects",
    check=check,
    names=(
        "kind", "message", "task", "statusUpdate", "artifactUpdate", "artifact", "status", "state", "role",
        "parts", "file", "bytes", "uri", "name", "mimeType", "data", "value", "metadata", "data_part_compat",
        "blocking", "pushNotificationConfig", "authentication", "schemes", "configuration", "tasks", "id",
        "taskId", "contextId", "configs", "timestamp", "history", "artifacts", "text", "artifactId",
    ),
    words=(
        b'"kind":"message"', b'"kind":"task"', b'"kind":"status-update"', b'"kind":"file"', b'"file":{',
        b'"bytes":"eA=="', b'"uri":"u"', b'"data_part_compat":true', b'"value":', b'"state":"working"',
        b'"role":"user"', b'"blocking":', b'"pushNotificationConfig":', b'"schemes":[', b'"statusUpdate":',
        b'"artifactUpdate":', b'"task":', b'"message":', b'"tasks":[', b'"id":"t"', b'"taskId":"t"',
        b"null", b"{", b"}", b"[", b"]", b",", b"5", b'""',
    ),
)  # fmt: skip
