"""The values between HTTP and the endpoint."""

import pytest
from hypothesis import given, strategies as st

from a2a_trio.errors import PayloadTooLargeError
from a2a_trio.server.http import Headers, HttpResponse, body_of


def test_names_are_compared_without_case_and_values_keep_their_order() -> None:
    headers = Headers([("X-A", "1"), ("x-b", "2"), ("x-a", "3")])
    assert headers.all("x-a") == ("1", "3")
    assert headers.get("x-a") == "1"
    assert headers.get("x-c", "none") == "none"
    assert headers.all("x-c") == ()
    assert "x-b" in headers
    assert "x-c" not in headers
    assert list(headers) == [("x-a", "1"), ("x-b", "2"), ("x-a", "3")]


def test_lists_are_read_over_all_lines() -> None:
    headers = Headers([("a", "1, 2,,"), ("a", " 3 ")])
    assert headers.list_of("a") == ("1", "2", "3")


def test_every_byte_can_be_read() -> None:
    raw = bytes(range(256))
    assert Headers.from_raw([(b"a", raw)]).get("a").encode("latin-1") == raw


def test_a_repr_shows_no_values() -> None:
    assert "secret" not in repr(Headers([("authorization", "Bearer secret")]))


@given(st.lists(st.tuples(st.sampled_from(["a", "A", "b"]), st.text(max_size=3))))
def test_nothing_is_lost(items: list[tuple[str, str]]) -> None:
    headers = Headers(items)
    assert len(headers) == len(items)
    names = {name.lower() for name, _ in items}
    assert sum(len(headers.all(name)) for name in names) == len(items)
    assert headers == Headers(headers)
    assert hash(headers) == hash(Headers(headers))


def test_a_response_header_can_be_looked_up() -> None:
    response = HttpResponse(status=200, headers=(("etag", "x"), ("etag", "y")))
    assert response.header("etag") == "x"
    assert response.header("vary", "-") == "-"


async def test_a_body_in_memory_has_its_limit() -> None:
    assert await body_of(b"1234")(4) == b"1234"
    with pytest.raises(PayloadTooLargeError):
        await body_of(b"12345")(4)
