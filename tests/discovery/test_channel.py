"""The reverse channel: every request gets one answer, and every end of a stream a new one."""
# ruff: noqa: ARG001 - a test asks for the virtual clock by naming its fixture

import base64
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from itertools import pairwise
from random import Random
from typing import Any, Final

import attrs
import pytest
import trio

from a2a_trio.discovery import channel as module
from a2a_trio.discovery.channel import ChannelStatus, Dispatch, run_channel
from a2a_trio.errors import PeerTimeoutError
from a2a_trio.rules.channel import ChannelRequest, ChannelResponse
from tests.discovery.conftest import FakeAnswer, FakeStream, FakeWeb, Request, says

BASE: Final = "http://gateway:9920"
SECRET: Final = "a" * 64


@attrs.define
class Me:
    """Who this peer is at the gateway."""

    name: str = "me"
    token: str = "agw_own"


@attrs.define(eq=False)
class Link:
    """A channel that is kept open, and what it told."""

    web: FakeWeb
    me: Me
    status: ChannelStatus
    told: list[str]


async def answer_ok(request: ChannelRequest) -> ChannelResponse:
    return ChannelResponse(status=200, body=request.path.encode() + request.body)


def stream_with_hello(secret: str = SECRET) -> FakeStream:
    stream = FakeStream()
    stream.event("hello", secret)
    return stream


def envelope(number: int, path: str = "/", **changes: Any) -> dict[str, Any]:
    return {
        "id": number, "method": "POST", "path": path, "query": None, "headers": {},
        "body_b64": "", "chan_secret": SECRET, **changes,
    }  # fmt: skip


@asynccontextmanager
async def linked(
    *streams: FakeStream | FakeAnswer, dispatch: Dispatch = answer_ok
) -> AsyncIterator[Link]:
    """Keep a channel over streams that come one after the other; then nothing answers."""
    web = FakeWeb()
    opened = [s if isinstance(s, FakeAnswer) else FakeAnswer(200, stream=s) for s in streams]
    web.on("GET", "/channel", *opened, says(503))
    told: list[str] = []
    status = ChannelStatus(
        on_unauthorized=lambda: told.append("unauthorized"),
        on_change=lambda: told.append("open" if status.open else "closed"),
    )
    link = Link(web, Me(), status, told)
    async with trio.open_nursery() as nursery:
        rng = Random(1)  # noqa: S311 - jitter, and the same one every time
        channel = partial(run_channel, web, BASE, link.me, dispatch, status, rng=rng)
        nursery.start_soon(channel)
        await trio.sleep(0.1)
        yield link
        nursery.cancel_scope.cancel()


def answers(link: Link) -> dict[int, tuple[int, bytes]]:
    """Return the answers that were posted, by the id of their request."""
    posted = [r.json() for r in link.web.sent("POST", "/channel/response/")]
    return {p["id"]: (p["status"], base64.b64decode(p["body_b64"])) for p in posted}


def takes_answers(link: Link, *numbers: int) -> None:
    for number in numbers:
        link.web.on("POST", f"/channel/response/{number}", says(200))


