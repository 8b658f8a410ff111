"""The older spellings: what goes out as v0.3 or legacy comes back as the same value."""

from typing import Any

import attrs
import pytest
from hypothesis import given, settings, strategies as st

from a2a_trio.errors import DecodeError, InvalidParamsError
from a2a_trio.testing.strategies import (
    agent_cards,
    json_values,
    requests,
    stream_events,
    tasks,
    texts,
    values,
)
from a2a_trio.wire import codec, dialects, v03
from a2a_trio.wire.methods import METHODS, Dialect, Method, Operation, method_of
from a2a_trio.wire.model import (
    Artifact,
    JsonValue,
    Message,
    Part,
    Role,
    StreamEvent,
    Task,
    TaskArtifactUpdateEvent,
    TaskState,
    TaskStatus,
    TaskStatusUpdateEvent,
)
from a2a_trio.wire.requests import (
    Empty,
    ListTasksResponse,
    SendMessageConfiguration,
    SendMessageRequest,
    SendMessageResponse,
)

V1, V03, LEGACY = Dialect.V1, Dialect.V03, Dialect.LEGACY
SEND = method_of(Operation.SEND_MESSAGE)
GET = method_of(Operation.GET_TASK)
LIST = method_of(Operation.LIST_TASKS)

MESSAGE = Message(message_id="m", role=Role.USER, parts=(Part(text="hello"),))
TASK = Task(
    id="t",
    context_id="c",
    status=TaskStatus(state=TaskState.INPUT_REQUIRED, message=MESSAGE),
    artifacts=(Artifact(artifact_id="a", parts=(Part(raw=b"x", filename="f", media_type="t/t"),)),),
    history=(MESSAGE,),
)

rows = pytest.mark.parametrize("method", METHODS, ids=lambda method: method.operation.value)


def as_v03_keeps(value: Any) -> Any:
    """The value without what v0.3 has no place for."""
    if isinstance(value, Part):
        if value.text is not None or value.data is not attrs.fields(Part).data.default:
            return attrs.evolve(value, filename="", media_type="")
        return value
    if isinstance(value, tuple):
        return tuple(as_v03_keeps(item) for item in value)
    if isinstance(value, SendMessageConfiguration):
        webhook = value.task_push_notification_config
        if webhook is not None:  # its task id is empty in a send, says v1.0
            webhook = attrs.evolve(webhook, task_id="", tenant="")
        return attrs.evolve(value, task_push_notification_config=webhook)
    if attrs.has(type(value)):
        changes = {f.name: as_v03_keeps(getattr(value, f.name)) for f in attrs.fields(type(value))}
        if "tenant" in changes:
            changes["tenant"] = ""
        return attrs.evolve(value, **changes)
    return value


# --- round trips ----------------------------------------------------------------------------


@given(stream_events())
def test_events_survive_v1(event: StreamEvent) -> None:
    """Nothing is lost."""
    assert dialects.decode_event(V1, dialects.encode_event(V1, event)) == event


@given(stream_events())
def test_events_survive_v03(event: StreamEvent) -> None:
    """Nothing but what v0.3 cannot say; a client that expects v1.0 reads it too."""
    form = dialects.encode_event(V03, event)
    for expected in Dialect:
        assert dialects.decode_event(expected, form) == as_v03_keeps(event)


@given(stream_events())
def test_events_survive_legacy(event: StreamEvent) -> None:
    """Nothing but the metadata of an artifact update, which the bare artifact has no room for."""
    kept = attrs.evolve(event, metadata={}) if isinstance(event, TaskArtifactUpdateEvent) else event
    assert dialects.decode_event(LEGACY, dialects.encode_event(LEGACY, event)) == kept


@rows
@pytest.mark.parametrize("dialect", list(Dialect))
def test_parameters_survive(method: Method, dialect: Dialect) -> None:
    """What our client sends in any dialect, our server reads."""
    if dialects.method_name(method, dialect) is None:
        return

    @settings(max_examples=40)
    @given(requests(method.params))
    def check(params: Any) -> None:
        form = dialects.encode_params(method, dialect, params)
        found = dialects.decode_params(method, dialect, form)
        wanted = as_v03_keeps(params) if dialect is V03 else params
        if dialect is V03 and method.operation is Operation.LIST_PUSH_CONFIGS:
            wanted = attrs.evolve(wanted, page_size=0, page_token="")
        assert found == wanted

    check()


