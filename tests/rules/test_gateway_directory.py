"""A gateway's list: who of it can be called, and under which address."""

import json
from typing import Any, Final

import pytest
from hypothesis import given, strategies as st

from a2a_trio.rules.directory import MAX_PEERS, Source, is_callable
from a2a_trio.rules.gateway_directory import GatewayDirectory, gateway_base, read_directory

BASE: Final = "http://10.0.0.5:9920"
TOKEN: Final = "agw_own"


def entry(name: str = "reader", **changes: Any) -> dict[str, Any]:
    found = {
        "name": name, "url": f"/peer/{name}/", "healthy": True, "channel": False,
        "capabilities": {"streaming": True}, "skills": [{"id": "r", "name": "Reading"}, {"id": "w"}],
    }  # fmt: skip
    return {**found, **changes}


def read(*entries: object) -> GatewayDirectory:
    found = read_directory(
        json.dumps({"name": "a2a-switchboard", "peers": list(entries)}).encode(),
        key="lab", base=BASE, own_name="me", token=TOKEN,
    )  # fmt: skip
    assert found is not None
    return found


def test_peer_is_called_through_the_gateway() -> None:
    """Under the gateway's address, with its token, by a name that tells the way."""
    (peer,) = read(entry()).peers
    assert (peer.name, peer.url) == ("gw/lab/reader", f"{BASE}/peer/reader/")
    assert (peer.source, peer.gateway, peer.token) == (Source.GATEWAY, "lab", TOKEN)
    assert (peer.capabilities, peer.healthy) == (("Reading", "w"), True)


@pytest.mark.parametrize(
    ("changes", "listed"),
    [
        ({}, 1),
        ({"healthy": None}, 1),
        ({"healthy": False}, 0),
        ({"healthy": "yes"}, 1),
        ({"url": "http://elsewhere.example/"}, 0),
        ({"url": "//elsewhere.example/"}, 0),
        ({"url": "/\\elsewhere.example/"}, 0),
        ({"url": "/peer/ x"}, 0),
        ({"url": "peer/x"}, 0),
        ({"url": None}, 0),
        ({"name": "a/b"}, 0),
        ({"name": "x" * 65}, 0),
        ({"name": ""}, 0),
        ({"name": 7}, 0),
        ({"name": "me"}, 0),
        ({"capabilities": ["a", 7, "\x1bb"], "skills": 7}, 1),
        ({"capabilities": None, "skills": None}, 1),
    ],
)
def test_who_is_listed(changes: dict[str, Any], listed: int) -> None:
    """Ill ones, this one and those that lead past the gateway are not."""
    assert len(read(entry(**changes)).peers) == listed


def test_own_entry_tells_of_the_channel() -> None:
    """Whether the gateway knows of it."""
    assert not read(entry()).has_own
    assert read(entry("me", channel=True)).own_channel
    found = read(entry("me", channel=False), entry())
    assert found.has_own
    assert not found.own_channel


def test_list_is_bounded() -> None:
    """Those that come last are left out; the own entry is found wherever it stands."""
    found = read(*(entry(f"p{n}") for n in range(MAX_PEERS + 10)), entry("me", channel=True))
    assert len(found.peers) == MAX_PEERS
    assert found.own_channel


@pytest.mark.parametrize("body", [b"", b"<html>", b"[]", b"{}", b'{"peers": 7}', b"\xff"])
def test_what_is_no_list(body: bytes) -> None:
    """Such as the login page that a gateway shows for everything that it does not know."""
    assert read_directory(body, key="k", base=BASE, own_name="me", token="") is None


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=10,
)


@given(
    st.lists(
        st.fixed_dictionaries(dict.fromkeys(("name", "url", "healthy", "skills"), JSON)) | JSON
    )
)
def test_every_list_leads_only_through_the_gateway(entries: list[Any]) -> None:
    """Whatever it says."""
    for peer in read(*entries).peers:
        assert peer.url.startswith(f"{BASE}/")
        assert is_callable(peer.url)
        assert all(text.isprintable() for text in (peer.name, *peer.capabilities))


@pytest.mark.parametrize(
    ("url", "base"),
    [
        ("http://127.0.0.1:9920", "http://127.0.0.1:9920"),
        ("HTTP://Gateway.Example:80/", "http://gateway.example"),
        ("https://[::1]:9920/", "https://[::1]:9920"),
        ("http://h/prefix", None),
        ("http://h/?a=b", None),
        ("http://h/#a", None),
        ("http://u:p@h/", None),
        ("ftp://h", None),
        ("", None),
    ],
)
def test_address_of_a_gateway_is_its_root(url: str, base: str | None) -> None:
    """Since the addresses in its list begin there."""
    if base is None:
        with pytest.raises(ValueError, match="URL"):
            gateway_base(url)
    else:
        assert gateway_base(url) == base
