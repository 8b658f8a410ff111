"""Hosts, origins, URLs, and where an address leads."""

from ipaddress import IPv4Address, IPv6Address, ip_address

import pytest
from hypothesis import given, strategies as st

from a2a_trio.rules.addresses import (
    ALLOWED_ZONES,
    MAX_HOST_CHARS,
    Host,
    Policy,
    Zone,
    advertised_url,
    bracketed,
    check_address,
    check_url,
    is_loopback_name,
    is_wildcard_name,
    normal_url,
    parse_host,
    parse_network,
    parse_origin,
    plain_address,
    split_url,
    url_origin,
    zone_of,
)

ADDRESSES = st.ip_addresses(v=4) | st.ip_addresses(v=6)
NAMES = st.from_regex(r"[a-z0-9]([a-z0-9-]{0,8}[a-z0-9])?(\.[a-z]{2,5}){0,2}", fullmatch=True)
PORTS = st.none() | st.integers(0, 65_535)


# --- hosts ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "host"),
    [
        ("localhost", Host("localhost")),
        ("LocalHost:9910", Host("localhost", 9910)),
        ("localhost.", Host("localhost")),
        ("localhost.:80", Host("localhost", 80)),
        ("localhost:", Host("localhost")),
        ("127.0.0.1:9910", Host("127.0.0.1", 9910)),
        ("[::1]", Host("::1")),
        ("[::1]:9910", Host("::1", 9910)),
        ("[0:0:0:0:0:0:0:1]:1", Host("::1", 1)),
        ("[::FFFF:127.0.0.1]", Host("::ffff:7f00:1")),
        ("my_host.example-1.com:65535", Host("my_host.example-1.com", 65_535)),
    ],
)
def test_a_host_is_read(text: str, host: Host) -> None:
    assert parse_host(text) == host


@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        " localhost",
        "localhost ",
        "localhost:65536",
        "localhost:123456",
        "localhost:-1",
        "localhost:80a",
        "localhost:٨٠",
        "::1",
        "0:0:0:0:0:0:0:1",
        "[::1",
        "::1]",
        "[]",
        "[127.0.0.1]",
        "[localhost]",
        "[::1]9910",
        "[::1]:9910:1",
        "[fe80::1%25eth0]",
        "[::g]",
        "a:b:c",
        "user@localhost",
        "localhost/",
        "localhost,evil.example",
        "localhost#evil",
        "localhost\\@evil.example",
        "localhost\r\nX: y",
        "localhost\x00",
        "..",
        ".",
        "a..b",
        "localhost..",
        "-a.example",
        "a-.example",
        "exämple.com",
        "ⓛocalhost",
        "%6cocalhost",
        "a" * 64,
        "a." * 200 + "a",
    ],
)
def test_anything_else_is_no_host(text: str) -> None:
    assert parse_host(text) is None


@given(st.text(max_size=40) | st.from_regex(r"[\[\]0-9a-f:.%]{0,20}", fullmatch=True))
def test_any_text_is_a_host_or_none(text: str) -> None:
    """No text raises, and what is read is printed back to the same value."""
    host = parse_host(text)
    if host is not None:
        assert parse_host(host.authority) == host
        assert len(text) <= MAX_HOST_CHARS


@given(NAMES | ADDRESSES.map(str), PORTS)
def test_what_is_printed_is_read_back(name: str, port: int | None) -> None:
    authority = Host(name, port).authority
    parsed = parse_host(authority.upper())
    assert parsed is not None
    assert (parsed.authority, parsed.port) == (authority, port)


@pytest.mark.parametrize(
    "name",
    ["localhost", "LOCALHOST.", "127.0.0.1", "127.255.1.2", "::1", "::ffff:127.0.0.1", "::1%lo"],
)
def test_loopback_names(name: str) -> None:
    assert is_loopback_name(name)


@pytest.mark.parametrize(
    "name",
    [
        "",
        "localhost.evil.example",
        "127.0.0.1.evil.example",
        "127.1",
        "0177.0.0.1",
        "2130706433",
        "128.0.0.1",
        "0.0.0.0",
        "::",
        "::2",
        "::ffff:10.0.0.1",
        "evil-localhost",
        "1.0.0.127",
    ],
)
def test_names_that_are_not_loopback(name: str) -> None:
    assert not is_loopback_name(name)


def test_wildcards() -> None:
    for name in ("", "0.0.0.0", "::", "0:0:0:0:0:0:0:0", "::ffff:0.0.0.0"):
        assert is_wildcard_name(name)
    for name in ("127.0.0.1", "::1", "localhost", "0.0.0.0.example"):
        assert not is_wildcard_name(name)


def test_ipv6_is_bracketed_and_loses_its_zone() -> None:
    assert bracketed("fe80::1%eth0") == "[fe80::1]"
    assert bracketed("10.0.0.1") == "10.0.0.1"
    assert bracketed("a.example") == "a.example"


