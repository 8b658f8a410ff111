"""Peers that find each other: on one machine, and through a gateway, with real sockets."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any, Final

import attrs
import pytest
import trio

from a2a_trio import (
    Peer,
    ServerSettings,
    Settings,
    SettingsError,
    TaskContext,
    echo,
    open_client,
    open_peer,
    serve,
)
from a2a_trio.config.schema import (
    DiscoverySettings,
    GatewaySettings,
    LocalDiscoverySettings,
    PeerSettings,
)
from a2a_trio.discovery.registry import FOLDER
from a2a_trio.peer.looking import look, look_for
from a2a_trio.rules.directory import Source
from a2a_trio.testing.fake_gateway import FakeGateway, open_fake_gateway

LIMIT: Final = 60.0
SECRET: Final = "shared-token-0123456789"
HERE: Final = ServerSettings(port=0)


def settings(name: str = "", **changes: Any) -> Settings:
    """Return settings of a peer on a free port."""
    server = attrs.evolve(HERE, agent_name=name)
    return attrs.evolve(Settings(server=server), **changes)


def with_gateway(gateway: FakeGateway, name: str, **changes: Any) -> Settings:
    """Return settings of a peer behind a gateway that accepts it at once."""
    entry = GatewaySettings(
        url=gateway.url, token=gateway.bootstrap_token, **{"name": name, **changes}
    )
    discovery = DiscoverySettings(
        local=LocalDiscoverySettings(enabled=False), gateways={"lab": entry}
    )
    return settings(name, discovery=discovery)


async def who(task: TaskContext) -> str:
    """Answer with the name of the caller."""
    return task.identity


async def until(peer: Peer, condition: Callable[[], bool]) -> None:
    (gateway,) = peer.directory.gateways
    while not condition():
        await gateway.changed()


@asynccontextmanager
async def behind(
    gateway: FakeGateway, agent: Any, name: str, **changes: Any
) -> AsyncIterator[Peer]:
    """Open a peer that is registered, and whose channel is open if it has one."""
    async with open_peer(agent, with_gateway(gateway, name, **changes)) as peer:
        (link,) = peer.directory.gateways
        await until(peer, lambda: link.state == "accepted")
        if changes.get("channel", True):
            await until(peer, lambda: link.channel_open)
        yield peer


async def test_peers_of_one_machine_find_and_call_each_other(tmp_path: Path) -> None:
    """By the name on the card, with the token that they share; and forget who has gone."""
    secured = attrs.evolve(HERE, agent_name="one", shared_token=SECRET)
    with trio.fail_after(LIMIT):
        async with open_peer(echo, Settings(server=secured), home=tmp_path) as one:
            other_server = attrs.evolve(secured, agent_name="other")
            async with open_peer(who, Settings(server=other_server), home=tmp_path) as other:
                (found,) = await one.directory.peers()
                assert (found.name, found.source) == ("other", Source.LOCAL)
                assert found.url == other.server.url
                async with one.client("other") as client:
                    assert (await client.send("who am I?")).text == "ip:127.0.0.1"
                async with one.client(other.server.url) as client:
                    assert (await client.send("who am I?")).text == "ip:127.0.0.1"
            assert await one.directory.peers() == ()
            with pytest.raises(SettingsError, match="'other' is neither a URL nor a known peer"):
                async with one.client("other"):
                    pytest.fail("there is nobody")
    assert list((tmp_path / FOLDER).iterdir()) == []


async def test_unnamed_peers_have_names_of_their_own(tmp_path: Path) -> None:
    """The host's name alone would mean all of them."""
    async with (
        open_peer(echo, settings(), home=tmp_path) as one,
        open_peer(echo, settings(), home=tmp_path) as two,
        open_peer(echo, settings(), home=tmp_path) as three,
    ):
        names = {peer.name for peer in await one.directory.peers()}
        assert len(names) == 2
        assert all(name.endswith((str(two.server.port), str(three.server.port))) for name in names)


async def test_two_peers_of_one_name_are_told_apart_by_their_addresses(tmp_path: Path) -> None:
    """Nobody is called by chance."""
    async with (
        open_peer(echo, settings("caller"), home=tmp_path) as caller,
        open_peer(echo, settings("twin"), home=tmp_path) as one,
        open_peer(echo, settings("twin"), home=tmp_path) as other,
    ):
        with pytest.raises(SettingsError) as caught:
            async with caller.client("twin"):
                pytest.fail("it is not clear who is meant")
        assert one.server.url in str(caught.value)
        assert other.server.url in str(caught.value)