@rows
@pytest.mark.parametrize("dialect", list(Dialect))
def test_results_survive(method: Method, dialect: Dialect) -> None:
    """What our server answers in any dialect, our client reads."""
    if method.streaming or method.operation in (Operation.LIST_TASKS, Operation.GET_EXTENDED_CARD):
        return  # events, lists and cards have tests of their own

    @settings(max_examples=40)
    @given(requests(method.result))
    def check(result: Any) -> None:
        form = dialects.encode_result(method, dialect, result)
        found = dialects.decode_result(method, dialect, form)
        wanted = as_v03_keeps(result) if dialect is V03 else result
        if dialect is V03 and method.operation is Operation.LIST_PUSH_CONFIGS:
            wanted = attrs.evolve(wanted, next_page_token="")
        assert found == wanted

    check()


@given(values(ListTasksResponse))
def test_pages_survive_v1(page: ListTasksResponse) -> None:
    """A page reads back, with or without empty artifacts."""
    for included in (False, True):
        form = dialects.encode_result(LIST, V1, page, include_artifacts=included)
        assert dialects.decode_result(LIST, V1, form) == page


def test_artifacts_are_present_in_a_list_if_asked_for() -> None:
    """Absent unless asked for, ``[]`` if there are none (A2A section 3.1.4)."""
    bare = attrs.evolve(TASK, artifacts=())
    page = ListTasksResponse(tasks=(bare,), next_page_token="", page_size=1, total_size=1)
    without: Any = dialects.encode_result(LIST, V1, page)
    present: Any = dialects.encode_result(LIST, V1, page, include_artifacts=True)
    assert "artifacts" not in without["tasks"][0]
    assert present["tasks"][0]["artifacts"] == []


# --- exact forms ----------------------------------------------------------------------------


def test_the_form_of_v03() -> None:
    """``kind`` everywhere, lower case, files nested, the result bare."""
    message = {
        "kind": "message",
        "messageId": "m",
        "role": "user",
        "parts": [{"kind": "text", "text": "hello"}],
    }
    file = {"kind": "file", "file": {"bytes": "eA==", "name": "f", "mimeType": "t/t"}}
    wanted = {
        "kind": "task",
        "id": "t",
        "contextId": "c",
        "status": {"state": "input-required", "message": message},
        "artifacts": [{"artifactId": "a", "parts": [file]}],
        "history": [message],
    }
    assert dialects.encode_result(SEND, V03, SendMessageResponse(task=TASK)) == wanted
    assert dialects.encode_result(GET, V03, TASK) == wanted
    assert dialects.encode_event(V03, TASK) == wanted
    assert dialects.encode_event(V03, MESSAGE) == message


@pytest.mark.parametrize("state", list(TaskState))
def test_final_is_computed_for_v03(state: TaskState) -> None:
    """True where our streams end: at the end of the task, and where it waits for input."""
    event = TaskStatusUpdateEvent(task_id="t", context_id="c", status=TaskStatus(state=state))
    form: Any = dialects.encode_event(V03, event)
    assert form["final"] is (state.is_terminal or state is TaskState.INPUT_REQUIRED)
    assert form["kind"] == "status-update"


def test_the_form_of_legacy() -> None:
    """Bare results, stubs in lists, whole objects in frames (with the v1.0 ids added)."""
    form = codec.encode(TASK)
    assert dialects.encode_result(SEND, LEGACY, SendMessageResponse(task=TASK)) == form
    assert dialects.encode_result(GET, LEGACY, TASK) == form
    page = ListTasksResponse(tasks=(TASK,), next_page_token="x", page_size=1, total_size=9)
    stubs = {"tasks": [{"id": "t", "state": "TASK_STATE_INPUT_REQUIRED"}]}
    assert dialects.encode_result(LIST, LEGACY, page) == stubs
    assert dialects.encode_event(LEGACY, TASK) == {"statusUpdate": form}
    artifact = TASK.artifacts[0]
    update = TaskArtifactUpdateEvent(
        task_id="t", context_id="c", artifact=artifact, last_chunk=True
    )
    ids = {"taskId": "t", "contextId": "c", "lastChunk": True}
    frame = {"artifactUpdate": {**codec.encode(artifact), **ids}}
    assert dialects.encode_event(LEGACY, update) == frame
    status = TaskStatusUpdateEvent(task_id="t", context_id="c", status=TASK.status)
    assert dialects.encode_event(LEGACY, status) == {
        "statusUpdate": {"id": "t", **codec.encode(status)}
    }


