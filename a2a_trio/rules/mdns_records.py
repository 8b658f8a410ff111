"""What mDNS says about a peer: names and texts for our own record, and reading those of others.

Everybody on the network can publish a record, so nothing in one is taken as it is, and a peer that
was found in this way never gets a credential.
"""

import re
from collections.abc import Mapping
from typing import Final, final

import attrs

from a2a_trio.rules.addresses import (
    Host,
    Origin,
    is_wildcard_name,
    plain_address,
    url_origin,
)
from a2a_trio.rules.directory import FoundPeer, Source, is_callable, shown

__all__ = [
    "Announcement",
    "Record",
    "host_name",
    "instance_name",
    "read_record",
    "service_name",
    "txt_of",
]

MAX_LABEL_BYTES: Final = 63
"""Length of one label of a DNS name (RFC 1035 section 2.3.4)."""
MAX_TXT_BYTES: Final = 255
"""Length of one ``key=value`` string of a TXT record (RFC 6763 section 6.1)."""

_NOT_IN_LABELS: Final = re.compile(r"[^a-z0-9]+", re.ASCII)


@final
@attrs.frozen(kw_only=True)
class Announcement:
    """What a peer says about itself to the network."""

    name: str
    url: str
    port: int
    pid: int
    addresses: tuple[str, ...]
    """Where it listens; empty for every address of this machine."""
    cwd: str = ""
    model: str = ""


@final
@attrs.frozen(kw_only=True)
class Record:
    """What the network says about a service."""

    instance: str
    """The whole name, e.g. ``reader-7-9910._a2a._tcp.local.``"""
    port: int
    addresses: tuple[str, ...]
    txt: Mapping[bytes, bytes | None]


def service_name(service_type: str) -> str:
    """Return the name under which services of a type are found, e.g. ``_a2a._tcp.local.`` for a2a."""
    return f"_{service_type}._tcp.local."


def instance_name(announcement: Announcement, service_type: str) -> str:
    """Return the name of our own service: no other process, and no other port, has it."""
    label = _label(announcement.name, f"-{announcement.pid}-{announcement.port}")
    return f"{label}.{service_name(service_type)}"


def host_name(announcement: Announcement) -> str:
    """Return the host of our own record.

    Never the name of the machine: systems that defend theirs would rename the machine.
    """
    return f"{_label(announcement.name, f'-a2a-{announcement.pid}-{announcement.port}')}.local."


def txt_of(announcement: Announcement) -> dict[str, bytes]:
    """Return the texts of our own record, cut between two characters where they are too long.

    An address is never cut: a wrong one is worse than none.
    """
    texts = {"name": announcement.name, "cwd": announcement.cwd, "model": announcement.model}
    found = {key: _cut(text, MAX_TXT_BYTES - len(key) - 1) for key, text in texts.items() if text}
    url = announcement.url.encode()
    if len(url) <= MAX_TXT_BYTES - len("url="):
        found["url"] = url
    return found


def read_record(record: Record) -> FoundPeer | None:
    """Return the peer of a record, its texts cleaned; None if it tells of nobody who can be called."""
    url = _url(record)
    if url is None:
        return None
    name = _text(record, b"name") or shown(record.instance.partition("._")[0])
    return FoundPeer(
        name=name or url,
        url=url,
        source=Source.MDNS,
        cwd=_text(record, b"cwd"),
        model=_text(record, b"model"),
    )


def _url(record: Record) -> str | None:
    """Return the published URL, or one made of the record's own address where that is wiser."""
    raw = record.txt.get(b"url") or b""
    url = raw.decode("ascii", "replace")
    if not is_callable(url):
        return _own_url("http", record)
    origin = url_origin(url)
    if _leads_elsewhere(origin.host):
        return _own_url(origin.scheme, record)
    return url


def _leads_elsewhere(host: Host) -> bool:
    """Return whether a name means another machine to us than to who wrote it, or nobody's."""
    address = plain_address(host.name)
    links = address is not None and (address.is_link_local or address.is_multicast)
    return links or host.is_loopback or is_wildcard_name(host.name)


def _own_url(scheme: str, record: Record) -> str | None:
    """Return the URL of the first address that can be called; loopback only if there is no other."""
    if not 0 < record.port < 2**16:
        return None
    known = [plain_address(text) for text in record.addresses]
    usable = [a for a in known if a and not (a.is_link_local or a.is_multicast or a.is_unspecified)]
    usable.sort(key=lambda address: address.is_loopback)
    if not usable:
        return None
    return f"{Origin(scheme, Host(str(usable[0]), record.port))}/"


def _text(record: Record, key: bytes) -> str:
    return shown((record.txt.get(key) or b"").decode("utf-8", "replace"))


def _label(text: str, suffix: str) -> str:
    cleaned = _NOT_IN_LABELS.sub("-", text.lower()).strip("-") or "a2a"
    return cleaned[: MAX_LABEL_BYTES - len(suffix)].rstrip("-") + suffix


def _cut(text: str, limit: int) -> bytes:
    return text.encode("utf-8", "replace")[:limit].decode("utf-8", "ignore").encode()
