"""Who calls, with what, and who is admitted: the values that admission is about."""

from enum import StrEnum
from typing import Final, TypeAlias, final

import attrs

from a2a_trio.errors import ProtocolError

LOCAL: Final = "local"
"""The address of a caller without a network: a Unix socket or an in-process call."""

UNKNOWN: Final = "unknown"
"""The address of a caller whose socket names something that is no address."""

Pairs: TypeAlias = tuple[tuple[str, str], ...]
"""(name, value) lines."""


class Provenance(StrEnum):
    """How the name of a caller is known."""

    TOKEN = "token"  # noqa: S105 - not a password
    ASSERTED = "asserted"
    """The caller gave itself this display name; it owns things by its address."""
    ADDRESS = "address"


class Purpose(StrEnum):
    """What a request is for, as far as admission cares."""

    RPC = "rpc"
    CARD = "card"
    METRICS = "metrics"
    OPEN = "open"
    """Health and readiness."""


@final
@attrs.frozen(kw_only=True)
class Caller:
    """Somebody who was admitted."""

    identity: str
    """What ownership and limits go by: a configured name or ``ip:<address>``."""
    provenance: Provenance
    address: str
    """The address behind trusted proxies; ``local`` without a network."""
    display: str
    """What people read; self-chosen if the provenance is ``asserted``."""


@final
@attrs.frozen(kw_only=True)
class RequestFacts:
    """The head of a request. A header that came n times is a tuple of n values."""

    purpose: Purpose
    verb: str
    hosts: tuple[str, ...] = ()
    origins: tuple[str, ...] = ()
    content_types: tuple[str, ...] = ()
    authorizations: tuple[str, ...] = ()
    identities: tuple[str, ...] = ()
    """``X-A2A-Identity``."""
    forwarded_for: tuple[str, ...] = ()
    """``X-Forwarded-For``."""
    client: str = ""
    """Address of the socket's other end; "" for a Unix socket or an in-process call."""


@final
@attrs.frozen
class Refused:
    """A request that is answered with an error and goes no further."""

    error: ProtocolError
    headers: Pairs = ()
    """Every header that the refusal itself needs, names in lower case."""


@final
@attrs.frozen(kw_only=True)
class AdmissionPolicy:
    """Who is admitted, as plain values; ``Admission`` refuses malformed ones."""

    tokens: Pairs = ()
    """(identity, token), several tokens per identity for rotation."""
    shared_tokens: tuple[str, ...] = ()
    allowed_hosts: tuple[str, ...] = ()
    """With tokens, the only Hosts accepted, with or without a port; empty is any."""
    allowed_origins: tuple[str, ...] = ()
    """Accepted besides loopback origins, e.g. ``https://app.example.com``."""
    trusted_proxies: tuple[str, ...] = ()
    """Addresses and CIDR blocks whose ``X-Forwarded-For`` is believed."""
    trusted_peers: tuple[str, ...] = ()
    """With tokens, the only identities admitted; empty is all."""
    allow_all_users: bool = False
    """Ignore ``trusted_peers``."""

    @property
    def has_tokens(self) -> bool:
        """True if calls need a bearer token."""
        return bool(self.tokens or self.shared_tokens)
