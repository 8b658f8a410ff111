"""Which ports, and which host, a server listens on."""

import pytest
from hypothesis import given, strategies as st

from a2a_trio.rules.ports import port_plan, resolve_bind_host


def test_the_plan_climbs_and_ends_with_the_systems_choice() -> None:
    assert port_plan(9910, 3) == (9910, 9911, 9912, 9913, 0)
    assert port_plan(9910, 0) == (9910, 0)
    assert port_plan(0, 10) == (0,)
    assert port_plan(65_534, 10) == (65_534, 65_535, 0)


@pytest.mark.parametrize(("port", "fallback"), [(-1, 0), (65_536, 0), (1, -1)])
def test_ports_that_do_not_exist_are_refused(port: int, fallback: int) -> None:
    with pytest.raises(ValueError, match="port"):
        port_plan(port, fallback)


@given(st.integers(1, 65_535), st.integers(0, 100))
def test_every_plan_is_bounded_ordered_and_ends_with_0(port: int, fallback: int) -> None:
    *climb, last = port_plan(port, fallback)
    assert last == 0
    assert climb == [p for p in range(port, port + fallback + 1) if p <= 65_535]


@pytest.mark.parametrize(
    "host", ["127.0.0.1", "localhost", "::1", "[::1]", "127.0.0.2", "LOCALHOST", " 127.0.0.1 ", ""]
)
@pytest.mark.parametrize("has_tokens", [True, False])
def test_loopback_is_bound_as_asked_without_a_word(host: str, has_tokens: bool) -> None:  # noqa: FBT001 - parametrized
    bound, warning = resolve_bind_host(host, has_tokens=has_tokens)
    assert bound == (host.strip().strip("[]") or "127.0.0.1")
    assert warning is None


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "[::]", "192.168.1.7", "agent.example.com"])
def test_without_a_token_only_loopback_is_bound_and_it_says_so(host: str) -> None:
    bound, warning = resolve_bind_host(host, has_tokens=False)
    assert bound == "127.0.0.1"
    assert warning is not None
    assert "no token is set" in warning
    assert host.strip("[]") in warning


def test_plain_http_beyond_this_machine_is_warned_about() -> None:
    bound, warning = resolve_bind_host("0.0.0.0", has_tokens=True)
    assert bound == "0.0.0.0"
    assert warning is not None
    assert "every interface" in warning
    assert "TLS" in warning
    assert "192.168.1.7" in (resolve_bind_host("192.168.1.7", has_tokens=True)[1] or "")
    assert resolve_bind_host("0.0.0.0", has_tokens=True, tls=True) == ("0.0.0.0", None)