async def test_settings_come_first(tmp_path: Path) -> None:
    """Whoever registers under the name of a configured peer is not called by it."""
    async with (
        open_peer(who, settings("intended"), home=tmp_path) as intended,
        open_peer(echo, settings("researcher"), home=tmp_path),
    ):
        known = settings(peers={"researcher": PeerSettings(url=intended.server.url)})
        async with (
            open_peer(echo, known, home=tmp_path) as caller,
            caller.client("researcher") as client,
        ):
            assert (await client.send("x")).text == "ip:127.0.0.1"


async def test_serve_is_found(tmp_path: Path) -> None:
    """The function that serves until it is drained announces its peer like the others."""
    with trio.fail_after(LIMIT):
        async with trio.open_nursery() as nursery:
            server = await nursery.start(partial(serve, echo, settings("served"), home=tmp_path))
            seen = await look(settings(), tmp_path)
            assert [peer.name for peer in seen.peers] == ["served"]
            await server.drain()
    assert (await look(settings(), tmp_path)).peers == ()


async def test_a_look_finds_everybody_and_tells_what_it_cannot_ask(tmp_path: Path) -> None:
    """Without announcing anything."""
    dead = GatewaySettings(url="http://127.0.0.1:9", token=SECRET)
    asking = settings(
        peers={"mine": PeerSettings(url="http://127.0.0.1:1", capabilities=("reading",))},
        discovery=DiscoverySettings(gateways={"dead": dead}),
    )
    async with open_peer(echo, settings("near"), home=tmp_path):
        seen = await look(asking, tmp_path)
    assert [(peer.name, peer.source) for peer in seen.peers] == [
        ("near", Source.LOCAL),
        ("mine", Source.CONFIG),
    ]
    assert [problem.partition(":")[0] for problem in seen.problems] == ["gateway dead"]


async def test_calls_come_and_go_through_the_gateway() -> None:
    """The callee knows the gateway by the token that it minted for it."""
    with trio.fail_after(LIMIT):
        async with (
            open_fake_gateway() as gateway,
            behind(gateway, who, "callee") as callee,
            behind(gateway, echo, "caller", channel=False) as caller,
        ):
            await until(caller, lambda: bool(caller.directory.gateways[0].peers()))
            (found,) = await caller.directory.peers()
            assert (found.name, found.source) == ("gw/lab/callee", Source.GATEWAY)
            async with caller.client("gw/lab/callee") as client:
                assert (await client.send("who am I?")).text == "gw/lab"
                task = await client.send_detached("later")
                assert (await client.wait(task.id, timeout=LIMIT)).text == "gw/lab"
            assert gateway.has_channel("callee")
            assert callee.directory.gateways[0].name == "callee"
        assert gateway.state.peers == {}


async def test_calls_reach_a_peer_without_a_channel_directly() -> None:
    """The gateway connects, with the same token."""
    with trio.fail_after(LIMIT):
        async with (
            open_fake_gateway() as gateway,
            behind(gateway, who, "callee", channel=False),
            behind(gateway, echo, "caller", channel=False) as caller,
        ):
            await until(caller, lambda: bool(caller.directory.gateways[0].peers()))
            async with caller.client("gw/lab/callee") as client:
                assert (await client.send("who am I?")).text == "gw/lab"
            assert not gateway.has_channel("callee")


async def test_stream_through_a_gateway_arrives_at_its_end() -> None:
    """Gateways pass whole answers on; nothing of it is lost."""
    with trio.fail_after(LIMIT):
        async with (
            open_fake_gateway() as gateway,
            behind(gateway, echo, "callee"),
            behind(gateway, echo, "caller", channel=False) as caller,
        ):
            await until(caller, lambda: bool(caller.directory.gateways[0].peers()))
            async with (
                caller.client("gw/lab/callee") as client,
                client.stream("one two three") as events,
            ):
                received = [event async for event in events]
            assert len(received) > 2


async def test_name_behind_a_gateway_is_looked_up_there() -> None:
    """For a command that only calls; others are not asked."""
    with trio.fail_after(LIMIT):
        async with open_fake_gateway() as gateway, behind(gateway, who, "callee"):
            asking = with_gateway(gateway, "asking")
            (found,) = await look_for("gw/lab/callee", asking, None)
            assert found.url == f"{gateway.url}/peer/callee/"
            assert await look_for("gw/other/callee", asking, None) == ()
            assert "asking" not in gateway.state.peers


async def test_gateway_that_is_not_there_holds_nothing_up(tmp_path: Path) -> None:
    """Neither the start nor the end of the peer, nor those who call it directly."""
    dead = GatewaySettings(url="http://127.0.0.1:9", token=SECRET)
    alone = settings(discovery=DiscoverySettings(gateways={"dead": dead}))
    with trio.fail_after(LIMIT):
        async with open_peer(echo, alone, home=tmp_path) as peer:
            await until(peer, lambda: bool(peer.directory.gateways[0].problem))
            async with open_client(peer.server.url) as client:
                assert (await client.send("hello")).text == "hello"
