"""The one table of A2A operations: names in every dialect, parameters, results, gates.

A method name, an alias or a REST route that stands anywhere else is a defect.
"""

from collections.abc import Mapping
from enum import StrEnum
from typing import Final, TypeAlias, final

import attrs

from a2a_trio.wire import agent_card, model, requests


class Dialect(StrEnum):
    """How objects are spelled on the wire."""

    V1 = "1.0"
    """A2A v1.0: ProtoJSON."""
    V03 = "0.3"
    """A2A v0.3: ``kind`` members, lower-case states, unwrapped results."""
    LEGACY = "legacy"
    """The shapes of pi-a2a before v1.0: slash names, v1.0 spellings, bare Task results."""


class Operation(StrEnum):
    """The eleven operations, by their v1.0 name (A2A section 5.3)."""

    SEND_MESSAGE = "SendMessage"
    SEND_STREAMING_MESSAGE = "SendStreamingMessage"
    GET_TASK = "GetTask"
    LIST_TASKS = "ListTasks"
    CANCEL_TASK = "CancelTask"
    SUBSCRIBE_TO_TASK = "SubscribeToTask"
    CREATE_PUSH_CONFIG = "CreateTaskPushNotificationConfig"
    GET_PUSH_CONFIG = "GetTaskPushNotificationConfig"
    LIST_PUSH_CONFIGS = "ListTaskPushNotificationConfigs"
    DELETE_PUSH_CONFIG = "DeleteTaskPushNotificationConfig"
    GET_EXTENDED_CARD = "GetExtendedAgentCard"


Params: TypeAlias = (
    requests.SendMessageRequest
    | requests.GetTaskRequest
    | requests.ListTasksRequest
    | requests.CancelTaskRequest
    | requests.SubscribeToTaskRequest
    | requests.TaskPushNotificationConfig
    | requests.GetTaskPushNotificationConfigRequest
    | requests.ListTaskPushNotificationConfigsRequest
    | requests.DeleteTaskPushNotificationConfigRequest
    | requests.GetExtendedAgentCardRequest
)
"""What a request carries, typed."""

Result: TypeAlias = (
    requests.SendMessageResponse
    | model.Task
    | requests.ListTasksResponse
    | requests.TaskPushNotificationConfig
    | requests.ListTaskPushNotificationConfigsResponse
    | requests.Empty
    | agent_card.AgentCard
)
"""What a call that is not a stream answers, typed."""


@final
@attrs.frozen(kw_only=True)
class Method:
    """One row of the table."""

    operation: Operation
    aliases: tuple[str, ...]
    """Names of the v0.3 and legacy dialects; the first one is v0.3's, "" where it has none."""
    verb: str
    """HTTP verb of the HTTP+JSON binding."""
    route: str
    """Path of the HTTP+JSON binding; ``{...}`` are parameters."""
    params: type[Params]
    result: type[Result] | type[model.StreamResponse]
    legacy: bool = True
    """The legacy dialect has this operation, under the last of the aliases."""
    streaming: bool = False
    polling: bool = False
    """Reads only; counted in the larger bucket of the rate limit."""

    @property
    def sends(self) -> bool:
        """True if it carries a message to the agent; what else there is may be repeated freely."""
        return self.params is requests.SendMessageRequest


METHODS: Final[tuple[Method, ...]] = (
    Method(
        operation=Operation.SEND_MESSAGE,
        aliases=("message/send",),
        verb="POST",
        route="/message:send",
        params=requests.SendMessageRequest,
        result=requests.SendMessageResponse,
    ),
    Method(
        operation=Operation.SEND_STREAMING_MESSAGE,
        aliases=("message/stream",),
        verb="POST",
        route="/message:stream",
        params=requests.SendMessageRequest,
        result=model.StreamResponse,
        streaming=True,
    ),
    Method(
        operation=Operation.GET_TASK,
        aliases=("tasks/get",),
        verb="GET",
        route="/tasks/{id}",
        params=requests.GetTaskRequest,
        result=model.Task,
        polling=True,
    ),
    Method(
        operation=Operation.LIST_TASKS,
        aliases=("", "tasks/list"),
        verb="GET",
        route="/tasks",
        params=requests.ListTasksRequest,
        result=requests.ListTasksResponse,
        polling=True,
    ),
    Method(
        operation=Operation.CANCEL_TASK,
        aliases=("tasks/cancel",),
        verb="POST",
        route="/tasks/{id}:cancel",
        params=requests.CancelTaskRequest,
        result=model.Task,
    ),
    Method(
        operation=Operation.SUBSCRIBE_TO_TASK,
        aliases=("tasks/resubscribe", "tasks/subscribe"),
        verb="POST",
        route="/tasks/{id}:subscribe",
        params=requests.SubscribeToTaskRequest,
        result=model.StreamResponse,
        streaming=True,
        polling=True,
    ),
    Method(
        operation=Operation.CREATE_PUSH_CONFIG,
        aliases=("tasks/pushNotificationConfig/set",),
        legacy=False,
        verb="POST",
        route="/tasks/{taskId}/pushNotificationConfigs",
        params=requests.TaskPushNotificationConfig,
        result=requests.TaskPushNotificationConfig,
    ),
    Method(
        operation=Operation.GET_PUSH_CONFIG,
        aliases=("tasks/pushNotificationConfig/get",),
        legacy=False,
        verb="GET",
        route="/tasks/{taskId}/pushNotificationConfigs/{id}",
        params=requests.GetTaskPushNotificationConfigRequest,
        result=requests.TaskPushNotificationConfig,
        polling=True,
    ),
    Method(
        operation=Operation.LIST_PUSH_CONFIGS,
        aliases=("tasks/pushNotificationConfig/list",),
        legacy=False,
        verb="GET",
        route="/tasks/{taskId}/pushNotificationConfigs",
        params=requests.ListTaskPushNotificationConfigsRequest,
        result=requests.ListTaskPushNotificationConfigsResponse,
        polling=True,
    ),
    Method(
        operation=Operation.DELETE_PUSH_CONFIG,
        aliases=("tasks/pushNotificationConfig/delete",),
        legacy=False,
        verb="DELETE",
        route="/tasks/{taskId}/pushNotificationConfigs/{id}",
        params=requests.DeleteTaskPushNotificationConfigRequest,
        result=requests.Empty,
    ),
    Method(
        operation=Operation.GET_EXTENDED_CARD,
        aliases=("agent/getAuthenticatedExtendedCard",),
        legacy=False,
        verb="GET",
        route="/extendedAgentCard",
        params=requests.GetExtendedAgentCardRequest,
        result=agent_card.AgentCard,
        polling=True,
    ),
)

_BY_NAME: Final[Mapping[str, Method]] = {
    name: method for method in METHODS for name in (method.operation.value, *method.aliases) if name
}
_BY_OPERATION: Final[Mapping[Operation, Method]] = {m.operation: m for m in METHODS}


def find_method(name: str) -> Method | None:
    """Return the method of a JSON-RPC name in any dialect, or None."""
    return _BY_NAME.get(name)


def method_of(operation: Operation) -> Method:
    """Return the row of an operation."""
    return _BY_OPERATION[operation]
