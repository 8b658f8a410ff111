"""Where to listen: which host, and which ports in which order."""

from typing import Final

from a2a_trio.rules.addresses import is_loopback_name, is_wildcard_name

MAX_PORT: Final = 65_535
ANY_PORT: Final = 0
"""Lets the operating system choose."""


def port_plan(port: int, fallback: int) -> tuple[int, ...]:
    """Return the ports to try, in order: the port, the next ones, then one of the system's.

    Args:
        port: ``server.port``; 0 asks the system at once.
        fallback: ``server.portFallback``: how many ports above it are tried before the system's;
            ports above 65535 do not exist and are left out.

    Raises:
        ValueError: the port is not in 0..65535 or the fallback is negative.
    """
    if not ANY_PORT <= port <= MAX_PORT:
        raise ValueError(f"a port is between 0 and {MAX_PORT}, not {port}")
    if fallback < 0:
        raise ValueError(f"a port fallback is not negative, as {fallback} is")
    if port == ANY_PORT:
        return (ANY_PORT,)
    return (*range(port, min(port + fallback, MAX_PORT) + 1), ANY_PORT)


def resolve_bind_host(
    requested: str, *, has_tokens: bool, tls: bool = False
) -> tuple[str, str | None]:
    """Return the host to bind, and a warning if it is not what was asked for or is risky.

    Args:
        requested: ``server.host``; brackets around IPv6 are taken off, empty is 127.0.0.1.
        has_tokens: calls need a bearer token; without, only loopback is bound.
        tls: the server has a certificate.
    """
    host = requested.strip().removeprefix("[").removesuffix("]") or "127.0.0.1"
    if is_loopback_name(host):
        return host, None
    if not has_tokens:
        return "127.0.0.1", f"no token is set: binding 127.0.0.1 instead of {host}"
    if tls:
        return host, None
    reach = "every interface" if is_wildcard_name(host) else host
    return host, f"serving plain HTTP on {reach}: tokens and texts can be read on the way; set TLS"
