"""Read the request headers that admission depends on; every malformed value has one answer."""

import math
import re
from typing import Final

from a2a_trio.rules.addresses import Address, Network, plain_address

MAX_CREDENTIAL_CHARS: Final = 8_192
"""An Authorization header longer than this is a wrong credential."""
MAX_FORWARDED_CHARS: Final = 8_192
MAX_CONTENT_TYPE_CHARS: Final = 256

WRONG_CREDENTIAL: Final = b""
"""A bearer token that equals none: no configured token is empty."""

_WORD = r"[!#$%&'*+.^_`|~0-9A-Za-z-]+"  # RFC 9110 section 5.6.2
_MEDIA_TYPE: Final = re.compile(rf"[ \t]*({_WORD}/{_WORD})[ \t]*")
_PARAMETER: Final = re.compile(
    rf';[ \t]*(?:({_WORD})=({_WORD}|"[\t \x21\x23-\x5b\x5d-\x7e]*")[ \t]*)?'
)
_JSON_TYPES: Final = frozenset({"application/json", "application/a2a+json"})
_JSON_CHARSETS: Final = frozenset({"utf-8", "utf8", "us-ascii"})
_IDENTITY: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}", re.ASCII)
_HOP: Final = re.compile(r"\[([^\]]*)\](?::[0-9]{1,5})?|([0-9.]+):[0-9]{1,5}", re.ASCII)


def bearer_token(values: tuple[str, ...]) -> bytes | None:
    """Return the bytes of a presented bearer token as they were on the wire.

    Args:
        values: the Authorization headers.

    Returns:
        None if no bearer token is presented (no header, or another scheme);
        ``WRONG_CREDENTIAL`` if the header is repeated, too long, or has no token in it.
    """
    if not values:
        return None
    if len(values) > 1 or len(values[0]) > MAX_CREDENTIAL_CHARS:
        return WRONG_CREDENTIAL
    scheme, _, rest = values[0].strip(" \t").partition(" ")
    if scheme.lower() != "bearer":
        return None
    return wire_bytes(rest.strip(" \t"))


def wire_bytes(text: str) -> bytes:
    """Return a header value as bytes: values are read as latin-1, a byte per character."""
    try:
        return text.encode("latin-1")
    except UnicodeEncodeError:
        return text.encode("utf-8", "surrogatepass")


def is_json(values: tuple[str, ...]) -> bool:
    """True for exactly one Content-Type that is ``application/json`` or ``application/a2a+json``.

    Parameters must be well formed; a charset other than UTF-8 is not JSON (RFC 8259 section 8.1).
    """
    if len(values) != 1 or len(values[0]) > MAX_CONTENT_TYPE_CHARS:
        return False
    value = values[0]
    if value == "application/json":  # nearly always
        return True
    match = _MEDIA_TYPE.match(value)
    if match is None or match[1].lower() not in _JSON_TYPES:
        return False
    end = match.end()
    while end < len(value):
        parameter = _PARAMETER.match(value, end)
        if parameter is None:
            return False
        end = parameter.end()
        name, setting = parameter.groups(default="")
        if name.lower() == "charset" and setting.strip('"').lower() not in _JSON_CHARSETS:
            return False
    return True


def asserted_identity(values: tuple[str, ...]) -> str | None:
    """Return the one well-formed ``X-A2A-Identity``; anything else is as good as none."""
    if len(values) != 1:
        return None
    value = values[0].strip(" \t")
    return value if _IDENTITY.fullmatch(value) else None


def forwarded_address(
    values: tuple[str, ...], proxy: Address, trusted: tuple[Network, ...]
) -> Address | None:
    """Return the address that a trusted proxy saw: the rightmost hop that is not a proxy.

    Entries further left were written by strangers and are not read.

    Args:
        values: the ``X-Forwarded-For`` headers, in order.
        proxy: the socket's other end, which is trusted.
        trusted: the trusted proxies.

    Returns:
        The address; the proxy's own without any entry; the leftmost if all are proxies;
        None if an entry that has to be read is no address or the headers are too long.
    """
    if sum(map(len, values)) > MAX_FORWARDED_CHARS:
        return None
    address = proxy
    for entry in reversed(",".join(values).split(",") if values else ()):
        hop = _hop_address(entry.strip(" \t"))
        if hop is None:
            return None
        address = hop
        if not is_trusted(hop, trusted):
            break
    return address


def is_trusted(address: Address, trusted: tuple[Network, ...]) -> bool:
    """True if one of the blocks contains the address."""
    return any(address in network for network in trusted)


def retry_after_value(seconds: float) -> str | None:
    """Return the value of ``Retry-After``: whole seconds, never too early; None for never."""
    return str(max(1, math.ceil(seconds))) if math.isfinite(seconds) else None


def _hop_address(entry: str) -> Address | None:
    match = _HOP.fullmatch(entry)
    return plain_address(entry if match is None else match[1] or match[2] or "")
