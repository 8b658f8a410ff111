"""Hosts, origins and addresses: parsing, normal forms, and what a URL may point at.

Nothing here resolves a name. A name is checked again by the caller at connect time, with
``check_address`` on the address that it resolved to, so that a name cannot be rebound between the
check and the use.
"""

import re
from collections.abc import Mapping
from enum import StrEnum
from functools import lru_cache
from ipaddress import (
    IPv4Address,
    IPv4Network,
    IPv6Address,
    IPv6Network,
    ip_address,
    ip_network,
)
from typing import Final, TypeAlias, final
from urllib.parse import SplitResult, urlsplit

import attrs

Address: TypeAlias = IPv4Address | IPv6Address
Network: TypeAlias = IPv4Network | IPv6Network

MAX_HOST_CHARS: Final = 300
"""A DNS name has at most 253 characters; this leaves room for a port and brackets."""
MAX_URL_CHARS: Final = 2_048
MAX_REMEMBERED: Final = 256
"""Texts whose address is remembered; when there are more, the one not used for longest is parsed
again. Nearly every request comes from an address, and to a host, that was seen just before."""

_LABEL = r"[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?"
_NAME: Final = re.compile(rf"{_LABEL}(?:\.{_LABEL})*", re.ASCII)
_HOST: Final = re.compile(r"(?:\[([0-9a-f:.]+)\]|([a-z0-9._-]+))(?::([0-9]{0,5}))?", re.ASCII)
_ORIGIN: Final = re.compile(r"([a-z][a-z0-9+.-]*)://([^/?#@\\\s]+)", re.ASCII)
# What inet_aton reads as an address: 127.1, 0x7f000001, 2130706433, 0177.0.0.1
_NUMERIC: Final = re.compile(r"(?:0x[0-9a-f]*|[0-9]+)(?:\.(?:0x[0-9a-f]*|[0-9]+)){0,3}", re.ASCII)
_UNSAFE_IN_URL: Final = re.compile(r"[\x00-\x20\x7f\\]")
DEFAULT_PORTS: Final[Mapping[str, int]] = {"http": 80, "https": 443}


@final
@attrs.frozen
class Host:
    """A host and an optional port. ``name`` is lower case, without brackets and trailing dot."""

    name: str
    port: int | None = None

    @property
    def is_loopback(self) -> bool:
        """True for ``localhost``, 127.0.0.0/8, ``::1`` and IPv4-mapped loopback addresses."""
        return is_loopback_name(self.name)

    @property
    def authority(self) -> str:
        """The host as it stands in a URL, IPv6 in brackets."""
        return bracketed(self.name) + ("" if self.port is None else f":{self.port}")


@final
@attrs.frozen
class Origin:
    """Scheme, host and port; the port is None where the scheme's default is meant."""

    scheme: str
    host: Host

    def __str__(self) -> str:
        return f"{self.scheme}://{self.host.authority}"


# --- parsing --------------------------------------------------------------------------------


def parse_host(value: str) -> Host | None:
    """Parse a ``Host`` header or the authority of a URL without user information.

    Accepts names, canonical IPv4, bracketed IPv6, one trailing dot and an empty port. Anything
    else (user information, bare IPv6, zone identifiers, percent signs, non-ASCII, lists) is None.
    """
    if not value or len(value) > MAX_HOST_CHARS or not value.isascii():
        return None
    match = _HOST.fullmatch(value.lower())
    if match is None:
        return None
    literal, name, digits = match.groups()
    port = int(digits) if digits else None
    if port is not None and port > 0xFFFF:  # noqa: PLR2004 - the largest port
        return None
    if literal is not None:
        address = parse_address(literal)
        return Host(str(address), port) if isinstance(address, IPv6Address) else None
    name = name.removesuffix(".")
    return Host(name, port) if _NAME.fullmatch(name) else None


def parse_origin(value: str) -> Origin | None:
    """Parse an ``Origin`` header: scheme, host, optional port. ``null`` and malformed are None."""
    if len(value) > MAX_URL_CHARS or not value.isascii():
        return None
    match = _ORIGIN.fullmatch(value.lower())
    host = parse_host(match[2]) if match else None
    return None if match is None or host is None else _origin(match[1], host)


def parse_address(value: str) -> Address | None:
    """Parse an address literal without brackets; the zone of an IPv6 address is dropped."""
    try:
        address = ip_address(value)
    except ValueError:
        return None
    return address if isinstance(address, IPv4Address) else IPv6Address(int(address))


def parse_network(value: str) -> Network:
    """Parse an address or a CIDR block; IPv4-mapped blocks become IPv4.

    Raises:
        ValueError: it is neither.
    """
    network = ip_network(value.strip(), strict=False)
    if isinstance(network, IPv6Network):
        mapped = network.network_address.ipv4_mapped
        if mapped is not None and network.prefixlen >= 96:  # noqa: PLR2004 - ::ffff:0:0/96
            return IPv4Network((mapped, network.prefixlen - 96))
    return network


