"""Calling other agents: from settings to a client of one peer, with the credential it may get.

Nothing here knows of a server, so that a command which only calls starts fast.
"""

import math
from collections.abc import Callable, Iterable, Mapping
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
from a2a_trio.rules.directory import AmbiguousPeerError, FoundPeer, Source, named
from a2a_trio.rules.redaction import Redactor

__all__ = ["Call", "Recorder", "call_for", "client_for"]

MAX_LISTED: Final = 20
"""Names in the text of an error."""

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
@attrs.frozen
class _Callee:
    """Whom a call goes to, and who said so: the settings, the directory or nobody."""

    url: str
    known: PeerSettings | None = attrs.field(default=None, kw_only=True)
    other: FoundPeer | None = attrs.field(default=None, kw_only=True)


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
    found: Iterable[FoundPeer] = (),
    self_id: str = "",
    recorder: Recorder | None = None,
) -> AbstractAsyncContextManager[Client]:
    """Return a client of a peer, by name, or of any address; see ``call_for``."""
    return call_for(
        peer, settings, token=token, found=found, self_id=self_id, recorder=recorder
    ).open()


def call_for(
    peer: str,
    settings: Settings,
    *,
    token: str | None = None,
    found: Iterable[FoundPeer] = (),
    self_id: str = "",
    recorder: Recorder | None = None,
) -> Call:
    """Return how a configured peer, a found one, or any address is called.

    A credential goes to whom it is meant for: to a configured peer its own token, wherever it is; to
    a peer on this machine that is configured without one, or is in the file registry, this peer's;
    through a gateway the gateway's. A peer that only a project file names, one that was found on the
    network, a remote one without a token of its own and an address that nobody knows get none.

    Args:
        peer: a key of ``peers``, the name of a found peer, or an http(s) URL.
        settings: timeouts, retries, identity, peers.
        token: a credential given by the operator for this very call.
        found: the directory; a configured peer of the same name comes first.
        self_id: this peer's name in delegation chains.
        recorder: keeps a record of the calls.

    Raises:
        SettingsError: there is no peer of this name, or there are several.
    """
    callee = _resolved(peer, settings, tuple(found))
    other = callee.other
    if other is None:
        credential = _credential(callee.known, settings, token)
    else:
        credential = _own(other, settings, token)
    options = attrs.evolve(_options(callee.known, settings, self_id), headers=credential.headers)
    if other is not None and other.source is Source.GATEWAY:
        # What the card says of itself leads past the gateway.
        options = attrs.evolve(options, use_card=False)
    if recorder is not None:
        options = attrs.evolve(
            options,
            audit=recorder.audit,
            said=lambda said: recorder.said(peer, said),
            redact_records=Redactor(settings.secrets()).text,
        )
    return Call(url=callee.url, token=credential.token, options=options)


def _resolved(peer: str, settings: Settings, found: tuple[FoundPeer, ...]) -> _Callee:
    """Return whom a name or an address means; the settings come first.

    Raises:
        SettingsError: a name means nobody, or several.
    """
    known = settings.peers.get(peer)
    if known is not None:
        return _Callee(known.url, known=known)
    if "://" not in peer:
        other = _called(peer, settings, found)
        return _Callee(other.url, other=other)
    known = _by_url(peer, settings)
    return _Callee(peer, known=known, other=_at(peer, found) if known is None else None)


def _called(name: str, settings: Settings, found: tuple[FoundPeer, ...]) -> FoundPeer:
    """Return the found peer of a name.

    Raises:
        SettingsError: there is none, or there are several.
    """
    try:
        match = named(name, found)
    except AmbiguousPeerError as error:
        raise SettingsError(str(error)) from None
    if match is None:
        others = sorted({*settings.peers, *(peer.name for peer in found)})
        listed = ", ".join(others[:MAX_LISTED]) or "none"
        more = f" and {len(others) - MAX_LISTED} more" if len(others) > MAX_LISTED else ""
        raise SettingsError(f"{name!r} is neither a URL nor a known peer (known: {listed}{more})")
    return match


def _at(url: str, found: tuple[FoundPeer, ...]) -> FoundPeer | None:
    """Return the peer of this machine at an address, however it was found out."""
    try:
        wanted = normal_url(url)
        return next(
            (p for p in found if p.source is Source.LOCAL and normal_url(p.url) == wanted), None
        )
    except ValueError:
        return None


def _own(other: FoundPeer, settings: Settings, given: str | None) -> _Credential:
    """Return what a call to a found peer may show."""
    if given:
        return _Credential(given)
    if other.source is Source.GATEWAY:
        return _Credential(other.token or None)
    # Who may write the registry can read our settings anyway; the network is anybody.
    local = other.source is Source.LOCAL and _is_loopback(other.url)
    return _Credential(settings.own_token or None if local else None)


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
