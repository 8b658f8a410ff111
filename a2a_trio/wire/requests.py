"""The parameters and answers of every A2A v1.0 operation as frozen values (A2A section 3)."""

from datetime import datetime
from typing import final

import attrs

from a2a_trio.wire.model import (
    A_TUPLE,
    EMPTY,
    JsonObject,
    Message,
    Task,
    TaskState,
    exactly_one,
    maybe_utc,
)


@final
@attrs.frozen(kw_only=True)
class AuthenticationInfo:
    """How to authenticate to a webhook."""

    scheme: str
    credentials: str = ""


@final
@attrs.frozen(kw_only=True)
class TaskPushNotificationConfig:
    """A webhook of a task; also the request that creates one (A2A section 4.3.1)."""

    url: str
    tenant: str = ""
    id: str = ""
    task_id: str = ""
    token: str = ""
    authentication: AuthenticationInfo | None = None


@final
@attrs.frozen(kw_only=True)
class SendMessageConfiguration:
    """How the caller wants its message handled (A2A section 3.2.2)."""

    accepted_output_modes: tuple[str, ...] = attrs.field(default=(), validator=A_TUPLE)
    task_push_notification_config: TaskPushNotificationConfig | None = None
    history_length: int | None = None
    return_immediately: bool = False


@final
@attrs.frozen(kw_only=True)
class SendMessageRequest:
    """Parameters of SendMessage and SendStreamingMessage."""

    message: Message
    tenant: str = ""
    configuration: SendMessageConfiguration | None = None
    metadata: JsonObject = EMPTY


@final
@attrs.frozen(kw_only=True)
class SendMessageResponse:
    """The answer to SendMessage: exactly one member."""

    task: Task | None = None
    message: Message | None = None

    def __attrs_post_init__(self) -> None:
        exactly_one("SendMessageResponse", self.task, self.message)

    @property
    def payload(self) -> Task | Message:
        """The member that is there."""
        payload = self.task if self.task is not None else self.message
        if payload is None:
            raise AssertionError("checked at construction")
        return payload


@final
@attrs.frozen(kw_only=True)
class GetTaskRequest:
    """Parameters of GetTask."""

    id: str
    tenant: str = ""
    history_length: int | None = None


@final
@attrs.frozen(kw_only=True)
class ListTasksRequest:
    """Parameters of ListTasks (A2A section 3.1.4)."""

    tenant: str = ""
    context_id: str = ""
    status: TaskState = TaskState.UNSPECIFIED
    page_size: int | None = None
    page_token: str = ""
    history_length: int | None = None
    status_timestamp_after: datetime | None = attrs.field(default=None, converter=maybe_utc)
    include_artifacts: bool | None = None


@final
@attrs.frozen(kw_only=True)
class ListTasksResponse:
    """One page of tasks; ``next_page_token`` is ``""`` on the last one. All members are sent."""

    tasks: tuple[Task, ...] = attrs.field(validator=A_TUPLE)
    next_page_token: str
    page_size: int
    total_size: int


@final
@attrs.frozen(kw_only=True)
class CancelTaskRequest:
    """Parameters of CancelTask."""

    id: str
    tenant: str = ""
    metadata: JsonObject = EMPTY


@final
@attrs.frozen(kw_only=True)
class SubscribeToTaskRequest:
    """Parameters of SubscribeToTask."""

    id: str
    tenant: str = ""


@final
@attrs.frozen(kw_only=True)
class GetTaskPushNotificationConfigRequest:
    """Parameters of GetTaskPushNotificationConfig."""

    task_id: str
    id: str
    tenant: str = ""


@final
@attrs.frozen(kw_only=True)
class ListTaskPushNotificationConfigsRequest:
    """Parameters of ListTaskPushNotificationConfigs."""

    task_id: str
    tenant: str = ""
    page_size: int = 0
    """0 lets the server choose; a plain number in the proto, unlike that of ListTasks."""
    page_token: str = ""


@final
@attrs.frozen(kw_only=True)
class ListTaskPushNotificationConfigsResponse:
    """One page of webhooks."""

    configs: tuple[TaskPushNotificationConfig, ...] = attrs.field(default=(), validator=A_TUPLE)
    next_page_token: str = ""


@final
@attrs.frozen(kw_only=True)
class DeleteTaskPushNotificationConfigRequest:
    """Parameters of DeleteTaskPushNotificationConfig."""

    task_id: str
    id: str
    tenant: str = ""


@final
@attrs.frozen(kw_only=True)
class GetExtendedAgentCardRequest:
    """Parameters of GetExtendedAgentCard."""

    tenant: str = ""


@final
@attrs.frozen
class Empty:
    """google.protobuf.Empty."""
