"""Which failures of a call may be repeated, and how long to wait first.

What matters is what the peer may have done already. A send that may have arrived starts a second
run when it is repeated, so it is only repeated when the peer has promised to recognise it.
"""

from enum import Enum

from a2a_trio.errors import (
    A2AError,
    PeerProtocolError,
    PeerUnreachableError,
    ProtocolError,
    RateLimitedError,
    ServerBusyError,
)

__all__ = ["Repeat", "TransientPeerError", "repeat_class", "retry_after_of"]


class TransientPeerError(PeerProtocolError):
    """No proper answer, for a reason that may pass: a lost connection, or HTTP 502, 503, 504.

    Whether the peer got the request is unknown. ``retry_after`` is what it asked for, in seconds.
    """

    def __init__(self, message: str, *, url: str = "", retry_after: float | None = None) -> None:
        self.retry_after = retry_after
        super().__init__(message, url=url)


class Repeat(Enum):
    """When a failed request may be sent again."""

    ALWAYS = "nothing was delivered, or the peer refused before it started anything"
    IF_SAFE = "the request may have had its effect"
    NEVER = "the answer is final"


def repeat_class(error: A2AError) -> Repeat:
    """Say when the request that failed with this error may be sent again."""
    if isinstance(error, PeerUnreachableError | ServerBusyError):
        return Repeat.ALWAYS
    if isinstance(error, TransientPeerError | RateLimitedError):
        return Repeat.IF_SAFE
    return Repeat.NEVER


def retry_after_of(error: A2AError) -> float | None:
    """Return the wait that the peer asked for, in seconds."""
    if isinstance(error, ProtocolError | TransientPeerError):
        return error.retry_after
    return None
