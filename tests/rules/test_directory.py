"""The directory of found peers: one entry per address, and texts that can be shown."""

import attrs
import pytest
from hypothesis import given, strategies as st

from a2a_trio.rules.directory import (
    MAX_PEERS,
    AmbiguousPeerError,
    FoundPeer,
    Source,
    is_callable,
    merge,
    named,
    shown,
    shown_items,
)


def peer(name: str, url: str, source: Source = Source.LOCAL) -> FoundPeer:
    return FoundPeer(name=name, url=url, source=source)


HERE = "http://127.0.0.1:9910/"


def test_of_one_address_the_nearest_source_tells() -> None:
    """In whatever order they are found and however they spell it."""
    found = [
        peer("far", "http://localhost:9910", Source.GATEWAY),
        peer("seen", "HTTP://127.0.0.1:9910", Source.MDNS),
        peer("near", HERE, Source.LOCAL),
        peer("other", "http://127.0.0.1:9911", Source.MDNS),
    ]
    assert [p.name for p in merge(found)] == ["near", "other"]


def test_names_of_the_settings_stay() -> None:
    """The operator may call by them whatever else is known of the address."""
    found = [
        peer("mine", HERE, Source.CONFIG),
        peer("near", HERE),
        peer("too", HERE, Source.CONFIG),
    ]
    assert [p.name for p in merge(found)] == ["near", "mine", "too"]


@pytest.mark.parametrize("own", [HERE, "http://localhost:9910", "http://[::1]:9910/"])
def test_this_peer_is_not_its_own_neighbour(own: str) -> None:
    """Under any spelling of its address."""
    assert merge([peer("me", HERE)], own_urls=(own, "not a url")) == ()


def test_what_has_no_address_is_left_out() -> None:
    """Nobody could call it."""
    assert merge([peer("a", ""), peer("b", "ftp://x"), peer("c", "http://u:p@x/")]) == ()


def test_directory_is_bounded() -> None:
    """Those that come last are left out."""
    found = [peer(str(n), f"http://10.0.{n // 250}.{n % 250}/") for n in range(MAX_PEERS + 5)]
    assert [p.name for p in merge(found)] == [str(n) for n in range(MAX_PEERS)]


def test_name_means_one_peer_or_none() -> None:
    """Several of one name are told by their addresses."""
    found = [peer("a", HERE), peer("b", "http://h:1/"), peer("b", "http://h:2/")]
    assert named("a", found) == found[0]
    assert named("c", found) is None
    with pytest.raises(AmbiguousPeerError, match="http://h:1/, http://h:2/"):
        named("b", found)


def test_name_of_a_near_peer_cannot_be_taken_away() -> None:
    """By anybody further away, who may call itself what it likes."""
    near = peer("a", HERE)
    far = [peer("a", "http://h:1/", Source.MDNS), peer("a", "http://h:2/", Source.MDNS)]
    assert named("a", [*far, near]) == near
    with pytest.raises(AmbiguousPeerError):
        named("a", far)


def test_names_behind_a_gateway_belong_to_gateways() -> None:
    """Whoever calls itself so on the network is not meant."""
    spoof = peer("gw/lab/a", "http://h:1/", Source.MDNS)
    real = peer("gw/lab/a", "http://h:2/", Source.GATEWAY)
    assert named("gw/lab/a", [spoof, real]) == real
    assert named("gw/lab/a", [spoof]) is None
    assert named("a", [peer("a", HERE, Source.GATEWAY)]) is None


def test_token_is_not_shown() -> None:
    """A repr ends up in logs."""
    held = attrs.evolve(peer("a", HERE), token="secret-of-a-gateway")
    assert "secret" not in repr(held)


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("plain", "plain"),
        ("  two\twords\r\n here ", "two words here"),
        ("red \x1b[31m", "red [31m"),
        ("\u202eright to left\u2066", "right to left"),
        ("zero\u200bwidth\ufeff", "zerowidth"),
        ("line\u2028sep", "line sep"),
        ("tag\U000e0041s", "tags"),
        ("no\xa0break", "no break"),
        (None, ""),
        (7, ""),
        (["a"], ""),
        ("x" * 500, "x" * 200),
    ],
)
def test_foreign_text_becomes_one_harmless_line(text: object, line: str) -> None:
    """Controls and whatever hides or turns text go, spaces stay spaces."""
    assert shown(text) == line


@given(st.text(max_size=2_000))
def test_every_text_becomes_harmless(text: str) -> None:
    """Whatever it is: short, one line, and the same when it is cleaned again."""
    line = shown(text)
    assert len(line) <= 200
    assert line.isprintable()
    assert shown(line) == line.strip()


@given(st.one_of(st.none(), st.integers(), st.text(), st.lists(st.one_of(st.text(), st.none()))))
def test_every_list_becomes_harmless(value: object) -> None:
    """Texts only, not empty, not too many."""
    items = shown_items(value)
    assert len(items) <= 50
    assert all(item and item == shown(item).strip() for item in items)


@pytest.mark.parametrize(
    ("url", "callable_"),
    [
        ("http://127.0.0.1:9910/", True),
        ("https://agents.example/a?b", True),
        ("ftp://x", False),
        ("http://user:secret@x/", False),
        ("http://x/\u202e", False),
        ("http://x/ y", False),
        ("http://" + "x" * 3000, False),
        ("", False),
    ],
)
def test_what_may_be_called(url: str, callable_: bool) -> None:  # noqa: FBT001 - a column of the table
    """Web addresses without credentials, in plain characters."""
    assert is_callable(url) is callable_
