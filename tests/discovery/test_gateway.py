"""Registering with a gateway: what is sent when, and what a gateway can do to a peer."""
# ruff: noqa: ARG001 - a test asks for the virtual clock by naming its fixture

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from random import Random
from typing import Any, Final

import pytest
import trio

from a2a_trio import Settings, SettingsError
from a2a_trio.discovery.channel import Dispatch
from a2a_trio.discovery.gateway import Gateway, GatewayConfig, list_gateway, run_gateway
from a2a_trio.errors import PeerError, PeerTimeoutError, PeerUnreachableError
from a2a_trio.peer.web import open_web
from a2a_trio.rules.channel import ChannelRequest, ChannelResponse
from a2a_trio.testing.fake_gateway import FakeGateway, open_fake_gateway
from tests.discovery.conftest import LIMIT, FakeAnswer, FakeStream, FakeWeb, Later, at_once, says

SHARED: Final = "agw_shared"
OWN: Final = "agw_own"
URL: Final = "http://gateway:9920"
REGISTERED: Final = says(201, {"state": "accepted", "caller_token": OWN})
UPDATED: Final = says(200, {"state": "accepted"})
NOBODY: Final = says(200, {"peers": []})


def config(**changes: Any) -> GatewayConfig:
    usual = {
        "key": "lab", "url": URL, "token": SHARED, "name": "me", "upstream_token": "agw-up",
        "heartbeat": 60.0, "channel": True,
    }  # fmt: skip
    return GatewayConfig(**{**usual, **changes})


async def answer_ok(request: ChannelRequest) -> ChannelResponse:
    return ChannelResponse(status=200, body=request.body)


@asynccontextmanager
async def visiting(
    web: FakeWeb, *, home: Path | None = None, dispatch: Dispatch | None = None, **changes: Any
) -> AsyncIterator[Gateway]:
    """Be registered for the length of a block, on a virtual clock."""
    rng = Random(1)  # noqa: S311 - jitter, and the same one every time
    async with trio.open_nursery() as nursery:
        gateway: Gateway = await nursery.start(
            partial(
                run_gateway,
                config(**changes),
                own_url="http://127.0.0.1:9910/",
                card=lambda: {"name": "a card", "skills": []},
                web=web,
                home=home,
                dispatch=dispatch,
                rng=rng,
                offload=at_once,
            )
        )
        yield gateway
        nursery.cancel_scope.cancel()


def gateway_web() -> FakeWeb:
    web = FakeWeb()
    web.on("POST", "/register", REGISTERED)
    web.on("PATCH", "/register", UPDATED)
    web.on("DELETE", "/register", says(200, {}))
    web.on("GET", "/.well-known/agent.json", NOBODY)
    return web