def test_stubs_read_as_tasks() -> None:
    """A list of pi-a2a gives what it has."""
    value: JsonValue = {"tasks": [{"id": "t", "state": "TASK_STATE_WORKING"}]}
    task = Task(id="t", status=TaskStatus(state=TaskState.WORKING))
    wanted = ListTasksResponse(tasks=(task,), next_page_token="", page_size=1, total_size=1)
    assert dialects.decode_result(LIST, LEGACY, value) == wanted


# --- v0.3 in --------------------------------------------------------------------------------


def test_a_v03_request_is_read() -> None:
    """Every spelling of v0.3 at once."""
    params = dialects.decode_params(
        SEND,
        V03,
        {
            "message": {
                "kind": "message",
                "messageId": "m",
                "role": "user",
                "parts": [
                    {"kind": "text", "text": "a", "metadata": {"k": 1}},
                    {"kind": "file", "file": {"uri": "u", "name": "n", "mimeType": "t"}},
                    {"kind": "file", "file": {"bytes": "eA==", "uri": None}},
                    {"kind": "data", "data": {"x": 1}},
                    {"kind": "data", "data": {"value": 5}, "metadata": {"data_part_compat": True}},
                    {"type": "text", "text": "0.2", "file": None},
                ],
            },
            "configuration": {
                "blocking": False,
                "historyLength": 0,
                "acceptedOutputModes": ["text/plain"],
                "pushNotificationConfig": {"url": "w", "authentication": {"schemes": ["Bearer"]}},
            },
            "metadata": {"m": 1},
        },
    )
    assert isinstance(params, SendMessageRequest)
    assert params.message.parts == (
        Part(text="a", metadata={"k": 1}),
        Part(url="u", filename="n", media_type="t"),
        Part(raw=b"x"),
        Part(data={"x": 1}),
        Part(data=5),
        Part(text="0.2"),
    )
    configuration = params.configuration
    assert configuration is not None
    assert (configuration.return_immediately, configuration.history_length) == (True, 0)
    webhook = configuration.task_push_notification_config
    assert webhook is not None
    assert webhook.authentication is not None
    assert webhook.authentication.scheme == "Bearer"


def test_blocking_is_the_default_and_is_said() -> None:
    """Absent means blocking, as in v1.0."""
    params = SendMessageRequest(message=MESSAGE, configuration=SendMessageConfiguration())
    form: Any = dialects.encode_params(SEND, V03, params)
    assert form["configuration"] == {"blocking": True}


def test_violations_have_the_callers_names() -> None:
    """A v0.3 caller never wrote ``raw`` or ``returnImmediately``."""
    with pytest.raises(InvalidParamsError) as caught:
        dialects.decode_params(
            SEND,
            V03,
            {
                "message": {
                    "role": "user",
                    "messageId": "m",
                    "parts": [
                        {"kind": "file", "file": {"bytes": "!", "name": 1, "mimeType": 2}},
                        {"kind": "file", "file": {"uri": 3}},
                        {"kind": "file", "file": 4},
                        {"kind": "text"},
                    ],
                },
                "configuration": {"blocking": 5, "pushNotificationConfig": {"url": 6}},
            },
        )
    assert {violation.field for violation in caught.value.violations} == {
        "message.parts[0].file.bytes",
        "message.parts[0].file.name",
        "message.parts[0].file.mimeType",
        "message.parts[1].file.uri",
        "message.parts[2].file.bytes",
        "message.parts[3]",
        "configuration.blocking",
        "configuration.pushNotificationConfig.url",
    }


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("2026-01-02T03:04:05.123Z", "2026-01-02T03:04:05.123Z"),
        ("2026-01-02T03:04:05.123456", "2026-01-02T03:04:05.123456Z"),
        ("yesterday", None),
    ],
)
def test_free_text_timestamps_of_v03(text: str, kept: str | None) -> None:
    """A timestamp without a zone is UTC; prose is dropped rather than failing the task."""
    assert v03.status_to_v1({"state": "working", "timestamp": text}) == {
        "state": "TASK_STATE_WORKING",
        "timestamp": kept,
    }


# --- tolerance of answers -------------------------------------------------------------------


@pytest.mark.parametrize("dialect", list(Dialect))
@pytest.mark.parametrize("kind", ["with", "without"])
def test_answers_may_be_wrapped_or_bare_with_or_without_kind(dialect: Dialect, kind: str) -> None:
    """Four shapes, one meaning, whatever dialect was expected."""
    task: Any = dialects.encode_event(V03, TASK)
    message: Any = dialects.encode_event(V03, MESSAGE)
    if kind == "without":
        for value in (task, message):
            del value["kind"]
    assert dialects.decode_result(SEND, dialect, task) == SendMessageResponse(task=TASK)
    assert dialects.decode_result(SEND, dialect, message) == SendMessageResponse(message=MESSAGE)
    assert dialects.decode_result(GET, dialect, task).id == "t"  # type: ignore[union-attr] # it is a task
    wrapped: JsonValue = {"task": codec.encode(TASK)}
    assert dialects.decode_result(SEND, dialect, wrapped) == SendMessageResponse(task=TASK)
    assert dialects.decode_result(GET, dialect, wrapped) == TASK


