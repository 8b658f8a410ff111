"""Where a request really connects to, and why a connection failed in words."""

import ssl
from collections.abc import Iterator, Mapping
from typing import Final, final
from urllib.parse import urlunsplit

import attrs
import trio

from a2a_trio.errors import PeerUnreachableError
from a2a_trio.rules.addresses import (
    DEFAULT_PORTS,
    Policy,
    bracketed,
    check_address,
    split_url,
)

__all__ = ["Target", "pin", "why_unreachable"]

_MAX_CAUSES: Final = 20
"""How far a chain of exceptions is followed."""


@final
@attrs.frozen(kw_only=True)
class Target:
    """The URL to connect to and what keeps its meaning when the name became an address."""

    url: str
    headers: tuple[tuple[str, str], ...] = ()
    extensions: Mapping[str, str] = attrs.field(factory=dict)


async def pin(url: str, policy: Policy) -> Target:
    """Resolve the host of a URL and return the checked address as the target.

    What was checked is what is connected to, so a name cannot be rebound in between. Under the
    operator's policy nothing needs checking, and the name is left to the connect (which tries all
    its addresses); else the first address is used, and every one must be allowed.

    Raises:
        PeerUnreachableError: the name does not resolve, or an address is refused.
    """
    if policy is Policy.OPERATOR:
        return Target(url=url)
    parts, origin = split_url(url)
    port = origin.host.port or DEFAULT_PORTS[origin.scheme]
    try:
        found = await trio.socket.getaddrinfo(origin.host.name, port, type=trio.socket.SOCK_STREAM)
    except OSError as exc:
        raise PeerUnreachableError("the host name does not resolve", url=url) from exc
    addresses = [str(entry[4][0]) for entry in found]
    for address in addresses:
        reason = check_address(address, policy)
        if reason is not None:
            raise PeerUnreachableError(f"not called: {reason}", url=url)
    if not addresses:
        raise PeerUnreachableError("the host name does not resolve", url=url)
    return Target(
        url=urlunsplit(parts._replace(netloc=f"{bracketed(addresses[0])}:{port}")),
        headers=(("host", parts.netloc),),
        extensions={"sni_hostname": origin.host.name} if origin.scheme == "https" else {},
    )


def why_unreachable(error: BaseException) -> str:
    """Say in a few words why no connection was made; httpx leaves TLS failures without text."""
    for cause in _causes(error):
        if isinstance(cause, ssl.SSLCertVerificationError):
            return f"its certificate is not trusted ({cause.verify_message})"
        if isinstance(cause, ssl.SSLError):
            return f"TLS failed ({cause.reason})"
        if isinstance(cause, trio.TooSlowError | TimeoutError):
            return "no connection in time"
        if isinstance(cause, OSError) and cause.strerror:
            return cause.strerror[:1].lower() + cause.strerror[1:]
    return "no connection could be made"


def _causes(error: BaseException) -> Iterator[BaseException]:
    pending: list[BaseException] = [error]
    for _ in range(_MAX_CAUSES):
        if not pending:
            return
        found = pending.pop(0)
        yield found
        if isinstance(found, BaseExceptionGroup):
            pending.extend(found.exceptions)
        pending.extend(e for e in (found.__cause__, found.__context__) if e is not None)
