"""Request headers: one answer for every malformed value."""

import math
from ipaddress import IPv4Address, ip_address

import pytest
from hypothesis import given, strategies as st

from a2a_trio.rules.addresses import parse_network
from a2a_trio.rules.headers import (
    MAX_CREDENTIAL_CHARS,
    MAX_FORWARDED_CHARS,
    WRONG_CREDENTIAL,
    asserted_identity,
    bearer_token,
    forwarded_address,
    is_json,
    retry_after_value,
    wire_bytes,
)

HEADER_TEXT = st.text(st.characters(max_codepoint=255), max_size=60)
"""What a server hands on: latin-1, a byte per character."""


@pytest.mark.parametrize(
    ("values", "token"),
    [
        ((), None),
        (("Basic abc",), None),
        (("",), None),
        (("Bearerabc",), None),
        (("Bearer abc",), b"abc"),
        (("bEARER   abc  ",), b"abc"),
        ((" Bearer abc",), b"abc"),
        (("Bearer a b",), b"a b"),
        (("Bearer",), WRONG_CREDENTIAL),
        (("Bearer    ",), WRONG_CREDENTIAL),
        (("Bearer abc", "Bearer abc"), WRONG_CREDENTIAL),
        (("Basic abc", "Bearer abc"), WRONG_CREDENTIAL),
        (("Bearer " + "x" * MAX_CREDENTIAL_CHARS,), WRONG_CREDENTIAL),
        (("Bearer \xc3\xa4",), "ä".encode()),
    ],
)
def test_a_bearer_token(values: tuple[str, ...], token: bytes | None) -> None:
    assert bearer_token(values) == token


@given(HEADER_TEXT)
def test_a_header_is_the_bytes_it_came_as(text: str) -> None:
    assert wire_bytes(text) == bytes(map(ord, text))


@given(st.text(max_size=20))
def test_a_header_that_is_no_latin_1_does_not_raise(text: str) -> None:
    assert isinstance(wire_bytes(text + "\ud800"), bytes)


@pytest.mark.parametrize(
    "value",
    [
        "application/json",
        "Application/JSON",
        " application/json ",
        "application/a2a+json",
        "application/json; charset=utf-8",
        'application/json;charset="UTF-8"',
        "application/json ; charset=utf8 ; version=1",
        "application/json;",
        "application/json; profile=x",
    ],
)
def test_json_media_types(value: str) -> None:
    assert is_json((value,))


@pytest.mark.parametrize(
    "values",
    [
        (),
        ("",),
        ("text/plain",),
        ("text/jsonish",),
        ("text/plain; x=application/json",),
        ("application/jsonp",),
        ("application/json-seq",),
        ("application/xjson",),
        ("application",),
        ("application/json/x",),
        ("application/json, text/plain",),
        ("text/plain, application/json",),
        ("application/json; charset=utf-16",),
        ("application/json; charset=latin1",),
        ("application/json; charset",),
        ("application/json; charset=",),
        ('application/json; charset="utf-8',),
        ("application/json x",),
        ("application/json\x00",),
        ("application/jsön",),
        ("multipart/form-data",),
        ("application/x-www-form-urlencoded",),
        ("application/json", "application/json"),
        ("application/json;" + " " * 5_000,),
    ],
)
def test_everything_else_is_not_json(values: tuple[str, ...]) -> None:
    assert not is_json(values)


@given(HEADER_TEXT, HEADER_TEXT)
def test_no_content_type_smuggles_json_in(before: str, after: str) -> None:
    """What passes begins with the media type; a substring never does."""
    value = f"{before}application/json{after}"
    if is_json((value,)):
        assert before.strip(" \t") == ""
        assert after.strip(" \t")[:1] in {"", ";"}


@pytest.mark.parametrize(
    ("values", "name"),
    [
        (("pi-kimchi",), "pi-kimchi"),
        ((" a.b_C-9 ",), "a.b_C-9"),
        (("x" * 64,), "x" * 64),
        (("x" * 65,), None),
        ((), None),
        (("",), None),
        (("a", "a"), None),
        ((".a",), None),
        (("-a",), None),
        (("a b",), None),
        (("a\n",), None),
        (("ip:10.0.0.1",), None),
        (("ä",), None),
        (("a<script>",), None),
    ],
)
def test_an_asserted_identity(values: tuple[str, ...], name: str | None) -> None:
    assert asserted_identity(values) == name


PROXY = IPv4Address("10.0.0.1")
TRUSTED = (parse_network("10.0.0.0/24"), parse_network("fd00::/64"))


@pytest.mark.parametrize(
    ("values", "address"),
    [
        ((), "10.0.0.1"),
        (("203.0.113.9",), "203.0.113.9"),
        (("evil, 203.0.113.9",), "203.0.113.9"),
        (("1.1.1.1, 203.0.113.9, 10.0.0.2",), "203.0.113.9"),
        (("1.1.1.1", "203.0.113.9", "10.0.0.2"), "203.0.113.9"),
        (("10.0.0.3, 10.0.0.2",), "10.0.0.3"),
        (("203.0.113.9:4711",), "203.0.113.9"),
        (("[2001:db8::7]:4711",), "2001:db8::7"),
        (("[2001:db8::7]",), "2001:db8::7"),
        (("2001:db8::7, fd00::9",), "2001:db8::7"),
        (("::ffff:203.0.113.9",), "203.0.113.9"),
        (("127.0.0.1",), "127.0.0.1"),
    ],
)
def test_the_rightmost_hop_that_is_no_proxy_counts(values: tuple[str, ...], address: str) -> None:
    assert forwarded_address(values, PROXY, TRUSTED) == ip_address(address)


@pytest.mark.parametrize(
    "values",
    [
        ("",),
        ("unknown",),
        ("203.0.113.9,",),
        ("203.0.113.9 10.0.0.2",),
        ("evil, 10.0.0.2",),
        ("203.0.113.999",),
        ("203.0.113.9:port",),
        ("[203.0.113.9",),
        ("[]",),
        ("1.1.1.1," * (MAX_FORWARDED_CHARS // 8) + "2.2.2.2",),
    ],
)
def test_an_entry_that_must_be_read_and_cannot_is_no_address(values: tuple[str, ...]) -> None:
    assert forwarded_address(values, PROXY, TRUSTED) is None


@given(st.lists(HEADER_TEXT, max_size=4).map(tuple), st.ip_addresses(v=4))
def test_a_stranger_cannot_change_what_the_proxy_saw(
    forged: tuple[str, ...], seen: IPv4Address
) -> None:
    """Whatever is to the left of the proxy's own entry changes nothing."""
    if seen in TRUSTED[0]:
        return
    appended = (*forged, str(seen))
    assert forwarded_address(appended, PROXY, TRUSTED) == seen


def test_retry_after_is_whole_seconds_and_never_early() -> None:
    assert retry_after_value(0.0) == "1"
    assert retry_after_value(0.2) == "1"
    assert retry_after_value(58.0) == "58"
    assert retry_after_value(58.0001) == "59"
    assert retry_after_value(math.inf) is None
