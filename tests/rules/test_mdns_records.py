"""mDNS records: what we publish, and what becomes of what others publish."""

from collections.abc import Mapping

import attrs
import pytest
from hypothesis import given, strategies as st

from a2a_trio.rules.addresses import split_url
from a2a_trio.rules.mdns_records import (
    Announcement,
    Record,
    host_name,
    instance_name,
    read_record,
    txt_of,
)

US = Announcement(
    name="My Desk.local",
    url="http://192.168.1.7:9910/",
    port=9910,
    pid=4711,
    addresses=("192.168.1.7",),
    cwd="/work",
    model="p/m",
)


def record(
    txt: Mapping[bytes, bytes | None], *addresses: str, port: int = 9910, name: str = "reader-7"
) -> Record:
    return Record(
        instance=f"{name}._a2a._tcp.local.",
        port=port,
        addresses=addresses or ("192.168.1.9",),
        txt=txt,
    )


def test_own_names_are_unique_and_never_the_machines() -> None:
    """With process and port; a machine that defends its name must not be renamed."""
    assert instance_name(US, "a2a") == "my-desk-local-4711-9910._a2a._tcp.local."
    assert host_name(US) == "my-desk-local-a2a-4711-9910.local."
    other = attrs.evolve(US, port=9911)
    assert instance_name(other, "a2a") != instance_name(US, "a2a")


@given(st.text(max_size=300), st.integers(1, 2**22), st.integers(1, 65535))
def test_labels_are_labels(name: str, pid: int, port: int) -> None:
    """Whatever an agent is called: 1 to 63 of a-z, 0-9 and dashes (RFC 1035 section 2.3.1)."""
    us = attrs.evolve(US, name=name, pid=pid, port=port)
    for full in (instance_name(us, "a2a"), host_name(us)):
        label = full.partition(".")[0]
        assert 0 < len(label.encode()) <= 63
        assert label.isascii()
        assert label.replace("-", "").isalnum()
        assert label.lower() == label
        assert not label.startswith("-")


@given(st.text(max_size=400), st.text(max_size=400), st.text(max_size=400))
def test_texts_fit_and_stay_text(name: str, cwd: str, model: str) -> None:
    """Each string has at most 255 bytes (RFC 6763 section 6.1), cut between two characters."""
    us = attrs.evolve(US, name=name, cwd=cwd, model=model)
    for key, value in txt_of(us).items():
        assert len(key) + 1 + len(value) <= 255
        value.decode()


def test_what_we_publish_is_what_others_read() -> None:
    """There and back."""
    texts = {key.encode(): value for key, value in txt_of(US).items()}
    peer = read_record(record(texts, "192.168.1.7"))
    assert peer is not None
    assert (peer.name, peer.url) == ("My Desk.local", "http://192.168.1.7:9910/")
    assert (peer.cwd, peer.model, peer.token) == ("/work", "p/m", "")


def test_address_that_is_too_long_is_not_cut() -> None:
    """A wrong address is worse than none: the record's own one is used."""
    us = attrs.evolve(US, url="http://192.168.1.7:9910/" + "a" * 300)
    assert "url" not in txt_of(us)


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        (b"http://192.168.1.9:9910/a2a", "http://192.168.1.9:9910/a2a"),
        (b"https://agents.example/x", "https://agents.example/x"),
        (b"http://127.0.0.1:9910/", "http://192.168.1.9:9910/"),
        (b"https://localhost:9910/", "https://192.168.1.9:9910/"),
        (b"http://[::1]:9910/", "http://192.168.1.9:9910/"),
        (b"http://[::ffff:127.0.0.1]:9910/", "http://192.168.1.9:9910/"),
        (b"http://0.0.0.0:9910/", "http://192.168.1.9:9910/"),
        (b"http://169.254.169.254/latest/", "http://192.168.1.9:9910/"),
        (b"http://user:secret@192.168.1.9/", "http://192.168.1.9:9910/"),
        (b"ftp://192.168.1.9/", "http://192.168.1.9:9910/"),
        (b"http://\xff\xfe/", "http://192.168.1.9:9910/"),
        (b"", "http://192.168.1.9:9910/"),
        (None, "http://192.168.1.9:9910/"),
    ],
)
def test_published_address_is_checked(url: bytes | None, expected: str) -> None:
    """One that means another machine to us than to its writer, or that is none, is not believed."""
    peer = read_record(record({b"url": url}))
    assert peer is not None
    assert peer.url == expected


@pytest.mark.parametrize(
    ("addresses", "port", "expected"),
    [
        (("192.168.1.9",), 9910, "http://192.168.1.9:9910/"),
        (("127.0.0.1", "192.168.1.9"), 9910, "http://192.168.1.9:9910/"),
        (("127.0.0.1",), 9910, "http://127.0.0.1:9910/"),
        (("2001:db8::7",), 9910, "http://[2001:db8::7]:9910/"),
        (("fe80::1", "169.254.1.1", "0.0.0.0", "224.0.0.251", "nonsense"), 9910, None),
        (("192.168.1.9",), 0, None),
        (("192.168.1.9",), 70_000, None),
    ],
)
def test_address_of_the_record(addresses: tuple[str, ...], port: int, expected: str | None) -> None:
    """The first that others can call; without any there is no peer."""
    peer = read_record(record({}, *addresses, port=port))
    assert (peer.url if peer else None) == expected


def test_texts_are_harmless() -> None:
    """One short line each, without anything that steers a terminal."""
    hostile = "a\x1b[31m\u202e\n".encode() + b"\xff" + b"b" * 400
    peer = read_record(record({b"cwd": hostile, b"model": hostile, b"name": hostile}))
    assert peer is not None
    for text in (peer.name, peer.cwd, peer.model):
        assert text.isprintable()
        assert len(text) <= 200


@given(
    st.dictionaries(
        st.sampled_from([b"url", b"cwd", b"model", b"name", b"x"]),
        st.none() | st.binary(max_size=255),
    ),
    st.lists(st.text(max_size=40) | st.ip_addresses().map(str), max_size=4),
    st.integers(-1, 70_000),
    st.text(max_size=80),
)
def test_every_record_is_a_peer_that_can_be_called_or_nobody(
    txt: dict[bytes, bytes | None], addresses: list[str], port: int, name: str
) -> None:
    """Whatever the network says."""
    peer = read_record(
        Record(instance=f"{name}._a2a._tcp.local.", port=port, addresses=tuple(addresses), txt=txt)
    )
    if peer is not None:
        split_url(peer.url)
        assert peer.name.isprintable()
        assert peer.token == ""
