"""The codec: exact ProtoJSON out, strict types and tolerant spellings in."""

import math
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import attrs
import pytest
from hypothesis import given, settings, strategies as st

from a2a_trio import wire
from a2a_trio.errors import DecodeError
from a2a_trio.testing.strategies import json_values, requests, texts, values
from a2a_trio.wire.codec import decode, decode_request, dumps, encode, loads
from a2a_trio.wire.model import (
    EMPTY,
    UNSET,
    Artifact,
    JsonValue,
    Message,
    Part,
    Role,
    StreamResponse,
    Task,
    TaskState,
    TaskStatus,
)
from a2a_trio.wire.readers import MAX_ITEMS, MAX_VIOLATIONS
from a2a_trio.wire.requests import (
    GetTaskRequest,
    ListTasksRequest,
    ListTasksResponse,
    SendMessageRequest,
    SendMessageResponse,
)


def wire_kinds() -> Iterator[type]:
    for name in wire.__all__:
        kind = getattr(wire, name)
        if isinstance(kind, type) and attrs.has(kind):
            yield kind


KINDS = list(wire_kinds())
REQUESTS = [kind for kind in KINDS if kind.__name__.endswith("Request")]

MESSAGE: dict[str, JsonValue] = {
    "messageId": "m1",
    "role": "ROLE_USER",
    "parts": [{"text": "hello"}],
}


def paths(value: JsonValue, kind: type, *, request: bool = False) -> dict[str, str]:
    with pytest.raises(DecodeError) as caught:
        (decode_request if request else decode)(value, kind)
    return {violation.field: violation.description for violation in caught.value.violations}


# --- properties -----------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_every_value_reads_back_from_its_own_form(kind: type) -> None:
    """``decode(encode(x)) == x``, also through bytes."""

    @settings(max_examples=50)
    @given(values(kind))
    def check(value: Any) -> None:
        assert decode(encode(value), kind) == value
        assert decode(loads(dumps(encode(value))), kind) == value

    check()


@pytest.mark.parametrize("kind", REQUESTS, ids=lambda kind: kind.__name__)
def test_every_complete_request_is_accepted(kind: type) -> None:
    """What the strategy calls complete passes the strict reader unchanged."""

    @settings(max_examples=50)
    @given(requests(kind))
    def check(value: Any) -> None:
        assert decode_request(encode(value), kind) == value

    check()


def members_of(kind: type) -> list[str]:
    names = [field.name for field in attrs.fields(kind)]
    return [*names, *(first + second.title() for n in names for first, _, second in [n.partition("_")])]  # fmt: skip


def likely_json(kind: type) -> st.SearchStrategy[JsonValue]:
    """JSON objects that have the names of the class's members and anything in them."""
    anything = json_values()
    names = st.sampled_from([*members_of(Message), *members_of(kind)]) | texts()
    inner = st.dictionaries(names, anything, max_size=4)
    likely = anything | inner | st.lists(inner | anything, max_size=3)
    return anything | st.dictionaries(names, likely, max_size=6)


def value_or_violations(read: Any, value: JsonValue, kind: type) -> Any:
    try:
        return read(value, kind)
    except DecodeError as error:
        return error.violations


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_any_json_reads_or_raises_the_one_error(kind: type) -> None:
    """Whatever is read can be written again; whatever is refused names its fields."""

    @settings(max_examples=30)  # there are forty classes
    @given(likely_json(kind))
    def check(value: JsonValue) -> None:
        for read in (decode, decode_request):
            found = value_or_violations(read, value, kind)
            assert found
            if not isinstance(found, tuple):
                assert decode(loads(dumps(encode(found))), kind) == found

    check()


# --- exact output ---------------------------------------------------------------------------


def test_defaults_are_left_out_and_required_members_stay() -> None:
    """Empty optionals vanish; REQUIRED members are written also when they are empty."""
    assert encode(Message(message_id="", role=Role.UNSPECIFIED, parts=())) == {
        "messageId": "",
        "role": "ROLE_UNSPECIFIED",
        "parts": [],
    }
    page = ListTasksResponse(tasks=(), next_page_token="", page_size=0, total_size=0)
    assert encode(page) == {"tasks": [], "nextPageToken": "", "pageSize": 0, "totalSize": 0}


