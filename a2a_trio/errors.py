"""The one tree of public exceptions and the one table of their wire codes.

::

    A2AError                         everything this package raises on purpose
    |- ProtocolError                 has a wire form: one row of ``ERROR_TABLE``
    |  |- JSONParseError             -32700
    |  |- InvalidRequestError        -32600
    |  |  |- PayloadTooLargeError    -32600, HTTP 413
    |  |- MethodNotFoundError        -32601
    |  |- InvalidParamsError         -32602, names each bad field
    |  |- InternalError              -32603
    |  |- TaskNotFoundError          -32001 ... VersionNotSupportedError -32009 (A2A section 5.4)
    |  |  |- UnsupportedMediaTypeError   -32005, HTTP 415
    |  `- UnauthorizedError, RateLimitedError, ForbiddenError, ServerBusyError   -32050 ... -32053
    |- DecodeError                   a JSON value is not the A2A object it should be
    |- InvalidTransitionError        a task event that the life cycle forbids; nothing changed
    |- SettingsError                 a settings file, variable or flag is wrong
    `- PeerError                     calling another agent failed
       |- PeerUnreachableError       no connection, so nothing was delivered
       |- PeerTimeoutError           no answer in time; delivery is unknown
       |- PeerProtocolError          the peer answered something that is not A2A
       `- RemoteError                the peer answered an error code this package does not know

A server raises a ``ProtocolError`` and the caller's client raises the same class again, so
``except TaskNotFoundError`` reads the same on both sides. Peers only ever see the fixed texts
and field paths carried here, never ``str()`` of a foreign exception.
"""

from collections.abc import Mapping
from typing import Final, final

import attrs

__all__ = [
    "ERROR_TABLE",
    "A2AError",
    "ContentTypeNotSupportedError",
    "DecodeError",
    "ErrorRow",
    "ExtendedAgentCardNotConfiguredError",
    "ExtensionSupportRequiredError",
    "FieldViolation",
    "ForbiddenError",
    "InternalError",
    "InvalidAgentResponseError",
    "InvalidParamsError",
    "InvalidRequestError",
    "InvalidTransitionError",
    "JSONParseError",
    "MethodNotFoundError",
    "PayloadTooLargeError",
    "PeerError",
    "PeerProtocolError",
    "PeerTimeoutError",
    "PeerUnreachableError",
    "ProtocolError",
    "PushNotificationNotSupportedError",
    "RateLimitedError",
    "RemoteError",
    "ServerBusyError",
    "SettingsError",
    "TaskNotCancelableError",
    "TaskNotFoundError",
    "UnauthorizedError",
    "UnsupportedMediaTypeError",
    "UnsupportedOperationError",
    "VersionNotSupportedError",
    "error_for_code",
    "error_row",
]


@final
@attrs.frozen(kw_only=True)
class FieldViolation:
    """One bad field: where it is and what is wrong with it (google.rpc.BadRequest)."""

    field: str
    """JSON path from the params object, e.g. ``message.parts[0].text``."""
    description: str


class A2AError(Exception):
    """Base of every exception that this package raises on purpose; never raised itself."""


class ProtocolError(A2AError):
    """An error with a wire form; each subclass is one row of ``ERROR_TABLE``.

    Args:
        message: text for the peer; the row's fixed text if omitted.
        violations: the bad fields, for ``InvalidParamsError``.
        metadata: string map for ErrorInfo, safe to show to the peer.
        retry_after: seconds after which a repeat may succeed, sent as ``Retry-After``.
    """

    def __init__(
        self,
        message: str | None = None,
        *,
        violations: tuple[FieldViolation, ...] = (),
        metadata: Mapping[str, str] | None = None,
        retry_after: float | None = None,
    ) -> None:
        self.message = message if message is not None else error_row(type(self)).message
        self.violations = violations
        self.metadata = dict(metadata or {})
        self.retry_after = retry_after
        super().__init__(self.message)

    @property
    def code(self) -> int:
        """The JSON-RPC code of this class."""
        return error_row(type(self)).code


class JSONParseError(ProtocolError):
    """The body is not JSON."""


class InvalidRequestError(ProtocolError):
    """The body is JSON but not a JSON-RPC request."""


