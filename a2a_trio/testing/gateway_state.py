"""What a fake gateway knows and decides: peers, tokens, states; no sockets."""

import json
import re
import secrets
from collections import deque
from collections.abc import Callable, Mapping
from enum import StrEnum
from hashlib import sha256
from typing import Any, Final, final
from urllib.parse import urlsplit

import attrs

__all__ = ["Admission", "Answer", "Entry", "GatewayState"]

MAX_CARD_BYTES: Final = 262_144
MAX_UPSTREAM_TOKEN: Final = 512
RATE_WINDOW_SEC: Final = 60.0
REGISTER_LIMIT: Final = 20
OTHER_LIMIT: Final = 120
MAX_REMEMBERED: Final = 1_000
"""Requests that a rate limit looks at; the limits are far below it."""

_NAME: Final = re.compile(r"[A-Za-z0-9._-]{1,64}", re.ASCII)


class Admission(StrEnum):
    """How far a peer has come."""

    PENDING = "pending"
    ACCEPTED = "accepted"
    REVOKED = "revoked"


@final
@attrs.frozen(kw_only=True)
class Answer:
    """One whole answer."""

    status: int
    body: bytes = b""
    content_type: str = ""
    headers: tuple[tuple[str, str], ...] = ()


@final
@attrs.define(kw_only=True)
class Entry:
    """A registered peer."""

    name: str
    url: str
    state: Admission
    fingerprint: str
    card: Any = None
    upstream_token: str | None = attrs.field(default=None, repr=False)
    caller_token: str | None = attrs.field(default=None, repr=False)
    healthy: bool | None = None


def text(status: int, message: str) -> Answer:
    """Return a plain text answer."""
    return Answer(status=status, body=message.encode(), content_type="text/plain; charset=utf-8")


def as_json(status: int, value: object) -> Answer:
    """Return a JSON answer."""
    return Answer(status=status, body=json.dumps(value).encode(), content_type="application/json")


def _refusal(status: int, error: bytes) -> Answer:
    """Return one of the few refusals that are JSON-RPC errors; their codes are the gateway's own."""
    return Answer(
        status=status,
        body=b'{"jsonrpc":"2.0","id":null,"error":{' + error + b"}}",
        content_type="application/json",
    )


UNAUTHORIZED: Final = _refusal(401, b'"code":-32001,"message":"invalid or missing gateway token"')
NOT_ACCEPTED: Final = _refusal(403, b'"code":-32002,"message":"peer is not accepted"')
RATE_LIMITED: Final = _refusal(429, b'"code":-32003,"message":"rate limit exceeded"')


