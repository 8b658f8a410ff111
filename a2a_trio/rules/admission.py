"""Who may talk to the server: one ordered verdict on the head of a request.

Theory of operation. ``STAGES`` is the order; ``APPLIES`` says which stages a kind of request goes
through. ``Admission.admit`` runs them on the facts of a request (header values and the socket
address) before the body is read. The last stage, the rate, needs the method and therefore runs in
``Admission.charge``, after the body was parsed; so a request that is refused here never uses up
anybody's rate.

Two modes. With no token configured the server is for this machine only: the Host must be a
loopback name (which is what stops DNS rebinding), the address must be local, and the caller is its
address. With tokens every call needs a bearer token; a peer's own token names the caller, the
shared token leaves it named by its address. Tokens minted at run time for gateways are accepted in
both modes and never switch the mode.

Every credential is compared as a digest, with all of them, in constant time. A header that is
missing, repeated, too long or malformed has one answer, given at the function that reads it.
"""

from collections.abc import Callable, Iterable, Mapping
from enum import StrEnum
from typing import Final, final

import attrs

from a2a_trio.errors import (
    ForbiddenError,
    RateLimitedError,
    UnauthorizedError,
    UnsupportedMediaTypeError,
)
from a2a_trio.rules.addresses import (
    Host,
    parse_host,
    parse_network,
    plain_address,
)
from a2a_trio.rules.callers import (
    LOCAL,
    UNKNOWN,
    AdmissionPolicy,
    Caller,
    Pairs,
    Provenance,
    Purpose,
    Refused,
    RequestFacts,
)
from a2a_trio.rules.cors import Cors
from a2a_trio.rules.headers import (
    asserted_identity,
    bearer_token,
    forwarded_address,
    is_json,
    is_trusted,
    retry_after_value,
)
from a2a_trio.rules.ports import resolve_bind_host
from a2a_trio.rules.rate_limit import Limited, RateLimiter
from a2a_trio.rules.tokens import RESERVED_PREFIX, TokenTable

__all__ = [
    "APPLIES",
    "STAGES",
    "Admission",
    "AdmissionPolicy",
    "Caller",
    "Pairs",
    "Provenance",
    "Purpose",
    "Refused",
    "RequestFacts",
    "Stage",
    "resolve_bind_host",
]


class Stage(StrEnum):
    """One check."""

    HOST = "host"
    ORIGIN = "origin"
    ADDRESS = "address"
    CONTENT_TYPE = "content type"
    FLOOD = "flood"
    IDENTITY = "identity"
    TRUST = "trust"
    RATE = "rate"


STAGES: Final = (
    Stage.HOST,
    Stage.ORIGIN,
    Stage.ADDRESS,
    Stage.CONTENT_TYPE,
    Stage.FLOOD,
    Stage.IDENTITY,
    Stage.TRUST,
    Stage.RATE,  # in ``charge``, when the method is known
)
"""The order of the checks."""

APPLIES: Final[Mapping[Purpose, frozenset[Stage]]] = {
    Purpose.RPC: frozenset(STAGES),
    Purpose.CARD: frozenset(STAGES) - {Stage.CONTENT_TYPE, Stage.TRUST, Stage.RATE},
    Purpose.METRICS: frozenset(STAGES) - {Stage.CONTENT_TYPE, Stage.RATE},
    Purpose.OPEN: frozenset({Stage.HOST, Stage.ORIGIN}),
}
"""What is checked for which purpose. A preflight goes through Host and Origin only."""

_PREFLIGHT: Final = frozenset({Stage.HOST, Stage.ORIGIN})


@final
@attrs.define
class _Visit:
    """What the stages learn about one request."""

    facts: RequestFacts
    address: str = LOCAL
    caller: Caller | None = None


