"""Three dialects of one protocol: how each of them spells parameters, results, events and cards.

Everything inside the package is v1.0; this module is the only door through which the older
spellings come in and go out. Which dialect a request speaks is decided in ``choosing``.
"""

from collections.abc import Callable, Mapping
from typing import Final, cast

from a2a_trio.errors import (
    DecodeError,
    FieldViolation,
    InvalidParamsError,
)
from a2a_trio.wire import codec, legacy, v03, v03_card, v03_params
from a2a_trio.wire.agent_card import AgentCard
from a2a_trio.wire.choosing import choose_dialect, method_name
from a2a_trio.wire.methods import Dialect, Method, Operation, Params, Result
from a2a_trio.wire.model import (
    JsonValue,
    Message,
    StreamEvent,
    StreamResponse,
    Task,
    TaskArtifactUpdateEvent,
    TaskStatusUpdateEvent,
)
from a2a_trio.wire.requests import (
    Empty,
    ListTaskPushNotificationConfigsResponse,
    ListTasksResponse,
    SendMessageResponse,
    TaskPushNotificationConfig,
)

__all__ = [
    "choose_dialect",
    "decode_card",
    "decode_event",
    "decode_params",
    "decode_result",
    "encode_card",
    "encode_event",
    "encode_params",
    "encode_result",
    "method_name",
]

Object = dict[str, JsonValue]

_WRAPPERS: Final = frozenset(
    {"task", "message", "statusUpdate", "artifactUpdate", "status_update", "artifact_update"}
)
_MEMBER_OF_EVENT: Final[Mapping[type, str]] = {
    Task: "task",
    Message: "message",
    TaskStatusUpdateEvent: "statusUpdate",
    TaskArtifactUpdateEvent: "artifactUpdate",
}

# --- serving --------------------------------------------------------------------------------

_V03_PARAMS: Final[Mapping[Operation, Callable[[JsonValue], JsonValue]]] = {
    Operation.SEND_MESSAGE: v03_params.send_params_to_v1,
    Operation.SEND_STREAMING_MESSAGE: v03_params.send_params_to_v1,
    Operation.CREATE_PUSH_CONFIG: v03_params.task_webhook_to_v1,
    Operation.GET_PUSH_CONFIG: v03_params.webhook_id_to_v1,
    Operation.LIST_PUSH_CONFIGS: v03_params.webhook_id_to_v1,
    Operation.DELETE_PUSH_CONFIG: v03_params.webhook_id_to_v1,
}


def decode_params(method: Method, dialect: Dialect, value: JsonValue) -> Params:
    """Read the parameters of a request.

    Args:
        method: the row of the method table.
        dialect: as chosen by ``choose_dialect``.
        value: ``params`` of the request; None reads as no parameters.

    Raises:
        InvalidParamsError: with the path of every bad field, as the caller spelled it.
    """
    value = {} if value is None else value
    if dialect is Dialect.V03:
        value = _V03_PARAMS.get(method.operation, _same)(value)
    elif dialect is Dialect.LEGACY and method.sends:
        value = legacy.send_params_to_v1(value)
    try:
        return codec.decode_request(value, method.params)
    except DecodeError as error:
        violations = error.violations
        if dialect is Dialect.V03:
            violations = tuple(v03_params.violation_from_v1(v) for v in violations)
        raise InvalidParamsError(violations=violations) from None


def _same(value: JsonValue) -> JsonValue:
    return value


def encode_result(
    method: Method, dialect: Dialect, result: Result, *, include_artifacts: bool = False
) -> JsonValue:
    """Return the ``result`` member of an answer.

    Args:
        method: the row of the method table.
        dialect: the dialect of the request.
        result: what the operation returned.
        include_artifacts: for ListTasks: write ``artifacts`` also where a task has none, as a
            caller that asked for them expects (A2A section 3.1.4).
    """
    value = codec.encode(result)
    if method.operation is Operation.LIST_TASKS and include_artifacts:
        for task in cast("list[Object]", value["tasks"]):
            task.setdefault("artifacts", [])
    if dialect is Dialect.V1:
        return value
    if isinstance(result, SendMessageResponse):
        return v03.event_from_v1(value) if dialect is Dialect.V03 else next(iter(value.values()))
    if dialect is Dialect.LEGACY:
        return legacy.list_from_v1(value) if isinstance(result, ListTasksResponse) else value
    return _v03_result(result, value)


def _v03_result(result: Result, value: Object) -> JsonValue:
    match result:
        case Task():
            return v03.task_from_v1(value)
        case ListTasksResponse():
            tasks = cast("list[Object]", value["tasks"])
            return {**value, "tasks": [v03.task_from_v1(task) for task in tasks]}
        case AgentCard():
            return v03_card.card_from_v1(value)
        case Empty():
            return None
        case ListTaskPushNotificationConfigsResponse():
            configs = cast("list[Object]", value.get("configs", []))
            return [v03_params.task_webhook_from_v1(config) for config in configs]
        case _:
            return v03_params.task_webhook_from_v1(value)


