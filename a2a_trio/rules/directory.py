"""The peers that were found: one shape for every source, merged into one directory.

What a registry file, an mDNS record or a gateway says was written by somebody else. It is cut and
cleaned with ``shown`` before it becomes a ``FoundPeer``, so that nobody after that has to think of
terminals or of prompts.
"""

from collections.abc import Iterable
from enum import StrEnum
from typing import Final, final

import attrs

from a2a_trio.rules.addresses import normal_url, split_url

__all__ = [
    "MAX_PEERS",
    "THROUGH_GATEWAY",
    "AmbiguousPeerError",
    "FoundPeer",
    "Source",
    "is_callable",
    "merge",
    "named",
    "shown",
    "shown_items",
    "skill_names",
]

MAX_SHOWN_CHARS: Final = 200
"""Length of one text that somebody else wrote."""
MAX_ITEMS: Final = 50
"""Tools or capabilities of one peer; further ones are left out."""
THROUGH_GATEWAY: Final = "gw/"
"""Begins the names of peers behind a gateway."""
MAX_PEERS: Final = 1_000
"""Peers in one directory; those that come last are left out."""


class Source(StrEnum):
    """Where a peer was found."""

    LOCAL = "local"
    MDNS = "mdns"
    CONFIG = "config"
    GATEWAY = "gateway"


_ORDER: Final = (Source.LOCAL, Source.MDNS, Source.CONFIG, Source.GATEWAY)
"""Of two entries for one address the earlier source tells more."""


@final
@attrs.frozen(kw_only=True)
class FoundPeer:
    """One agent that can be called."""

    name: str
    url: str
    source: Source
    cwd: str = ""
    model: str = ""
    tools: tuple[str, ...] = ()
    capabilities: tuple[str, ...] = ()
    pid: int | None = None
    gateway: str = ""
    """Key of the gateway that leads there."""
    token: str = attrs.field(default="", repr=False)
    """The gateway's credential for calls through it; empty for every other source."""
    healthy: bool | None = None
    """What the gateway thinks; None is not known."""


class AmbiguousPeerError(LookupError):
    """Several agents have this name."""

    def __init__(self, name: str, urls: tuple[str, ...]) -> None:
        super().__init__(f"several peers are called {name!r}: {', '.join(urls)}; give the URL")
        self.urls = urls


def merge(found: Iterable[FoundPeer], *, own_urls: Iterable[str] = ()) -> tuple[FoundPeer, ...]:
    """Return each address once, local peers first, then mDNS, settings and gateways.

    The operator's own names stay in any case: somebody may want to call them by these.

    Args:
        found: peers of all sources; at most ``MAX_PEERS`` are kept.
        own_urls: this peer's own addresses, which are left out.
    """
    seen = {key for url in own_urls if (key := _key(url))}
    kept: list[FoundPeer] = []
    for peer in sorted(found, key=lambda peer: _ORDER.index(peer.source)):
        key = _key(peer.url)
        named_here = peer.source is Source.CONFIG
        if key and (named_here or key not in seen) and len(kept) < MAX_PEERS:
            seen.add(key)
            kept.append(peer)
    return tuple(kept)


def named(name: str, peers: Iterable[FoundPeer]) -> FoundPeer | None:
    """Return the one peer of a name; None if there is none.

    Of several the nearest source counts, so that nobody on the network can take a local peer's name
    away. Names behind a gateway belong to gateways alone.

    Raises:
        AmbiguousPeerError: the nearest source has several.
    """
    through = name.startswith(THROUGH_GATEWAY)
    matches = [
        peer for peer in peers if peer.name == name and (peer.source is Source.GATEWAY) is through
    ]
    if not matches:
        return None
    nearest = min(_ORDER.index(peer.source) for peer in matches)
    chosen = [peer for peer in matches if _ORDER.index(peer.source) == nearest]
    if len(chosen) > 1:
        raise AmbiguousPeerError(name, tuple(peer.url for peer in chosen))
    return chosen[0]


def shown(value: object, limit: int = MAX_SHOWN_CHARS) -> str:
    """Return a foreign text as one harmless line; anything but a text becomes empty.

    What moves the cursor, hides text or turns its direction is left out.
    """
    if not isinstance(value, str):
        return ""
    kept = "".join(
        char if char.isprintable() else " " if char.isspace() else "" for char in value[: 4 * limit]
    )
    return " ".join(kept.split())[:limit]


def shown_items(value: object) -> tuple[str, ...]:
    """Return a foreign list of texts, cleaned; anything else is empty."""
    if not isinstance(value, list | tuple):
        return ()
    texts = (shown(item) for item in value[:MAX_ITEMS])
    return tuple(text for text in texts if text)


def skill_names(value: object) -> tuple[str, ...]:
    """Return the names of a foreign list of skills, which are texts or objects with name or id."""
    if not isinstance(value, list):
        return ()
    return shown_items(
        [(item.get("name") or item.get("id")) if isinstance(item, dict) else item for item in value]
    )


def is_callable(url: str) -> bool:
    """Return whether a foreign text may be called: http(s), ASCII, without user information."""
    try:
        split_url(url)
    except ValueError:
        return False
    return url.isascii()


def _key(url: str) -> str:
    try:
        return normal_url(url, unify_loopback=True)
    except ValueError:
        return ""
