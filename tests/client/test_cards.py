# ruff: noqa: ARG001 - a test asks for the virtual clock by naming its fixture
"""Where calls go: card resolution, caching, dialects, and who may see a credential."""

from typing import Any

import attrs
import pytest
import trio
from trio.testing import MockClock

from a2a_trio.client.client import open_client
from a2a_trio.client.options import ClientOptions
from a2a_trio.errors import (
    MethodNotFoundError,
    PeerProtocolError,
    PeerUnreachableError,
    TaskNotFoundError,
    UnauthorizedError,
    VersionNotSupportedError,
)
from a2a_trio.rules.addresses import Policy
from a2a_trio.testing.fake_peer import (
    Answer,
    Failure,
    FakePeer,
    Hang,
    HttpAnswer,
    Result,
    Unreachable,
)
from a2a_trio.wire.codec import dumps
from a2a_trio.wire.dialects import encode_card
from a2a_trio.wire.methods import Dialect

URL = "http://peer.test"


def served(card: Any, dialect: Dialect = Dialect.V1, **headers: str) -> HttpAnswer:
    return HttpAnswer(
        headers={
            "content-type": "application/json",
            **{k.replace("_", "-"): v for k, v in headers.items()},
        },
        body=dumps(encode_card(card, dialect)),
    )


async def call_once(peer: FakePeer, options: ClientOptions, **more: Any) -> Any:
    """Make one send and return how it arrived."""
    async with open_client(peer.url, options=options, transport=peer.transport, **more) as client:
        await client.send("hi")
    return peer.calls[-1]


# --- finding the card -----------------------------------------------------------------------


async def test_interface_of_the_card(values: Any, options: ClientOptions) -> None:
    """The interface's URL is called, and its tenant comes back in every request."""
    peer = FakePeer(values.card(tenant="acme"))
    peer.answers("SendMessage", Result(values.task()))
    call = await call_once(peer, options)
    assert call.url == URL + "/rpc"
    assert call.params["tenant"] == "acme"
    assert call.headers["a2a-version"] == "1.0"


async def test_no_tenant_without_one(values: Any, options: ClientOptions) -> None:
    """No tenant in the card, none in the request."""
    peer = FakePeer(values.card())
    peer.answers("SendMessage", Result(values.task()))
    assert "tenant" not in (await call_once(peer, options)).params


async def test_old_place_of_a_card(values: Any, options: ClientOptions) -> None:
    """Only after a 404 the old path is tried."""
    peer = FakePeer()
    peer.answers("card", HttpAnswer(status=404), served(values.card()))
    peer.answers("SendMessage", Result(values.task()))
    assert (await call_once(peer, options)).url == URL + "/rpc"
    assert [call.url for call in peer.called("card")] == [
        URL + "/.well-known/agent-card.json",
        URL + "/.well-known/agent.json",
    ]


async def test_url_of_a_card_stands_for_its_peer(values: Any, options: ClientOptions) -> None:
    """The URL that people copy is often the card's own."""
    peer = FakePeer(values.card((URL + "/agents/a/rpc", "1.0")), url=URL + "/agents/a")
    peer.answers("SendMessage", Result(values.task()))
    async with open_client(
        URL + "/agents/a/.well-known/agent-card.json", options=options, transport=peer.transport
    ) as client:
        assert client.url == URL + "/agents/a"
        await client.send("hi")
    assert peer.calls[0].url == URL + "/agents/a/.well-known/agent-card.json"


@pytest.mark.parametrize(
    "answer",
    [
        HttpAnswer(status=404),
        HttpAnswer(status=500),
        HttpAnswer(status=401),
        HttpAnswer(body=b"<html>"),
        HttpAnswer(body=b'{"name": 7}'),
        HttpAnswer(body=b"{", breaks=True),
        Hang(),
    ],
    ids=["none", "error", "protected", "html", "wrong", "broken", "hangs"],
)
async def test_peer_without_a_usable_card(
    answer: Answer, values: Any, options: ClientOptions, autojump_clock: MockClock
) -> None:
    """A peer is called at its own URL when its card does not help."""
    peer = FakePeer()
    peer.answers("card", answer)
    peer.answers("SendMessage", Result(values.task()))
    call = await call_once(peer, options)
    assert call.url == URL
    # ... and not asked for the card again at once.
    assert len(peer.called("card")) <= 2


