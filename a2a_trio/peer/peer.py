"""A peer: a server, the means to call others and a directory of them, from one set of settings."""

import secrets
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, final

import trio

from a2a_trio.agents.contract import Agent
from a2a_trio.config.schema import PeerSettings, Settings
from a2a_trio.peer.finding import Directory, open_directory
from a2a_trio.peer.presence import presence_of, upstream_tokens
from a2a_trio.peer.serving import Server, open_server
from a2a_trio.rules.audit import AuditEntry
from a2a_trio.server.run import RunObserver

if TYPE_CHECKING:
    from a2a_trio.client.client import Client

__all__ = ["Peer", "open_peer", "serve"]


@final
class Peer:
    """An agent's server together with its directory of other agents."""

    def __init__(self, server: Server, settings: Settings, directory: Directory) -> None:
        self.server = server
        self.settings = settings
        self.directory = directory
        """Every agent that can be called: configured, on this machine, on the network, through
        gateways."""

    @property
    def peers(self) -> Mapping[str, PeerSettings]:
        """The configured peers by name."""
        return self.settings.peers

    @asynccontextmanager
    async def client(self, peer: str) -> "AsyncIterator[Client]":
        """Return a client of an agent by name, or of any address; see ``client_for``.

        With a state folder its calls are in the audit log, and its conversations are kept under
        the context ids that the peer returned.

        Args:
            peer: the name of a configured peer or of one in the directory, or a URL.

        Raises:
            SettingsError: there is no peer of this name, or there are several.
        """
        # Imported here: a peer that only serves starts faster without the client.
        from a2a_trio.peer.calling import client_for  # noqa: PLC0415 - reason above
        from a2a_trio.peer.recording import recorder_of  # noqa: PLC0415 - reason above

        journal = self.server.journal
        found = () if peer in self.settings.peers else await self.directory.peers()
        async with client_for(
            peer,
            self.settings,
            found=found,
            self_id=self.server.self_id,
            recorder=None if journal is None else recorder_of(journal),
        ) as client:
            yield client


def _ignore(_entry: AuditEntry) -> None:
    """Tell nobody."""


@asynccontextmanager
async def open_peer(
    agent: Agent,
    settings: Settings | None = None,
    *,
    home: Path | None = None,
    audit: Callable[[AuditEntry], None] = _ignore,
    observers: tuple[RunObserver, ...] = (),
) -> AsyncIterator[Peer]:
    """Serve an agent, be found, find and call others, for the length of a block.

    Args:
        agent: see ``open_server``.
        settings: all defaults if omitted. ``server.enabled`` is not looked at: the call is the wish.
        home: the state folder. Without one nothing is recorded, and the file registry, which is
            kept there, is not used.
        audit: see ``open_server``.
        observers: see ``open_server``.

    Raises:
        OSError: no port could be bound.
        SettingsError: the settings contradict themselves.

    **Resources**: when the block ends the server is drained, then this peer is taken out of every
    registry, then everything is closed. Clients belong to their own blocks.
    """
    settings = Settings() if settings is None else settings
    upstream = upstream_tokens(settings, secrets.token_hex)
    async with (
        open_server(
            agent, settings, home=home, audit=audit, observers=observers, gateway_tokens=upstream
        ) as server,
        open_directory(settings, presence_of(settings, server, upstream), home=home) as directory,
    ):
        yield Peer(server, settings, directory)
        # While the ways in are still open: what runs may yet be answered through a gateway.
        if not server.draining:
            await server.drain()


async def serve(
    agent: Agent,
    settings: Settings | None = None,
    *,
    home: Path | None = None,
    task_status: trio.TaskStatus[Server] = trio.TASK_STATUS_IGNORED,
) -> None:
    """Serve an agent until ``Server.drain`` is called or the call is cancelled.

    ::

        server = await nursery.start(serve, agent)

    Args:
        agent: see ``open_server``.
        settings: see ``open_peer``.
        home: see ``open_peer``.
        task_status: reports the ``Server`` once it accepts connections.

    Raises:
        OSError: no port could be bound, or the socket failed.
        SettingsError: the settings contradict themselves.
    """
    async with open_peer(agent, settings, home=home) as peer:
        task_status.started(peer.server)
        await peer.server.wait_drained()