def test_optionals_that_were_set_are_kept() -> None:
    """``0``, ``false`` and ``""`` are written where the protocol tells them from absent."""
    request = ListTasksRequest(history_length=0, include_artifacts=False)
    assert encode(request) == {"historyLength": 0, "includeArtifacts": False}
    assert encode(wire.AgentCapabilities(streaming=False)) == {"streaming": False}


@pytest.mark.parametrize(
    ("part", "form"),
    [
        (Part(text=""), {"text": ""}),
        (Part(raw=b""), {"raw": ""}),
        (Part(raw=b"\xff\xef\xfe"), {"raw": "/+/+"}),
        (Part(data=None), {"data": None}),
        (Part(data=0, media_type="application/json"), {"data": 0, "mediaType": "application/json"}),
        (Part(url="u", filename="f", metadata={"k": [1]}), {"url": "u", "filename": "f", "metadata": {"k": [1]}}),
    ],
)  # fmt: skip
def test_parts_are_written_by_presence(part: Part, form: JsonValue) -> None:
    """An empty text and a null datum are content."""
    assert encode(part) == form


@pytest.mark.parametrize(
    ("instant", "form"),
    [
        (datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC), "2026-01-02T03:04:05.000Z"),
        (datetime(2026, 1, 2, 3, 4, 5, 678999, tzinfo=UTC), "2026-01-02T03:04:05.678Z"),
        (datetime(2026, 1, 2, tzinfo=timezone(timedelta(hours=2))), "2026-01-01T22:00:00.000Z"),
        (datetime(1, 1, 1, tzinfo=UTC), "0001-01-01T00:00:00.000Z"),
    ],
)
def test_timestamps_are_written_in_utc_with_milliseconds(instant: datetime, form: str) -> None:
    """``Z`` and exactly three digits."""
    status = TaskStatus(state=TaskState.WORKING, timestamp=instant)
    assert encode(status) == {"state": "TASK_STATE_WORKING", "timestamp": form}


def test_a_timestamp_without_a_zone_is_refused() -> None:
    """Guessing the machine's zone would write another instant on another machine."""
    with pytest.raises(ValueError, match="time zone"):
        TaskStatus(state=TaskState.WORKING, timestamp=datetime(2026, 1, 2))  # noqa: DTZ001 -- the mistake under test


# --- tolerant input -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "microsecond"),
    [
        ("2026-01-02T03:04:05Z", 0),
        ("2026-01-02T03:04:05.1Z", 100_000),
        ("2026-01-02T03:04:05.123456789Z", 123_000),
        ("2026-01-02T05:04:05.250+02:00", 250_000),
        ("2026-01-01T22:04:05.25-05:00", 250_000),
        ("2026-01-02t03:04:05z", 0),
    ],
)
def test_timestamps_with_any_fraction_and_offset_are_read(text: str, microsecond: int) -> None:
    """0 to 9 digits, and offsets that v1.0 writers should not use but ProtoJSON reads."""
    status = decode({"state": "TASK_STATE_WORKING", "timestamp": text}, TaskStatus)
    assert status.timestamp == datetime(2026, 1, 2, 3, 4, 5, microsecond, tzinfo=UTC)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "2026-01-02",
        "2026-01-02T03:04:05",
        "2026-01-02 03:04:05Z",
        "2026-02-30T00:00:00Z",
        "2026-01-02T03:04:05.1234567890Z",
        "2026-01-02T03:04:05.Z",
        "0001-01-01T00:00:00+05:00",
        "9999-12-31T23:59:59-05:00",
        "2026-01-02T03:04:05+25:00",
        "\uff12\uff10\uff12\uff16-01-02T03:04:05Z",
        "2026-01-02T03:04:05Z\n",
    ],
)
def test_other_timestamps_are_violations(text: str) -> None:
    """Also the ones that the calendar or the clock does not have."""
    found = paths({"state": "TASK_STATE_WORKING", "timestamp": text}, TaskStatus)
    assert list(found) == ["timestamp"]


@pytest.mark.parametrize("text", ["/+8=", "/+8", "_-8=", "_-8"])
def test_base64_of_either_alphabet_padded_or_not_is_read(text: str) -> None:
    """As ProtoJSON reads it."""
    assert decode({"raw": text}, Part) == Part(raw=b"\xff\xef")


