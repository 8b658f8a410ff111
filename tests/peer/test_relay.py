"""What comes through a reverse channel is answered as if the gateway had connected."""

from collections.abc import Callable
from typing import Any

import pytest
import trio

from a2a_trio.errors import PayloadTooLargeError
from a2a_trio.peer import relay as module
from a2a_trio.peer.relay import relay
from a2a_trio.rules.channel import ChannelRequest
from a2a_trio.server.http import HttpRequest, HttpResponse


class Pieces:
    """An event stream of so many pieces."""

    def __init__(self, count: float, size: int = 10) -> None:
        self._left = count
        self._piece = b"x" * size
        self.closed = False

    def __aiter__(self) -> "Pieces":
        return self

    async def __anext__(self) -> bytes:
        await trio.lowlevel.checkpoint()
        if self._left <= 0:
            raise StopAsyncIteration
        self._left -= 1
        return self._piece

    def close(self) -> None:
        self.closed = True


def answering(body: Any, seen: list[HttpRequest]) -> Callable[[HttpRequest], Any]:
    async def handle(request: HttpRequest) -> HttpResponse:
        seen.append(request)
        return HttpResponse(status=200, headers=(("x-a", "1"),), body=body)

    return handle


async def test_request_shows_the_gateways_credential_and_nothing_else() -> None:
    """What the caller sent for itself would pass for the gateway's."""
    seen: list[HttpRequest] = []
    dispatch = relay(answering(b"ok", seen), authority="127.0.0.1:9910", token="minted")
    response = await dispatch(
        ChannelRequest(
            method="post",
            path="/a",
            query="b=c",
            headers=(
                ("authorization", "Bearer stolen"),
                ("Host", "elsewhere"),
                ("content-length", "7"),
                ("x-a2a-identity", "me"),
            ),
            body=b"body",
        )
    )
    (request,) = seen
    assert (request.method, request.path, request.query) == ("POST", "/a", "b=c")
    assert list(request.headers) == [
        ("x-a2a-identity", "me"),
        ("host", "127.0.0.1:9910"),
        ("authorization", "Bearer minted"),
    ]
    assert await request.receive_body(4) == b"body"
    with pytest.raises(PayloadTooLargeError):
        await request.receive_body(3)
    assert (response.status, response.headers, response.body) == (200, (("x-a", "1"),), b"ok")


@pytest.mark.parametrize(
    ("method", "path", "reached"),
    [("POST", "/", "/a2a"), ("GET", "/", "/"), ("POST", "/other", "/other")],
)
async def test_calls_reach_the_path_that_answers_them(method: str, path: str, reached: str) -> None:
    """Nothing tells a caller behind a gateway that it is not the root."""
    seen: list[HttpRequest] = []
    dispatch = relay(answering(b"ok", seen), authority="h", token="t", rpc_path="/a2a")
    await dispatch(ChannelRequest(method=method, path=path))
    assert seen[0].path == reached


async def test_stream_is_collected_and_closed() -> None:
    """The gateway takes whole answers only."""
    stream = Pieces(3)
    dispatch = relay(answering(stream, []), authority="h", token="t")
    response = await dispatch(ChannelRequest(method="GET", path="/"))
    assert response.body == b"x" * 30
    assert stream.closed


async def test_stream_without_end_is_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    """At a size that the gateway would not take anyway."""
    monkeypatch.setattr(module, "MAX_ANSWER_BYTES", 1_000)
    stream = Pieces(float("inf"), size=100)
    dispatch = relay(answering(stream, []), authority="h", token="t")
    response = await dispatch(ChannelRequest(method="GET", path="/"))
    assert 1_000 < len(response.body) <= 1_100
    assert stream.closed


async def test_stream_of_a_caller_who_is_given_up_is_closed(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """The channel cancels the dispatch; the run behind it goes on."""
    assert autojump_clock.rate == 0

    class Silent(Pieces):
        async def __anext__(self) -> bytes:
            await trio.sleep_forever()
            raise AssertionError("unreachable")

    stream = Silent(1)
    dispatch = relay(answering(stream, []), authority="h", token="t")
    with trio.move_on_after(10) as scope:
        await dispatch(ChannelRequest(method="GET", path="/"))
    assert scope.cancelled_caught
    assert stream.closed
