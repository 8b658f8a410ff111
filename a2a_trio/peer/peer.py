"""A peer: a server and the means to call others, from one set of settings."""

from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import final

from a2a_trio.agents.contract import Agent
from a2a_trio.client.client import Client
from a2a_trio.config.schema import PeerSettings, Settings
from a2a_trio.peer.calling import client_for
from a2a_trio.peer.recording import recorder_of
from a2a_trio.peer.serving import Server, open_server

__all__ = ["Peer", "open_peer"]


@final
class Peer:
    """An agent's server together with its directory of other agents."""

    def __init__(self, server: Server, settings: Settings) -> None:
        self.server = server
        self.settings = settings

    @property
    def peers(self) -> Mapping[str, PeerSettings]:
        """The configured peers by name."""
        return self.settings.peers

    def client(self, peer: str) -> AbstractAsyncContextManager[Client]:
        """Return a client of a configured peer, by name, or of any address; see ``client_for``.

        With a state folder its calls are in the audit log, and its conversations are kept under
        the context ids that the peer returned.

        Raises:
            SettingsError: there is no peer of this name.
        """
        journal = self.server.journal
        return client_for(
            peer,
            self.settings,
            self_id=self.server.self_id,
            recorder=None if journal is None else recorder_of(journal),
        )


@asynccontextmanager
async def open_peer(
    agent: Agent, settings: Settings | None = None, *, home: Path | None = None
) -> AsyncIterator[Peer]:
    """Serve an agent and be able to call others, for the length of a block.

    Args:
        agent: see ``open_server``.
        settings: all defaults if omitted. ``server.enabled`` is not looked at: the call is the wish.
        home: the state folder; nothing is recorded if omitted.

    Raises:
        OSError: no port could be bound.
        SettingsError: the settings contradict themselves.

    **Resources**: the server is drained when the block ends. Clients belong to their own blocks.
    """
    settings = Settings() if settings is None else settings
    async with open_server(agent, settings, home=home) as server:
        yield Peer(server, settings)
