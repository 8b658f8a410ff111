"""Invariant: any text is a host, an origin, a URL, an address, or none, and nothing else raises.

What was read is printed and read again as the same; a URL and the address in it get one verdict.
"""

import contextlib

from a2a_trio.rules import addresses
from a2a_trio.rules.addresses import Policy
from fuzz.harness import Target


def check_host(text: str) -> None:
    """A host is a fixed point, and loopback in every spelling of itself."""
    host = addresses.parse_host(text)
    if host is not None:
        assert addresses.parse_host(host.authority) == host
        assert addresses.is_loopback_name(host.name) == host.is_loopback
        assert host.name.isascii()
        assert host.name.isprintable()


def check_origin(text: str) -> None:
    """An origin is a fixed point and cannot carry more than itself."""
    origin = addresses.parse_origin(text)
    if origin is not None:
        assert addresses.parse_origin(str(origin)) == origin
        assert not set(str(origin)) & set(" \t\r\n,@\\")


def check_url(text: str) -> None:
    """A URL has a normal form with the same origin; what is no URL is refused for everybody."""
    try:
        normal = addresses.normal_url(text)
    except ValueError:
        assert all(addresses.check_url(text, policy) for policy in Policy)
        return
    assert addresses.normal_url(normal) == normal
    assert addresses.url_origin(text) == addresses.url_origin(normal)
    addresses.normal_url(text, unify_loopback=True)
    name = addresses.url_origin(text).host.name
    for policy in Policy:
        if addresses.parse_address(name) is not None:
            verdict = addresses.check_address(name, policy)
            assert addresses.check_url(text, policy) == verdict
    if addresses.check_url(text, Policy.WEBHOOK) is None:
        assert not addresses.is_loopback_name(name)
        assert addresses.check_url(text, Policy.MODEL) is None


def check(data: bytes) -> None:
    """Read the text in every role."""
    text = data.decode("utf-8", "replace")
    check_host(text)
    check_origin(text)
    check_url(text)
    check_url(f"http://{text}")
    addresses.is_wildcard_name(text)
    for policy in Policy:
        addresses.check_address(text, policy)
    with contextlib.suppress(ValueError):
        addresses.parse_network(text)


TARGET = Target(
    name="addresses",
    check=check,
    words=(
        b"http://", b"https://", b"localhost", b"127.0.0.1", b"[::1]", b"::ffff:", b"[::", b"]", b":", b".",
        b":80", b":443", b":65536", b"64:ff9b::", b"2002:", b"169.254.169.254", b"a9fe:a9fe", b"fe80::1%25e",
        b"fe80::1%e", b"metadata.google.internal", b".localhost", b"0x7f.1", b"0177.0.0.1", b"2130706433",
        b"@", b"\\", b"/", b"#", b"?", b"%6c", b"null", b"10.0.0.0/8", b"::ffff:10.0.0.0/104", b"\r\n",
        "ⓛ".encode(), "。".encode(), b"\0",
    ),
)  # fmt: skip
