"""A2A v0.3 objects: their JSON moved into v1.0's shape and back.

v0.3 marks objects with ``kind``, spells states and roles in lower case and nests files under
``file``.

The ``..._to_v1`` functions touch only what has the older form and pass everything else on, also
what has the wrong type; so they are safe on any JSON, do nothing to v1.0 objects, and leave it to
the codec to complain. The ``..._from_v1`` functions take what the codec wrote.

Lost on the way to v0.3, which has no place for it: ``filename`` and ``mediaType`` of text and
data parts.
"""

from collections.abc import Callable, Mapping
from typing import Final

from a2a_trio.wire.model import JsonValue, TaskState
from a2a_trio.wire.readers import Violations, read_timestamp

Json = JsonValue
Object = dict[str, JsonValue]

DATA_COMPAT: Final = "data_part_compat"
"""Metadata mark of a data part whose value is no object and was wrapped as ``{"value": ...}``."""

_STATES: Final[Mapping[str, str]] = {
    "unknown": TaskState.UNSPECIFIED.value,
    **{state.short: state.value for state in list(TaskState)[1:]},
}
_STATES_BACK: Final[Mapping[str, str]] = {new: old for old, new in _STATES.items()}
_ROLES: Final[Mapping[str, str]] = {"user": "ROLE_USER", "agent": "ROLE_AGENT"}
_ROLES_BACK: Final[Mapping[str, str]] = {new: old for old, new in _ROLES.items()}
_FILE_MEMBERS: Final[Mapping[str, str]] = {
    "bytes": "raw",
    "uri": "url",
    "fileWithBytes": "raw",
    "fileWithUri": "url",
    "name": "filename",
    "mimeType": "mediaType",
}

_KINDS: Final[Mapping[str, str]] = {
    "task": "task",
    "message": "message",
    "status-update": "statusUpdate",
    "artifact-update": "artifactUpdate",
}

# v0.3 ends a stream after ``final``; ours end at these states (A2A v0.3 section 7.2.2).
_FINAL_STATES: Final = frozenset(
    state.value for state in TaskState if state.is_terminal or state is TaskState.INPUT_REQUIRED
)


def _each(value: Json, change_it: Callable[[Json], Json]) -> Json:
    return [change_it(item) for item in value] if isinstance(value, list) else value


def change(value: Object, **changes: Callable[[Json], Json]) -> Object:
    """Return a copy with some members changed, if they are there."""
    return {
        key: changes[key](member) if key in changes else member for key, member in value.items()
    }


# --- to v1.0 --------------------------------------------------------------------------------


def is_v03(value: Json) -> bool:
    """Return True if a message, or an object around one, has marks that only v0.3 has."""
    if not isinstance(value, dict):
        return False
    message = value.get("message", value)
    if not isinstance(message, dict):
        return False
    parts = message.get("parts")
    return (
        "kind" in value
        or "kind" in message
        or message.get("role") in tuple(_ROLES)  # compared, not hashed: it may be a list
        or (isinstance(parts, list) and any(isinstance(p, dict) and "kind" in p for p in parts))
    )


def part_to_v1(value: Json) -> Json:
    """Move a part: ``file`` is unfolded, a wrapped data value unwrapped."""
    if not isinstance(value, dict):
        return value
    file = value.get("file")
    if file is not None:
        rest = {key: member for key, member in value.items() if key != "file"}
        if not isinstance(file, dict):
            return {**rest, "raw": file}  # for the codec to refuse
        moved = {_FILE_MEMBERS[k]: m for k, m in file.items() if k in _FILE_MEMBERS}
        return {**rest, **moved}
    metadata, data = value.get("metadata"), value.get("data")
    if (
        isinstance(metadata, dict)
        and metadata.get(DATA_COMPAT) is True
        and isinstance(data, dict)
        and data.keys() == {"value"}
    ):
        kept = {key: member for key, member in metadata.items() if key != DATA_COMPAT}
        return {**value, "data": data["value"], "metadata": kept}
    return value


def message_to_v1(value: Json) -> Json:
    """Move a message."""
    if not isinstance(value, dict):
        return value
    return change(value, role=_role_to_v1, parts=lambda parts: _each(parts, part_to_v1))


def _role_to_v1(value: Json) -> Json:
    return _ROLES.get(value, value) if isinstance(value, str) else value


def _state_to_v1(value: Json) -> Json:
    return _STATES.get(value, value) if isinstance(value, str) else value


def artifact_to_v1(value: Json) -> Json:
    """Move an artifact."""
    if not isinstance(value, dict):
        return value
    return change(value, parts=lambda parts: _each(parts, part_to_v1))


def status_to_v1(value: Json) -> Json:
    """Move a status. v0.3 timestamps are free text: one without a zone is UTC, others are dropped."""
    if not isinstance(value, dict):
        return value
    return change(value, state=_state_to_v1, message=message_to_v1, timestamp=_timestamp_to_v1)