async def test_card_itself_reports_why(options: ClientOptions, autojump_clock: MockClock) -> None:
    """Whoever asks for the card learns what is wrong with it."""
    peer = FakePeer()
    async with open_client(peer.url, options=options, transport=peer.transport) as client:
        with pytest.raises(PeerProtocolError, match="no agent card"):
            await client.card()
        peer.answers("card", HttpAnswer(body=b"<html>"))
        with pytest.raises(PeerProtocolError, match="not JSON"):
            await client.card()
        peer.answers("card", HttpAnswer(body=b'{"name": 7}'))
        with pytest.raises(PeerProtocolError, match=r"card is not valid: .*name"):
            await client.card()
        peer.answers("card", HttpAnswer(status=401))
        with pytest.raises(UnauthorizedError):
            await client.card()
        peer.answers("card", HttpAnswer(body=b" " * (4 * 1024 * 1024 + 1)))
        with pytest.raises(PeerProtocolError, match="larger"):
            await client.card()


async def test_unreachable_peer(options: ClientOptions, autojump_clock: MockClock) -> None:
    """No connection for the card is no connection for the call."""
    peer = FakePeer()
    peer.answers("card", Unreachable())
    with pytest.raises(PeerUnreachableError):
        await call_once(peer, options)
    assert len(peer.called("card")) == 3


async def test_card_switched_off(values: Any, options: ClientOptions) -> None:
    """A gateway's route has no card of its own."""
    peer = FakePeer()
    peer.answers("SendMessage", Result(values.task()))
    await call_once(peer, attrs.evolve(options, use_card=False))
    assert peer.called("card") == []


# --- keeping the card -----------------------------------------------------------------------


async def test_one_fetch_for_many_callers(
    values: Any, options: ClientOptions, autojump_clock: MockClock
) -> None:
    """Twenty calls at once fetch one card."""
    peer = FakePeer(values.card())
    peer.answers("GetTask", Result(values.task()))
    async with (
        open_client(peer.url, options=options, transport=peer.transport) as client,
        trio.open_nursery() as nursery,
    ):
        for _ in range(20):
            nursery.start_soon(client.get, "t1")
    assert len(peer.called("card")) == 1


async def test_one_failed_fetch_for_many_callers(
    options: ClientOptions, autojump_clock: MockClock
) -> None:
    """Callers that wait for a card that hangs do not hang one after the other."""
    peer = FakePeer()
    peer.answers("card", HttpAnswer(body=b"<html>"))
    failures = []
    async with open_client(
        peer.url, options=attrs.evolve(options, retry_attempts=0), transport=peer.transport
    ) as client:

        async def ask() -> None:
            try:
                await client.card()
            except PeerProtocolError as exc:
                failures.append(exc)

        async with trio.open_nursery() as nursery:
            for _ in range(20):
                nursery.start_soon(ask)
    assert len(failures) == 20
    assert len(peer.called("card")) == 1


async def test_cancelled_fetch_is_taken_over(
    values: Any, options: ClientOptions, autojump_clock: MockClock
) -> None:
    """The caller that fetches may leave; the next one fetches."""
    peer = FakePeer()
    peer.answers("card", Hang(), served(values.card()))
    async with (
        open_client(peer.url, options=options, transport=peer.transport) as client,
        trio.open_nursery() as nursery,
    ):

        async def impatient() -> None:
            with trio.move_on_after(1):
                await client.card()

        nursery.start_soon(impatient)
        await trio.testing.wait_all_tasks_blocked(0.1)
        assert (await client.card()).name == "peer"


@pytest.mark.parametrize(
    ("header", "age"),
    [("", 300), ("max-age=10", 10), ("public, MAX-AGE=20", 20), ("no-store", 0), ("no-cache", 0)],
)
async def test_lifetime_of_a_card(
    header: str, age: float, values: Any, options: ClientOptions, autojump_clock: MockClock
) -> None:
    """A card is used as long as its headers allow, and no longer."""
    peer = FakePeer()
    peer.answers("card", served(values.card(), cache_control=header))
    async with open_client(peer.url, options=options, transport=peer.transport) as client:
        await client.card()
        if age:
            await trio.sleep(age - 1)
            await client.card()
            assert len(peer.called("card")) == 1
        await trio.sleep(2)
        await client.card()
        assert len(peer.called("card")) == 2


