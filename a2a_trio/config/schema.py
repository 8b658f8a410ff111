"""Every setting with its default; ``Settings()`` is the whole default configuration.

An attribute is the snake_case of its JSON key: ``settings.server.reply_timeout_sec`` is
``a2a.server.replyTimeoutSec``. Values are checked when they are constructed, wherever they come
from. Nothing here reads a file or the environment; ``load`` does.
"""

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Final, final
from urllib.parse import urlsplit

import attrs

from a2a_trio.config.fields import (
    IDENTITY_PATTERN,
    NAME_PATTERN,
    Kind,
    declaration_of,
    flag,
    integer,
    maybe_flag,
    maybe_number,
    names,
    number,
    secret,
    section_told,
    sections_told,
    text,
)
from a2a_trio.config.server_schema import ServerSettings

__all__ = [
    "ALIASES",
    "LEAST_SECRET",
    "SINGLE_GATEWAY_VARIABLES",
    "DiscoverySettings",
    "FilterChoice",
    "FilterSettings",
    "GatewaySettings",
    "LocalDiscoverySettings",
    "LogSettings",
    "MdnsSettings",
    "PeerAuth",
    "PeerSettings",
    "PushSettings",
    "ServerSettings",
    "Settings",
    "TimeoutSettings",
    "UiSettings",
    "gateway_key",
]

URL_PATTERN: Final = r"https?://[!-~]{1,2000}"
ALIASES: Final[Mapping[str, str]] = MappingProxyType(
    {"discovery.mdnsEnabled": "discovery.mdns.enabled"}
)
"""Older spellings of keys."""
SINGLE_GATEWAY_VARIABLES: Final[Mapping[str, str]] = MappingProxyType(
    {"enabled": "A2A_GATEWAY_ENABLED", "url": "A2A_GATEWAY_URL", "token": "A2A_GATEWAY_TOKEN"}
)
"""Environment variables of ``discovery.gateway``; ``discovery.gateways`` has none."""
LEAST_SECRET: Final = 8
"""Secrets shorter than this are not searched for in outgoing text: they would hit ordinary words."""


@final
@attrs.frozen(kw_only=True)
class PeerAuth:
    """How this peer proves itself to another."""

    type: str = text(
        "bearer",
        "How the token is presented: `Authorization: Bearer` or `ApiKey`. `none` sends no credential.",
        choices=("bearer", "apiKey", "none"),
    )
    token: str = secret(
        "The token that the peer expects. A bearer peer on this machine that has none gets this"
        " peer's own; a remote one gets none."
    )


@final
@attrs.frozen(kw_only=True)
class PeerSettings:
    """One entry of the static peer directory."""

    url: str = text("", "Base URL of the peer.", pattern=URL_PATTERN, project_safe=True)
    auth: PeerAuth = attrs.field(
        factory=PeerAuth, metadata=section_told("The credential for this peer.")
    )
    timeout: float | None = maybe_number(
        0.001, 31_536_000, "Longest wait for an answer; `timeouts.send` if not set.", unit="seconds"
    )
    capabilities: tuple[str, ...] = names(
        "What the peer is good at; fan-out by capability matches these.", project_safe=True
    )
    description: str = text("", "What the peer is, for people.", project_safe=True)
    frame_inbound: bool | None = maybe_flag("`filters.frameInbound` for this caller only.")
    redact_outbound: bool | None = maybe_flag("`filters.redactOutbound` for this caller only.")
    from_project: bool = False
    """True if a file in the working directory named the peer: it never gets a credential."""


@final
@attrs.frozen(kw_only=True)
class TimeoutSettings:
    """Outbound limits, in milliseconds."""

    send: float = number(
        360_000, 1, 31_536_000_000, unit="milliseconds", project_safe=True,
        doc="Longest wait for the answer to a send; above the server's default reply window.",
    )  # fmt: skip
    async_: float = number(
        30_000, 1, 86_400_000, unit="milliseconds", project_safe=True,
        doc="Interval between polls of a detached task.",
    )  # fmt: skip
    stream: float = number(
        120_000, 1, 86_400_000, unit="milliseconds", project_safe=True,
        doc="Longest silence on a stream; keep-alive comments count as sound.",
    )  # fmt: skip


