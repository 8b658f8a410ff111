"""What this peer tells those who look for it, worked out from its settings and its server."""

import os
import re
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Final

from a2a_trio.config.schema import Settings
from a2a_trio.discovery.gateway import GatewayConfig
from a2a_trio.discovery.mdns import Announcement
from a2a_trio.discovery.registry import RegistryEntry
from a2a_trio.peer import plan
from a2a_trio.peer.finding import Presence
from a2a_trio.peer.looking import active_gateways
from a2a_trio.peer.naming import agent_name
from a2a_trio.peer.serving import Server
from a2a_trio.rules.addresses import advertised_url, is_loopback_name, is_wildcard_name
from a2a_trio.wire import codec

__all__ = ["presence_of", "upstream_tokens"]

MAX_NAME_CHARS: Final = 64
"""Length of a name at a gateway."""
MINTED_BYTES: Final = 24
"""Randomness of a minted token."""

_NOT_IN_NAMES: Final = re.compile(r"[^A-Za-z0-9._-]+", re.ASCII)


def upstream_tokens(settings: Settings, mint: Callable[[int], str]) -> Mapping[str, str]:
    """Return the token that each gateway presents when it calls this peer, by gateway key.

    Args:
        settings: the gateways; one with an ``upstreamToken`` keeps it.
        mint: returns a random text of so many bytes, e.g. ``secrets.token_hex``.
    """
    return {
        key: gateway.upstream_token or f"agw-{mint(MINTED_BYTES)}"
        for key, gateway in active_gateways(settings).items()
    }


def presence_of(settings: Settings, server: Server, upstream: Mapping[str, str]) -> Presence:
    """Return what is said about a server that is up.

    Args:
        settings: those that the server runs with.
        server: the server.
        upstream: as ``upstream_tokens`` returned it.
    """
    bound = server.bound
    facts = plan.session_facts(settings, datetime.now(UTC))
    local = advertised_url(public_url="", scheme=bound.scheme, host=bound.host, port=bound.port)
    public = settings.server.public_url
    url = f"{public.rstrip('/')}/" if public else local
    # A machine's name alone would mean every peer on it.
    name = settings.server.agent_name or name_with_port(agent_name(settings), bound.port)
    skills = tuple(skill.name for skill in settings.server.skills)
    entry = RegistryEntry(
        pid=os.getpid(),
        url=local,
        port=bound.port,
        host=bound.host,
        cwd=str(facts["cwd"]),
        agent_name=name,
        self_identity=settings.self_identity,
        skills=skills,
        started_at=str(facts["startedAt"]),
    )
    return Presence(
        entry=entry,
        announcement=_announcement(entry, url, public=bool(public)),
        url=url,
        card=codec.encode(server.card),
        gateways=tuple(_gateways(settings, bound.port, upstream)),
        handler=server.handler,
    )


def _announcement(entry: RegistryEntry, url: str, *, public: bool) -> Announcement | None:
    """Tell the network nothing of an address that only this machine can reach."""
    if is_loopback_name(entry.host) and not public:
        return None
    return Announcement(
        name=entry.agent_name,
        url=url,
        port=entry.port,
        pid=entry.pid,
        addresses=() if is_wildcard_name(entry.host) else (entry.host,),
        cwd=entry.cwd,
    )


def _gateways(
    settings: Settings, port: int, upstream: Mapping[str, str]
) -> Iterator[GatewayConfig]:
    for key, gateway in active_gateways(settings).items():
        yield GatewayConfig(
            key=key,
            url=gateway.url,
            token=gateway.token,
            name=gateway.name or name_with_port(agent_name(settings), port),
            upstream_token=upstream[key],
            heartbeat=gateway.heartbeat_sec,
            channel=gateway.channel,
        )


def name_with_port(name: str, port: int) -> str:
    """Return the name of a peer that nobody has named, ``<name>-<port>``, fit for a gateway."""
    suffix = f"-{port}"
    cleaned = _NOT_IN_NAMES.sub("-", name).strip("-") or "a2a-trio"
    return cleaned[: MAX_NAME_CHARS - len(suffix)] + suffix