@pytest.mark.parametrize("dialect", [V03, LEGACY])
def test_wrapped_frames_may_hold_v03_objects(dialect: Dialect) -> None:
    """Some peers wrap as v1.0 does and spell as v0.3 does."""
    frame: JsonValue = {"task": dialects.encode_event(V03, TASK)}
    assert dialects.decode_event(dialect, frame) == TASK


def test_an_update_is_no_answer_to_a_send() -> None:
    """A task or a message, nothing else."""
    form = dialects.encode_event(
        V1, TaskStatusUpdateEvent(task_id="t", context_id="c", status=TASK.status)
    )
    with pytest.raises(DecodeError, match="not an update"):
        dialects.decode_result(SEND, V1, form)


@pytest.mark.parametrize("value", [None, {}, [], "deleted"])
def test_any_answer_to_a_delete_is_done(value: JsonValue) -> None:
    """The protocol leaves the form open."""
    method = method_of(Operation.DELETE_PUSH_CONFIG)
    assert dialects.decode_result(method, V1, value) == Empty()


def test_legacy_parameters_may_be_the_message() -> None:
    """pi-a2a tolerated a missing wrapper and any role."""
    for role, wanted in [("assistant", Role.AGENT), ("", Role.USER), ("human", Role.USER), (None, Role.USER), ("ROLE_AGENT", Role.AGENT)]:  # fmt: skip
        value: JsonValue = {"messageId": "m", "role": role, "parts": [{"text": "x"}]}
        params = dialects.decode_params(SEND, LEGACY, value)
        assert isinstance(params, SendMessageRequest)
        assert params.message.role is wanted


NAMES = st.sampled_from(
    """
    kind id taskId contextId status state message messageId role parts file data metadata
    artifact artifactId artifacts history configuration blocking pushNotificationConfig
    authentication schemes task statusUpdate artifactUpdate timestamp text tasks final url
    name supportedInterfaces securitySchemes security type in flows skills capabilities
    extensions additionalInterfaces preferredTransport protocolVersion
    supportsAuthenticatedExtendedCard
    """.split()  # noqa: SIM905 -- a list of sixty literals reads worse
)
MARKS = st.sampled_from(
    ["task", "message", "status-update", "artifact-update", "text", "user", "agent", "working"]
)
LIKELY = st.recursive(
    json_values() | MARKS,
    lambda inner: st.dictionaries(NAMES | texts(), inner, max_size=5) | st.lists(inner, max_size=3),
    max_leaves=12,
)


@rows
@pytest.mark.parametrize("dialect", list(Dialect))
def test_any_json_reads_or_raises_the_documented_error(method: Method, dialect: Dialect) -> None:
    """Parameters, results, events and cards alike; the input is not changed."""

    @settings(max_examples=25)  # there are 33 combinations
    @given(LIKELY)
    def check(value: JsonValue) -> None:
        before = codec.dumps(value)
        for read in (
            lambda: dialects.decode_params(method, dialect, value),
            lambda: dialects.decode_result(method, dialect, value),
            lambda: dialects.decode_event(dialect, value),
            lambda: dialects.decode_card(value),
            lambda: dialects.choose_dialect(
                "message/send", None, value, strict=False, stored=lambda _id: None
            ),
        ):
            try:
                read()
            except (InvalidParamsError, DecodeError) as refusal:
                found: Any = refusal.violations
                assert found
        assert codec.dumps(value) == before

    check()


@given(tasks())
def test_writing_a_dialect_does_not_change_the_value(task: Task) -> None:
    """The store's value is shared by every subscriber."""
    before = codec.dumps(codec.encode(task))
    for dialect in Dialect:
        dialects.encode_event(dialect, task)
        dialects.encode_result(GET, dialect, task)
    assert codec.dumps(codec.encode(task)) == before


@given(agent_cards())
def test_cards_survive_where_the_form_allows(card: Any) -> None:
    """v1.0 exactly; the form for both kinds of reader reads as v1.0 as well."""
    assert dialects.decode_card(dialects.encode_card(card, V1)) == card
    assert dialects.decode_card(dialects.encode_card(card, LEGACY)) == card
