"""Calling other agents: from settings to a client of one peer, with the credential it may get.

Nothing here knows of a server, so that a command which only calls starts fast.
"""

import math
from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager
from types import MappingProxyType
from typing import Final, final

import attrs

from a2a_trio.client.client import Client, open_client
from a2a_trio.client.options import ClientOptions, Said
from a2a_trio.config.schema import PeerSettings, Settings
from a2a_trio.errors import SettingsError
from a2a_trio.peer.naming import agent_name
from a2a_trio.rules.addresses import Policy, normal_url, url_origin
from a2a_trio.rules.audit import AuditEntry
from a2a_trio.rules.redaction import Redactor

__all__ = ["Call", "Recorder", "call_for", "client_for"]

_MS: Final = 1000.0
_NO_HEADERS: Final[Mapping[str, str]] = MappingProxyType({})


@final
@attrs.frozen(kw_only=True)
class Recorder:
    """Who keeps a record of calls; neither function may block or raise."""

    audit: Callable[[AuditEntry], None]
    """Takes an entry for every request and every outcome."""
    said: Callable[[str, Said], None]
    """Takes the name of the peer and a message of a conversation with it."""


@final
@attrs.frozen
class _Credential:
    """What a call proves itself with: a bearer token, or headers, or nothing."""

    token: str | None = None
    headers: Mapping[str, str] = _NO_HEADERS


@final
@attrs.frozen(kw_only=True)
class Call:
    """How one peer is called: the arguments of ``open_client``."""

    url: str
    token: str | None
    options: ClientOptions

    def open(self) -> AbstractAsyncContextManager[Client]:
        """Return the client."""
        return open_client(self.url, token=self.token, options=self.options)


def client_for(
    peer: str,
    settings: Settings,
    *,
    token: str | None = None,
    self_id: str = "",
    recorder: Recorder | None = None,
) -> AbstractAsyncContextManager[Client]:
    """Return a client of a configured peer, by name, or of any address; see ``call_for``."""
    return call_for(peer, settings, token=token, self_id=self_id, recorder=recorder).open()


def call_for(
    peer: str,
    settings: Settings,
    *,
    token: str | None = None,
    self_id: str = "",
    recorder: Recorder | None = None,
) -> Call:
    """Return how a configured peer, by name, or any address is called.

    A credential goes to configured peers only, and never to one that a project file names: their own
    token, wherever they are; this peer's token if they have none and are on this machine. A remote
    peer without a token of its own gets no credential, and neither does an address that is not
    configured.

    Args:
        peer: a key of ``peers``, or an http(s) URL.
        settings: timeouts, retries, identity, peers.
        token: a credential given by the operator for this very call.
        self_id: this peer's name in delegation chains.
        recorder: keeps a record of the calls.

    Raises:
        SettingsError: there is no peer of this name.
    """
    known = settings.peers.get(peer)
    url = peer if known is None else known.url
    if known is None:
        if "://" not in peer:
            raise SettingsError(f"unknown peer {peer!r}: configured are {_names(settings)}")
        known = _by_url(url, settings)
    credential = _credential(known, settings, token)
    options = attrs.evolve(_options(known, settings, self_id), headers=credential.headers)
    if recorder is not None:
        options = attrs.evolve(
            options,
            audit=recorder.audit,
            said=lambda said: recorder.said(peer, said),
            redact_records=Redactor(settings.secrets()).text,
        )
    return Call(url=url, token=credential.token, options=options)


def _names(settings: Settings) -> str:
    return ", ".join(sorted(settings.peers)) or "none"


def _by_url(url: str, settings: Settings) -> PeerSettings | None:
    """Return the configured peer at an address; the operator's entry before a project file's."""
    try:
        wanted = normal_url(url)
        found = [p for p in settings.peers.values() if p.url and normal_url(p.url) == wanted]
    except ValueError:
        # The client refuses the address with a clear text.
        return None
    return min(found, key=lambda entry: entry.from_project, default=None)


def _credential(known: PeerSettings | None, settings: Settings, given: str | None) -> _Credential:
    """Return what a call may show. The token of the call comes first, in the peer's own manner."""
    if known is None or known.from_project:
        return _Credential(given or None)
    auth = known.auth
    if auth.type == "apiKey":
        key = given or auth.token
        return _Credential(headers={"Authorization": f"ApiKey {key}"} if key else _NO_HEADERS)
    if given or auth.type == "none":
        return _Credential(given or None)
    if auth.token:
        return _Credential(auth.token)
    # Our own token opens our own server and those that share it. Whoever gets it can pass for us,
    # so it does not leave this machine just because somebody wrote an address down.
    return _Credential(settings.own_token or None if _is_loopback(known.url) else None)


def _is_loopback(url: str) -> bool:
    try:
        return url_origin(url).host.is_loopback
    except ValueError:
        return False


def _options(known: PeerSettings | None, settings: Settings, self_id: str) -> ClientOptions:
    timeouts = settings.timeouts
    limit = timeouts.send / _MS if known is None or known.timeout is None else known.timeout
    redact = _redacts(known, settings)
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
    return attrs.evolve(options, redact=Redactor(settings.secrets()).text) if redact else options


def _redacts(known: PeerSettings | None, settings: Settings) -> bool:
    """Return whether texts to a peer are redacted; a project file cannot switch it off."""
    if known is None or known.from_project or known.redact_outbound is None:
        return settings.filters.redact_outbound
    return known.redact_outbound