class PayloadTooLargeError(InvalidRequestError):
    """The body is larger than ``server.maxBodyBytes``."""


class MethodNotFoundError(ProtocolError):
    """No operation has this method name."""


class InvalidParamsError(ProtocolError):
    """A parameter is missing or wrong; ``violations`` names each one."""

    @classmethod
    def of(cls, field: str, description: str) -> "InvalidParamsError":
        """Return the error of one bad field."""
        return cls(violations=(FieldViolation(field=field, description=description),))


class InternalError(ProtocolError):
    """The server failed; the cause is in its log, not in the answer."""


class TaskNotFoundError(ProtocolError):
    """The task does not exist or belongs to another caller (A2A section 3.3.2)."""


class TaskNotCancelableError(ProtocolError):
    """The task has already ended."""


class PushNotificationNotSupportedError(ProtocolError):
    """The agent does not send push notifications."""


class UnsupportedOperationError(ProtocolError):
    """The operation, or this use of it, is not supported."""


class ContentTypeNotSupportedError(ProtocolError):
    """A media type in the request is not supported."""


class UnsupportedMediaTypeError(ContentTypeNotSupportedError):
    """The request's own Content-Type is not JSON; refused before the body is read."""


class InvalidAgentResponseError(ProtocolError):
    """The agent produced something that is not a valid A2A answer."""


class ExtendedAgentCardNotConfiguredError(ProtocolError):
    """The extended card is declared but not configured."""


class ExtensionSupportRequiredError(ProtocolError):
    """The agent requires an extension that the request did not declare."""


class VersionNotSupportedError(ProtocolError):
    """The requested A2A version is not supported by this interface."""


class UnauthorizedError(ProtocolError):
    """No credential, or a wrong one."""


class RateLimitedError(ProtocolError):
    """Too many requests from this caller."""


class ForbiddenError(ProtocolError):
    """The caller is known but not allowed, or the Host or Origin is refused."""


class ServerBusyError(ProtocolError):
    """All slots are taken, or the server is stopping; nothing was started."""


@final
@attrs.frozen
class ErrorRow:
    """How one ``ProtocolError`` class looks on every wire (A2A section 5.4)."""

    error: type[ProtocolError]
    code: int
    """JSON-RPC code."""
    rpc_status: int
    """HTTP status of the JSON-RPC binding: 200, or the transport's own refusal."""
    http_status: int
    """HTTP status of the HTTP+JSON binding."""
    grpc_status: str
    reason: str
    """``reason`` of google.rpc.ErrorInfo."""
    message: str
    """The fixed text shown when nothing more exact is known."""


