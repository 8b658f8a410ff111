"""Finding other agents: everything that announces this one and looks for others, as one nursery.

::

    open_directory
    |- registry heartbeat         the file registry of this machine
    |- mDNS                       a thread of its own, handed over to Trio
    `- per gateway: registration and its reverse channel
"""

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from functools import partial
from pathlib import Path
from random import SystemRandom
from typing import Final, final

import attrs
import trio

from a2a_trio._groups import plain_errors
from a2a_trio._log import get_logger
from a2a_trio.config.schema import Settings
from a2a_trio.discovery.channel import Dispatch
from a2a_trio.discovery.gateway import Gateway, GatewayConfig, run_gateway
from a2a_trio.discovery.mdns import Announcement, Mdns, MdnsUnavailableError, open_mdns
from a2a_trio.discovery.registry import FileRegistry, RegistryEntry, keep_registered
from a2a_trio.discovery.web import Web
from a2a_trio.peer.looking import configured, local_peers
from a2a_trio.peer.relay import relay
from a2a_trio.peer.serving import Handler
from a2a_trio.rules.directory import FoundPeer, merge, named
from a2a_trio.wire.model import JsonObject

__all__ = ["LEAVE_SEC", "Directory", "Presence", "open_directory"]

LEAVE_SEC: Final = 6.0
"""What taking leave of everybody may last: the network, a registry on a disk that hangs and gateways at
the same time, then connections."""

_log = get_logger("a2a_trio.discovery")


@final
@attrs.frozen(kw_only=True)
class Presence:
    """What this peer says about itself to those who look for it."""

    entry: RegistryEntry
    """For the machine; ``entry.url`` is where this machine reaches it."""
    announcement: Announcement | None
    """For the network; None while only this machine can call."""
    url: str
    """The advertised address."""
    card: JsonObject
    gateways: tuple[GatewayConfig, ...]
    handler: Handler
    """Answers what comes through a reverse channel."""


@final
class Directory:
    """The agents that can be called, from every source, as they are now."""

    def __init__(
        self,
        settings: Settings,
        *,
        own_urls: tuple[str, ...],
        registry: FileRegistry | None,
        mdns: Mdns | None,
        gateways: tuple[Gateway, ...],
    ) -> None:
        self._settings = settings
        self._own_urls = own_urls
        self._registry = registry
        self._mdns = mdns
        self.gateways = gateways
        """How the registration with each gateway stands."""

    async def peers(self) -> tuple[FoundPeer, ...]:
        """Return every agent once: local ones, then mDNS, settings and gateways.

        Cancellation: nothing is changed.
        """
        local = await local_peers(self._registry, self._settings)
        network = () if self._mdns is None else self._mdns.peers()
        through = tuple(peer for gateway in self.gateways for peer in gateway.peers())
        found = (*local, *network, *configured(self._settings), *through)
        return merge(found, own_urls=self._own_urls)

    async def find(self, name: str) -> FoundPeer | None:
        """Return the found agent of a name, or None.

        Raises:
            AmbiguousPeerError: several have this name.
        """
        return named(name, await self.peers())


@asynccontextmanager
async def open_directory(
    settings: Settings, presence: Presence, *, home: Path | None
) -> AsyncIterator[Directory]:
    """Announce this peer and look for others, for the length of a block.

    What cannot be reached is logged and tried again; it neither delays the start nor ends anything.

    Args:
        settings: which of the ways are used.
        presence: what is said about this peer.
        home: where the file registry and the gateways' tokens are kept; neither, if omitted.

    **Resources**: when the block ends, this peer is taken out of everything that it was put into,
    within a few seconds even if nobody answers.
    """
    with plain_errors():
        async with AsyncExitStack() as stack:
            # Outside the services: taking leave of a gateway is the last that they do.
            webs = [await stack.enter_async_context(_web(settings)) for _ in presence.gateways]
            services = await stack.enter_async_context(trio.open_nursery())
            registry = await _registered(services, settings, presence, home)
            mdns = await _on_network(stack, settings, presence)
            gateways = [
                await services.start(
                    partial(
                        run_gateway,
                        config,
                        own_url=presence.url,
                        card=lambda: presence.card,
                        web=web,
                        home=home,
                        dispatch=_dispatch(config, presence, settings),
                        rng=SystemRandom(),
                    )
                )
                for config, web in zip(presence.gateways, webs, strict=True)
            ]
            yield Directory(
                settings,
                own_urls=(presence.url, presence.entry.url),
                registry=registry,
                mdns=mdns,
                gateways=tuple(gateways),
            )
            services.cancel_scope.cancel()


def _web(settings: Settings) -> AbstractAsyncContextManager[Web]:
    # Imported here: few peers have a gateway, and a peer that only serves needs no client.
    from a2a_trio.peer.web import open_web  # noqa: PLC0415 - reason above

    return open_web(settings)


async def _registered(
    services: trio.Nursery, settings: Settings, presence: Presence, home: Path | None
) -> FileRegistry | None:
    if home is None or not settings.discovery.local.enabled:
        return None
    registry = FileRegistry(home)
    heartbeat = settings.discovery.local.heartbeat_sec
    await services.start(partial(keep_registered, registry, presence.entry, heartbeat=heartbeat))
    return registry


async def _on_network(stack: AsyncExitStack, settings: Settings, presence: Presence) -> Mdns | None:
    mdns = settings.discovery.mdns
    if not mdns.enabled:
        return None
    if presence.announcement is None:
        _log.warning("not announced by mDNS: the server listens on this machine only")
    try:
        return await stack.enter_async_context(open_mdns(mdns.service_type, presence.announcement))
    except MdnsUnavailableError as error:
        _log.warning("mDNS is not used", reason=str(error))
        return None


def _dispatch(config: GatewayConfig, presence: Presence, settings: Settings) -> Dispatch | None:
    if not config.channel:
        return None
    authority = presence.entry.url.partition("://")[2].rstrip("/")
    return relay(
        presence.handler,
        authority=authority,
        token=config.upstream_token,
        rpc_path=settings.server.rpc_path,
    )
