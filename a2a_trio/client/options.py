"""How a client behaves: limits, timeouts, identity and hooks, each with its unit and its reason."""

import math
import ssl
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Final, Literal, TypeAlias, final

import attrs

from a2a_trio.rules.addresses import Policy
from a2a_trio.rules.audit import AuditEntry

__all__ = ["ClientOptions", "ProtocolChoice", "Said"]

ProtocolChoice: TypeAlias = Literal["auto", "1.0", "0.3"]
"""``auto`` follows the card and falls back from v1.0 to v0.3; the others are spoken whatever it says."""

_MIB: Final = 1024 * 1024


def _unchanged(text: str) -> str:
    return text


def _not_audited(_entry: AuditEntry) -> None:
    return


@final
@attrs.frozen(kw_only=True)
class Said:
    """One message of a conversation with a peer, told when the peer has answered."""

    at: datetime
    role: Literal["user", "agent"]
    """``user`` is this side, whoever wrote it."""
    text: str
    context_id: str
    """As the peer returned it, also for the message that opened the conversation."""
    task_id: str


def _not_kept(_said: Said) -> None:
    return


def _positive(_owner: object, field: "attrs.Attribute[float]", value: float) -> None:
    if math.isnan(value) or value <= 0:
        raise ValueError(f"{field.name} must be greater than 0, not {value}")


def _at_least_one(_owner: object, field: "attrs.Attribute[int]", value: int) -> None:
    if value < 1:
        raise ValueError(f"{field.name} must be 1 or more, not {value}")


def _not_negative(_owner: object, field: "attrs.Attribute[int]", value: int) -> None:
    if value < 0:
        raise ValueError(f"{field.name} must not be negative, not {value}")


@final
@attrs.frozen(kw_only=True)
class ClientOptions:
    """What ``open_client`` may be told; every time is in seconds and ``math.inf`` means no limit.

    Raises:
        ValueError: a number is out of its range.
    """

    send_timeout: float = attrs.field(default=360.0, validator=_positive)
    """For one whole send, its retries and waits included. Longer than the reply window of a server
    (300 s), so that the server's own answer arrives first."""
    call_timeout: float = attrs.field(default=30.0, validator=_positive)
    """The same for the quick calls: get, list, cancel and the card."""
    stream_idle_timeout: float = attrs.field(default=120.0, validator=_positive)
    """For one silence of a stream; any byte ends a silence, keep-alive comments too. There is no
    limit on a stream's whole length."""
    connect_timeout: float = attrs.field(default=10.0, validator=_positive)
    """For each step of making a connection: TCP, then TLS."""
    retry_attempts: int = attrs.field(default=2, validator=_not_negative)
    """Tries after the first one, where repeating is safe."""
    retry_base: float = attrs.field(default=0.5, validator=_positive)
    """Wait before the first of them; it doubles from try to try."""
    retry_cap: float = attrs.field(default=30.0, validator=_positive)
    """Greatest wait, unless the peer itself asks for a longer one."""
    max_connections: int = attrs.field(default=64, validator=_at_least_one)
    """Calls and streams that run at the same time; further ones wait."""
    max_response_bytes: int = attrs.field(default=32 * _MIB, validator=_at_least_one)
    """Size of one answer, counted while it is read."""
    max_event_bytes: int = attrs.field(default=16 * _MIB, validator=_at_least_one)
    """Size of one event of a stream; the greatest one is a snapshot of a whole task."""
    max_folded_bytes: int = attrs.field(default=64 * _MIB, validator=_at_least_one)
    """Size of the task that a stream's reader puts together."""
    poll_interval: float = attrs.field(default=1.0, validator=_positive)
    """First wait between two polls of ``wait``; it grows to ``poll_interval_cap``."""
    poll_interval_cap: float = attrs.field(default=30.0, validator=_positive)
    verify: bool | ssl.SSLContext = True
    """How certificates are checked; False accepts any."""
    trust_env: bool = False
    """Use ``HTTP_PROXY`` and its kin. Off, since a proxy would see the credentials of plain HTTP."""
    url_policy: Policy = Policy.OPERATOR
    """Who chose the URL, which decides where it may lead; anything but the operator's is also
    checked on the address that the name resolves to."""
    protocol: ProtocolChoice = "auto"
    use_card: bool = True
    """False: no card is fetched and calls go to the given URL."""
    headers: Mapping[str, str] = attrs.field(factory=dict)
    """More headers for calls to the given origin; they never go to another one."""
    extensions: tuple[str, ...] = ()
    """Extension URIs to ask for in ``A2A-Extensions``."""
    identity: str = ""
    """Display name of this caller, sent as ``X-A2A-Identity`` without what is not printable ASCII.
    It proves nothing."""
    self_id: str = ""
    """This peer's id in the delegation chain of outgoing messages; ``""`` leaves the chain alone."""
    redact: Callable[[str], str] = _unchanged
    """Applied to every text that leaves in a message."""
    audit: Callable[[AuditEntry], None] = _not_audited
    """Called for every request and every outcome; it must not block and must not raise."""
    said: Callable[[Said], None] = _not_kept
    """Called for a message and its answer once there is one; as ``audit``. What a detached task
    answers later is not told: nobody knows which look at it is the last."""
    redact_records: Callable[[str], str] | None = None
    """Applied to what ``audit`` and ``said`` get; ``redact`` if None."""

    def __attrs_post_init__(self) -> None:
        if self.retry_base > self.retry_cap or math.isinf(self.retry_cap):
            raise ValueError("retry_cap must be finite and not less than retry_base")
        if self.protocol not in {"auto", "1.0", "0.3"}:
            raise ValueError(f"protocol must be auto, 1.0 or 0.3, not {self.protocol!r}")

    @property
    def recorded(self) -> Callable[[str], str]:
        """What makes a text fit for a record of the call."""
        return self.redact if self.redact_records is None else self.redact_records
