"""The shapes of pi-a2a before v1.0: slash method names around v1.0 spellings.

Results are bare tasks, lists hold ``{id, state}`` stubs, and a stream carries
``{"statusUpdate": <task>}`` and ``{"artifactUpdate": <artifact>}``. No pi-a2a release has a
streaming client; the frames here keep that form and add ``taskId``, ``contextId``, ``append`` and
``lastChunk``, so that a reader of either form finds what it looks for.
"""

from typing import Final

from a2a_trio.wire import v03, v03_params
from a2a_trio.wire.model import JsonValue

_Object = dict[str, JsonValue]

_AGENT_ROLES: Final = frozenset({"agent", "assistant", "model"})
_CHUNK_MEMBERS: Final = ("taskId", "contextId", "append", "lastChunk")


def send_params_to_v1(value: JsonValue) -> JsonValue:
    """Move the parameters of message/send and message/stream.

    They may be the message itself, and the role may be missing or an alias; everything that is
    not an agent is the user.
    """
    if not isinstance(value, dict):
        return value
    if "message" not in value and "parts" in value:
        value = {"message": value}
    message = v03.message_to_v1(value.get("message"))
    if isinstance(message, dict):
        message = {**message, "role": _role(message.get("role"))}
    moved = v03_params.send_params_to_v1(value)
    return {**moved, "message": message} if isinstance(moved, dict) else moved


def _role(value: JsonValue) -> JsonValue:
    if value is None or value == "":
        return "ROLE_USER"
    if isinstance(value, str) and not value.startswith("ROLE_"):
        return "ROLE_AGENT" if value.lower() in _AGENT_ROLES else "ROLE_USER"
    return value


def event_from_v1(value: _Object) -> _Object:
    """Write the one member of a ``StreamResponse`` as a legacy frame."""
    ((name, payload),) = value.items()
    if not isinstance(payload, dict):
        raise TypeError("a StreamResponse holds an object")
    if name == "task":
        return {"statusUpdate": payload}
    if name == "statusUpdate":
        return {"statusUpdate": {"id": payload["taskId"], **payload}}
    if name == "artifactUpdate":
        artifact = payload["artifact"]
        chunk: _Object = {key: payload[key] for key in _CHUNK_MEMBERS if key in payload}
        return {"artifactUpdate": {**artifact, **chunk} if isinstance(artifact, dict) else chunk}
    return value


def event_to_v1(value: _Object) -> _Object:
    """Move a legacy frame into a v1.0 ``StreamResponse``; frames of v1.0 come back as they are."""
    status = value.get("statusUpdate")
    if isinstance(status, dict) and status.keys().isdisjoint(("taskId", "task_id")):
        return {"task": status}
    artifact = value.get("artifactUpdate")
    if isinstance(artifact, dict) and "artifact" not in artifact:
        chunk: _Object = {key: artifact[key] for key in _CHUNK_MEMBERS if key in artifact}
        bare: _Object = {k: member for k, member in artifact.items() if k not in _CHUNK_MEMBERS}
        return {"artifactUpdate": {**chunk, "artifact": bare}}
    return value


def list_from_v1(value: _Object) -> _Object:
    """Write a page of tasks as ``{id, state}`` stubs."""
    tasks = value["tasks"]
    stubs: list[JsonValue] = []
    for task in tasks if isinstance(tasks, list) else []:
        status = task.get("status") if isinstance(task, dict) else None
        if isinstance(task, dict) and isinstance(status, dict):
            stubs.append({"id": task["id"], "state": status["state"]})
    return {"tasks": stubs}


def list_to_v1(value: JsonValue) -> JsonValue:
    """Move a page of stubs or of tasks; sizes that are missing are counted."""
    if not isinstance(value, dict):
        return value
    tasks = value.get("tasks")
    if not isinstance(tasks, list):
        return value
    moved: list[JsonValue] = [_stub_to_v1(task) for task in tasks]
    return {"pageSize": len(tasks), "totalSize": len(tasks), **value, "tasks": moved}


def _stub_to_v1(value: JsonValue) -> JsonValue:
    if isinstance(value, dict) and "state" in value and "status" not in value:
        value = {"id": value.get("id"), "status": {"state": value["state"]}}
    return v03.task_to_v1(value)
