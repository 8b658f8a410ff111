"""Which URL, dialect and tenant a peer's calls use, decided from its card (A2A section 8.3.2)."""

from collections.abc import Iterator
from typing import Final, final

import attrs

from a2a_trio.client.options import ProtocolChoice
from a2a_trio.client.urls import interface_url
from a2a_trio.errors import PeerProtocolError
from a2a_trio.rules.addresses import Policy
from a2a_trio.wire.agent_card import AgentCard, AgentInterface
from a2a_trio.wire.extensions import IDEMPOTENCY_EXTENSION, REPLAY_EXTENSION
from a2a_trio.wire.methods import Dialect

__all__ = ["Route", "choose_route"]

_BINDING: Final = "JSONRPC"


@final
@attrs.frozen(kw_only=True)
class Route:
    """How one peer is called."""

    url: str
    dialect: Dialect
    tenant: str = ""
    """To be repeated in every request."""
    trusted: bool = True
    """Whether this is the configured origin, so that credentials may go there."""
    streaming: bool | None = None
    """What the card says about streaming; None where there is no card."""
    deduplicates: bool = False
    """The peer runs a message once however often it arrives under one key."""
    replays: bool = False
    """The peer sends again what a broken stream missed."""
    older: "Route | None" = None
    """The v0.3 route to try when the peer turns out not to speak v1.0."""


def choose_route(
    card: AgentCard | None, base: str, choice: ProtocolChoice, policy: Policy
) -> Route:
    """Return the route for a card, or the one for a peer without card: its own URL.

    The first v1.0 interface with the JSON-RPC binding wins, else the first v0.3 one. Interfaces
    whose URL is refused are passed over.

    Raises:
        PeerProtocolError: the card has interfaces but none that this client may and can call.
    """
    if card is None:
        return _own_url(base, choice)
    found, refusal = _routes(card, base, policy)
    if not found:
        raise refusal or PeerProtocolError(
            "the peer's card names no JSON-RPC interface of A2A 1.0 or 0.3", url=base
        )
    current = next((r for r in found if r.dialect is Dialect.V1), None)
    older = next((r for r in found if r.dialect is Dialect.V03), None)
    if choice == "1.0":
        return current or attrs.evolve(found[0], dialect=Dialect.V1)
    if choice == "0.3":
        return older or attrs.evolve(found[0], dialect=Dialect.V03)
    return attrs.evolve(current, older=older) if current is not None else found[0]


def _own_url(base: str, choice: ProtocolChoice) -> Route:
    older = Route(url=base, dialect=Dialect.V03)
    if choice == "0.3":
        return older
    return Route(url=base, dialect=Dialect.V1, older=older if choice == "auto" else None)


def _routes(
    card: AgentCard, base: str, policy: Policy
) -> tuple[tuple[Route, ...], PeerProtocolError | None]:
    extensions = {extension.uri for extension in card.capabilities.extensions}
    routes: list[Route] = []
    refusal: PeerProtocolError | None = None
    for interface, dialect in _spoken(card):
        try:
            url, trusted = interface_url(base, interface.url, policy)
        except PeerProtocolError as exc:
            refusal = refusal or exc
            continue
        routes.append(
            Route(
                url=url,
                dialect=dialect,
                tenant=interface.tenant,
                trusted=trusted,
                streaming=card.capabilities.streaming is True,
                deduplicates=IDEMPOTENCY_EXTENSION in extensions,
                replays=REPLAY_EXTENSION in extensions,
            )
        )
    return tuple(routes), refusal


def _spoken(card: AgentCard) -> Iterator[tuple[AgentInterface, Dialect]]:
    for interface in card.supported_interfaces:
        dialect = _dialect_of(interface.protocol_version)
        if interface.protocol_binding.upper() == _BINDING and interface.url and dialect is not None:
            yield interface, dialect


def _dialect_of(version: str) -> Dialect | None:
    """Return the dialect of ``Major.Minor``; a missing version is read as the current one."""
    major, _, minor = version.strip().partition(".")
    if major in {"", "1"}:
        return Dialect.V1
    return Dialect.V03 if major == "0" and minor.partition(".")[0] in {"2", "3"} else None