@pytest.mark.parametrize(
    "text", ["A", "!!!!", "AA=A", "AAAA=", "Ag==\n", "\u00e9\u00e9\u00e9\u00e9"]
)
def test_what_is_not_base64_is_a_violation(text: str) -> None:
    """No byte is guessed."""
    assert paths({"raw": text}, Part) == {"raw": "must be base64"}


def test_names_in_snake_case_are_read_and_the_json_name_wins() -> None:
    """Both spellings are ProtoJSON; the canonical one decides."""
    assert decode({**MESSAGE, "context_id": "c"}, Message).context_id == "c"
    for both in ({"contextId": "c", "context_id": "x"}, {"context_id": "x", "contextId": "c"}):
        assert decode({**MESSAGE, **both}, Message).context_id == "c"


def test_unknown_members_nulls_and_materialised_defaults_are_ignored() -> None:
    """What newer and proto-based peers write reads as absent."""
    value: dict[str, JsonValue] = {
        **MESSAGE,
        "kind": "message",
        "taskId": None,
        "contextId": "",
        "extensions": [],
        "referenceTaskIds": None,
        "metadata": None,
        "newMember": {"deep": [1]},
    }
    part: JsonValue = {"text": "hello", "filename": "", "mediaType": "", "metadata": {}}
    value["parts"] = [part]
    plain = Message(message_id="m1", role=Role.USER, parts=(Part(text="hello"),))
    assert decode(value, Message) == plain
    assert decode(value, Message).metadata == EMPTY


def test_null_data_is_a_value() -> None:
    """The one member in which null is not absence."""
    assert decode({"data": None}, Part).data is None
    assert decode({"text": "x", "url": None}, Part).data is UNSET


@pytest.mark.parametrize("number", [2, 2.0])
def test_enums_are_read_by_number(number: JsonValue) -> None:
    """Integer enums are ProtoJSON."""
    assert decode({"state": number}, TaskStatus).state is TaskState.WORKING


def test_integral_floats_are_integers_and_others_are_not() -> None:
    """``5.0`` is 5; 5.5, booleans, strings and what exceeds 32 bits are violations."""
    assert decode({"id": "t", "historyLength": 5.0}, GetTaskRequest).history_length == 5
    for bad in (5.5, True, "5", 2**31, -(2**31) - 1, 1e300, math.inf, math.nan):
        assert list(paths({"id": "t", "historyLength": bad}, GetTaskRequest)) == ["historyLength"]


def test_answers_may_leave_empty_required_members_out() -> None:
    """ProtoJSON writers omit what is empty; only objects must be there."""
    event = decode({"statusUpdate": {"status": {}}}, StreamResponse).status_update
    assert event is not None
    assert (event.task_id, event.status.state) == ("", TaskState.UNSPECIFIED)
    assert paths({"id": "t"}, Task) == {"status": "is required"}


def test_answers_of_newer_peers_lose_only_what_is_new() -> None:
    """An unknown state, content kind or security scheme does not spoil the rest."""
    task = decode(
        {
            "id": "t",
            "status": {"state": "TASK_STATE_PAUSED"},
            "artifacts": [{"artifactId": "a", "parts": [{"video": "v"}, {"text": "x"}]}],
        },
        Task,
    )
    assert task.state is TaskState.UNSPECIFIED
    assert task.artifacts[0].parts == (Part(text=""), Part(text="x"))
    card = decode(
        {"securitySchemes": {"new": {"quantum": {}}, "mtls": {"mtlsSecurityScheme": {}}}},
        wire.AgentCard,
    )
    assert list(card.security_schemes) == ["mtls"]


# --- violations -----------------------------------------------------------------------------


