"""What is wrong, or doubtful, about settings that are right one by one."""

import ipaddress
import re
from collections.abc import Iterator, Mapping
from typing import Final
from urllib.parse import urlsplit

from a2a_trio.config.schema import Settings

__all__ = ["check_together"]

WEAK_TOKEN: Final = 16
"""A token shorter than this can be guessed."""

_WILDCARDS: Final = frozenset({"0.0.0.0", "::", "*"})


def check_together(
    settings: Settings, labels: Mapping[tuple[str, ...], str]
) -> tuple[list[str], list[str]]:
    """Return the problems and the warnings that concern several settings, or the form of one.

    Args:
        settings: values that are each of the right type and in range.
        labels: where each value comes from, by path.
    """

    def told(key: str, text: str) -> str:
        place = labels.get(tuple(key.split(".")), "settings")
        return f"{place}: {key} {text}"

    problems = [told(key, text) for key, text in _problems(settings)]
    return problems, [told(key, text) for key, text in _doubts(settings)]


def _problems(settings: Settings) -> Iterator[tuple[str, str]]:
    server = settings.server
    owners: dict[str, str] = {}
    for name, held in server.peer_tokens.items():
        for token in held:
            if owners.setdefault(token, name) != name:
                other = owners[token]
                yield "server.peerTokens", f'gives "{other}" and "{name}" the same token'
    if bool(server.tls_cert_file) != bool(server.tls_key_file):
        missing = "server.tlsKeyFile" if server.tls_cert_file else "server.tlsCertFile"
        yield missing, "is missing; TLS needs a certificate and its key"
    for network in server.trusted_proxies:
        if not _is_network(network):
            yield "server.trustedProxies", f'has "{network:.60}", which is no address or network'
    for origin in server.allowed_origins:
        if not _is_origin(origin):
            yield "server.allowedOrigins", f'has "{origin:.60}", which is not scheme://host[:port]'
    yield from _bad_urls(settings)


def _bad_urls(settings: Settings) -> Iterator[tuple[str, str]]:
    urls = {"server.publicUrl": settings.server.public_url}
    urls |= {f"peers.{name}.url": peer.url for name, peer in settings.peers.items()}
    if settings.discovery.gateway is not None:
        urls["discovery.gateway.url"] = settings.discovery.gateway.url
    for key, gateway in settings.discovery.gateways.items():
        urls[f"discovery.gateways.{key}.url"] = gateway.url
        if gateway.enabled and not gateway.url:
            yield f"discovery.gateways.{key}.url", "is missing, but the gateway is enabled"
    for key, gateway in settings.discovery.all_gateways().items():
        if _is_below_root(gateway.url):
            yield f"the URL of gateway {key}", "must have no path: what it lists begins at its root"
    for name, url in urls.items():
        if not url:
            continue
        host = _host(url)
        if host is None:
            yield name, "is no URL with a host and a valid port"
        elif host in _WILDCARDS and name == "server.publicUrl":
            yield name, "must be an address that callers can reach, not a wildcard"


def _doubts(settings: Settings) -> Iterator[tuple[str, str]]:
    server = settings.server
    if 0 < len(server.shared_token) < WEAK_TOKEN:
        yield "server.sharedToken", f"is weak: shorter than {WEAK_TOKEN} characters"
    for name, held in server.peer_tokens.items():
        if any(len(token) < WEAK_TOKEN for token in held):
            yield (
                "server.peerTokens",
                f'has a weak token for "{name}": shorter than {WEAK_TOKEN} characters',
            )
        if server.shared_token in held:
            yield (
                "server.sharedToken",
                f'is also the token of "{name}", which its callers will pass for',
            )
    own = settings.self_identity
    if own and server.peer_tokens and own not in server.peer_tokens:
        yield "selfIdentity", f'is "{own}", which has no token in server.peerTokens'
    yield from _strangers(settings)
    if server.allow_all_users and server.trusted_peers:
        yield "server.allowAllUsers", "is true, so server.trustedPeers has no effect"
    if not settings.verify_ssl:
        yield "verifySsl", "is false: certificates of peers are not verified"
    local = settings.discovery.local
    if local.enabled and local.ttl_sec <= local.heartbeat_sec:
        yield "discovery.local.ttlSec", "is not longer than heartbeatSec, so live peers look stale"


def _is_below_root(url: str) -> bool:
    try:
        parts = urlsplit(url)
    except ValueError:
        return False  # told as no URL
    return bool(parts.path.strip("/") or parts.query or parts.fragment)


def _strangers(settings: Settings) -> Iterator[tuple[str, str]]:
    """Look for trusted callers that nobody can be."""
    server = settings.server
    gateways = {f"gw/{key}" for key in settings.discovery.all_gateways()}
    for name in server.trusted_peers:
        if name.startswith("gw/"):
            if name not in gateways:
                yield "server.trustedPeers", f'has "{name}", which is no gateway of the settings'
        elif server.peer_tokens and not name.startswith("ip:") and name not in server.peer_tokens:
            yield "server.trustedPeers", f'has "{name}", which has no token in server.peerTokens'


def _host(url: str) -> str | None:
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError:
        return None
    return parts.hostname or None


def _is_network(text: str) -> bool:
    try:
        ipaddress.ip_network(text, strict=False)
    except ValueError:
        return False
    return True


def _is_origin(text: str) -> bool:
    return re.fullmatch(r"https?://[^/?#@\s]{1,255}", text) is not None and _host(text) is not None
