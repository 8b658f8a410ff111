"""Ids and URIs of requests are bounded, and every one that is too long is named."""

import attrs

from a2a_trio.rules.bounds import MAX_NAME, MAX_NAMES, violations
from a2a_trio.wire.model import Message, Part, Role
from a2a_trio.wire.requests import (
    CancelTaskRequest,
    GetTaskPushNotificationConfigRequest,
    GetTaskRequest,
    ListTasksRequest,
    SendMessageRequest,
)

LONG = "x" * (MAX_NAME + 1)
FITS = "x" * MAX_NAME
MESSAGE = Message(message_id=FITS, role=Role.USER, parts=(Part(text=LONG),))


def fields(params: object) -> list[str]:
    return [v.field for v in violations(params)]  # type: ignore[arg-type] # any request


def test_what_fits_is_accepted() -> None:
    full = attrs.evolve(MESSAGE, context_id=FITS, task_id=FITS, extensions=(FITS,) * MAX_NAMES)
    assert fields(SendMessageRequest(message=full, tenant=FITS)) == []
    assert fields(GetTaskRequest(id=FITS)) == []


def test_every_long_name_of_a_message_is_named() -> None:
    long = attrs.evolve(
        MESSAGE,
        message_id=LONG,
        context_id=LONG,
        task_id=LONG,
        extensions=("ok", LONG),
        reference_task_ids=("x",) * (MAX_NAMES + 1),
    )
    assert fields(SendMessageRequest(message=long, tenant=LONG)) == [
        "tenant",
        "message.messageId",
        "message.contextId",
        "message.taskId",
        "message.extensions[1]",
        "message.referenceTaskIds",
    ]


def test_names_of_other_requests() -> None:
    assert fields(CancelTaskRequest(id=LONG)) == ["id"]
    assert fields(ListTasksRequest(context_id=LONG)) == ["contextId"]
    assert fields(GetTaskPushNotificationConfigRequest(task_id=LONG, id=LONG)) == ["id", "taskId"]