@final
@attrs.frozen(kw_only=True)
class LocalDiscoverySettings:
    """The file registry of peers on this machine."""

    enabled: bool = flag(True, "Use the local file registry.", env="A2A_DISCOVERY_LOCAL")
    heartbeat_sec: float = number(
        15, 1, 3600, "How often the entry is refreshed.", unit="seconds", env="A2A_HEARTBEAT_SEC"
    )
    ttl_sec: float = number(
        60, 1, 86_400, "Age after which an entry is stale.", unit="seconds", env="A2A_TTL_SEC"
    )


@final
@attrs.frozen(kw_only=True)
class MdnsSettings:
    """Announcement and search on the local network."""

    enabled: bool = flag(
        False, "Announce this peer and look for others by mDNS.", env="A2A_DISCOVERY_MDNS"
    )
    service_type: str = text(
        "a2a", "Service type, announced as `_<type>._tcp`.", env="A2A_MDNS_TYPE",
        pattern="[A-Za-z0-9](?:[A-Za-z0-9-]{0,13}[A-Za-z0-9])?",
    )  # fmt: skip


@final
@attrs.frozen(kw_only=True)
class GatewaySettings:
    """Registration with one gateway."""

    enabled: bool | None = maybe_flag(
        "Register with the gateway; if not set, true when `url` and `token` are set."
    )
    url: str = text("", "Base URL of the gateway.", pattern=URL_PATTERN)
    token: str = secret("The gateway's token.")
    name: str = text(
        "", "Name to register under; `<agentName>-<port>` if empty.", pattern=NAME_PATTERN
    )
    upstream_token: str = secret("Token that the gateway presents when it calls this peer.")
    heartbeat_sec: float = number(60, 1, 86_400, "Interval of registration.", unit="seconds")
    channel: bool = flag(True, "Keep a reverse channel, so that a firewalled peer can be called.")

    @property
    def active(self) -> bool:
        """True if this peer registers with the gateway."""
        complete = bool(self.url and self.token)
        return complete if self.enabled is None else self.enabled and bool(self.url)


def _frozen_gateways(value: Mapping[str, GatewaySettings]) -> Mapping[str, GatewaySettings]:
    return MappingProxyType(dict(value))


@final
@attrs.frozen(kw_only=True)
class DiscoverySettings:
    """How peers find each other."""

    local: LocalDiscoverySettings = attrs.field(
        factory=LocalDiscoverySettings, metadata=section_told("The local file registry.")
    )
    mdns: MdnsSettings = attrs.field(
        factory=MdnsSettings, metadata=section_told("Search on the local network.")
    )
    gateway: GatewaySettings | None = attrs.field(
        default=None, metadata=section_told("One gateway; `gateways` takes several.")
    )
    gateways: Mapping[str, GatewaySettings] = attrs.field(
        factory=dict,
        converter=_frozen_gateways,
        hash=False,
        metadata=sections_told("Gateways by key."),
    )
    enrich_card: bool = flag(
        True, "Publish facts of the session (cwd, model, tools) to callers with a token.",
        env="A2A_ENRICH_CARD",
    )  # fmt: skip

    def all_gateways(self) -> Mapping[str, GatewaySettings]:
        """Return every gateway by key; the single one is keyed by its host and port.

        An entry of ``gateways`` wins over the single ``gateway`` with the same key.
        """
        found = {}
        if self.gateway is not None and self.gateway.url:
            found[gateway_key(self.gateway.url)] = self.gateway
        return MappingProxyType(found | dict(self.gateways))


def gateway_key(url: str) -> str:
    """Return the directory key of a gateway that has none: ``host-port`` of its URL."""
    try:
        parts = urlsplit(url)
        port = parts.port or (443 if parts.scheme == "https" else 80)
        host = parts.hostname or "gateway"
    except ValueError:
        return "gateway"
    return f"{host}-{port}".replace(":", "-")


@final
@attrs.frozen(kw_only=True)
class UiSettings:
    """What the operator is shown."""

    transcript: bool = flag(
        True,
        "Show inbound activity as it happens; not with `--quiet` or JSON logs.",
        env="A2A_UI_TRANSCRIPT",
        project_safe=True,
    )


@final
@attrs.frozen(kw_only=True)
class PushSettings:
    """Push notifications."""

    allow_private: bool = flag(
        False, "Allow webhooks at private and loopback addresses; link-local stays refused."
    )


@final
@attrs.frozen(kw_only=True)
class FilterSettings:
    """The two content filters."""

    frame_inbound: bool = flag(
        True, "Defang inbound text and frame it as untrusted before the agent sees it."
    )
    redact_outbound: bool = flag(True, "Remove credential-shaped text from what leaves this peer.")


