"""Registering with a gateway, without its I/O: what to send next, and what an answer means.

The first registration shows the gateway's shared token and is given a token of its own, once. With
that every further beat updates the entry. An entry that the gateway has forgotten takes its token
along, so a refused token is forgotten and the next request begins anew, in the same beat.
"""

from collections.abc import Mapping
from enum import Enum, auto
from typing import Final, final

import attrs

from a2a_trio.errors import ProtocolError
from a2a_trio.rules.backoff import Backoff, Random
from a2a_trio.wire.json_text import loads
from a2a_trio.wire.model import JsonValue

__all__ = ["ACCEPTED", "PENDING", "REVOKED", "Registration", "Reply", "Step", "read_reply"]

PENDING: Final = "pending"
ACCEPTED: Final = "accepted"
REVOKED: Final = "revoked"
STATES: Final = frozenset({PENDING, ACCEPTED, REVOKED})

LEAST_INTERVAL_SEC: Final = 15.0
"""Gateways count requests by the minute, those of all peers of one machine together."""
LONGEST_BACKOFF_SEC: Final = 300.0
SUFFIX_CHARS: Final = 6
MAX_NAME_CHARS: Final = 64
MAX_TOKEN_CHARS: Final = 4_096

_ALPHABET: Final = "0123456789abcdefghijklmnopqrstuvwxyz"


@final
@attrs.frozen(kw_only=True)
class Reply:
    """What came back for a registration."""

    status: int | None
    """HTTP status; None if there was no answer."""
    state: str = ""
    """Of the entry; empty if the body did not say."""
    caller_token: str = attrs.field(default="", repr=False)
    retry_after: float | None = None
    problem: str = ""
    """Why there was no answer, for people."""


def read_reply(status: int, body: bytes, retry_after: float | None) -> Reply:
    """Return an answer as far as its body can be read; errors have bodies of any kind."""
    try:
        members = _members(loads(body))
    except ProtocolError:
        members = {}
    state, token = members.get("state"), members.get("caller_token")
    return Reply(
        status=status,
        state=state if isinstance(state, str) and state in STATES else "",
        caller_token=token if isinstance(token, str) and _is_token(token) else "",
        retry_after=retry_after,
    )


def _members(value: JsonValue) -> Mapping[str, JsonValue]:
    return value if isinstance(value, dict) else {}


def _is_token(text: str) -> bool:
    return (
        len(text) <= MAX_TOKEN_CHARS and text.isascii() and text.isprintable() and " " not in text
    )


class Step(Enum):
    """What follows on an answer."""

    AGAIN = auto()
    """Send ``request`` at once."""
    REGISTERED = auto()
    FAILED = auto()


@final
class Registration:
    """One peer at one gateway.

    Args:
        name: to register under; another one is taken if somebody else has it.
        shared_token: the gateway's.
        caller_token: the peer's own from an earlier time, or "".
        heartbeat: seconds between two updates.
        rng: source of the jitter and of the other name.
    """

    def __init__(
        self,
        *,
        name: str,
        shared_token: str,
        caller_token: str = "",
        heartbeat: float,
        rng: Random,
    ) -> None:
        self.name = name
        self.caller_token = caller_token
        self.state = ""
        """How far the gateway has accepted this peer; empty before the first answer."""
        self.problem = ""
        """Why the last beat failed; empty if it did not."""
        self._shared = shared_token
        self._interval = max(LEAST_INTERVAL_SEC, heartbeat)
        self._rng = rng
        self._backoff = Backoff(
            self._interval,
            max(self._interval, LONGEST_BACKOFF_SEC),
            rng,
            retry_after_cap=LONGEST_BACKOFF_SEC,
        )
        self._knows_patch = True
        self._renamed = False
        self._delay = self._interval

    @property
    def is_registered(self) -> bool:
        """True once the gateway has an entry of this peer."""
        return bool(self.state)

    @property
    def token(self) -> str:
        """The credential for everything but the first registration."""
        return self.caller_token or self._shared

    @property
    def delay(self) -> float:
        """Seconds to the next beat."""
        return self._delay

    def request(self) -> tuple[str, str]:
        """Return the verb and the credential of the next request."""
        if self.caller_token and self._knows_patch:
            return "PATCH", self.caller_token
        return "POST", self._shared

    def answered(self, reply: Reply) -> Step:
        """Take an answer to ``request``; a beat has three requests at most."""
        verb, _ = self.request()
        status = reply.status
        if status is not None and 200 <= status < 300 and reply.state:  # noqa: PLR2004 - HTTP
            return self._registered(reply)
        if verb == "PATCH" and status == 405:  # noqa: PLR2004 - an older gateway, for good
            self._knows_patch = False
            return Step.AGAIN
        if verb == "PATCH" and status in {401, 404}:
            self.caller_token = ""
            return Step.AGAIN
        if verb == "POST" and status == 409 and not (self.caller_token or self._renamed):  # noqa: PLR2004 - HTTP
            self._rename()
            return Step.AGAIN
        if verb == "PATCH" and status == 403:  # noqa: PLR2004 - HTTP
            self.state = REVOKED
        return self._failed(reply)

    def _registered(self, reply: Reply) -> Step:
        self.state = reply.state
        self.caller_token = reply.caller_token or self.caller_token
        self.problem = ""
        self._backoff.succeeded()
        self._delay = self._interval
        return Step.REGISTERED

    def _failed(self, reply: Reply) -> Step:
        self._delay = self._backoff.failed(reply.retry_after)
        if reply.status is None:
            self.problem = reply.problem or "no answer"
        elif 200 <= reply.status < 300:  # noqa: PLR2004 - HTTP
            self.problem = "what answers there is no gateway"
        else:
            self.problem = _PROBLEMS.get(reply.status, f"HTTP {reply.status}")
        return Step.FAILED

    def _rename(self) -> None:
        self._renamed = True
        suffix = "".join(
            _ALPHABET[int(self._rng.random() * len(_ALPHABET))] for _ in range(SUFFIX_CHARS)
        )
        self.name = f"{self.name[: MAX_NAME_CHARS - SUFFIX_CHARS - 1]}-{suffix}"


_PROBLEMS: Final[Mapping[int, str]] = {
    401: "HTTP 401: the token is not valid",
    403: "HTTP 403: this peer was revoked",
    409: "HTTP 409: the name belongs to another identity",
    413: "HTTP 413: the card is too large",
    429: "HTTP 429: too many requests",
}