def test_an_address_is_unmapped() -> None:
    assert plain_address("::ffff:10.1.2.3") == IPv4Address("10.1.2.3")
    assert plain_address("fe80::1%en0") == IPv6Address("fe80::1")
    assert plain_address("10.1.2.3%x") is None
    assert plain_address("") is None


def test_networks() -> None:
    assert IPv4Address("10.1.2.3") in parse_network("10.0.0.0/8")
    assert IPv4Address("10.1.2.3") in parse_network(" 10.1.2.3 ")
    assert IPv4Address("10.1.2.3") in parse_network("::ffff:10.0.0.0/104")
    assert IPv6Address("fd00::5") in parse_network("fd00::1/8")
    with pytest.raises(ValueError, match="does not appear"):
        parse_network("proxy.example")


# --- origins and URLs -----------------------------------------------------------------------


def test_an_origin_loses_its_default_port() -> None:
    assert parse_origin("HTTPS://App.Example:443") == parse_origin("https://app.example")
    assert parse_origin("http://app.example:443") != parse_origin("https://app.example")
    assert str(parse_origin("http://[::1]:3000")) == "http://[::1]:3000"
    assert str(parse_origin("chrome-extension://abcdef")) == "chrome-extension://abcdef"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "null",
        "*",
        "localhost",
        "http://",
        "http:///",
        "http://localhost/",
        "http://localhost/path",
        "http://user@localhost",
        "http://localhost http://evil.example",
        "http://localhost, http://evil.example",
        "file://",
        "http://evil.example#localhost",
        "http://evil.example?localhost",
        "http://evil.example\\localhost",
        "http://ëvil.example",
        "http://" + "a" * 5_000,
    ],
)
def test_what_is_no_origin(text: str) -> None:
    assert parse_origin(text) is None


@pytest.mark.parametrize(
    ("url", "text"),
    [
        ("ftp://a.example/", "http://"),
        ("//a.example", "http://"),
        ("a.example", "http://"),
        ("", "http://"),
        ("javascript:alert(1)", "http://"),
        ("http://", "no valid host"),
        ("http:///path", "no valid host"),
        ("http://[::1", "malformed"),
        ("http://a.example:99999", "no valid host"),
        ("http://user:secret@a.example/", "user information"),
        ("http://a.example\\@b.example/", "backslashes"),
        ("http://a.example/ b", "spaces"),
        ("http://a.example/\n", "control characters"),
        ("http://ä.example", "no valid host"),
        ("http://a.example/" + "x" * 3_000, "more than"),
    ],
)
def test_a_bad_url_is_refused_in_words_that_do_not_repeat_it(url: str, text: str) -> None:
    with pytest.raises(ValueError, match=text) as caught:
        split_url(url)
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    ("url", "normal"),
    [
        ("HTTP://A.Example.:80/Path/To/", "http://a.example/Path/To"),
        ("https://a.example:443", "https://a.example"),
        ("http://a.example:443/", "http://a.example:443"),
        ("http://[0:0::1]:9910//", "http://[::1]:9910"),
        ("http://a.example/x?Q=1#frag", "http://a.example/x?Q=1"),
        ("http://localhost:1", "http://localhost:1"),
    ],
)
def test_the_normal_form(url: str, normal: str) -> None:
    assert normal_url(url) == normal


def test_the_case_of_a_path_is_kept() -> None:
    """Two agents under paths that differ in case are two agents."""
    assert normal_url("http://a.example/Agent") != normal_url("http://a.example/agent")


def test_loopback_spellings_are_unified_only_on_request() -> None:
    urls = ("http://localhost:1/a", "http://127.0.0.1:1/a/", "http://[::1]:1/a")
    assert len({normal_url(url) for url in urls}) == 3
    assert len({normal_url(url, unify_loopback=True) for url in urls}) == 1
    other = normal_url("http://127.0.0.2:1/a", unify_loopback=True)
    assert other == "http://127.0.0.2:1/a", "another loopback address is another listener"


def test_origins_are_told_apart_strictly() -> None:
    assert url_origin("https://A.example/x") == url_origin("https://a.example:443/y")
    assert url_origin("https://a.example") != url_origin("http://a.example"), "no downgrade"
    assert url_origin("https://a.example") != url_origin("https://a.example.evil.example")
    assert url_origin("http://localhost:1") != url_origin("http://127.0.0.1:1")


@given(
    st.sampled_from(["http", "HTTPS"]),
    NAMES | ADDRESSES.map(str),
    PORTS,
    st.text("aA/", max_size=5),
)
def test_the_normal_form_is_a_fixed_point(
    scheme: str, name: str, port: int | None, path: str
) -> None:
    url = f"{scheme}://{Host(name, port).authority}/{path}"
    normal = normal_url(url)
    assert normal_url(normal) == normal
    assert url_origin(url) == url_origin(normal)


