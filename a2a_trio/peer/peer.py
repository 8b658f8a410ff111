"""A peer: a server and the means to call others, from one set of settings."""

import math
from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Final, final

import attrs

from a2a_trio.agents.contract import Agent
from a2a_trio.client.client import Client, open_client
from a2a_trio.client.options import ClientOptions
from a2a_trio.config.schema import PeerSettings, Settings
from a2a_trio.errors import SettingsError
from a2a_trio.peer.plan import agent_name
from a2a_trio.peer.serving import Server, open_server
from a2a_trio.rules.addresses import Policy, normal_url
from a2a_trio.rules.redaction import Redactor

__all__ = ["Peer", "client_for", "open_peer"]

_MS: Final = 1000.0


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
        """Return a client of a configured peer, by name, or of any address; see ``client_for``."""
        return client_for(peer, self.settings, self_id=self.server.self_id)


def client_for(
    peer: str, settings: Settings, *, token: str | None = None, self_id: str = ""
) -> AbstractAsyncContextManager[Client]:
    """Return a client of a configured peer, by name, or of any address.

    A credential goes to configured peers only: their own token, or this peer's where they have none
    and are on this machine. An address that is not configured gets none.

    Args:
        peer: a key of ``peers``, or an http(s) URL.
        settings: timeouts, retries, identity, peers.
        token: a credential given by the operator for this very call.
        self_id: this peer's name in delegation chains.

    Raises:
        SettingsError: there is no peer of this name.
    """
    known = settings.peers.get(peer)
    url = peer if known is None else known.url
    if known is None:
        if "://" not in peer:
            raise SettingsError(f"unknown peer {peer!r}: configured are {_names(settings)}")
        known = _by_url(url, settings)
    return open_client(
        url,
        token=token or _token(known, settings),
        options=_options(known, settings, self_id),
    )


def _names(settings: Settings) -> str:
    return ", ".join(sorted(settings.peers)) or "none"


def _by_url(url: str, settings: Settings) -> PeerSettings | None:
    try:
        wanted = normal_url(url)
        return next(
            (p for p in settings.peers.values() if p.url and normal_url(p.url) == wanted), None
        )
    except ValueError:
        # The client refuses the address with a clear text.
        return None


def _token(known: PeerSettings | None, settings: Settings) -> str | None:
    if known is None or known.from_project or known.auth.type == "none":
        return None
    return known.auth.token or settings.own_token or None


def _options(known: PeerSettings | None, settings: Settings, self_id: str) -> ClientOptions:
    timeouts = settings.timeouts
    limit = timeouts.send / _MS if known is None or known.timeout is None else known.timeout
    redact = settings.filters.redact_outbound if known is None else known.redact_outbound
    redactor = Redactor(settings.secrets())
    poll = timeouts.async_ / _MS
    options = ClientOptions(
        send_timeout=limit or math.inf,
        stream_idle_timeout=timeouts.stream / _MS,
        retry_attempts=settings.retry_attempts,
        poll_interval=min(1.0, poll),
        poll_interval_cap=poll,
        verify=settings.verify_ssl,
        url_policy=Policy.OPERATOR,
        identity=settings.identity or agent_name(settings),
        self_id=self_id,
    )
    return options if redact is False else attrs.evolve(options, redact=redactor.text)


@asynccontextmanager
async def open_peer(
    agent: Agent, settings: Settings | None = None, *, home: Path | None = None
) -> AsyncIterator[Peer]:
    """Serve an agent and be able to call others, for the length of a block.

    Args:
        agent: see ``open_server``.
        settings: all defaults if omitted.
        home: the state folder; no audit log is written if omitted.

    Raises:
        OSError: no port could be bound.
        SettingsError: the settings contradict themselves.

    **Resources**: the server is drained when the block ends. Clients belong to their own blocks.
    """
    settings = Settings() if settings is None else settings
    async with open_server(agent, settings, home=home) as server:
        yield Peer(server, settings)
