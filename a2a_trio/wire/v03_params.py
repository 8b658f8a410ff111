"""A2A v0.3 parameters: their JSON moved into v1.0's shape and back.

v0.3 says ``blocking`` where v1.0 says ``returnImmediately`` and nests webhooks under
``pushNotificationConfig``. It has no ``tenant``.
"""

import re
from typing import Final

from a2a_trio.errors import FieldViolation
from a2a_trio.wire.v03 import Json, Object, change, if_object, message_from_v1, message_to_v1

# --- to v1.0 --------------------------------------------------------------------------------


def send_params_to_v1(value: Json) -> Json:
    """Move the parameters of message/send and message/stream."""
    if not isinstance(value, dict):
        return value
    return change(value, message=message_to_v1, configuration=_configuration_to_v1)


def _configuration_to_v1(value: Json) -> Json:
    if not isinstance(value, dict):
        return value
    moved: Object = {}
    for key, member in value.items():
        if key == "blocking":
            moved["returnImmediately"] = (not member) if isinstance(member, bool) else member
        elif key == "pushNotificationConfig":
            moved["taskPushNotificationConfig"] = webhook_to_v1(member)
        else:
            moved[key] = member
    return moved


def webhook_to_v1(value: Json) -> Json:
    """Move a push notification config: the first of several schemes is taken."""
    if not isinstance(value, dict):
        return value
    return change(value, authentication=_authentication_to_v1)


def _authentication_to_v1(value: Json) -> Json:
    if not isinstance(value, dict) or "schemes" not in value:
        return value
    schemes = value["schemes"]
    moved = {key: member for key, member in value.items() if key != "schemes"}
    moved["scheme"] = schemes[0] if isinstance(schemes, list) and schemes else ""
    return moved


def task_webhook_to_v1(value: Json) -> Json:
    """Move ``{taskId, pushNotificationConfig}`` into v1.0's flat object."""
    if not isinstance(value, dict) or "pushNotificationConfig" not in value:
        return value
    config = webhook_to_v1(value["pushNotificationConfig"])
    if not isinstance(config, dict):
        return config
    return {**config, "taskId": value.get("taskId")}


def webhook_id_to_v1(value: Json) -> Json:
    """Move ``{id: <task>, pushNotificationConfigId}``; v0.3 may leave the second one out."""
    if not isinstance(value, dict):
        return value
    return {"taskId": value.get("id"), "id": value.get("pushNotificationConfigId")}


# The paths of the codec name v1.0 members; a v0.3 caller knows others.
_OLD_PATHS: Final = (
    (re.compile(r"(parts\[\d+\])\.raw$"), r"\1.file.bytes"),
    (re.compile(r"(parts\[\d+\])\.url$"), r"\1.file.uri"),
    (re.compile(r"(parts\[\d+\])\.filename$"), r"\1.file.name"),
    (re.compile(r"(parts\[\d+\])\.mediaType$"), r"\1.file.mimeType"),
    (re.compile(r"returnImmediately$"), "blocking"),
    (re.compile(r"taskPushNotificationConfig"), "pushNotificationConfig"),
    (re.compile(r"authentication\.scheme$"), "authentication.schemes[0]"),
)


def violation_from_v1(violation: FieldViolation) -> FieldViolation:
    """Return a violation with the path that the v0.3 caller wrote."""
    field = violation.field
    for pattern, old in _OLD_PATHS:
        field = pattern.sub(old, field)
    return FieldViolation(field=field, description=violation.description)


# --- from v1.0 ------------------------------------------------------------------------------


def send_params_from_v1(value: Object) -> Object:
    """Write the parameters of message/send and message/stream as v0.3 does."""
    changed = change(
        value, message=if_object(message_from_v1), configuration=if_object(_configuration_from_v1)
    )
    changed.pop("tenant", None)
    return changed


def _configuration_from_v1(value: Object) -> Object:
    changed: Object = {"blocking": not value.get("returnImmediately", False)}
    for key, member in value.items():
        if key == "taskPushNotificationConfig" and isinstance(member, dict):
            changed["pushNotificationConfig"] = webhook_from_v1(member)
        elif key != "returnImmediately":
            changed[key] = member
    return changed


def webhook_from_v1(value: Object) -> Object:
    """Write v0.3's inner push notification config, without the task's id."""
    config = {key: member for key, member in value.items() if key not in {"taskId", "tenant"}}
    authentication = config.get("authentication")
    if isinstance(authentication, dict):
        moved = {key: member for key, member in authentication.items() if key != "scheme"}
        config["authentication"] = {"schemes": [authentication.get("scheme")], **moved}
    return config


def task_webhook_from_v1(value: Object) -> Object:
    """Write ``{taskId, pushNotificationConfig}``."""
    return {
        "taskId": value.get("taskId", ""),
        "pushNotificationConfig": webhook_from_v1(value),
    }


def webhook_id_from_v1(value: Object) -> Object:
    """Write ``{id: <task>, pushNotificationConfigId}``."""
    moved: Object = {"id": value["taskId"]}
    if value.get("id"):
        moved["pushNotificationConfigId"] = value["id"]
    return moved
