"""One look at who can be called, without announcing anything: for a command that only calls."""

from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Final, final

import attrs
import trio

from a2a_trio.config.schema import GatewaySettings, Settings
from a2a_trio.discovery.gateway import GatewayConfig, list_gateway
from a2a_trio.discovery.mdns import MdnsUnavailableError, browse
from a2a_trio.discovery.registry import FileRegistry
from a2a_trio.errors import PeerError
from a2a_trio.rules.directory import THROUGH_GATEWAY, FoundPeer, Source, merge

__all__ = ["BROWSE_SEC", "Seen", "configured", "local_peers", "look", "look_for"]

BROWSE_SEC: Final = 2.0
"""How long the network is listened to: most answers come within a second."""


@final
@attrs.frozen(kw_only=True)
class Seen:
    """Who can be called."""

    peers: tuple[FoundPeer, ...]
    problems: tuple[str, ...] = ()
    """Why a gateway or the network could not be asked; for people."""


def configured(settings: Settings) -> Iterator[FoundPeer]:
    """Yield the peers of the settings."""
    for name, peer in settings.peers.items():
        yield FoundPeer(
            name=name, url=peer.url, source=Source.CONFIG, capabilities=peer.capabilities
        )


async def local_peers(registry: FileRegistry | None, settings: Settings) -> tuple[FoundPeer, ...]:
    """Return the peers of this machine; none without a registry."""
    return () if registry is None else await registry.peers(settings.discovery.local.ttl_sec)


async def look(settings: Settings, home: Path | None, *, browse_sec: float = BROWSE_SEC) -> Seen:
    """Return everybody: this machine's registry, the network, the settings and the gateways.

    Args:
        settings: which of them are used.
        home: the state folder, where the registry is; it is left out if omitted.
        browse_sec: seconds to listen to the network, if mDNS is on.
    """
    found = list(configured(settings))
    problems: list[str] = []

    async def ask(whom: str, looking: Callable[[], Awaitable[Iterable[FoundPeer]]]) -> None:
        try:
            found.extend(await looking())
        except (PeerError, MdnsUnavailableError) as error:
            problems.append(f"{whom}: {error}")

    async with trio.open_nursery() as nursery:
        nursery.start_soon(ask, "registry", partial(_on_machine, settings, home))
        nursery.start_soon(ask, "mDNS", partial(_on_network, settings, browse_sec))
        for key, gateway in active_gateways(settings).items():
            through = partial(_through, key, gateway, settings)
            nursery.start_soon(ask, f"gateway {key}", through)
    return Seen(peers=merge(found), problems=tuple(problems))


async def look_for(peer: str, settings: Settings, home: Path | None) -> tuple[FoundPeer, ...]:
    """Return as many as are needed to know whom a name or an address means.

    Nobody is asked about a configured peer. An address is looked up in the registry only, since it
    can be called in any case. The network is listened to when nobody nearer has the name.

    Raises:
        PeerError: the gateway that the name begins with does not answer.
    """
    if peer in settings.peers:
        return ()
    if peer.startswith(THROUGH_GATEWAY):
        key = peer.removeprefix(THROUGH_GATEWAY).partition("/")[0]
        gateway = active_gateways(settings).get(key)
        return () if gateway is None else await _through(key, gateway, settings)
    found = merge(await _on_machine(settings, home))
    if "://" in peer or any(other.name == peer for other in found):
        return found
    try:
        return merge((*found, *await _on_network(settings, BROWSE_SEC)))
    except MdnsUnavailableError:
        return found


def active_gateways(settings: Settings) -> Mapping[str, GatewaySettings]:
    """Return the gateways that are used, by key."""
    gateways = settings.discovery.all_gateways().items()
    return {key: gateway for key, gateway in gateways if gateway.active and gateway.token}


async def _on_machine(settings: Settings, home: Path | None) -> tuple[FoundPeer, ...]:
    if home is None or not settings.discovery.local.enabled:
        return ()
    return await local_peers(FileRegistry(home), settings)


async def _on_network(settings: Settings, seconds: float) -> tuple[FoundPeer, ...]:
    mdns = settings.discovery.mdns
    return await browse(mdns.service_type, seconds) if mdns.enabled else ()


async def _through(key: str, gateway: GatewaySettings, settings: Settings) -> tuple[FoundPeer, ...]:
    # Imported here: few peers have a gateway.
    from a2a_trio.peer.web import open_web  # noqa: PLC0415 - reason above

    config = GatewayConfig(
        key=key,
        url=gateway.url,
        token=gateway.token,
        name=gateway.name,
        upstream_token="",
        heartbeat=gateway.heartbeat_sec,
        channel=False,
    )
    async with open_web(settings) as web:
        return await list_gateway(config, web)