@final
class GatewayState:
    """The peers of a gateway and who may do what with them.

    Args:
        gateway_token: registers peers that wait for acceptance.
        bootstrap_token: registers peers that are accepted at once.
        patch: False for a gateway that is too old to know ``PATCH /register``.
        mint: False for one that is too old to give out a token for each peer.
        limits: whether the rate limits apply; all peers of a test share one address.
        now: seconds, for the rate limits.
    """

    def __init__(
        self,
        *,
        gateway_token: str,
        bootstrap_token: str,
        patch: bool,
        mint: bool,
        limits: bool,
        now: Callable[[], float],
    ) -> None:
        self.gateway_token = gateway_token
        self.bootstrap_token = bootstrap_token
        self.patch = patch
        self.mint = mint
        self.limits = limits
        self.peers: dict[str, Entry] = {}
        self._now = now
        self._recent: deque[float] = deque(maxlen=MAX_REMEMBERED)

    # --- who is who -----------------------------------------------------------------------------

    def is_shared(self, token: str) -> bool:
        """Return whether a token is one that all peers have."""
        return token in {self.gateway_token, self.bootstrap_token}

    def is_known(self, token: str) -> bool:
        """Return whether a token is anybody's."""
        own = {entry.caller_token for entry in self.peers.values() if entry.caller_token}
        return bool(token) and (self.is_shared(token) or token in own)

    def may_manage(self, token: str, entry: Entry) -> bool:
        """Return whether a token may change an entry: its own one, else the one that made it."""
        if entry.caller_token is not None:
            return token == entry.caller_token
        return self.is_shared(token) and fingerprint(token) == entry.fingerprint

    def limited(self, most: int) -> bool:
        """Count a request, unless there were too many in the last minute."""
        if not self.limits:
            return False
        now = self._now()
        while self._recent and now - self._recent[0] > RATE_WINDOW_SEC:
            self._recent.popleft()
        if len(self._recent) >= most:
            return True
        self._recent.append(now)
        return False

    # --- registration ---------------------------------------------------------------------------

    def register(self, token: str, body: Mapping[str, Any]) -> Answer:
        """Answer ``POST /register``."""
        name = str(body["name"]).strip()
        problem = _problem(body, name)
        if self.limited(REGISTER_LIMIT):
            return RATE_LIMITED
        if not token or not self.is_shared(token):
            return UNAUTHORIZED
        if problem is not None:
            return problem
        known = self.peers.get(name)
        if known is not None:
            if not self.may_manage(token, known):
                return text(409, "peer name already registered by another identity")
            _change(known, body)
            return self._registered(200, "updated", known)
        accepted = token == self.bootstrap_token
        entry = self.peers[name] = Entry(
            name=name,
            url=body["url"],
            state=Admission.ACCEPTED if accepted else Admission.PENDING,
            fingerprint=fingerprint(token),
            card=body.get("card"),
            upstream_token=body.get("upstream_token"),
        )
        return self._registered(201, "registered", entry)

    def _registered(self, status: int, what: str, entry: Entry) -> Answer:
        told: dict[str, object] = {"status": what, "peer": entry.name, "state": entry.state.value}
        if self.mint and entry.caller_token is None:
            told["caller_token"] = entry.caller_token = "agw_" + secrets.token_hex(32)
        return as_json(status, told)

    def update(self, token: str, body: Mapping[str, Any]) -> Answer:
        """Answer ``PATCH /register``."""
        if self.limited(REGISTER_LIMIT):
            return RATE_LIMITED
        problem = _problem(body, None)
        if token and problem is not None:
            return problem
        if not self.is_known(token):
            return UNAUTHORIZED
        entry = self.peers.get(str(body["name"]).strip())
        if entry is None:
            return text(404, "no such peer")
        return self._updated(token, entry, body)

    def _updated(self, token: str, entry: Entry, body: Mapping[str, Any]) -> Answer:
        if not self.may_manage(token, entry):
            return text(409, "peer registered by another identity")
        if entry.state is Admission.REVOKED:
            return NOT_ACCEPTED
        _change(entry, body)
        return as_json(200, {"status": "updated", "peer": entry.name, "state": entry.state.value})

    def deregister(self, token: str, name: str) -> Answer:
        """Answer ``DELETE /register``."""
        if self.limited(REGISTER_LIMIT):
            return RATE_LIMITED
        if not self.is_known(token):
            return UNAUTHORIZED
        entry = self.peers.get(name)
        if entry is None or not self.may_manage(token, entry):
            return text(404, "no such peer registered by this identity")
        del self.peers[name]
        return as_json(200, {"status": "deregistered", "peer": name})

    # --- reading --------------------------------------------------------------------------------

    def directory(self, token: str, channels: Callable[[str], bool]) -> Answer:
        """Answer ``GET /.well-known/agent.json``; without a valid token nobody is listed."""
        if self.limited(OTHER_LIMIT):
            return RATE_LIMITED
        listed = [
            {
                "name": entry.name,
                "url": f"/peer/{entry.name}/",
                "healthy": entry.healthy,
                "channel": channels(entry.name),
                "capabilities": _of_card(entry, "capabilities"),
                "skills": _of_card(entry, "skills"),
            }
            for entry in self.peers.values()
            if entry.state is Admission.ACCEPTED
        ]
        return as_json(
            200,
            {
                "name": "a2a-switchboard",
                "version": "0.6.1",
                "protocolVersion": "0.1.0",
                "url": "/",
                "capabilities": {"streaming": True, "pushNotifications": False},
                "peers": listed if self.is_known(token) else [],
            },
        )

    def channel_refusal(self, token: str, name: str) -> Answer | None:
        """Return why a channel is not opened, or None."""
        if not self.is_known(token):
            return UNAUTHORIZED
        entry = self.peers.get(name)
        if entry is None:
            return text(404, "unknown peer")
        if not self.may_manage(token, entry):
            return text(403, "peer name does not match this token")
        if entry.state is not Admission.ACCEPTED:
            return text(403, "peer is not accepted")
        return None

    def call_refusal(self, token: str, name: str) -> Answer | None:
        """Return why a call of a peer is not passed on, or None."""
        if self.limited(OTHER_LIMIT):
            return RATE_LIMITED
        if not self.is_known(token):
            return UNAUTHORIZED
        entry = self.peers.get(name)
        if entry is None:
            return text(404, "unknown peer")
        return None if entry.state is Admission.ACCEPTED else NOT_ACCEPTED


def fingerprint(token: str) -> str:
    """Return what is remembered of a token."""
    return sha256(token.encode()).hexdigest()


def read_registration(body: bytes, required: tuple[str, ...]) -> dict[str, Any] | Answer:
    """Return a registration's members, or why they cannot be read."""
    try:
        value = json.loads(body)
    except ValueError:
        return text(400, "Failed to parse the request body as JSON")
    if not isinstance(value, dict):
        return text(422, "Failed to deserialize the JSON body into the target type")
    for name in ("name", "url", "upstream_token"):
        given = value.get(name)
        if (given is None and name in required) or (
            given is not None and not isinstance(given, str)
        ):
            return text(422, f"Failed to deserialize the JSON body into the target type: {name}")
    return value


def _problem(body: Mapping[str, Any], name: str | None) -> Answer | None:
    if name is not None and _NAME.fullmatch(name) is None:
        return text(422, "name must be 1-64 chars of [a-zA-Z0-9._-]")
    url = body.get("url")
    if url is not None:
        parts = urlsplit(url)
        if parts.scheme not in {"http", "https"} or not parts.hostname:
            return text(422, "url: must be http or https")
    if len(body.get("upstream_token") or "") > MAX_UPSTREAM_TOKEN:
        return text(422, "upstream_token too long")
    card = json.dumps(body.get("card"), separators=(",", ":")).encode()
    return text(413, "card too large") if len(card) > MAX_CARD_BYTES else None


def _change(entry: Entry, body: Mapping[str, Any]) -> None:
    for name in ("url", "card", "upstream_token"):
        if body.get(name) is not None:
            setattr(entry, name, body[name])


def _of_card(entry: Entry, member: str) -> object:
    return entry.card.get(member) if isinstance(entry.card, dict) else None