ERROR_TABLE: Final[tuple[ErrorRow, ...]] = (
    ErrorRow(JSONParseError, -32700, 200, 400, "INVALID_ARGUMENT", "JSON_PARSE", "Invalid JSON payload"),
    ErrorRow(InvalidRequestError, -32600, 200, 400, "INVALID_ARGUMENT", "INVALID_REQUEST", "Request payload validation error"),
    ErrorRow(PayloadTooLargeError, -32600, 413, 413, "INVALID_ARGUMENT", "PAYLOAD_TOO_LARGE", "Request body is too large"),
    ErrorRow(MethodNotFoundError, -32601, 200, 404, "NOT_FOUND", "METHOD_NOT_FOUND", "Method not found"),
    ErrorRow(InvalidParamsError, -32602, 200, 400, "INVALID_ARGUMENT", "INVALID_PARAMS", "Invalid parameters"),
    ErrorRow(InternalError, -32603, 200, 500, "INTERNAL", "INTERNAL_ERROR", "Internal error"),
    ErrorRow(TaskNotFoundError, -32001, 200, 404, "NOT_FOUND", "TASK_NOT_FOUND", "Task not found"),
    ErrorRow(TaskNotCancelableError, -32002, 200, 400, "FAILED_PRECONDITION", "TASK_NOT_CANCELABLE", "Task cannot be canceled"),
    ErrorRow(PushNotificationNotSupportedError, -32003, 200, 400, "FAILED_PRECONDITION", "PUSH_NOTIFICATION_NOT_SUPPORTED", "Push notifications are not supported"),
    ErrorRow(UnsupportedOperationError, -32004, 200, 400, "FAILED_PRECONDITION", "UNSUPPORTED_OPERATION", "This operation is not supported"),
    ErrorRow(ContentTypeNotSupportedError, -32005, 200, 400, "INVALID_ARGUMENT", "CONTENT_TYPE_NOT_SUPPORTED", "Content type not supported"),
    ErrorRow(UnsupportedMediaTypeError, -32005, 415, 415, "INVALID_ARGUMENT", "CONTENT_TYPE_NOT_SUPPORTED", "Content-Type must be application/json"),
    ErrorRow(InvalidAgentResponseError, -32006, 200, 500, "INTERNAL", "INVALID_AGENT_RESPONSE", "The agent answered something invalid"),
    ErrorRow(ExtendedAgentCardNotConfiguredError, -32007, 200, 400, "FAILED_PRECONDITION", "EXTENDED_AGENT_CARD_NOT_CONFIGURED", "Extended agent card is not configured"),
    ErrorRow(ExtensionSupportRequiredError, -32008, 200, 400, "FAILED_PRECONDITION", "EXTENSION_SUPPORT_REQUIRED", "A required extension was not declared"),
    ErrorRow(VersionNotSupportedError, -32009, 200, 400, "FAILED_PRECONDITION", "VERSION_NOT_SUPPORTED", "A2A version not supported"),
    ErrorRow(UnauthorizedError, -32050, 401, 401, "UNAUTHENTICATED", "UNAUTHORIZED", "Unauthorized"),
    ErrorRow(RateLimitedError, -32051, 429, 429, "RESOURCE_EXHAUSTED", "RATE_LIMITED", "Rate limited"),
    ErrorRow(ForbiddenError, -32052, 403, 403, "PERMISSION_DENIED", "FORBIDDEN", "Forbidden"),
    ErrorRow(ServerBusyError, -32053, 503, 503, "UNAVAILABLE", "SERVER_BUSY", "Server busy"),
)  # fmt: skip

_ROW_OF_CLASS: Final[Mapping[type[ProtocolError], ErrorRow]] = {r.error: r for r in ERROR_TABLE}
# The first row of a code is the class that a client raises for it.
_ROW_OF_CODE: Final[Mapping[int, ErrorRow]] = {r.code: r for r in reversed(ERROR_TABLE)}


def error_row(error: type[ProtocolError]) -> ErrorRow:
    """Return the row of a class, or of its nearest base that has one.

    Raises:
        LookupError: the class has no row; a defect of the caller.
    """
    for base in error.__mro__:
        row = _ROW_OF_CLASS.get(base)
        if row is not None:
            return row
    raise LookupError(f"{error.__name__} has no row in ERROR_TABLE")


def error_for_code(code: int) -> type[ProtocolError] | None:
    """Return the class that a client raises for a JSON-RPC code, or None for a foreign code."""
    row = _ROW_OF_CODE.get(code)
    return row.error if row is not None else None


class DecodeError(A2AError):
    """A JSON value is not the A2A object it should be; ``violations`` names every bad field."""

    def __init__(self, violations: tuple[FieldViolation, ...]) -> None:
        self.violations = violations
        super().__init__("; ".join(f"{v.field or '$'}: {v.description}" for v in violations))


class InvalidTransitionError(A2AError):
    """The task's life cycle forbids this event; the task is unchanged."""


class SettingsError(A2AError):
    """A setting is wrong; the text names the source, the key, the value and what is allowed."""


class PeerError(A2AError):
    """Calling another agent failed. ``url`` is the peer's address as configured."""

    def __init__(self, message: str, *, url: str = "") -> None:
        self.url = url
        super().__init__(message)


class PeerUnreachableError(PeerError):
    """No connection was made, so nothing was delivered; repeating is safe."""


class PeerTimeoutError(PeerError):
    """The peer did not answer in time; whether it got the message is unknown."""


class PeerProtocolError(PeerError):
    """The peer answered something that is not A2A."""


class RemoteError(PeerError):
    """The peer answered an error code that this package does not know.

    Args:
        message: the peer's text, made safe for display.
        code: the JSON-RPC code, or the HTTP status where the body was no JSON-RPC.
    """

    def __init__(self, message: str, *, code: int, url: str = "") -> None:
        self.code = code
        super().__init__(message, url=url)
