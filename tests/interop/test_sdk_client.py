"""The official SDK's client calls our server, in v1.0 and in v0.3; here is what it saw."""

from collections.abc import Mapping
from typing import TypeAlias

import pytest

from a2a_trio.wire.model import JsonValue

Seen: TypeAlias = Mapping[str, JsonValue]


@pytest.fixture(params=["1.0", "0.3"])
def seen(request: pytest.FixtureRequest) -> Seen:
    """The report of a client of either version."""
    name = "seen_by_sdk" if request.param == "1.0" else "seen_by_sdk_v03"
    report: Seen = request.getfixturevalue(name)
    return report


def dig(value: object, *path: str | int) -> JsonValue:
    """Walk into JSON; a step that is not there fails the test and shows what is."""
    found: JsonValue = value  # type: ignore[assignment]  # it came out of a JSON text
    for key in path:
        if isinstance(key, str):
            assert isinstance(found, dict), f"no {key!r} (of {path}) in {found!r}"
            assert key in found, f"no {key!r} (of {path}) in {found!r}"
            found = found[key]
        else:
            assert isinstance(found, list), f"no list (of {path}) in {found!r}"
            assert found, f"an empty list (of {path})"
            found = found[key]
    return found


def items(value: object, *path: str | int) -> list[JsonValue]:
    """Like ``dig``, for a list."""
    found = dig(value, *path)
    assert isinstance(found, list), found
    return found


def state(task: object) -> JsonValue:
    return dig(task, "status", "state")


def kinds(events: list[JsonValue]) -> list[str]:
    """The member of each StreamResponse."""
    return [next(iter(e)) for e in events if isinstance(e, dict)]


def final_state(events: list[JsonValue]) -> JsonValue:
    """The state in the last event."""
    return state(dig(events, -1, "statusUpdate"))


def artifact_text(events: list[JsonValue], artifact_id: str) -> str:
    """Put the chunks of one artifact together."""
    updates = [e["artifactUpdate"] for e in events if isinstance(e, dict) and "artifactUpdate" in e]
    chunks = [u for u in updates if dig(u, "artifact", "artifactId") == artifact_id]
    return "".join(str(dig(p, "text")) for u in chunks for p in items(u, "artifact", "parts"))


def texts(task: object) -> list[str]:
    """The text of each artifact."""
    return [
        "".join(str(dig(part, "text")) for part in items(artifact, "parts"))
        for artifact in items(task, "artifacts")
    ]


def test_discovers_the_card(seen_by_sdk: Seen) -> None:
    """The card has what the SDK needs to choose its transport, and both versions."""
    card = dig(seen_by_sdk, "card")
    assert dig(card, "capabilities", "streaming") is True
    interfaces = items(card, "supportedInterfaces")
    assert [(dig(i, "protocolBinding"), dig(i, "protocolVersion")) for i in interfaces] == [
        ("JSONRPC", "1.0"),
        ("JSONRPC", "0.3"),
    ]
    assert {str(dig(i, "url")).startswith("http://127.0.0.1:") for i in interfaces} == {True}


def test_sends(seen: Seen) -> None:
    """A blocking send returns the completed task with its artifact."""
    task = dig(seen, "send hello", "task")
    assert state(task) == "TASK_STATE_COMPLETED"
    assert texts(task) == ["echo: hello"]


def test_gets_the_same_task(seen: Seen) -> None:
    """GetTask returns what the send returned."""
    assert dig(seen, "get", "got") == dig(seen, "get", "sent")


def test_history_length_zero_omits_the_history(seen_by_sdk: Seen) -> None:
    """A history length of 0 is not the same as none (v0.3 cannot say 0)."""
    assert items(seen_by_sdk, "get", "got", "history")
    short = dig(seen_by_sdk, "get", "short")
    assert isinstance(short, dict)
    assert "history" not in short


def test_every_kind_of_part_survives(seen_by_sdk: Seen) -> None:
    """The history gives back the parts exactly as they were sent."""
    assert dig(seen_by_sdk, "parts", "history", 0, "parts") == [
        {"text": "hello"},
        {"raw": "AP8=", "filename": "blob.bin", "mediaType": "application/octet-stream"},
        {"url": "https://example.com/file.txt", "mediaType": "text/plain"},
        {"data": {"n": 1.0, "deep": {"list": [True, None]}}},
    ]


def test_streams(seen: Seen) -> None:
    """A stream is the task, then updates, and ends with the only terminal status."""
    events = items(seen, "stream hello")
    assert kinds(events)[0] == "task"
    assert artifact_text(events, "reply") == "echo: hello"
    assert final_state(events) == "TASK_STATE_COMPLETED"
    statuses = [
        state(e["statusUpdate"]) for e in events if isinstance(e, dict) and "statusUpdate" in e
    ]
    assert statuses.count("TASK_STATE_COMPLETED") == 1


def test_streams_chunks_and_stores_them_joined(seen: Seen) -> None:
    """Chunks arrive one by one on a stream; a blocking send returns whole artifacts."""
    events = items(seen, "stream chunks")
    assert artifact_text(events, "report") == "one two three"
    assert artifact_text(events, "extra") == "second"
    updates = [dig(e, "artifactUpdate") for e in events if "artifactUpdate" in kinds([e])]
    marks = [
        (bool(u.get("append")), bool(u.get("lastChunk"))) for u in updates if isinstance(u, dict)
    ]
    assert marks == [(False, False), (True, False), (True, True), (False, True)]
    assert texts(dig(seen, "send chunks", "task")) == ["one two three", "second"]