async def test_first_beat_registers_and_later_ones_update(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """With all that a gateway asks for; the card names the peer as it is registered."""
    web = gateway_web()
    async with visiting(web) as gateway:
        await trio.sleep(150)
        assert (gateway.state, gateway.name, gateway.token) == ("accepted", "me", OWN)
        (first,) = web.sent("POST", "/register")
        assert first.token == SHARED
        assert first.json() == {
            "name": "me",
            "url": "http://127.0.0.1:9910/",
            "card": {"name": "me", "skills": []},
            "upstream_token": "agw-up",
        }
        updates = web.sent("PATCH", "/register")
        assert [update.token for update in updates] == [OWN, OWN]
        assert [update.at - first.at for update in updates] == pytest.approx([60, 120])
    (leave,) = web.sent("DELETE", "/register")
    assert (leave.path, leave.token) == ("/register?name=me", OWN)


async def test_token_is_kept_and_given_back(
    autojump_clock: trio.testing.MockClock, tmp_path: Path
) -> None:
    """A peer that was killed comes back as itself; one that took leave begins anew."""
    web = gateway_web()
    web.on("DELETE", "/register", PeerUnreachableError("gone"))
    async with visiting(web, home=tmp_path):
        await trio.sleep(1)
    async with visiting(web, home=tmp_path):
        await trio.sleep(1)
        assert len(web.sent("POST", "/register")) == 1
        assert web.sent("PATCH", "/register")[-1].token == OWN
    web.on("DELETE", "/register", says(200, {}))
    async with visiting(web, home=tmp_path):
        await trio.sleep(1)
    async with visiting(web, home=tmp_path):
        await trio.sleep(1)
        assert len(web.sent("POST", "/register")) == 2


async def test_gateway_that_comes_late_is_found(
    autojump_clock: trio.testing.MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    """With growing pauses; the log tells it once, and when it works."""
    caplog.set_level("INFO")
    web = FakeWeb()
    async with visiting(web) as gateway:
        await trio.sleep(2_000)
        times = [r.at for r in web.sent("POST", "/register")]
        assert 7 <= len(times) <= 16
        assert times[-1] - times[-2] <= 300
        assert gateway.problem
        assert len([r for r in caplog.records if "not registered" in r.message]) == 1
        web.on("POST", "/register", REGISTERED)
        web.on("PATCH", "/register", UPDATED)
        web.on("GET", "/.well-known/agent.json", NOBODY)
        await trio.sleep(300)
        assert (gateway.state, gateway.problem) == ("accepted", "")
    told = [r.message for r in caplog.records if "registered with" in r.message]
    assert len(told) == 2
    assert all(secret not in caplog.text for secret in (SHARED, OWN, "agw-up"))


async def test_nothing_is_sent_to_a_gateway_that_was_never_there(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """Taking leave of it would be strange, and could last."""
    web = FakeWeb()
    async with visiting(web):
        await trio.sleep(100)
    assert web.sent("DELETE", "/register") == []


async def test_end_is_not_held_up(autojump_clock: trio.testing.MockClock) -> None:
    """By a gateway that does not answer any more: a second and a half, once."""
    web = gateway_web()
    web.on("DELETE", "/register", 1000.0)
    async with visiting(web, dispatch=answer_ok):
        await trio.sleep(1)
        began = trio.current_time()
    assert trio.current_time() - began == pytest.approx(1.5)


async def test_entry_of_a_peer_that_stops_while_it_registers_is_taken_away(
    autojump_clock: trio.testing.MockClock, tmp_path: Path
) -> None:
    """Its token is told once; without it the name would be lost to everybody."""
    web = gateway_web()
    web.on("POST", "/register", Later(2.0, REGISTERED))
    async with visiting(web, home=tmp_path):
        await trio.sleep(1)
        assert web.sent("DELETE", "/register") == []
    (leave,) = web.sent("DELETE", "/register")
    assert leave.token == OWN
    assert web.sent("GET", "/.well-known") == []


async def test_first_registration_that_hangs_does_not_hold_the_end_up(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """A second and a half is what it gets."""
    web = gateway_web()
    web.on("POST", "/register", 1000.0)
    async with visiting(web):
        await trio.sleep(1)
        began = trio.current_time()
    assert trio.current_time() - began == pytest.approx(1.5)
    assert web.sent("DELETE", "/register") == []


async def test_gateway_that_hangs_is_given_up(autojump_clock: trio.testing.MockClock) -> None:
    """After ten seconds, and tried again."""
    web = FakeWeb()
    web.on("POST", "/register", 1000.0, REGISTERED)
    web.on("GET", "/.well-known/agent.json", NOBODY)
    async with visiting(web) as gateway:
        await trio.sleep(9)
        assert gateway.problem == ""
        await trio.sleep(2)
        assert "10 s" in gateway.problem
        await trio.sleep(70)
        assert gateway.state == "accepted"


def listing(*names: str, **own: object) -> FakeAnswer:
    entries: list[dict[str, object]] = [{"name": n, "url": f"/peer/{n}/"} for n in names]
    if own:
        entries.append({"name": "me", "url": "/peer/me/", **own})
    return says(200, {"peers": entries})


async def test_peers_are_those_of_the_last_list(autojump_clock: trio.testing.MockClock) -> None:
    """One that cannot be read, or that only a refused token would get, changes nothing."""
    web = gateway_web()
    web.on(
        "GET", "/.well-known/agent.json",
        listing("a", channel=False), listing("a", "b", channel=False),
        says(429), FakeAnswer(200, b"<html>"), PeerTimeoutError("slow"), NOBODY,
        listing(channel=False),
    )  # fmt: skip
    async with visiting(web) as gateway:
        await trio.sleep(1)
        seen = []
        for _ in range(7):
            seen.append([peer.name.rpartition("/")[2] for peer in gateway.peers()])
            await trio.sleep(60)
    assert seen == [["a"], ["a", "b"], ["a", "b"], ["a", "b"], ["a", "b"], ["a", "b"], []]
    assert {r.token for r in web.sent("GET", "/.well-known")} == {SHARED}


async def test_channel_opens_at_the_first_success(autojump_clock: trio.testing.MockClock) -> None:
    """And with the token that was just given; not before."""
    web = gateway_web()
    stream = FakeStream()
    stream.event("hello", "s" * 64)
    web.on("GET", "/channel", FakeAnswer(200, stream=stream))
    web.on("POST", "/register", says(503), REGISTERED)
    async with visiting(web, dispatch=answer_ok) as gateway:
        await trio.sleep(10)
        assert web.sent("GET", "/channel") == []
        await trio.sleep(60)
        assert web.sent("GET", "/channel")[0].token == OWN
        assert gateway.channel_open
    assert not gateway.channel_open


@pytest.mark.parametrize("changes", [{"dispatch": None}, {}])
async def test_channel_is_not_for_everybody(
    autojump_clock: trio.testing.MockClock, changes: dict[str, Any]
) -> None:
    """Without somebody to answer there is none."""
    web = gateway_web()
    async with visiting(web, **changes):
        await trio.sleep(100)
    assert web.sent("GET", "/channel") == []


async def test_channel_that_the_gateway_has_lost_is_opened_anew(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """Its list says so, at the next beat; a list from before the opening says nothing."""
    web = gateway_web()
    streams = [FakeStream() for _ in range(3)]
    for stream in streams:
        stream.event("hello", "s" * 64)
    web.on("GET", "/channel", *(FakeAnswer(200, stream=stream) for stream in streams))
    web.on(
        "GET", "/.well-known/agent.json",
        listing(channel=False), listing(channel=True), listing(channel=False), listing(channel=True),
    )  # fmt: skip
    async with visiting(web, dispatch=answer_ok, heartbeat=20.0) as gateway:
        await trio.sleep(30)
        assert len(web.sent("GET", "/channel")) == 1
        await trio.sleep(20)
        assert streams[0].closed.is_set()
        assert len(web.sent("GET", "/channel")) == 2
        assert gateway.channel_open


async def test_revoked_peer_closes_its_channel_and_goes_on_asking(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """An accepted one opens it again."""
    web = gateway_web()
    streams = [FakeStream() for _ in range(2)]
    for stream in streams:
        stream.event("hello", "s" * 64)
    web.on("GET", "/channel", *(FakeAnswer(200, stream=stream) for stream in streams))
    web.on("PATCH", "/register", says(403), UPDATED)
    async with visiting(web, dispatch=answer_ok, heartbeat=20.0) as gateway:
        await trio.sleep(25)
        assert gateway.state == "revoked"
        assert streams[0].closed.is_set()
        assert not gateway.channel_open
        await trio.sleep(25)
        assert gateway.state == "accepted"
        assert gateway.channel_open
        assert len(web.sent("POST", "/register")) == 1


async def test_refused_channel_brings_the_next_beat_forward(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """The entry was deleted: the peer registers anew at once, not at the next heartbeat."""
    web = gateway_web()
    stream = FakeStream()
    stream.event("hello", "s" * 64)
    web.on("GET", "/channel", says(401), FakeAnswer(200, stream=stream))
    web.on("PATCH", "/register", says(401))
    async with visiting(web, dispatch=answer_ok, heartbeat=3600.0) as gateway:
        await trio.sleep(10)
        assert len(web.sent("PATCH", "/register")) == 1
        assert len(web.sent("POST", "/register")) == 2
        assert gateway.channel_open


async def test_refused_channel_does_not_shorten_the_pause_of_a_failed_beat(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """A gateway in trouble is not asked more often because of it."""
    web = gateway_web()
    web.on("GET", "/channel", says(401))
    web.on("PATCH", "/register", says(503))
    async with visiting(web, dispatch=answer_ok, heartbeat=60.0):
        await trio.sleep(600)
    assert len(web.sent("PATCH", "/register")) <= 6


@pytest.mark.parametrize("url", ["http://h/prefix", "http://u:p@h", "nonsense", ""])
def test_address_that_cannot_be_a_gateways_is_refused(url: str) -> None:
    """With the gateway's key, without the address, which may hold a password."""
    with pytest.raises(SettingsError, match="gateway lab: ") as caught:
        config(url=url)
    assert "u:p" not in str(caught.value)


def test_tokens_are_not_shown() -> None:
    """A repr ends up in logs."""
    shown = repr(config(token="secret-1", upstream_token="secret-2"))
    assert "secret" not in shown


@pytest.mark.parametrize(
    "answer", [says(401), says(303), FakeAnswer(200, b"<html>"), PeerUnreachableError("gone")]
)
async def test_list_that_is_none_is_an_error(
    autojump_clock: trio.testing.MockClock, answer: Any
) -> None:
    """For who asks once, from a command line."""
    web = FakeWeb()
    web.on("GET", "/.well-known/agent.json", answer)
    with pytest.raises(PeerError):
        await list_gateway(config(), web)


# --- against a gateway on a socket ------------------------------------------------------------


@asynccontextmanager
async def real(
    gateway: FakeGateway, *, token: str = "", dispatch: Dispatch = answer_ok, **changes: Any
) -> AsyncIterator[Gateway]:
    """Be registered with a fake gateway for the length of a block."""
    rng = Random(1)  # noqa: S311 - jitter, and the same one every time
    settings = config(
        url=gateway.url, token=token or gateway.bootstrap_token, heartbeat=15.0, **changes
    )
    async with open_web(Settings()) as web, trio.open_nursery() as nursery:
        link: Gateway = await nursery.start(
            partial(
                run_gateway,
                settings,
                own_url="http://127.0.0.1:9/",
                card=dict[str, Any],
                web=web,
                home=None,
                dispatch=dispatch,
                rng=rng,
            )
        )
        yield link
        nursery.cancel_scope.cancel()


async def opened(link: Gateway) -> None:
    while not link.channel_open:
        await link.changed()


async def closed(link: Gateway) -> None:
    while link.channel_open:
        await link.changed()


@pytest.mark.parametrize("how", ["eof", "rst", "mid-frame"])
async def test_cut_stream_is_replaced(how: Any) -> None:
    """However the connection ends, the next call is answered."""
    with trio.fail_after(LIMIT):
        async with open_fake_gateway() as gateway, real(gateway) as link:
            await opened(link)
            assert (await gateway.call("me", body=b"one")).body == b"one"
            gateway.drop_channel("me", how)
            await closed(link)
            await opened(link)
            assert (await gateway.call("me", body=b"two")).body == b"two"
        assert gateway.state.peers == {}


async def test_restarted_gateway_is_found_again() -> None:
    """It counts its requests anew, and knows its peers."""
    with trio.fail_after(LIMIT):
        async with open_fake_gateway() as gateway, real(gateway) as link:
            await opened(link)
            await gateway.call("me", body=b"one")
            gateway.restart()
            await closed(link)
            await opened(link)
            assert (await gateway.call("me", body=b"two")).body == b"two"


async def test_deleted_peer_comes_back() -> None:
    """Its channel is refused, so it registers anew without waiting for the next beat."""
    with trio.fail_after(LIMIT):
        async with open_fake_gateway() as gateway, real(gateway) as link:
            await opened(link)
            before = link.token
            gateway.delete("me")
            gateway.drop_channel("me")
            await gateway.until(lambda: gateway.has_channel("me") and "me" in gateway.state.peers)
            assert link.token != before
            assert (await gateway.call("me", body=b"x")).body == b"x"


async def test_pending_peer_is_called_once_it_is_accepted() -> None:
    """Its channel is refused until then."""
    with trio.fail_after(LIMIT):
        async with (
            open_fake_gateway() as gateway,
            real(gateway, token=gateway.gateway_token) as link,
        ):
            await gateway.until(lambda: bool(gateway.requests("POST", "/register")))
            await gateway.until(lambda: bool(gateway.requests("GET", "/channel")))
            assert link.state == "pending"
            assert (await gateway.call("me", token=gateway.bootstrap_token)).status == 403
            gateway.accept("me")
            await opened(link)
            assert (await gateway.call("me", body=b"x")).body == b"x"


async def test_taken_name_is_changed() -> None:
    """Both peers can be called, each by its own name."""

    async def who(name: str, request: ChannelRequest) -> ChannelResponse:
        return ChannelResponse(status=200, body=name.encode())

    with trio.fail_after(LIMIT):
        async with (
            open_fake_gateway() as gateway,
            real(gateway, dispatch=partial(who, "one")) as one,
        ):
            await opened(one)
            async with real(gateway, dispatch=partial(who, "other")) as other:
                await opened(other)
                assert other.name.startswith("me-")
                assert (await gateway.call("me")).body == b"one"
                assert (await gateway.call(other.name)).body == b"other"


async def test_old_gateway_is_served() -> None:
    """One that knows neither PATCH nor tokens of peers."""
    with trio.fail_after(LIMIT):
        async with open_fake_gateway(patch=False, mint=False) as gateway, real(gateway) as link:
            await opened(link)
            assert link.token == gateway.bootstrap_token
            assert (await gateway.call("me", body=b"x")).body == b"x"


async def test_large_requests_and_answers_pass() -> None:
    """Up to what the gateway reads; a larger answer is replaced by one that says so."""
    size = 1_900_000

    async def grow(request: ChannelRequest) -> ChannelResponse:
        factor = int(request.query or 1)
        return ChannelResponse(status=200, body=request.body[:1_500_000] * factor)

    with trio.fail_after(LIMIT):
        async with open_fake_gateway() as gateway, real(gateway, dispatch=grow) as link:
            await opened(link)
            assert len((await gateway.call("me", body=b"x" * size)).body) == 1_500_000
            answer = await gateway.call("me", path="/?2", body=b"x" * size)
            assert (answer.status, b"too large" in answer.body) == (502, True)


async def test_many_calls_at_the_same_time() -> None:
    """Each gets its own answer, whatever their order."""

    async def slow(request: ChannelRequest) -> ChannelResponse:
        await trio.sleep(0.001 * (100 - int(request.body)))
        return ChannelResponse(status=200, body=request.body)

    answers: dict[int, bytes] = {}
    with trio.fail_after(LIMIT):
        async with open_fake_gateway() as gateway, real(gateway, dispatch=slow) as link:
            await opened(link)

            async def call(number: int) -> None:
                answers[number] = (await gateway.call("me", body=str(number).encode())).body

            async with trio.open_nursery() as nursery:
                for number in range(50):
                    nursery.start_soon(call, number)
    assert answers == {number: str(number).encode() for number in range(50)}


async def test_refused_answers_are_posted_again() -> None:
    """Rate limits and failures of the gateway do not lose a caller's answer."""
    with trio.fail_after(LIMIT):
        async with open_fake_gateway() as gateway, real(gateway) as link:
            await opened(link)
            gateway.fault("POST", "/channel/response/", status=429)
            assert (await gateway.call("me", body=b"one")).body == b"one"
            gateway.fault("POST", "/channel/response/", reset=True)
            assert (await gateway.call("me", body=b"two")).body == b"two"


async def test_malformed_envelopes_are_answered_and_harmless() -> None:
    """What the gateway itself would never send."""
    with trio.fail_after(LIMIT):
        async with open_fake_gateway() as gateway, real(gateway) as link:
            await opened(link)
            told = gateway.expect("me", 7_000)
            gateway.push("me", b"{not json")
            gateway.push("me", b'{"id": "x"}')
            bad = {
                "id": 7_000,
                "method": "POST",
                "path": "/../x",
                "chan_secret": gateway.secret("me"),
            }
            gateway.push("me", json.dumps(bad).encode())
            await gateway.until(lambda: told() is not None)
            answer = told()
            assert answer is not None
            assert answer.status == 400
            assert (await gateway.call("me", body=b"x")).body == b"x"
