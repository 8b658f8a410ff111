"""The shapes of answers: JSON, refusals, and the headers that every answer has."""

from collections.abc import Mapping
from typing import Final

from a2a_trio.errors import (
    InvalidRequestError,
    ProtocolError,
    ServerBusyError,
    UnauthorizedError,
    error_row,
)
from a2a_trio.rules.headers import retry_after_value
from a2a_trio.server.http import Header, HttpResponse
from a2a_trio.wire import jsonrpc
from a2a_trio.wire.extensions import (
    EXTENSIONS_HEADER,
    LEGACY_PROTOCOL_VERSION,
    PROTOCOL_VERSION,
    VERSION_HEADER,
)
from a2a_trio.wire.methods import Dialect

__all__ = [
    "JSON",
    "SSE",
    "failure",
    "not_allowed",
    "not_found",
    "service_headers",
    "success",
    "unready",
    "without_body",
]

JSON: Final = "application/json"
SSE: Final = "text/event-stream"

_CHALLENGE: Final = ("www-authenticate", 'Bearer realm="a2a"')
_VERSION_OF: Final[Mapping[Dialect, str]] = {
    Dialect.V1: PROTOCOL_VERSION,
    Dialect.V03: LEGACY_PROTOCOL_VERSION,
    # pi-a2a's servers named 1.0 whatever they were asked.
    Dialect.LEGACY: PROTOCOL_VERSION,
}
_V1_HEADERS: Final[tuple[Header, ...]] = ((VERSION_HEADER, PROTOCOL_VERSION),)
_OLD_EXTENSIONS_HEADER: Final = f"x-{EXTENSIONS_HEADER}"


def service_headers(
    dialect: Dialect = Dialect.V1, extensions: tuple[str, ...] = ()
) -> tuple[Header, ...]:
    """Return ``A2A-Version`` and, if any were activated, ``A2A-Extensions`` (A2A section 3.2.6)."""
    if dialect is Dialect.V1 and not extensions:
        return _V1_HEADERS
    headers: list[Header] = [(VERSION_HEADER, _VERSION_OF[dialect])]
    if extensions:
        joined = ", ".join(extensions)
        headers.append((EXTENSIONS_HEADER, joined))
        if dialect is Dialect.V03:
            headers.append((_OLD_EXTENSIONS_HEADER, joined))
    return tuple(headers)


def success(body: bytes, service: tuple[Header, ...] = _V1_HEADERS) -> HttpResponse:
    """Return a JSON answer that is already encoded."""
    return HttpResponse(status=200, headers=(("content-type", JSON), *service), body=body)


def failure(
    error: ProtocolError,
    *,
    request_id: jsonrpc.RpcId = None,
    status: int | None = None,
    service: tuple[Header, ...] = _V1_HEADERS,
    extra: tuple[Header, ...] = (),
) -> HttpResponse:
    """Return an error as a JSON-RPC answer.

    Args:
        error: what went wrong; its row gives the HTTP status.
        request_id: the id of the request, None where it was not readable.
        status: an HTTP status that says more than the row's.
        service: what ``service_headers`` returned.
        extra: headers of this refusal, e.g. a challenge.
    """
    headers = [("content-type", JSON), *service, *extra]
    named = {name for name, _ in extra}
    if error.retry_after is not None and "retry-after" not in named:
        seconds = retry_after_value(error.retry_after)
        if seconds is not None:
            headers.append(("retry-after", seconds))
    if isinstance(error, UnauthorizedError) and _CHALLENGE[0] not in named:
        headers.append(_CHALLENGE)
    return HttpResponse(
        status=status if status is not None else error_row(type(error)).rpc_status,
        headers=tuple(headers),
        body=jsonrpc.failure(request_id, error),
    )


def not_found() -> HttpResponse:
    """Return the answer to a path that is not ours."""
    return failure(InvalidRequestError("Not found"), status=404)


def not_allowed(verbs: tuple[str, ...]) -> HttpResponse:
    """Return the answer to a verb that this path does not take."""
    return failure(
        InvalidRequestError("Method not allowed"),
        status=405,
        extra=(("allow", ", ".join(verbs)),),
    )


def unready() -> HttpResponse:
    """Return the answer of ``/ready`` while no new work is taken."""
    return failure(ServerBusyError("Not ready", retry_after=1.0))


def without_body(response: HttpResponse) -> HttpResponse:
    """Return what HEAD answers: the same headers and length, and no body (RFC 9110 9.3.2)."""
    if not isinstance(response.body, bytes):
        response.body.close()
        return HttpResponse(status=response.status, headers=response.headers)
    length = ("content-length", str(len(response.body)))
    return HttpResponse(status=response.status, headers=(*response.headers, length))
