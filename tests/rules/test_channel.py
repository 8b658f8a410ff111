"""The reverse channel's envelopes: every one gets an answer that can be given."""

import base64
import json
from typing import Any, Final

import pytest
from hypothesis import given, strategies as st

from a2a_trio.rules.channel import (
    MAX_ANSWER_BYTES,
    ChannelResponse,
    Envelope,
    Refused,
    Then,
    after_post,
    answer_body,
    answer_path,
    open_path,
    read_envelope,
)

SECRET: Final = "s" * 64
HERE: Final = {
    "id": 0,
    "method": "POST",
    "path": "/",
    "query": None,
    "headers": {"content-type": "application/json", "x-a2a-identity": "me"},
    "body_b64": base64.b64encode(b'{"a": 1}').decode(),
    "chan_secret": SECRET,
}


def read(**changes: object) -> Envelope | Refused | None:
    return read_envelope(json.dumps({**HERE, **changes}).encode(), "of the connection")


def test_request_is_read_whole() -> None:
    """Also the first one, whose id is 0, without a query."""
    found = read()
    assert isinstance(found, Envelope)
    request = found.request
    assert (found.id, found.secret) == (0, SECRET)
    assert (request.method, request.path, request.query) == ("POST", "/", "")
    assert (request.body, dict(request.headers)) == (b'{"a": 1}', HERE["headers"])


@pytest.mark.parametrize(
    ("changes", "status"),
    [
        ({"method": None}, 400),
        ({"method": "GET /x HTTP/1.1\r\n"}, 400),
        ({"method": ""}, 400),
        ({"path": None}, 400),
        ({"path": "relative"}, 400),
        ({"path": ""}, 400),
        ({"path": "/a/../b"}, 400),
        ({"path": "/.."}, 400),
        ({"path": "/a/%2e%2E/b"}, 400),
        ({"path": "/a b"}, 400),
        ({"path": "/a\r\nx: y"}, 400),
        ({"path": "/" + "a" * 10_000}, 400),
        ({"query": 7}, 400),
        ({"query": "a b"}, 400),
        ({"headers": []}, 400),
        ({"headers": {str(n): "" for n in range(300)}}, 400),
        ({"body_b64": 7}, 400),
        ({"body_b64": "not base64!"}, 400),
        ({"body_b64": "YQ"}, 400),
        ({"body_b64": "YQ==\n"}, 400),
        ({"body_b64": "YQ==YQ=="}, 400),
        ({"body_b64": "A" * (6 * 1024 * 1024)}, 413),
    ],
)
def test_malformed_request_is_answered(changes: dict[str, Any], status: int) -> None:
    """Its caller would wait for ten minutes otherwise."""
    found = read(**changes)
    assert isinstance(found, Refused)
    assert (found.id, found.secret, found.response.status) == (0, SECRET, status)


@pytest.mark.parametrize(
    "changes",
    [
        {"id": None}, {"id": "0"}, {"id": 1.5}, {"id": True}, {"id": -1}, {"id": 2**64},
        {"chan_secret": 7}, {"chan_secret": None},
    ],
)  # fmt: skip
def test_what_cannot_be_answered_is_nothing(changes: dict[str, Any]) -> None:
    """Without an id and a secret there is no place for an answer."""
    assert read(**changes) is None


@pytest.mark.parametrize("data", [b"", b"{", b"[]", b"\xff", b"7", b"[" * 5_000])
def test_what_is_no_envelope_is_nothing(data: bytes) -> None:
    """Whatever a gateway sends."""
    assert read_envelope(data, SECRET) is None


def test_members_may_be_missing() -> None:
    """A secret, a body, headers and a query."""
    found = read_envelope(b'{"id": 7, "method": "get", "path": "/health"}', SECRET)
    assert isinstance(found, Envelope)
    assert (found.secret, found.request.method, found.request.body) == (SECRET, "GET", b"")


def test_headers_between_machines_and_broken_ones_are_left_out() -> None:
    """Neither can forge another header."""
    found = read(
        headers={
            "Connection": "close", "Transfer-Encoding": "chunked", "content-length": "7",
            "x-good": "a\tb", "x-bad": "a\r\nx: y", "x bad": "y", "x-null": None, "x-late": "\x7f",
        }
    )  # fmt: skip
    assert isinstance(found, Envelope)
    assert found.request.headers == (("x-good", "a\tb"),)


@given(
    st.dictionaries(
        st.sampled_from(sorted(HERE)),
        st.none() | st.integers() | st.text() | st.dictionaries(st.text(), st.text() | st.none()),
    )
)
def test_every_envelope_is_read_answered_or_nothing(changes: dict[str, Any]) -> None:
    """And what is read can be put into an HTTP request."""
    found = read(**changes)
    if isinstance(found, Envelope):
        request = found.request
        assert request.path.startswith("/")
        text = request.method + request.path + request.query
        assert text.isascii()
        assert text.isprintable()
        assert all(value.isascii() and "\n" not in value for _, value in request.headers)


def test_answer_says_whom_it_answers() -> None:
    """With the envelope's own secret, since a new connection may have another."""
    response = ChannelResponse(
        status=200,
        headers=(("Content-Type", "text/plain"), ("connection", "close"), ("content-length", "2")),
        body=b"\x00\xff",
    )
    assert json.loads(answer_body(7, SECRET, response)) == {
        "id": 7,
        "status": 200,
        "headers": {"content-type": "text/plain"},
        "body_b64": "AP8=",
        "chan_secret": SECRET,
    }


@pytest.mark.parametrize(
    "response",
    [
        ChannelResponse(status=200, body=b"x" * (2 * 1024 * 1024)),
        ChannelResponse(status=200, headers=(("x-long", "y" * (3 * 1024 * 1024)),)),
    ],
)
def test_answer_that_the_gateway_would_not_read_is_replaced(response: ChannelResponse) -> None:
    """By one that says so; a gateway reads 2 MiB."""
    body = answer_body(7, SECRET, response)
    assert len(body) <= MAX_ANSWER_BYTES
    told = json.loads(body)
    assert (told["status"], told["id"]) == (502, 7)
    assert b"too large" in base64.b64decode(told["body_b64"])


def test_largest_answer_is_sent_as_it_is() -> None:
    """Three quarters of what the gateway reads, less the envelope."""
    response = ChannelResponse(status=200, body=b"x" * (MAX_ANSWER_BYTES * 3 // 4 - 300))
    body = answer_body(7, SECRET, response)
    assert json.loads(body)["status"] == 200
    assert len(body) > MAX_ANSWER_BYTES - 400


@pytest.mark.parametrize(
    ("status", "then"),
    [
        (200, Then.DONE),
        (404, Then.DONE),
        (422, Then.DONE),
        (303, Then.DONE),
        (401, Then.UNAUTHORIZED),
        (403, Then.UNAUTHORIZED),
        (413, Then.SUBSTITUTE),
        (429, Then.RETRY),
        (500, Then.RETRY),
        (502, Then.RETRY),
        (None, Then.RETRY),
    ],
)
def test_what_follows_on_a_post(status: int | None, then: Then) -> None:
    """After 413, 429, 5xx and no answer at all the caller still waits."""
    assert after_post(status) is then


def test_names_are_escaped() -> None:
    """Even though gateways allow only letters, digits, dots, dashes and underscores."""
    assert open_path("a&b=c/d") == "/channel?name=a%26b%3Dc%2Fd"
    assert answer_path("a b", 7) == "/channel/response/7?name=a%20b"
