"""The URLs of one peer: what is accepted as its address, where its card is, what a card may name."""

from typing import Final
from urllib.parse import urljoin, urlsplit, urlunsplit

from a2a_trio.errors import PeerProtocolError
from a2a_trio.rules.addresses import (
    Origin,
    Policy,
    check_url,
    is_wildcard_name,
    split_url,
    url_origin,
)
from a2a_trio.wire.extensions import CARD_PATH, OLD_CARD_PATH

__all__ = ["base_url", "card_urls", "interface_url"]

_CARD_PATHS: Final = (CARD_PATH, OLD_CARD_PATH)
"""Where a card may be, in the order they are tried."""


def base_url(url: str, policy: Policy) -> str:
    """Return a peer's URL without trailing slash; the URL of a card stands for its peer.

    Raises:
        ValueError: the URL is malformed, carries a password, query or fragment, or may not be
            called under the policy.
    """
    parts, _ = split_url(url)
    if parts.query or parts.fragment:
        raise ValueError("the URL of a peer has no query and no fragment")
    reason = check_url(url, policy)
    if reason is not None:
        raise ValueError(reason)
    path = parts.path
    for card_path in _CARD_PATHS:
        path = path.removesuffix(card_path)
    return urlunsplit(parts._replace(path=path.rstrip("/")))


def card_urls(base: str) -> tuple[str, ...]:
    """Return where the card of a peer may be, in the order to try."""
    return tuple(base + path for path in _CARD_PATHS)


def interface_url(base: str, named: str, policy: Policy) -> tuple[str, bool]:
    """Return the URL to call for one that a card names, and whether credentials may go there.

    Credentials belong to the origin that was configured. Another origin is called without them,
    since a card is not trusted to choose who sees a token. Two things are refused: leaving https,
    and a loopback address named by a peer elsewhere, which would mean this machine. A loopback
    or wildcard spelling of the configured loopback address (``localhost`` for 127.0.0.1) is
    called under the configured spelling, so that no other listener can stand in.

    Raises:
        PeerProtocolError: the URL is refused; the text says why, and does not repeat it.
    """
    url = urljoin(base + "/", named)
    reason = check_url(url, policy)
    try:
        here, there = url_origin(base), url_origin(url)
    except ValueError as exc:
        raise _refused(str(exc), base) from exc
    if here == there:
        return url, True
    if _same_machine(here, there):
        target = urlsplit(base)
        moved = urlsplit(url)._replace(scheme=target.scheme, netloc=target.netloc)
        return urlunsplit(moved), True
    if reason is not None:
        raise _refused(reason, base)
    if there.host.is_loopback and not here.host.is_loopback:
        raise _refused("it is a loopback address, which would be this machine", base)
    if here.scheme == "https" and there.scheme != "https":
        raise _refused("it leaves https", base)
    return url, False


def _same_machine(here: Origin, there: Origin) -> bool:
    named = there.host
    return (
        here.scheme == there.scheme
        and here.host.port == named.port
        and here.host.is_loopback
        and (named.is_loopback or is_wildcard_name(named.name))
    )


def _refused(reason: str, base: str) -> PeerProtocolError:
    return PeerProtocolError(
        f"the URL that the peer's card names is not called: {reason}", url=base
    )
