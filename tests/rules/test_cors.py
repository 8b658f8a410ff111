"""Which web pages may call the server."""

import pytest
from hypothesis import given, strategies as st

from a2a_trio.rules.cors import Cors

APP = "https://app.example.com"


def test_loopback_pages_are_always_allowed() -> None:
    cors = Cors(())
    for origin in ("http://localhost:3000", "https://127.0.0.1", "http://[::1]:8080"):
        assert cors.is_allowed((origin,))


@pytest.mark.parametrize(
    "origins",
    [
        ("null",),
        ("",),
        ("https://evil.example",),
        ("http://app.example.com",),
        ("https://app.example.com:8443",),
        ("https://app.example.com.evil.example",),
        ("https://app.example.com/",),
        ("http://localhost.evil.example",),
        ("ftp://localhost",),
        (APP, APP),
        (APP, "https://evil.example"),
        (f"{APP}, https://evil.example",),
        (),
    ],
)
def test_other_pages_are_not(origins: tuple[str, ...]) -> None:
    cors = Cors((APP,))
    assert not cors.is_allowed(origins)
    assert cors.headers(origins, preflight=True) == (("vary", "Origin"),)


def test_a_configured_page_is_matched_exactly_but_for_case_and_default_port() -> None:
    cors = Cors((f"{APP}/", "vscode-webview://abc"))
    for origin in (APP, APP.upper(), f"{APP}:443", "vscode-webview://abc"):
        assert cors.is_allowed((origin,))


def test_a_preflight_is_told_methods_and_headers() -> None:
    headers = dict(Cors((APP,)).headers((APP,), preflight=True))
    assert headers["access-control-allow-origin"] == APP
    assert "POST" in headers["access-control-allow-methods"]
    for name in ("authorization", "content-type", "a2a-version", "a2a-extensions", "last-event-id"):
        assert name in headers["access-control-allow-headers"]
    assert headers["vary"] == "Origin"


def test_an_answer_exposes_the_protocol_headers() -> None:
    headers = dict(Cors((APP,)).headers((APP,), preflight=False))
    assert headers["access-control-allow-origin"] == APP
    for name in ("a2a-version", "retry-after"):
        assert name in headers["access-control-expose-headers"]
    assert "access-control-allow-methods" not in headers


def test_credentials_are_never_allowed_by_cookie() -> None:
    names = [name for name, _ in Cors((APP,)).headers((APP,), preflight=True)]
    assert "access-control-allow-credentials" not in names


@pytest.mark.parametrize("text", ["*", "app.example.com", "https://app.example.com/x", "null", ""])
def test_a_setting_that_is_no_origin_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="not an origin"):
        Cors((text,))


@given(st.text(max_size=40))
def test_no_origin_can_add_a_header(text: str) -> None:
    """What is echoed back never carries a line break or a list."""
    for _, value in Cors((APP,)).headers((text,), preflight=True):
        assert value.isascii()
        assert value.isprintable()