@lru_cache(maxsize=MAX_REMEMBERED)
def plain_address(value: str) -> Address | None:
    """Parse an address and take the IPv4 address out of an IPv4-mapped one."""
    address = parse_address(value)
    if isinstance(address, IPv6Address) and address.ipv4_mapped is not None:
        return address.ipv4_mapped
    return address


def is_loopback_name(name: str) -> bool:
    """True for ``localhost`` and loopback address literals, in any case, with a trailing dot."""
    name = name.lower().removesuffix(".")
    address = plain_address(name)
    return name == "localhost" if address is None else address.is_loopback


def is_wildcard_name(name: str) -> bool:
    """True for an empty host and the unspecified addresses, which name no machine."""
    name = name.removesuffix(".")
    address = plain_address(name)
    return not name if address is None else address.is_unspecified


def bracketed(name: str) -> str:
    """Return a host name or address as a URL spells it: IPv6 in brackets, without a zone."""
    address = parse_address(name)
    return f"[{address}]" if isinstance(address, IPv6Address) else name


# --- URLs -----------------------------------------------------------------------------------


def split_url(url: str) -> tuple[SplitResult, Origin]:
    """Split an http(s) URL strictly.

    Raises:
        ValueError: the text says what is wrong with the URL; it does not repeat the URL.
    """
    if len(url) > MAX_URL_CHARS:
        raise ValueError(f"the URL has more than {MAX_URL_CHARS} characters")
    if _UNSAFE_IN_URL.search(url):
        raise ValueError("the URL contains spaces, control characters or backslashes")
    try:
        parts = urlsplit(url)
    except ValueError as exc:
        raise ValueError("the URL is malformed") from exc
    if parts.scheme not in DEFAULT_PORTS:
        raise ValueError("the URL must begin with http:// or https://")
    if "@" in parts.netloc:
        raise ValueError("the URL must not contain user information")
    host = parse_host(parts.netloc)
    if host is None:
        raise ValueError("the URL has no valid host")
    return parts, _origin(parts.scheme, host)


def url_origin(url: str) -> Origin:
    """Return the origin of an http(s) URL.

    Raises:
        ValueError: as ``split_url``.
    """
    return split_url(url)[1]


def normal_url(url: str, *, unify_loopback: bool = False) -> str:
    """Return the form under which two spellings of one URL are equal.

    Scheme and host become lower case, a default port, the trailing dot of the host, trailing
    slashes of the path and the fragment go away. The path keeps its case.

    Args:
        url: an http(s) URL.
        unify_loopback: also give ``localhost``, 127.0.0.1 and ``[::1]`` one spelling. Only for
            the question "is this peer already in the list?", never for credentials.

    Raises:
        ValueError: as ``split_url``.
    """
    parts, origin = split_url(url)
    if unify_loopback and origin.host.name in {"localhost", "127.0.0.1", "::1"}:
        origin = _origin(origin.scheme, Host("localhost", origin.host.port))
    query = f"?{parts.query}" if parts.query else ""
    return f"{origin}{parts.path.rstrip('/')}{query}"


def advertised_url(
    *, public_url: str, scheme: str, host: str, port: int, rpc_path: str = "/"
) -> str:
    """Return the URL that a card names: ``public_url`` or the bound address, plus the RPC path.

    A wildcard bind is advertised as the loopback address of its family, since a wildcard names no
    machine; a peer that is to be reached from elsewhere sets ``public_url``.

    Args:
        public_url: ``server.publicUrl``: where the server's root is reached from outside, or "".
        scheme: ``http`` or ``https``.
        host: the bound host or address.
        port: the bound port.
        rpc_path: ``server.rpcPath``.

    Raises:
        ValueError: ``public_url`` is malformed or names a wildcard address.
    """
    if public_url:
        parts, origin = split_url(public_url)
        if is_wildcard_name(origin.host.name):
            raise ValueError("the public URL names a wildcard address")
        base = f"{origin}{parts.path.rstrip('/')}"
    else:
        if is_wildcard_name(host):
            host = "::1" if ":" in host else "127.0.0.1"
        base = str(_origin(scheme, Host(host, port)))
    path = rpc_path.strip("/")
    return f"{base}/{path}" if path else f"{base}/"


def _origin(scheme: str, host: Host) -> Origin:
    if host.port == DEFAULT_PORTS.get(scheme):
        host = Host(host.name)
    return Origin(scheme, host)


# --- what a URL may point at ----------------------------------------------------------------


class Zone(StrEnum):
    """Where an address leads."""

    PUBLIC = "public"
    LOOPBACK = "loopback"
    PRIVATE = "private"
    """LAN ranges: RFC 1918, unique local, carrier-grade NAT."""
    LINK_LOCAL = "link-local"
    METADATA = "cloud metadata"
    """Credentials of the machine for whoever asks: never a peer."""
    RESERVED = "reserved"
    """Unspecified, multicast, broadcast, benchmarking, documentation and tunnel ranges."""