def _timestamp_to_v1(value: Json) -> Json:
    if isinstance(value, str):
        for text in (value, value + "Z"):
            try:
                read_timestamp(text, None)
            except Violations:
                continue
            return text
        return None
    return value


def task_to_v1(value: Json) -> Json:
    """Move a task."""
    if not isinstance(value, dict):
        return value
    return change(
        value,
        status=status_to_v1,
        artifacts=lambda items: _each(items, artifact_to_v1),
        history=lambda items: _each(items, message_to_v1),
    )


def event_to_v1(value: Json) -> Json:
    """Move a bare task, message or event into a v1.0 ``StreamResponse``; ``kind`` may be missing."""
    if not isinstance(value, dict):
        return value
    kind = value.get("kind")
    member = _KINDS.get(kind) if isinstance(kind, str) else None
    return wrapped_to_v1({member or _guess_member(value): value})


def wrapped_to_v1(value: Object) -> Object:
    """Move what is inside a frame that is wrapped as in v1.0."""
    return change(
        value,
        task=task_to_v1,
        message=message_to_v1,
        statusUpdate=_status_update_to_v1,
        artifactUpdate=_artifact_update_to_v1,
    )


def _status_update_to_v1(value: Json) -> Json:
    return change(value, status=status_to_v1) if isinstance(value, dict) else value


def _artifact_update_to_v1(value: Json) -> Json:
    return change(value, artifact=artifact_to_v1) if isinstance(value, dict) else value


def _guess_member(value: Object) -> str:
    if "artifact" in value:
        return "artifactUpdate"
    if "taskId" in value and "status" in value:
        return "statusUpdate"
    if "messageId" in value or ("parts" in value and "status" not in value):
        return "message"
    return "task"


# --- from v1.0 ------------------------------------------------------------------------------


def part_from_v1(value: Object) -> Object:
    """Write a part as v0.3 does."""
    part: Object = {}
    metadata = value.get("metadata")
    if "text" in value:
        part = {"kind": "text", "text": value["text"]}
    elif "data" in value:
        data = value["data"]
        part = {"kind": "data", "data": data}
        if not isinstance(data, dict):
            part["data"] = {"value": data}
            metadata = {**(metadata if isinstance(metadata, dict) else {}), DATA_COMPAT: True}
    else:
        file = {
            old: value[new]
            for old, new in _FILE_MEMBERS.items()
            if new in value and not old.startswith("fileWith")
        }
        part = {"kind": "file", "file": file}
    if metadata is not None:
        part["metadata"] = metadata
    return part


def _objects(value: Json, change_it: Callable[[Object], Object]) -> Json:
    """Change each object of a list that the codec wrote."""
    return _each(value, if_object(change_it))


def if_object(change_it: Callable[[Object], Object]) -> Callable[[Json], Json]:
    """Return the change applied to objects only."""
    return lambda value: change_it(value) if isinstance(value, dict) else value


def message_from_v1(value: Object) -> Object:
    """Write a message as v0.3 does; a role that is not set reads as the agent's."""
    changed = change(
        value,
        role=lambda role: _ROLES_BACK.get(str(role), "agent"),
        parts=lambda parts: _objects(parts, part_from_v1),
    )
    return {"kind": "message", **changed}


def artifact_from_v1(value: Object) -> Object:
    """Write an artifact as v0.3 does."""
    return change(value, parts=lambda parts: _objects(parts, part_from_v1))


def status_from_v1(value: Object) -> Object:
    """Write a status as v0.3 does."""
    return change(
        value,
        state=lambda state: _STATES_BACK.get(str(state), "unknown"),
        message=if_object(message_from_v1),
    )


def task_from_v1(value: Object) -> Object:
    """Write a task as v0.3 does; ``contextId`` is REQUIRED there."""
    changed = change(
        value,
        status=if_object(status_from_v1),
        artifacts=lambda items: _objects(items, artifact_from_v1),
        history=lambda items: _objects(items, message_from_v1),
    )
    return {"kind": "task", "contextId": "", **changed}


def event_from_v1(value: Object) -> Object:
    """Write the one member of a ``StreamResponse`` as v0.3's bare object; ``final`` is computed."""
    ((name, payload),) = value.items()
    if not isinstance(payload, dict):
        raise TypeError("a StreamResponse holds an object")
    if name == "task":
        return task_from_v1(payload)
    if name == "message":
        return message_from_v1(payload)
    if name == "artifactUpdate":
        changed = change(payload, artifact=if_object(artifact_from_v1))
        return {"kind": "artifact-update", **changed}
    status = payload.get("status")
    state = status.get("state") if isinstance(status, dict) else None
    changed = change(payload, status=if_object(status_from_v1))
    return {"kind": "status-update", **changed, "final": state in _FINAL_STATES}