@given(st.text(max_size=60) | st.text(max_size=40).map("http://".__add__))
def test_any_text_is_a_url_or_a_value_error(text: str) -> None:
    try:
        normal = normal_url(text)
    except ValueError:
        assert check_url(text, Policy.OPERATOR) is not None
    else:
        assert url_origin(normal) == url_origin(text)


# --- the advertised URL ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("host", "url"),
    [
        ("127.0.0.1", "http://127.0.0.1:9910/"),
        ("0.0.0.0", "http://127.0.0.1:9910/"),
        ("", "http://127.0.0.1:9910/"),
        ("::", "http://[::1]:9910/"),
        ("::1", "http://[::1]:9910/"),
        ("fe80::1%eth0", "http://[fe80::1]:9910/"),
        ("localhost", "http://localhost:9910/"),
    ],
)
def test_the_bound_address_is_advertised_but_never_a_wildcard(host: str, url: str) -> None:
    assert advertised_url(public_url="", scheme="http", host=host, port=9910) == url


@pytest.mark.parametrize(
    ("public_url", "rpc_path", "url"),
    [
        ("https://a.example", "/", "https://a.example/"),
        ("https://a.example/agents/Foo///", "/", "https://a.example/agents/Foo/"),
        ("https://a.example:443/", "/a2a/", "https://a.example/a2a"),
        ("https://a.example/x", "rpc/v1", "https://a.example/x/rpc/v1"),
        ("", "/rpc", "https://127.0.0.1:1/rpc"),
    ],
)
def test_the_public_url_comes_first(public_url: str, rpc_path: str, url: str) -> None:
    made = advertised_url(
        public_url=public_url, scheme="https", host="0.0.0.0", port=1, rpc_path=rpc_path
    )
    assert made == url


@pytest.mark.parametrize("public_url", ["http://0.0.0.0:1", "http://[::]/", "http://", "a.example"])
def test_a_public_url_that_reaches_nothing_is_refused(public_url: str) -> None:
    with pytest.raises(ValueError, match="URL"):
        advertised_url(public_url=public_url, scheme="http", host="127.0.0.1", port=1)


# --- zones ----------------------------------------------------------------------------------

ZONE_CASES = [
    ("8.8.8.8", Zone.PUBLIC),
    ("2001:4860:4860::8888", Zone.PUBLIC),
    ("127.0.0.1", Zone.LOOPBACK),
    ("127.9.9.9", Zone.LOOPBACK),
    ("::1", Zone.LOOPBACK),
    ("::ffff:127.0.0.1", Zone.LOOPBACK),
    ("::ffff:7f00:1", Zone.LOOPBACK),
    ("10.0.0.1", Zone.PRIVATE),
    ("172.16.0.1", Zone.PRIVATE),
    ("172.31.255.255", Zone.PRIVATE),
    ("172.32.0.1", Zone.PUBLIC),
    ("172.30.55.31", Zone.PRIVATE),
    ("192.168.1.1", Zone.PRIVATE),
    ("100.64.0.1", Zone.PRIVATE),
    ("100.128.0.1", Zone.PUBLIC),
    ("fd12::1", Zone.PRIVATE),
    ("169.254.1.1", Zone.LINK_LOCAL),
    ("fe80::1", Zone.LINK_LOCAL),
    ("169.254.169.254", Zone.METADATA),
    ("::ffff:169.254.169.254", Zone.METADATA),
    ("64:ff9b::a9fe:a9fe", Zone.METADATA),
    ("fd00:ec2::254", Zone.METADATA),
    ("100.100.100.200", Zone.METADATA),
    ("192.0.0.192", Zone.METADATA),
    ("168.63.129.16", Zone.METADATA),
    ("0.0.0.0", Zone.RESERVED),
    ("0.1.2.3", Zone.RESERVED),
    ("::", Zone.RESERVED),
    ("192.0.0.1", Zone.RESERVED),
    ("192.0.2.1", Zone.RESERVED),
    ("192.88.99.1", Zone.RESERVED),
    ("198.18.0.1", Zone.RESERVED),
    ("198.19.255.255", Zone.RESERVED),
    ("198.51.100.1", Zone.RESERVED),
    ("203.0.113.1", Zone.RESERVED),
    ("224.0.0.251", Zone.RESERVED),
    ("239.1.1.1", Zone.RESERVED),
    ("240.0.0.1", Zone.RESERVED),
    ("255.255.255.255", Zone.RESERVED),
    ("ff02::fb", Zone.RESERVED),
    ("fec0::1", Zone.RESERVED),
    ("2001::1", Zone.RESERVED),
    ("2001:db8::1", Zone.RESERVED),
    ("3fff::1", Zone.RESERVED),
    ("64:ff9b:1::1", Zone.RESERVED),
    ("100::1", Zone.RESERVED),
    ("64:ff9b::808:808", Zone.PUBLIC),
    ("64:ff9b::a00:1", Zone.PRIVATE),
    ("2002:808:808::1", Zone.PUBLIC),
    ("2002:7f00:1::", Zone.LOOPBACK),
    ("2002:c0a8:101::", Zone.PRIVATE),
    ("::10.0.0.1", Zone.PRIVATE),
    ("::127.0.0.1", Zone.LOOPBACK),
]