@final
class Admission:
    """Decide about requests; the only state is in the limiters and the minted tokens.

    Args:
        policy: who is admitted.
        limiter: hits of calls, per identity.
        polling_limiter: hits of calls that only read, per identity.
        flood_limiter: requests without a valid credential, per address; None for no limit.

    Raises:
        ValueError: the policy has an empty name or token (an empty token would admit everybody), or
            a malformed host, origin or proxy; the text names it unless it is a token.
    """

    def __init__(
        self,
        policy: AdmissionPolicy,
        *,
        limiter: RateLimiter,
        polling_limiter: RateLimiter,
        flood_limiter: RateLimiter | None,
    ) -> None:
        self._policy = policy
        self._limiter = limiter
        self._polling_limiter = polling_limiter
        self._flood_limiter = flood_limiter
        self._hosts = frozenset(_allowed_host(text) for text in policy.allowed_hosts)
        self._cors = Cors(policy.allowed_origins)
        self._proxies = tuple(parse_network(text) for text in policy.trusted_proxies)
        self._trusted = frozenset(_identity(text) for text in policy.trusted_peers)
        self._trusted_names = frozenset(name.casefold() for name in self._trusted)
        self._tokens = TokenTable(policy.tokens, policy.shared_tokens)
        self._checks: Mapping[Stage, Callable[[_Visit, float], Refused | None]] = {
            Stage.HOST: self._check_host,
            Stage.ORIGIN: self._check_origin,
            Stage.ADDRESS: self._check_address,
            Stage.CONTENT_TYPE: self._check_content_type,
            Stage.FLOOD: self._check_flood,
            Stage.IDENTITY: self._check_identity,
            Stage.TRUST: self._check_trust,
        }

    def set_minted(self, tokens: Iterable[tuple[str, str]]) -> None:
        """Replace the tokens minted for gateways: (identity, token) pairs.

        Raises:
            ValueError: as ``TokenTable.set_minted``; nothing is replaced.
        """
        self._tokens.set_minted(tokens)

    def admit(self, facts: RequestFacts, now: float) -> Caller | Refused | None:
        """Give the verdict on a request whose body has not been read.

        Args:
            facts: the head of the request.
            now: seconds of a clock that does not run backwards.

        Returns:
            The caller; None for somebody unknown who may go on (a card, health, a preflight);
            or the refusal.
        """
        applies = _PREFLIGHT if facts.verb == "OPTIONS" else APPLIES[facts.purpose]
        visit = _Visit(facts)
        for stage in STAGES:
            if stage in applies and stage is not Stage.RATE:
                refused = self._checks[stage](visit, now)
                if refused is not None:
                    return refused
        return visit.caller

    def charge(self, caller: Caller, *, polling: bool, now: float) -> Refused | None:
        """Count one call of an admitted caller: the last stage.

        Args:
            caller: as ``admit`` returned it.
            polling: the method only reads (``wire.methods.Method.polling``); False for a body that
                does not parse.
            now: as for ``admit``.
        """
        limiter = self._polling_limiter if polling else self._limiter
        verdict = limiter.hit(caller.identity, now)
        return _rate_limited(verdict) if isinstance(verdict, Limited) else None

    def cors(self, facts: RequestFacts) -> Pairs:
        """Return the CORS headers of an answer; of a preflight's, if the verb is OPTIONS.

        A preflight is answered 204 with these, after ``admit`` has let it pass.
        """
        return self._cors.headers(facts.origins, preflight=facts.verb == "OPTIONS")

    # --- the stages, in order ---------------------------------------------------------------

    def _check_host(self, visit: _Visit, _now: float) -> Refused | None:
        """Missing, repeated or malformed: 403, save where any Host will do and none came."""
        hosts = visit.facts.hosts
        secured = self._policy.has_tokens
        if secured and visit.facts.purpose is Purpose.OPEN:
            return None  # probes come by pod address, or without a Host
        if secured and not hosts and not self._hosts:
            return None  # HTTP/1.0
        host = parse_host(hosts[0]) if len(hosts) == 1 else None
        if host is None:
            return _forbidden("The Host header must be there once and well formed")
        if not secured and not host.is_loopback:
            return _forbidden("The Host must be a loopback name while no token is set")
        if secured and self._hosts and not self._hosts & {host, Host(host.name)}:
            return _forbidden("This Host is not served here")
        return None

    def _check_origin(self, visit: _Visit, _now: float) -> Refused | None:
        """No Origin is no browser: passes. Repeated, malformed or ``null``: 403."""
        origins = visit.facts.origins
        if not origins or self._cors.is_allowed(origins):
            return None
        return _forbidden("This Origin is not allowed")

    def _check_address(self, visit: _Visit, _now: float) -> Refused | None:
        """Find the caller's address. Without tokens only this machine is served."""
        client = visit.facts.client
        address = plain_address(client)
        if address is None:
            visit.address = UNKNOWN if client else LOCAL
            return _not_local() if client and not self._policy.has_tokens else None
        if is_trusted(address, self._proxies):
            address = forwarded_address(visit.facts.forwarded_for, address, self._proxies)
            if address is None:
                return _forbidden("The proxy's X-Forwarded-For is malformed")
        visit.address = str(address)
        return None if self._policy.has_tokens or address.is_loopback else _not_local()

    def _check_content_type(self, visit: _Visit, _now: float) -> Refused | None:
        """Missing, repeated, malformed or not JSON: 415."""
        return None if is_json(visit.facts.content_types) else Refused(UnsupportedMediaTypeError())

    def _check_flood(self, visit: _Visit, now: float) -> Refused | None:
        """Refuse an address that has used up its failures; the failures are counted later.

        An address that is not known for failures passes even while the table is full, so a flood
        from elsewhere keeps out nobody who has a credential.
        """
        if self._flood_limiter is None:
            return None
        verdict = self._flood_limiter.peek(visit.address, now)
        return _rate_limited(verdict) if isinstance(verdict, Limited) else None

    def _check_identity(self, visit: _Visit, now: float) -> Refused | None:
        """Missing or wrong credential: 401, or an anonymous reader of the card."""
        presented = bearer_token(visit.facts.authorizations)
        visit.caller = self._authenticate(visit, presented)
        if visit.caller is not None:
            if visit.facts.purpose is Purpose.CARD and not self._is_trusted(visit.caller):
                visit.caller = None  # may read what strangers read
            return None
        if self._flood_limiter is not None:
            verdict = self._flood_limiter.hit(visit.address, now)
            if isinstance(verdict, Limited):
                return _rate_limited(verdict)
        if visit.facts.purpose is Purpose.CARD:
            return None
        return Refused(UnauthorizedError(), (("www-authenticate", "Bearer"),))

    def _check_trust(self, visit: _Visit, _now: float) -> Refused | None:
        if visit.caller is None or self._is_trusted(visit.caller):
            return None
        return _forbidden("This peer is not trusted here")

    # --- their parts ------------------------------------------------------------------------

    def _authenticate(self, visit: _Visit, presented: bytes | None) -> Caller | None:
        if presented is None:
            return None if self._policy.has_tokens else self._by_address(visit)
        name = self._tokens.match(presented)
        if name is None:
            return None
        if not name:
            return self._by_address(visit)
        return Caller(
            identity=name, provenance=Provenance.TOKEN, address=visit.address, display=name
        )

    def _by_address(self, visit: _Visit) -> Caller:
        identity = RESERVED_PREFIX + visit.address
        display = asserted_identity(visit.facts.identities)
        if display is None or self._is_configured(display):
            return Caller(
                identity=identity,
                provenance=Provenance.ADDRESS,
                address=visit.address,
                display=identity,
            )
        return Caller(
            identity=identity,
            provenance=Provenance.ASSERTED,
            address=visit.address,
            display=display,
        )

    def _is_configured(self, display: str) -> bool:
        """True if somebody else has this name, in whatever case."""
        folded = display.casefold()
        return folded in self._tokens.names or folded in self._trusted_names

    def _is_trusted(self, caller: Caller) -> bool:
        policy = self._policy
        if policy.allow_all_users or not policy.has_tokens or not self._trusted:
            return True
        return caller.identity in self._trusted


def _forbidden(text: str) -> Refused:
    return Refused(ForbiddenError(text))


def _not_local() -> Refused:
    return _forbidden("Only local callers are served while no token is set")


def _rate_limited(verdict: Limited) -> Refused:
    value = retry_after_value(verdict.retry_after)
    if value is None:
        return Refused(RateLimitedError())
    error = RateLimitedError(retry_after=verdict.retry_after)
    return Refused(error, (("retry-after", value),))


def _identity(text: str) -> str:
    """Normalise the address of an ``ip:`` identity in the trust list."""
    address = plain_address(text.removeprefix(RESERVED_PREFIX))
    if address is None or not text.startswith(RESERVED_PREFIX):
        return text
    return f"{RESERVED_PREFIX}{address}"


def _allowed_host(text: str) -> Host:
    host = parse_host(text.strip())
    if host is None:
        raise ValueError(f"not a host: {text!r}")
    return host
