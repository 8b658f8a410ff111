"""A gateway's list of peers: who can be called through it."""

import re
from typing import Final, final

import attrs

from a2a_trio.errors import ProtocolError
from a2a_trio.rules.addresses import split_url
from a2a_trio.rules.directory import (
    MAX_PEERS,
    THROUGH_GATEWAY,
    FoundPeer,
    Source,
    is_callable,
    shown_items,
    skill_names,
)
from a2a_trio.wire.json_text import loads
from a2a_trio.wire.model import JsonValue

__all__ = ["GatewayDirectory", "gateway_base", "read_directory"]

_NAME: Final = re.compile(r"[A-Za-z0-9._-]{1,64}", re.ASCII)


@final
@attrs.frozen(kw_only=True)
class GatewayDirectory:
    """What a gateway lists."""

    peers: tuple[FoundPeer, ...]
    """Those that can be called, without this one; at most ``MAX_PEERS``."""
    has_own: bool = False
    """Whether this peer is listed, as it is once it was accepted."""
    own_channel: bool = False
    """Whether calls of this peer go through a channel."""


def gateway_base(url: str) -> str:
    """Return a gateway's address without a trailing slash.

    Raises:
        ValueError: it is malformed, or has a path: the addresses that a gateway lists begin at its
            root.
    """
    parts, origin = split_url(url)
    if parts.path.strip("/") or parts.query or parts.fragment:
        raise ValueError("the URL of a gateway has no path, no query and no fragment")
    return str(origin)


def read_directory(
    content: bytes, *, key: str, base: str, own_name: str, token: str
) -> GatewayDirectory | None:
    """Read a gateway's list.

    Args:
        content: the body.
        key: of the gateway; peers are called ``gw/<key>/<name>``.
        base: of the gateway, as ``gateway_base`` returned it.
        own_name: what this peer is registered as.
        token: for calls through the gateway.

    Returns:
        None if the body is no list.
    """
    try:
        value = loads(content)
    except ProtocolError:
        return None
    listed = value.get("peers") if isinstance(value, dict) else None
    if not isinstance(listed, list):
        return None
    found: list[FoundPeer] = []
    own: dict[str, JsonValue] | None = None
    for entry in listed:
        if not isinstance(entry, dict):
            continue
        if entry.get("name") == own_name:
            own = entry
        elif len(found) < MAX_PEERS and (peer := _peer(entry, key, base, token)) is not None:
            found.append(peer)
    return GatewayDirectory(
        peers=tuple(found),
        has_own=own is not None,
        own_channel=own is not None and own.get("channel") is True,
    )


def _peer(entry: dict[str, JsonValue], key: str, base: str, token: str) -> FoundPeer | None:
    """Return the peer of an entry, unless it is ill or is not behind this gateway."""
    name, path, healthy = entry.get("name"), entry.get("url"), entry.get("healthy")
    if not isinstance(name, str) or _NAME.fullmatch(name) is None or healthy is False:
        return None
    if not isinstance(path, str) or not path.startswith("/") or path.startswith("//"):
        return None
    url = f"{base}{path}"
    if not is_callable(url):
        return None
    return FoundPeer(
        name=f"{THROUGH_GATEWAY}{key}/{name}",
        url=url,
        source=Source.GATEWAY,
        capabilities=_capabilities(entry),
        gateway=key,
        token=token,
        healthy=True if healthy is True else None,
    )


def _capabilities(entry: dict[str, JsonValue]) -> tuple[str, ...]:
    """Return what a peer says that it can do: its own list, or else its skills."""
    given = entry.get("capabilities")
    if isinstance(given, list):
        return shown_items(given)
    return skill_names(entry.get("skills"))