async def test_revalidation(values: Any, options: ClientOptions, autojump_clock: MockClock) -> None:
    """An old card is asked about with its ETag, and 304 makes it fresh again."""
    peer = FakePeer()
    peer.answers(
        "card",
        served(values.card(), cache_control="max-age=10", etag='W/"1"'),
        HttpAnswer(status=304, headers={"cache-control": "max-age=50"}),
    )
    async with open_client(peer.url, options=options, transport=peer.transport) as client:
        first = await client.card()
        await trio.sleep(11)
        assert await client.card() == first
        await trio.sleep(45)
        await client.card()
    asked = peer.called("card")
    assert len(asked) == 2
    assert "if-none-match" not in asked[0].headers
    assert asked[1].headers["if-none-match"] == 'W/"1"'


async def test_uncacheable_card_costs_one_fetch_a_minute(
    values: Any, options: ClientOptions, autojump_clock: MockClock
) -> None:
    """``no-store`` is no reason for two requests per call."""
    peer = FakePeer()
    peer.answers("card", served(values.card(), cache_control="no-store"))
    peer.answers("GetTask", Result(values.task()))
    async with open_client(peer.url, options=options, transport=peer.transport) as client:
        for _ in range(5):
            await client.get("t1")
        assert len(peer.called("card")) == 1
        await trio.sleep(61)
        await client.get("t1")
        assert len(peer.called("card")) == 2


# --- dialects -------------------------------------------------------------------------------


async def test_current_version_is_preferred(values: Any, options: ClientOptions) -> None:
    """v1.0 wins wherever it stands in the card."""
    card = values.card((URL + "/old", "0.3"), (URL + "/new", "1.0"))
    peer = FakePeer(card)
    peer.answers("SendMessage", Result(values.task()))
    assert (await call_once(peer, options)).url == URL + "/new"


@pytest.mark.parametrize("dialect", [Dialect.V1, Dialect.V03])
async def test_older_peer(dialect: Dialect, values: Any, options: ClientOptions) -> None:
    """A card with v0.3 alone, in either form, is called in v0.3."""
    peer = FakePeer()
    peer.answers("card", served(values.card((URL + "/old", "0.3.0")), dialect))
    peer.answers("message/send", Result(values.task()))
    call = await call_once(peer, options)
    assert call.url == URL + "/old"
    assert call.headers["a2a-version"] == "0.3"
    assert call.params["message"]["kind"] == "message"


@pytest.mark.parametrize("refusal", [VersionNotSupportedError(), MethodNotFoundError()])
async def test_fallback(refusal: Any, values: Any, options: ClientOptions) -> None:
    """A peer that does not know v1.0 is asked in v0.3, once; then it is remembered."""
    peer = FakePeer()
    peer.answers("SendMessage", Failure(refusal))
    peer.answers("message/send", Result(values.task()))
    async with open_client(peer.url, options=options, transport=peer.transport) as client:
        assert (await client.send("hi")).text == "done"
        assert (await client.send("hi")).text == "done"
    assert [c.method for c in peer.calls if c.method != "card"] == [
        "SendMessage",
        "message/send",
        "message/send",
    ]


async def test_fallback_that_finds_another_error(values: Any, options: ClientOptions) -> None:
    """An error of the operation itself shows that v0.3 is spoken."""
    peer = FakePeer()
    peer.answers("GetTask", Failure(MethodNotFoundError()))
    peer.answers("tasks/get", Failure(TaskNotFoundError()))
    async with open_client(peer.url, options=options, transport=peer.transport) as client:
        for _ in range(2):
            with pytest.raises(TaskNotFoundError):
                await client.get("t1")
    assert len(peer.called("GetTask")) == 1


async def test_fallback_that_fails(values: Any, options: ClientOptions) -> None:
    """A peer that speaks neither is asked in v0.3 once, and its first refusal is shown."""
    peer = FakePeer()
    peer.answers("GetTask", Failure(VersionNotSupportedError("1.0 is unknown here")))
    peer.answers("tasks/get", Failure(MethodNotFoundError("what is tasks/get")))
    async with open_client(peer.url, options=options, transport=peer.transport) as client:
        for _ in range(2):
            with pytest.raises(VersionNotSupportedError, match=r"1\.0 is unknown here"):
                await client.get("t1")
    assert len(peer.called("tasks/get")) == 1