@final
@attrs.frozen(kw_only=True)
class LogSettings:
    """The log on standard error."""

    level: str = text(
        "info", "Least severity that is logged.", env="A2A_LOG_LEVEL",
        choices=("debug", "info", "warning", "error"),
    )  # fmt: skip
    json: bool = flag(False, "Log JSON lines instead of text.", env="A2A_LOG_JSON")


@final
@attrs.frozen
class FilterChoice:
    """Which filters apply to one caller."""

    frame: bool
    redact: bool


def _frozen_peers(value: Mapping[str, PeerSettings]) -> Mapping[str, PeerSettings]:
    return MappingProxyType(dict(value))


@final
@attrs.frozen(kw_only=True)
class Settings:
    """The whole configuration of one peer; immutable, and complete without any source.

    Raises:
        SettingsError: a value has the wrong type or is out of range.
    """

    peers: Mapping[str, PeerSettings] = attrs.field(
        factory=dict,
        converter=_frozen_peers,
        hash=False,
        metadata=sections_told("Static directory."),
    )
    self_identity: str = text(
        "", env="A2A_SELF_IDENTITY", pattern=IDENTITY_PATTERN,
        doc="Name of this peer towards others: a key of `server.peerTokens`, whose token it presents.",
    )  # fmt: skip
    server: ServerSettings = attrs.field(
        factory=ServerSettings, metadata=section_told("The inbound server.")
    )
    timeouts: TimeoutSettings = attrs.field(
        factory=TimeoutSettings, metadata=section_told("Outbound limits.")
    )
    retry_attempts: int = integer(
        2, 0, 10, "How often a safe outbound call is repeated.", project_safe=True
    )
    verify_ssl: bool = flag(True, "Verify certificates of peers.", env="A2A_VERIFY_SSL")
    discovery: DiscoverySettings = attrs.field(
        factory=DiscoverySettings, metadata=section_told("How peers find each other.")
    )
    ui: UiSettings = attrs.field(factory=UiSettings, metadata=section_told("What is shown."))
    push: PushSettings = attrs.field(
        factory=PushSettings, metadata=section_told("Push notifications.")
    )
    filters: FilterSettings = attrs.field(
        factory=FilterSettings, metadata=section_told("Content filters.")
    )
    log: LogSettings = attrs.field(factory=LogSettings, metadata=section_told("Logging."))

    @property
    def identity(self) -> str:
        """The name asserted to other peers: ``selfIdentity``, else the agent's name."""
        return self.self_identity or self.server.agent_name

    @property
    def own_token(self) -> str:
        """The token this peer presents: its own of ``peerTokens``, else the shared one."""
        own = self.server.peer_tokens.get(self.self_identity, ())
        return own[0] if own else self.server.shared_token

    def filters_for(self, identity: str) -> FilterChoice:
        """Return which content filters apply to a caller; a project file never loosens them."""
        peer = self.peers.get(identity, _NO_ENTRY)
        if peer.from_project:
            peer = _NO_ENTRY
        frame, redact = peer.frame_inbound, peer.redact_outbound
        return FilterChoice(
            frame=self.filters.frame_inbound if frame is None else frame,
            redact=self.filters.redact_outbound if redact is None else redact,
        )

    def secrets(self) -> tuple[str, ...]:
        """Return every secret value of at least ``LEAST_SECRET`` characters, each once, longest first."""
        found = {value for value in _secrets_in(self) if len(value) >= LEAST_SECRET}
        return tuple(sorted(found, key=lambda value: (-len(value), value)))


_NO_ENTRY: Final = PeerSettings()


def _secrets_in(section: attrs.AttrsInstance) -> Iterator[str]:
    """Walk the table, so that no secret can be forgotten here when one is added there."""
    for attribute in attrs.fields(type(section)):
        declaration = declaration_of(attribute)
        value = getattr(section, attribute.name)
        if declaration is None or value is None:
            continue
        if declaration.kind is Kind.SECRET:
            yield value
        elif declaration.kind is Kind.TOKENS:
            for held in value.values():
                yield from held
        elif declaration.kind is Kind.SECTION:
            yield from _secrets_in(value)
        elif declaration.kind is Kind.SECTIONS:
            for item in value.values():
                yield from _secrets_in(item)