def encode_event(dialect: Dialect, event: StreamEvent) -> JsonValue:
    """Return the ``result`` member of one frame of a stream."""
    value: Object = {_MEMBER_OF_EVENT[type(event)]: codec.encode(event)}
    match dialect:
        case Dialect.V1:
            return value
        case Dialect.V03:
            return v03.event_from_v1(value)
        case Dialect.LEGACY:
            return legacy.event_from_v1(value)


# --- calling --------------------------------------------------------------------------------


def encode_params(method: Method, dialect: Dialect, params: Params) -> JsonValue:
    """Return the ``params`` member of a request."""
    value = codec.encode(params)
    if dialect is not Dialect.V03:
        return value
    match method.operation:
        case Operation.SEND_MESSAGE | Operation.SEND_STREAMING_MESSAGE:
            return v03_params.send_params_from_v1(value)
        case Operation.CREATE_PUSH_CONFIG:
            return v03_params.task_webhook_from_v1(value)
        case Operation.GET_PUSH_CONFIG | Operation.LIST_PUSH_CONFIGS | Operation.DELETE_PUSH_CONFIG:
            return v03_params.webhook_id_from_v1(value)
        case _:
            value.pop("tenant", None)
            return value


def decode_result(method: Method, dialect: Dialect, value: JsonValue) -> Result:
    """Read the ``result`` member of an answer; tasks and messages may be wrapped or bare.

    Raises:
        DecodeError: with every bad field.
    """
    return _RESULT_READERS[method.operation](dialect, value)


def decode_event(dialect: Dialect, value: JsonValue) -> StreamEvent:
    """Read the ``result`` member of one frame, wrapped or bare, with or without ``kind``.

    Raises:
        DecodeError: with every bad field.
    """
    if not isinstance(value, dict):
        raise _wrong("must be an object")
    if "kind" in value or value.keys().isdisjoint(_WRAPPERS):
        moved = v03.event_to_v1(value)
    else:
        moved = legacy.event_to_v1(value)
        if dialect is not Dialect.V1:
            moved = v03.wrapped_to_v1(moved)
    return codec.decode(moved, StreamResponse).payload


def _wrong(description: str) -> DecodeError:
    return DecodeError((FieldViolation(field="", description=description),))


def _read_sent(dialect: Dialect, value: JsonValue) -> Result:
    event = decode_event(dialect, value)
    match event:
        case Task():
            return SendMessageResponse(task=event)
        case Message():
            return SendMessageResponse(message=event)
        case _:
            raise _wrong("must be a task or a message, not an update")


def _read_task(dialect: Dialect, value: JsonValue) -> Result:
    if isinstance(value, dict) and isinstance(value.get("task"), dict):
        value = value["task"]
    if dialect is not Dialect.V1 or (isinstance(value, dict) and "kind" in value):
        value = v03.task_to_v1(value)
    return codec.decode(value, Task)


def _read_tasks(dialect: Dialect, value: JsonValue) -> Result:
    moved = value if dialect is Dialect.V1 else legacy.list_to_v1(value)
    return codec.decode(moved, ListTasksResponse)


def _read_webhook(_: Dialect, value: JsonValue) -> Result:
    return codec.decode(v03_params.task_webhook_to_v1(value), TaskPushNotificationConfig)


def _read_webhooks(_: Dialect, value: JsonValue) -> Result:
    if isinstance(value, list):
        value = {"configs": [v03_params.task_webhook_to_v1(config) for config in value]}
    return codec.decode(value, ListTaskPushNotificationConfigsResponse)


# --- cards ----------------------------------------------------------------------------------


def encode_card(card: AgentCard, dialect: Dialect) -> JsonValue:
    """Return the card in v1.0's form, in v0.3's, or (legacy) with the members of both."""
    value = codec.encode(card)
    match dialect:
        case Dialect.V1:
            return value
        case Dialect.V03:
            return v03_card.card_from_v1(value)
        case Dialect.LEGACY:
            return v03_card.both_forms(value)


def decode_card(value: JsonValue) -> AgentCard:
    """Read a card of v1.0, of v0.3, or of both forms at once.

    Raises:
        DecodeError: with every bad field.
    """
    return codec.decode(v03_card.card_to_v1(value), AgentCard)


_RESULT_READERS: Final[Mapping[Operation, Callable[[Dialect, JsonValue], Result]]] = {
    Operation.SEND_MESSAGE: _read_sent,
    Operation.SEND_STREAMING_MESSAGE: _read_sent,  # a peer that does not stream answers at once
    Operation.GET_TASK: _read_task,
    Operation.LIST_TASKS: _read_tasks,
    Operation.CANCEL_TASK: _read_task,
    Operation.SUBSCRIBE_TO_TASK: _read_sent,
    Operation.CREATE_PUSH_CONFIG: _read_webhook,
    Operation.GET_PUSH_CONFIG: _read_webhook,
    Operation.LIST_PUSH_CONFIGS: _read_webhooks,
    Operation.DELETE_PUSH_CONFIG: lambda _dialect, _value: Empty(),
    Operation.GET_EXTENDED_CARD: lambda _dialect, value: decode_card(value),
}