@pytest.mark.parametrize(
    ("text", "end", "said"),
    [
        ("fail", "TASK_STATE_FAILED", "it broke"),
        ("reject", "TASK_STATE_REJECTED", "not my job"),
        ("raise", "TASK_STATE_FAILED", "the agent broke"),
    ],
)
def test_sees_how_a_task_ends(seen: Seen, text: str, end: str, said: str) -> None:
    """FAILED and REJECTED are results, with the agent's words, streamed or not."""
    task = dig(seen, f"send {text}", "task")
    assert state(task) == end
    assert said in str(dig(task, "status", "message", "parts", 0, "text"))
    events = items(seen, f"stream {text}")
    assert final_state(events) == end
    assert said in str(dig(events, -1, "statusUpdate", "status", "message", "parts", 0, "text"))


def test_sees_a_direct_message(seen: Seen) -> None:
    """A Message answers a blocking send; a stream has shown a task, which ends with its words."""
    assert dig(seen, "send message", "message", "parts", 0, "text") == "echo: message"
    events = items(seen, "stream message")
    assert kinds(events)[0] == "task"
    assert final_state(events) == "TASK_STATE_COMPLETED"
    assert dig(events, -1, "statusUpdate", "status", "message", "parts", 0, "text") == (
        "echo: message"
    )


def test_follows_and_cancels_a_detached_task(seen: Seen) -> None:
    """A detached send answers at once; a subscriber sees a snapshot and then the cancellation."""
    step = dig(seen, "follow_and_cancel")
    assert state(dig(step, "detached")) in {"TASK_STATE_SUBMITTED", "TASK_STATE_WORKING"}
    assert state(dig(step, "canceled")) == "TASK_STATE_CANCELED"
    events = items(step, "events")
    assert kinds(events)[0] == "task"
    assert final_state(events) == "TASK_STATE_CANCELED"


def test_resubscribes_after_leaving_a_stream(seen: Seen) -> None:
    """Leaving a stream does not end its task; it can be followed again."""
    step = dig(seen, "drop_and_resubscribe")
    assert state(dig(step, "after")) in {"TASK_STATE_SUBMITTED", "TASK_STATE_WORKING"}
    events = items(step, "events")
    assert kinds(events)[0] == "task"
    assert final_state(events) == "TASK_STATE_CANCELED"


def test_answers_a_question(seen: Seen) -> None:
    """INPUT_REQUIRED shows the question; the next message completes the same task."""
    asked, done = dig(seen, "turns", "asked"), dig(seen, "turns", "done")
    assert state(asked) == "TASK_STATE_INPUT_REQUIRED"
    assert dig(asked, "status", "message", "parts", 0, "text") == "Which branch?"
    assert dig(done, "id") == dig(asked, "id")
    assert state(done) == "TASK_STATE_COMPLETED"
    assert texts(done) == ["answered: main"]


def test_answers_a_question_over_streams(seen: Seen) -> None:
    """The first stream ends at the question; the answer opens a second one, which misses nothing."""
    asked = items(seen, "streamed_turns", "asked")
    assert final_state(asked) == "TASK_STATE_INPUT_REQUIRED"
    done = items(seen, "streamed_turns", "done")
    assert artifact_text(done, "reply") == "answered: main"
    assert final_state(done) == "TASK_STATE_COMPLETED"


def test_lists_in_pages(seen_by_sdk: Seen) -> None:
    """Two tasks of a context, newest first, one a page, with the size of the whole."""
    pages = items(seen_by_sdk, "paged", "pages")
    ids = items(seen_by_sdk, "paged", "ids")
    assert [dig(page, "tasks", 0, "id") for page in pages] == list(reversed(ids))
    assert [len(items(page, "tasks")) for page in pages] == [1, 1]
    assert [dig(page, "totalSize") for page in pages] == [2, 2]
    assert texts(dig(pages, 0, "tasks", 0)) == ["echo: two"]


@pytest.mark.parametrize(
    ("step", "error"),
    [
        ("cancel twice", "TaskNotCancelableError"),
        ("send to ended task", "UnsupportedOperationError"),
        ("get unknown", "TaskNotFoundError"),
        ("push config", "PushNotificationNotSupportedError"),
    ],
)
def test_raises_the_class_of_each_error(seen: Seen, step: str, error: str) -> None:
    """The SDK turns our error codes into its own classes."""
    assert dig(seen, step, "error") == error


def test_parses_without_leniency(seen_by_sdk: Seen) -> None:
    """Card, task and stream frames have no member that the protocol buffers do not know."""
    assert dig(seen_by_sdk, "strict", "state") == "TASK_STATE_COMPLETED"
    frames = dig(seen_by_sdk, "strict", "frames")
    assert isinstance(frames, int)
    assert frames >= 6


def test_calls_with_a_token(seen_with_token: Seen) -> None:
    """The card names the bearer scheme in a form that the SDK reads, and calls get through."""
    schemes = dig(seen_with_token, "card", "securitySchemes")
    assert isinstance(schemes, dict)
    (scheme,) = schemes.values()
    assert dig(scheme, "httpAuthSecurityScheme", "scheme") in {"bearer", "Bearer"}
    assert items(seen_with_token, "card", "securityRequirements")
    assert state(dig(seen_with_token, "send hello", "task")) == "TASK_STATE_COMPLETED"
    assert dig(seen_with_token, "strict", "state") == "TASK_STATE_COMPLETED"