@pytest.mark.parametrize(("text", "zone"), ZONE_CASES)
def test_where_an_address_leads(text: str, zone: Zone) -> None:
    assert zone_of(ip_address(text)) == zone


@given(ADDRESSES)
def test_public_is_never_wider_than_the_registries_say(address: IPv4Address | IPv6Address) -> None:
    """Python's own table of IANA's special registries is the model."""
    inner = getattr(address, "ipv4_mapped", None) or getattr(address, "sixtofour", None) or address
    if zone_of(address) is Zone.PUBLIC and zone_of(inner) is Zone.PUBLIC:
        assert inner.is_global
        assert not inner.is_multicast
    if inner.is_loopback:
        assert zone_of(address) is Zone.LOOPBACK


@given(st.ip_addresses(v=4))
def test_wrapping_an_ipv4_address_does_not_change_where_it_leads(address: IPv4Address) -> None:
    value = int(address)
    wrapped = [
        IPv6Address((0xFFFF << 32) | value),
        IPv6Address((0x64FF9B << 96) | value),
        IPv6Address((0x2002 << 112) | (value << 80)),
    ]
    assert {zone_of(one) for one in wrapped} == {zone_of(address)}


# Who may be asked to connect where: rows of ``ALLOWED_ZONES`` as the user sees them.
POLICY_CASES = [
    ("http://a.example/", True, True, True, True),
    ("http://8.8.8.8/", True, True, True, True),
    ("http://127.0.0.1:9910/", True, True, False, True),
    ("http://localhost:9910/", True, True, False, True),
    ("http://x.localhost./", True, True, False, True),
    ("http://[::ffff:127.0.0.1]/", True, True, False, True),
    ("http://172.30.55.31:9900", True, False, False, True),
    ("http://100.64.1.1", True, False, False, True),
    ("http://[fd12::1]", True, False, False, True),
    ("http://169.254.7.7/", True, False, False, False),
    ("http://169.254.169.254/latest", False, False, False, False),
    ("http://metadata.google.internal./", False, False, False, False),
    ("http://METADATA.goog/", False, False, False, False),
    ("http://[64:ff9b::a9fe:a9fe]/", False, False, False, False),
    ("http://0.0.0.0:1/", False, False, False, False),
    ("http://[::]:1/", False, False, False, False),
    ("http://224.0.0.1/", False, False, False, False),
    ("http://198.18.0.1/", False, False, False, False),
    ("http://10.example.com/", True, True, True, True),
    ("http://192.168.example.com/", True, True, True, True),
    ("http://127.1/", False, False, False, False),
    ("http://2130706433/", False, False, False, False),
    ("http://0x7f.0.0.1/", False, False, False, False),
    ("http://0177.0.0.1/", False, False, False, False),
    ("http://1.2.3/", False, False, False, False),
    ("file:///etc/passwd", False, False, False, False),
    ("http://u:p@a.example/", False, False, False, False),
]


@pytest.mark.parametrize(("url", "operator", "model", "webhook", "private_webhook"), POLICY_CASES)
def test_who_may_name_which_url(
    url: str,
    operator: bool,  # noqa: FBT001 - a column of the table
    model: bool,  # noqa: FBT001
    webhook: bool,  # noqa: FBT001
    private_webhook: bool,  # noqa: FBT001
) -> None:
    verdicts = [check_url(url, policy) is None for policy in Policy]
    assert verdicts == [operator, model, webhook, private_webhook]


def test_a_refusal_says_which_addresses_and_whose_url() -> None:
    reason = check_address("10.0.0.1", Policy.MODEL)
    assert reason == "private addresses are not allowed here (model URL)"
    assert check_address("a.example", Policy.OPERATOR) == "not an IP address"


@given(ADDRESSES, st.sampled_from(Policy))
def test_a_literal_in_a_url_and_the_address_get_one_verdict(
    address: IPv4Address | IPv6Address, policy: Policy
) -> None:
    """A name that resolves to an address is held to what the literal would be."""
    by_url = check_url(f"http://{bracketed(str(address))}/", policy)
    assert by_url == check_address(str(address), policy)
    assert (by_url is None) == (zone_of(address) in ALLOWED_ZONES[policy])