async def test_requests_are_carried_out_and_answered(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """Whatever their order; each with its own id, secret and credential."""
    stream = stream_with_hello()
    async with linked(stream) as link:
        takes_answers(link, 0, 1)
        (opening,) = link.web.sent("GET", "/channel")
        assert (opening.path, opening.token) == ("/channel?name=me", "agw_own")
        assert link.status.open
        stream.event("request", envelope(0, "/a", body_b64=base64.b64encode(b"body").decode()))
        stream.event("request", envelope(1, "/b", chan_secret="another"))
        await trio.sleep(1)
        assert answers(link) == {0: (200, b"/abody"), 1: (200, b"/b")}
        first, second = link.web.sent("POST", "/channel/response/")
        assert first.path == "/channel/response/0?name=me"
        assert (first.json()["chan_secret"], second.json()["chan_secret"]) == (SECRET, "another")


async def test_slow_requests_hold_nobody_up(autojump_clock: trio.testing.MockClock) -> None:
    """They are answered out of order."""
    order: list[str] = []

    async def dispatch(request: ChannelRequest) -> ChannelResponse:
        await trio.sleep(10 if request.path == "/slow" else 1)
        order.append(request.path)
        return ChannelResponse(status=200)

    stream = stream_with_hello()
    async with linked(stream, dispatch=dispatch) as link:
        takes_answers(link, 1, 2)
        stream.event("request", envelope(1, "/slow"))
        stream.event("request", envelope(2, "/fast"))
        await trio.sleep(20)
    assert order == ["/fast", "/slow"]
    assert set(answers(link)) == {1, 2}


async def test_what_cannot_be_carried_out_is_answered(
    autojump_clock: trio.testing.MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    """A malformed request, one that fails, one that takes too long: never a caller who waits."""

    async def dispatch(request: ChannelRequest) -> ChannelResponse:
        if request.path == "/broken":
            raise RuntimeError("a secret detail")
        if request.path == "/huge":
            return ChannelResponse(status=200, body=b"x" * (3 * 1024 * 1024))
        await trio.sleep_forever()
        raise AssertionError("unreachable")

    stream = stream_with_hello()
    async with linked(stream, dispatch=dispatch) as link:
        takes_answers(link, 1, 2, 3, 4)
        stream.event("request", envelope(1, "/a/../b"))
        stream.event("request", envelope(2, "/broken"))
        stream.event("request", envelope(3, "/huge"))
        stream.event("request", envelope(4, "/stuck"))
        for _ in range(int(module.DISPATCH_SEC / 15) + 1):
            stream.event("ping", "keepalive")
            await trio.sleep(15)
        found = answers(link)
    assert {number: status for number, (status, _) in found.items()} == {
        1: 400, 2: 502, 3: 502, 4: 504
    }  # fmt: skip
    assert b"secret" not in b"".join(body for _, body in found.values())
    assert link.status.open is False
    assert link.told[0] == "open"
    assert any("failed" in record.message for record in caplog.records)


async def test_number_of_requests_is_bounded(
    autojump_clock: trio.testing.MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Further ones are told that there are too many; later ones are carried out again."""
    monkeypatch.setattr(module, "MAX_IN_FLIGHT", 2)
    release = trio.Event()

    async def dispatch(request: ChannelRequest) -> ChannelResponse:
        await release.wait()
        return ChannelResponse(status=200)

    stream = stream_with_hello()
    async with linked(stream, dispatch=dispatch) as link:
        takes_answers(link, *range(6))
        for number in range(4):
            stream.event("request", envelope(number))
        await trio.sleep(1)
        assert {n: s for n, (s, _) in answers(link).items()} == {2: 503, 3: 503}
        release.set()
        await trio.sleep(1)
        stream.event("request", envelope(5))
        await trio.sleep(1)
        assert answers(link)[5][0] == 200


async def test_what_is_no_request_is_passed_over(autojump_clock: trio.testing.MockClock) -> None:
    """Comments, pings, events of a later time, and envelopes that cannot be answered."""
    stream = stream_with_hello()
    async with linked(stream) as link:
        takes_answers(link, 7)
        stream.write(b": comment\n\n:\r\n\r\n")
        stream.event("lagged", {"n": 3})
        stream.event("request", "{not json")
        stream.event("request", {"method": "POST"})
        stream.write(b"data: no type\n\n")
        for byte in f"event: request\r\ndata: {json.dumps(envelope(7))}\r\n\r\n".encode():
            stream.write(bytes([byte]))
        await trio.sleep(1)
        assert set(answers(link)) == {7}


@pytest.mark.parametrize("end", ["end", "break_off", "silence"])
async def test_stream_that_ends_is_opened_anew(
    autojump_clock: trio.testing.MockClock, end: str
) -> None:
    """Soon after a good connection; a silent one is given up after three missed pings."""
    first, second = stream_with_hello(), stream_with_hello("b" * 64)
    async with linked(first, second) as link:
        takes_answers(link, 1)
        began = trio.current_time()
        if end == "end":
            first.end()
        elif end == "break_off":
            first.break_off()
        await trio.sleep(module.SILENCE_SEC + 2 if end == "silence" else 2)
        openings = link.web.sent("GET", "/channel")
        assert len(openings) == 2
        waited = openings[1].at - began
        least = module.SILENCE_SEC - 1 if end == "silence" else 0
        assert least <= waited <= least + 2
        assert first.closed.is_set()
        assert link.told[:3] == ["open", "closed", "open"]
        second.event("request", envelope(1))
        await trio.sleep(1)
        assert set(answers(link)) == {1}


async def test_pings_keep_a_stream(autojump_clock: trio.testing.MockClock) -> None:
    """For as long as they come."""
    stream = stream_with_hello()
    async with linked(stream) as link:
        for _ in range(20):
            await trio.sleep(30)
            stream.event("ping", "keepalive")
        assert len(link.web.sent("GET", "/channel")) == 1
        assert link.status.open


async def test_pauses_grow_while_nothing_answers(autojump_clock: trio.testing.MockClock) -> None:
    """From a second to half a minute."""
    async with linked() as link:
        await trio.sleep(600)
        times = [r.at for r in link.web.sent("GET", "/channel")]
    pauses = [after - before for before, after in pairwise(times)]
    assert 0.5 <= pauses[0] <= 1.1
    assert all(after >= before - 0.01 for before, after in pairwise(pauses))
    assert 15 <= pauses[-1] <= 30.1
    assert link.told == []


async def test_peer_that_is_not_accepted_yet_waits(autojump_clock: trio.testing.MockClock) -> None:
    """403 and 404 are asked again; only 401 concerns the registration."""
    stream = stream_with_hello()
    async with linked(says(403), says(404), stream) as link:
        await trio.sleep(10)
        assert link.status.open
        assert "unauthorized" not in link.told


async def test_credential_that_is_refused_is_told_and_read_anew(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """The register loop gets another one, and another name perhaps."""
    stream = stream_with_hello()
    async with linked(says(401), stream) as link:
        assert link.told == ["unauthorized"]
        link.me.name, link.me.token = "me-x", "agw_new"
        await trio.sleep(5)
        assert link.status.open
        opening = link.web.sent("GET", "/channel")[-1]
        assert (opening.path, opening.token) == ("/channel?name=me-x", "agw_new")


async def test_channel_that_the_gateway_has_forgotten_is_closed_first(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """The end of an old stream would take the new one's entry away."""
    first, second = stream_with_hello(), stream_with_hello()
    async with linked(first, second) as link:
        link.status.reopen()
        await trio.testing.wait_all_tasks_blocked()
        assert first.closed.is_set()
        assert len(link.web.sent("GET", "/channel")) == 1
        await trio.sleep(2)
        assert link.status.open
        assert len(link.web.sent("GET", "/channel")) == 2


async def test_requests_of_a_lost_stream_are_given_up(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """The gateway has told their callers."""
    ended: list[str] = []

    async def dispatch(request: ChannelRequest) -> ChannelResponse:
        try:
            await trio.sleep_forever()
        finally:
            ended.append(request.path)
        raise AssertionError("unreachable")

    first = stream_with_hello()
    async with linked(first, stream_with_hello(), dispatch=dispatch) as link:
        first.event("request", envelope(1, "/lost"))
        await trio.sleep(1)
        assert ended == []
        first.end()
        await trio.sleep(5)
        assert ended == ["/lost"]
        assert link.web.sent("POST", "/channel/response/") == []


async def test_event_without_end_ends_the_stream(autojump_clock: trio.testing.MockClock) -> None:
    """Its size is bounded; the next connection is a new one."""
    first, second = stream_with_hello(), stream_with_hello()
    async with linked(first, second) as link:
        for _ in range(8):
            first.write(b"data: " + b"x" * (1024 * 1024))
        await trio.sleep(5)
        assert first.closed.is_set()
        assert len(link.web.sent("GET", "/channel")) == 2


def posts(link: Link) -> list[Request]:
    return link.web.sent("POST", "/channel/response/1")


@pytest.mark.parametrize("trouble", [says(429), says(503), ConnectionError, 100.0])
async def test_answer_is_posted_until_it_is_taken(
    autojump_clock: trio.testing.MockClock, trouble: Any
) -> None:
    """The caller waits for it; a rate limit's minute is outlasted."""
    if trouble is ConnectionError:
        trouble = PeerTimeoutError("lost")
    stream = stream_with_hello()
    async with linked(stream) as link:
        link.web.on("POST", "/channel/response/1", *[trouble] * 5, says(200))
        stream.event("request", envelope(1))
        for _ in range(20):
            stream.event("ping", "keepalive")
            await trio.sleep(15)
        assert len(posts(link)) == 6
        assert len({post.body for post in posts(link)}) == 1


async def test_answer_that_nobody_takes_is_given_up(
    autojump_clock: trio.testing.MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    """After a minute or two, with a line in the log."""
    stream = stream_with_hello()
    async with linked(stream) as link:
        link.web.on("POST", "/channel/response/1", says(500))
        stream.event("request", envelope(1))
        for _ in range(20):
            stream.event("ping", "keepalive")
            await trio.sleep(15)
        times = [post.at for post in posts(link)]
        assert len(times) == module.MAX_POSTS
        assert times[-1] - times[0] > 30
    assert any("not taken" in record.message for record in caplog.records)


async def test_answer_that_is_too_large_after_all_is_replaced(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """By a small one; if even that is too large, there is nothing to say."""
    stream = stream_with_hello()
    async with linked(stream) as link:
        link.web.on("POST", "/channel/response/1", says(413))
        stream.event("request", envelope(1))
        await trio.sleep(5)
        assert [post.json()["status"] for post in posts(link)] == [200, 502]


@pytest.mark.parametrize("status", [404, 422])
async def test_answer_that_comes_too_late_is_dropped(
    autojump_clock: trio.testing.MockClock, status: int
) -> None:
    """The caller has gone."""
    stream = stream_with_hello()
    async with linked(stream) as link:
        link.web.on("POST", "/channel/response/1", says(status))
        stream.event("request", envelope(1))
        await trio.sleep(30)
        assert len(posts(link)) == 1


async def test_end_of_the_peer_is_the_end_of_everything(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """At once; the status says so."""
    stream = stream_with_hello()
    async with linked(stream) as link:
        began = trio.current_time()
    assert trio.current_time() == began
    assert stream.closed.is_set()
    assert link.told == ["open", "closed"]