class Policy(StrEnum):
    """Who chose a URL, which decides where it may point."""

    OPERATOR = "operator"
    """Configured by the operator or found by discovery: the LAN is where peers are."""
    MODEL = "model"
    """Written by a model, so perhaps by whoever wrote the model's input."""
    WEBHOOK = "webhook"
    """Given by a caller for push notifications."""
    WEBHOOK_PRIVATE = "webhook, private allowed"
    """The same with ``push.allowPrivate``."""


ALLOWED_ZONES: Final[Mapping[Policy, frozenset[Zone]]] = {
    Policy.OPERATOR: frozenset({Zone.PUBLIC, Zone.LOOPBACK, Zone.PRIVATE, Zone.LINK_LOCAL}),
    Policy.MODEL: frozenset({Zone.PUBLIC, Zone.LOOPBACK}),
    Policy.WEBHOOK: frozenset({Zone.PUBLIC}),
    Policy.WEBHOOK_PRIVATE: frozenset({Zone.PUBLIC, Zone.LOOPBACK, Zone.PRIVATE}),
}

_METADATA_NAMES: Final = frozenset(
    {"metadata.google.internal", "metadata.goog", "instance-data.ec2.internal"}
)
_METADATA: Final = frozenset(
    ip_address(text)
    for text in (
        "169.254.169.254",  # AWS, Azure, Google, and most others
        "169.254.170.2",  # AWS container credentials
        "169.254.170.23",  # AWS EKS pod identity
        "fd00:ec2::254",  # AWS over IPv6
        "fd00:ec2::23",  # AWS EKS pod identity over IPv6
        "fd20:ce::254",  # Google over IPv6
        "100.100.100.200",  # Alibaba
        "192.0.0.192",  # Oracle
        "168.63.129.16",  # Azure's platform address, in a public range
    )
)
_ZONES: Final[tuple[tuple[Zone, Network], ...]] = tuple(
    (zone, ip_network(text))
    for zone, texts in (
        (Zone.LOOPBACK, "127.0.0.0/8 ::1/128"),
        (Zone.LINK_LOCAL, "169.254.0.0/16 fe80::/10"),
        (Zone.PRIVATE, "10.0.0.0/8 172.16.0.0/12 192.168.0.0/16 100.64.0.0/10 fc00::/7"),
        # RFC 6890 and successors: this network, protocol assignments, documentation, relay
        # anycast, benchmarking, multicast, future use; Teredo and other special IPv6 blocks.
        (Zone.RESERVED, "0.0.0.0/8 192.0.0.0/24 192.0.2.0/24 192.88.99.0/24 198.18.0.0/15"),
        (Zone.RESERVED, "198.51.100.0/24 203.0.113.0/24 224.0.0.0/4 240.0.0.0/4"),
        (Zone.RESERVED, "2001::/23 2001:db8::/32 3fff::/20"),
        (Zone.PUBLIC, "0.0.0.0/0 2000::/3"),
    )
    for text in texts.split()
)
"""First match wins; IPv6 outside every block is reserved."""

_NAT64: Final = IPv6Network("64:ff9b::/96")
_IPV4_COMPATIBLE: Final = IPv6Network("::/96")


def zone_of(address: Address) -> Zone:
    """Return where an address leads, looking into IPv4-mapped, NAT64 and 6to4 addresses."""
    inner = _embedded_ipv4(address) if isinstance(address, IPv6Address) else None
    address = address if inner is None else inner
    if address in _METADATA:
        return Zone.METADATA
    return next((zone for zone, network in _ZONES if address in network), Zone.RESERVED)


def _embedded_ipv4(address: IPv6Address) -> IPv4Address | None:
    if address.ipv4_mapped is not None:
        return address.ipv4_mapped
    if address.sixtofour is not None:
        return address.sixtofour
    compatible = address in _IPV4_COMPATIBLE and int(address) > 1  # not :: and ::1
    if compatible or address in _NAT64:
        return IPv4Address(int(address) & 0xFFFF_FFFF)
    return None


def check_address(address: str, policy: Policy) -> str | None:
    """Return why a connection to a resolved address is refused, or None.

    Args:
        address: the address literal that is about to be connected to.
        policy: who chose the URL.
    """
    parsed = parse_address(address)
    if parsed is None:
        return "not an IP address"
    zone = zone_of(parsed)
    if zone in ALLOWED_ZONES[policy]:
        return None
    return f"{zone} addresses are not allowed here ({policy} URL)"


def check_url(url: str, policy: Policy) -> str | None:
    """Return why a URL is refused before any connection, or None.

    A host that is a name (``10.example.com`` is one) passes unless it is known to name a metadata
    service or this machine; its addresses are checked when they are known, with ``check_address``.
    """
    try:
        name = url_origin(url).host.name
    except ValueError as exc:
        return str(exc)
    if name in _METADATA_NAMES:
        return f"{Zone.METADATA} addresses are not allowed here ({policy} URL)"
    if name == "localhost" or name.endswith(".localhost"):
        return check_address("127.0.0.1", policy)
    if parse_address(name) is not None:
        return check_address(name, policy)
    if _NUMERIC.fullmatch(name):
        return "the host is a number in an ambiguous form"
    return None