def test_every_bad_field_is_named() -> None:
    """One answer tells the caller everything that is wrong, with JSON paths."""
    found = paths(
        {
            "message": {
                "message_id": 5,
                "role": "user",
                "parts": [
                    {"text": 3, "metadata": []},
                    {"text": "a", "url": "b"},
                    {},
                    None,
                    {"raw": "!"},
                ],
                "extensions": ["u", 1],
            },
            "configuration": {"historyLength": -1, "returnImmediately": 1},
            "metadata": "x",
        },
        SendMessageRequest,
        request=True,
    )
    assert found == {
        "message.messageId": "must be a string, not a number",
        "message.role": "must be one of ROLE_USER, ROLE_AGENT",
        "message.parts[0].text": "must be a string, not a number",
        "message.parts[0].metadata": "must be an object, not an array",
        "message.parts[1]": "has text and url; exactly one is allowed",
        "message.parts[2]": "needs one of text, raw, url, data",
        "message.parts[3]": "must be an object, not null",
        "message.parts[4].raw": "must be base64",
        "message.extensions[1]": "must be a string, not a number",
        "configuration.historyLength": "must be from 0 to 2147483647",
        "configuration.returnImmediately": "must be a boolean, not a number",
        "metadata": "must be an object, not a string",
    }


@pytest.mark.parametrize("value", [None, True, 5, "x", [], [{}]])
def test_what_is_no_object_is_one_violation_without_a_path(value: JsonValue) -> None:
    """The root has no name."""
    assert list(paths(value, SendMessageRequest)) == [""]


@pytest.mark.parametrize(
    ("member", "value"),
    [("messageId", ""), ("role", "ROLE_UNSPECIFIED"), ("role", 0), ("parts", [])],
)
def test_requests_must_set_what_is_required(member: str, value: JsonValue) -> None:
    """Absent, null and empty are the same violation (A2A section 5.7)."""
    wanted = {f"message.{member}": "is required"}
    without = {key: kept for key, kept in MESSAGE.items() if key != member}
    for message in ({**MESSAGE, member: value}, {**MESSAGE, member: None}, without):
        assert paths({"message": message}, SendMessageRequest, request=True) == wanted


def test_requests_refuse_sizes_out_of_range() -> None:
    """1 to 100 tasks per page (A2A section 3.1.4)."""
    for size in (0, 101, -1):
        assert list(paths({"pageSize": size}, ListTasksRequest, request=True)) == ["pageSize"]
    assert decode_request({"pageSize": 100}, ListTasksRequest).page_size == 100


def test_a_oneof_has_exactly_one_member() -> None:
    """Two are a violation even in answers; none leaves nothing to read."""
    task: JsonValue = {"id": "t", "status": {"state": 2}}
    message: JsonValue = dict(MESSAGE)
    both = paths({"task": task, "message": message}, SendMessageResponse)
    assert both == {"": "has task and message; exactly one is allowed"}
    assert list(paths({}, SendMessageResponse)) == [""]


def test_map_keys_are_shown_safely_in_paths() -> None:
    """An odd or endless key does not break the path or the answer's size."""
    found = paths({"securitySchemes": {"a.b": 1, "k" * 1000: 1, "plain": 1}}, wire.AgentCard)
    assert 'securitySchemes["a.b"]' in found
    assert "securitySchemes.plain" in found
    assert max(len(path) for path in found) < 100


def test_the_number_of_named_fields_is_bounded() -> None:
    """A body full of errors does not make an answer many times its size."""
    found = paths({**MESSAGE, "parts": [1] * 1_000_000}, Message)
    assert len(found) == MAX_VIOLATIONS + 1
    assert found[""] == "more fields may be wrong"
    schemes: dict[str, JsonValue] = {f"s{n}": n for n in range(10_000)}
    assert len(paths({"securitySchemes": schemes}, wire.AgentCard)) == MAX_VIOLATIONS + 1


def test_the_items_of_a_request_are_bounded_and_those_of_an_answer_are_not() -> None:
    """Reading a request must not hold up the other callers; an answer was asked for."""
    parts: list[JsonValue] = [{"text": "x"}]
    message: dict[str, JsonValue] = {**MESSAGE, "parts": parts * (MAX_ITEMS + 1)}
    found = paths({"message": message}, SendMessageRequest, request=True)
    assert found == {"message.parts": f"has more than {MAX_ITEMS} items"}
    assert len(decode(message, Message).parts) == MAX_ITEMS + 1


def test_values_do_not_change_under_their_reader() -> None:
    """Sequences are tuples and the objects are frozen."""
    artifact = decode({"artifactId": "a", "parts": [{"text": "x"}]}, Artifact)
    with pytest.raises(attrs.exceptions.FrozenInstanceError):
        artifact.name = "y"  # type: ignore[misc] # the mistake under test
    assert isinstance(artifact.parts, tuple)
