"""What the answer to one request means: a result, or an exception that says what went wrong.

A body is never repeated in an error. What a peer says in an error message is one short line without
control characters by the time it gets here, since it ends up in terminals, logs and prompts.
"""

from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Final, Protocol, final

import attrs

from a2a_trio.client.failures import TransientPeerError
from a2a_trio.errors import (
    A2AError,
    DecodeError,
    ForbiddenError,
    PeerError,
    PeerProtocolError,
    ProtocolError,
    RateLimitedError,
    RemoteError,
    UnauthorizedError,
)
from a2a_trio.rules.backoff import parse_retry_after
from a2a_trio.wire import jsonrpc
from a2a_trio.wire.agent_card import AgentCard
from a2a_trio.wire.codec import loads
from a2a_trio.wire.dialects import decode_card
from a2a_trio.wire.model import JsonValue

__all__ = ["Head", "head_of", "read_answer", "read_card", "read_event", "retry_after", "unreadable"]

_OK: Final = range(200, 300)
_REDIRECT: Final = range(300, 400)
_TRANSIENT: Final = frozenset({502, 503, 504})
_REFUSALS: Final[Mapping[int, type[ProtocolError]]] = {
    401: UnauthorizedError,
    403: ForbiddenError,
    429: RateLimitedError,
}
"""What these statuses mean whatever the body says (A2A section 3.3.2 leaves the codes open)."""


class _Response(Protocol):
    @property
    def status(self) -> int: ...

    def header(self, name: str) -> str: ...


@final
@attrs.frozen(kw_only=True)
class Head:
    """The parts of a response's head that matter."""

    status: int
    media_type: str
    """Lower case, without parameters."""
    retry_after: float | None
    """Seconds."""
    encoding: str
    url: str


def head_of(response: _Response, url: str, now: datetime) -> Head:
    """Read the head of a response; ``now`` is for a ``Retry-After`` that is a date."""
    return Head(
        status=response.status,
        media_type=response.header("content-type").partition(";")[0].strip().lower(),
        retry_after=retry_after(response.header("retry-after"), now),
        encoding=response.header("content-encoding").strip().lower(),
        url=url,
    )


def retry_after(value: str, now: datetime) -> float | None:
    """Return the seconds of a ``Retry-After``, which is a number or a date (RFC 9110 10.2.3)."""
    seconds = parse_retry_after(value)
    if seconds is not None or not value:
        return seconds
    try:
        at = parsedate_to_datetime(value)
    except ValueError:
        return None
    at = at if at.tzinfo is not None else at.replace(tzinfo=UTC)
    return max((at - now).total_seconds(), 0.0)


def read_answer(head: Head, body: bytes, request_id: str) -> JsonValue:
    """Return the result in the answer to a call.

    Raises:
        ProtocolError: the peer answered an error of the protocol, or HTTP 401, 403 or 429.
        RemoteError: it answered an error code that is not known here.
        TransientPeerError: it answered HTTP 502, 503 or 504 without saying why.
        PeerProtocolError: it answered something else.
    """
    error: A2AError = PeerProtocolError(_describe(head), url=head.url)
    try:
        value = loads(body)
    except ProtocolError:
        value = None
    if isinstance(value, dict) and "jsonrpc" in value:
        try:
            result = read_event(value, request_id, head)
        except A2AError as exc:
            error = exc
        else:
            if head.status in _OK:
                return result
    elif isinstance(value, dict) and head.status not in _OK:
        error = RemoteError(_describe(head), code=head.status, url=head.url)
    raise _by_status(head, error) from None


def read_event(value: JsonValue, request_id: str, head: Head) -> JsonValue:
    """Return the result in one JSON-RPC response: a whole answer, or a frame of a stream.

    Raises:
        ProtocolError, RemoteError, PeerProtocolError: as ``read_answer``.
    """
    try:
        return jsonrpc.parse_response(value, request_id)
    except ProtocolError as exc:
        if exc.retry_after is None:
            exc.retry_after = head.retry_after
        raise
    except PeerError as exc:
        exc.url = head.url
        raise


def read_card(head: Head, body: bytes) -> AgentCard:
    """Return the card in the answer to a card fetch, in v1.0 form.

    Raises:
        ProtocolError: HTTP 401, 403 or 429.
        RemoteError, TransientPeerError: another HTTP error.
        PeerProtocolError: what is there is no card.
    """
    if head.status not in _OK:
        read_answer(head, body, "")
    try:
        return decode_card(loads(body))
    except ProtocolError:
        raise PeerProtocolError("the peer's card is not JSON", url=head.url) from None
    except DecodeError as exc:
        raise PeerProtocolError(
            f"the peer's card is not valid: {jsonrpc.peer_text(str(exc))}", url=head.url
        ) from None


def unreadable(error: DecodeError, url: str) -> PeerProtocolError:
    """Return the error for a result that is JSON but not the A2A object it should be."""
    return PeerProtocolError(
        f"the answer is not valid A2A: {jsonrpc.peer_text(str(error))}", url=url
    )


def _by_status(head: Head, error: A2AError) -> A2AError:
    """Let the HTTP status decide where it says more than the body."""
    refusal = _REFUSALS.get(head.status)
    if refusal is not None and not isinstance(error, refusal):
        text = error.message if isinstance(error, ProtocolError) else None
        return refusal(text, retry_after=head.retry_after)
    if head.status in _TRANSIENT and not isinstance(error, ProtocolError):
        return TransientPeerError(_describe(head), url=head.url, retry_after=head.retry_after)
    return error


def _describe(head: Head) -> str:
    kind = jsonrpc.peer_text(head.media_type)[:60] or "no content type"
    if head.status in _REDIRECT:
        return f"the peer answered a redirect (HTTP {head.status}), which is not followed"
    if head.status in _OK:
        return f"the peer answered something that is not JSON-RPC ({kind})"
    return f"the peer answered HTTP {head.status} ({kind})"