async def test_no_fallback_where_the_card_rules_it_out(values: Any, options: ClientOptions) -> None:
    """A card that names v1.0 alone means it: a missing method is a missing method."""
    peer = FakePeer(values.card())
    peer.answers("ListTasks", Failure(MethodNotFoundError()))
    peer.answers("GetTask", Failure(MethodNotFoundError()))
    async with open_client(peer.url, options=options, transport=peer.transport) as client:
        with pytest.raises(MethodNotFoundError):
            await client.get("t1")
        with pytest.raises(MethodNotFoundError):
            await client.list()
    assert {c.method for c in peer.calls} == {"card", "GetTask", "ListTasks"}


async def test_forced_version(values: Any, options: ClientOptions) -> None:
    """The caller decides, not the card (A2A section 3.6.3)."""
    peer = FakePeer(values.card((URL + "/a", "1.0"), (URL + "/b", "0.3")))
    peer.answers("message/send", Result(values.task()))
    assert (await call_once(peer, attrs.evolve(options, protocol="0.3"))).url == URL + "/b"
    peer.answers("SendMessage", Failure(VersionNotSupportedError()))
    with pytest.raises(VersionNotSupportedError):
        await call_once(peer, attrs.evolve(options, protocol="1.0"))


@pytest.mark.parametrize("card_of", ["binding", "version", "empty"])
async def test_card_without_an_interface_for_us(
    card_of: str, values: Any, options: ClientOptions
) -> None:
    """An agent that is only reachable otherwise is not guessed at."""
    card = {
        "binding": values.card(binding="GRPC"),
        "version": values.card((URL, "2.0")),
        "empty": attrs.evolve(values.card(), supported_interfaces=()),
    }[card_of]
    peer = FakePeer(card)
    with pytest.raises(PeerProtocolError, match="no JSON-RPC interface"):
        await call_once(peer, options)


# --- credentials ----------------------------------------------------------------------------

SECRETS = ("authorization", "x-a2a-identity", "x-gateway-caller")


async def test_credentials_go_to_the_configured_origin(values: Any, options: ClientOptions) -> None:
    """Token, identity and further headers are sent, to the card and to the call."""
    peer = FakePeer(values.card())
    peer.answers("SendMessage", Result(values.task()))
    private = attrs.evolve(options, identity="alice", headers={"X-Gateway-Caller": "a"})
    await call_once(peer, private, token="sEcReT")
    for call in peer.calls:
        assert call.headers["authorization"] == "Bearer sEcReT"
        assert call.headers["x-a2a-identity"] == "alice"
        assert call.headers["x-gateway-caller"] == "a"


@pytest.mark.parametrize(
    "named",
    [
        "http://other.test/rpc",
        "http://peer.test:8080/rpc",
        "https://peer.test/rpc",
        "http://peer.test.evil.test/rpc",
        "http://192.168.1.9/rpc",
    ],
)
async def test_no_credentials_for_another_origin(
    named: str, values: Any, options: ClientOptions
) -> None:
    """A card is not trusted to choose who sees a token: the call is made without it."""
    peer = FakePeer(values.card((named, "1.0")))
    peer.answers("SendMessage", Result(values.task()))
    private = attrs.evolve(options, identity="alice", headers={"X-Gateway-Caller": "a"})
    call = await call_once(peer, private, token="sEcReT")
    assert call.url == named
    assert not any(name in call.headers for name in SECRETS)


@pytest.mark.parametrize(
    ("base", "named", "reason"),
    [
        ("https://peer.test", "http://peer.test/rpc", "leaves https"),
        ("https://peer.test", "http://other.test/rpc", "leaves https"),
        ("http://peer.test", "http://127.0.0.1:9910/", "loopback"),
        ("http://peer.test", "http://localhost/", "loopback"),
        ("http://peer.test", "http://169.254.169.254/latest", "metadata"),
        ("http://peer.test", "http://0x7f000001/", "ambiguous"),
        ("http://peer.test", "ftp://peer.test/", "http"),
        ("http://peer.test", "file:///etc/passwd", "http"),
        ("http://peer.test", "http://user:pw@peer.test/", "user information"),
        ("http://127.0.0.1:9910", "http://0.0.0.0:9911/", "not allowed"),
    ],
)
async def test_refused_interface(
    base: str, named: str, reason: str, values: Any, options: ClientOptions
) -> None:
    """What a card may not name is not called at all."""
    peer = FakePeer(values.card((named, "1.0")), url=base)
    with pytest.raises(PeerProtocolError, match=reason):
        await call_once(peer, options, token="sEcReT")
    assert {call.method for call in peer.calls} == {"card"}


async def test_refused_interface_is_passed_over(values: Any, options: ClientOptions) -> None:
    """The next interface is used where there is one."""
    card = values.card(("http://127.0.0.1/", "1.0"), (URL + "/good", "1.0"))
    peer = FakePeer(card)
    peer.answers("SendMessage", Result(values.task()))
    assert (await call_once(peer, options)).url == URL + "/good"


@pytest.mark.parametrize(
    ("base", "named", "called"),
    [
        ("http://127.0.0.1:9910", "http://localhost:9910/rpc", "http://127.0.0.1:9910/rpc"),
        ("http://localhost:9910", "http://127.0.0.1:9910/rpc", "http://localhost:9910/rpc"),
        ("http://127.0.0.1:9910", "http://0.0.0.0:9910/rpc", "http://127.0.0.1:9910/rpc"),
        ("http://[::1]:9910", "http://[::]:9910/rpc", "http://[::1]:9910/rpc"),
        ("http://127.0.0.1:9910", "/rpc", "http://127.0.0.1:9910/rpc"),
        ("http://127.0.0.1:9910", "HTTP://127.0.0.1:9910/rpc", "http://127.0.0.1:9910/rpc"),
    ],
)
async def test_other_spelling_of_this_machine(
    base: str, named: str, called: str, values: Any, options: ClientOptions
) -> None:
    """A loopback peer that calls itself something else is called as it was configured."""
    peer = FakePeer(values.card((named, "1.0")), url=base)
    peer.answers("SendMessage", Result(values.task()))
    call = await call_once(peer, options, token="sEcReT")
    assert call.url == called
    assert "authorization" in call.headers


async def test_redirects_are_not_followed(values: Any, options: ClientOptions) -> None:
    """Neither for the card nor for the call."""
    peer = FakePeer()
    moved = HttpAnswer(status=307, headers={"location": "http://other.test/"})
    peer.answers("card", moved)
    peer.answers("SendMessage", moved)
    with pytest.raises(PeerProtocolError, match="redirect"):
        await call_once(peer, options, token="sEcReT")
    assert all(call.url.startswith(URL) for call in peer.calls)


async def test_no_cookies(values: Any, options: ClientOptions) -> None:
    """What a peer sets is not sent back: nothing needs it, and a jar would grow."""
    peer = FakePeer()
    peer.answers("card", HttpAnswer(status=404, headers={"set-cookie": "a=b"}))
    peer.answers("SendMessage", Result(values.task()))
    assert "cookie" not in (await call_once(peer, options)).headers


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("peer.test", "http://"),
        ("ftp://peer.test", "http://"),
        ("http://", "host"),
        ("http://user:sEcReT@peer.test", "user information"),
        ("http://peer.test/?a=b", "query"),
        ("http://peer.test/#a", "fragment"),
        ("http://pe er.test", "spaces"),
        ("http://169.254.169.254/", "metadata"),
    ],
)
async def test_malformed_url(url: str, reason: str) -> None:
    """A wrong address is found before anything is sent, and is not repeated in the error."""
    with pytest.raises(ValueError, match=reason) as caught:
        async with open_client(url):
            pass
    assert "sEcReT" not in str(caught.value)


async def test_url_of_a_model_stays_away_from_the_lan() -> None:
    """A URL that a model wrote may not lead into the private network."""
    careful = ClientOptions(url_policy=Policy.MODEL)
    with pytest.raises(ValueError, match="private"):
        async with open_client("http://192.168.1.9", options=careful):
            pass


async def test_token_that_would_end_the_header() -> None:
    """A token with a line break is refused, without being shown."""
    with pytest.raises(ValueError, match="token") as caught:
        async with open_client(URL, token="sEcReT\r\nX: y"):
            pass
    assert "sEcReT" not in str(caught.value)
