"""Rows of pi-a2a's tables about finding other agents, shown by peers that run."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import pytest
import trio

from a2a_trio import Peer, Settings, echo, open_peer
from a2a_trio.discovery.mdns import Announcement, open_mdns
from a2a_trio.discovery.registry import FOLDER
from a2a_trio.testing.fake_gateway import FakeGateway, open_fake_gateway
from tests.discovery.conftest import needs_multicast
from tests.effects.conftest import (
    LIMIT,
    SHARED,
    Effect,
    Via,
    case_ids,
    cases,
    load,
    merged,
    nested,
    with_effect,
    without_effect,
)

ME: Final = f"me-{os.getpid()}"
CONTROL: Final = f"control-{os.getpid()}"
"""Names of this test run alone: on the network it hears every other one."""
BASE: Final = {"server": {"port": 0, "agentName": ME}}
OPEN: Final = {"server": {"port": 0, "agentName": ME, "host": "0.0.0.0", "sharedToken": SHARED}}
NOTICED_SEC: Final = 3.0
"""A heartbeat of a second is noticed within this; one of fifteen is not."""


def home_of(settings: Settings) -> Path:
    """Return the state folder that goes with these settings."""
    return Path(settings.server.workspace)


def in_folder(folder: Path, base: Mapping[str, Any]) -> dict[str, Any]:
    folder.mkdir(exist_ok=True)
    return merged(base, nested("server.workspace", str(folder)))


async def entries_in_the_registry(settings: Settings) -> object:
    home = home_of(settings)
    async with open_peer(echo, settings, home=home):
        return len(list((home / FOLDER).iterdir())) if (home / FOLDER).exists() else 0


async def is_written_again_soon(settings: Settings) -> object:
    """Take the own entry away and look whether it comes back."""
    home = home_of(settings)
    async with open_peer(echo, settings, home=home):
        (path,) = (home / FOLDER).iterdir()
        path.unlink()
        with trio.move_on_after(NOTICED_SEC):
            while not path.exists():  # noqa: ASYNC110 - a file tells nobody that it is there
                await trio.sleep(0.05)
        return path.exists()


async def entries_of_a_certain_age(settings: Settings) -> object:
    """Return who is found of peers that were alive 30, 70 and 110 seconds ago."""
    home = home_of(settings)
    folder = home / FOLDER
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    for age in (30, 70, 110):
        path = folder / f"{age}.json"
        entry = {"pid": os.getpid(), "url": f"http://127.0.0.1:{age}/", "agentName": f"{age} s"}
        path.write_text(json.dumps(entry))
        os.utime(path, (0, time.time() - age))
    async with open_peer(echo, settings, home=home) as peer:
        return [found.name for found in await peer.directory.peers()]


EFFECTS: Final = (
    Effect(
        key="discovery.local.enabled", value=False, env="A2A_DISCOVERY_LOCAL", text="false",
        base=BASE, probe=entries_in_the_registry, before=1, after=0,
    ),
    Effect(
        key="discovery.local.heartbeatSec", value=1, env="A2A_HEARTBEAT_SEC", text="1",
        base=BASE, probe=is_written_again_soon, before=False, after=True,
    ),
    Effect(
        key="discovery.local.ttlSec", value=90, env="A2A_TTL_SEC", text="90",
        base=BASE, probe=entries_of_a_certain_age, before=["30 s"], after=["30 s", "70 s"],
    ),
)  # fmt: skip


@pytest.mark.parametrize(("effect", "via"), cases(EFFECTS), ids=case_ids(EFFECTS))
async def test_setting_has_its_effect(effect: Effect, via: Via, tmp_path: Path) -> None:
    """Two settings files, or one and a variable: the peers differ as the table says."""
    for name, wanted in (("before", effect.before), ("after", effect.after)):
        folder = tmp_path / name
        here = Effect(
            key=effect.key, value=effect.value, env=effect.env, text=effect.text,
            base=in_folder(folder, effect.base), probe=effect.probe, before=None, after=None,
        )  # fmt: skip
        config = tmp_path / "config"
        settings = (
            without_effect(config, here) if name == "before" else with_effect(config, here, via)
        )
        with trio.fail_after(LIMIT):
            assert await effect.probe(settings) == wanted


# --- mDNS -------------------------------------------------------------------------------------


async def seen_on_the_network(settings: Settings, service_type: str) -> bool:
    """Return whether a peer is announced; somebody who surely is tells when to stop looking."""
    control = Announcement(
        name=CONTROL, url="http://127.0.0.1:1/", port=1, pid=os.getpid(), addresses=("127.0.0.1",)
    )
    mdns = settings.discovery.mdns
    expected = mdns.enabled and mdns.service_type == service_type
    async with (
        open_peer(echo, settings),
        open_mdns(service_type, control),
        open_mdns(service_type, None) as network,
    ):
        while True:
            names = {found.name for found in network.peers()}
            if ME in names or (CONTROL in names and not expected):
                return ME in names
            await network.changed()


@needs_multicast
@pytest.mark.parametrize("via", Via)
async def test_mdns_enabled(via: Via, tmp_path: Path) -> None:
    """The peer is announced, or it is not."""
    without = load(tmp_path, OPEN).settings
    if via is Via.FILE:
        announced = load(
            tmp_path, merged(OPEN, nested("discovery.mdns.enabled", value=True))
        ).settings
    else:
        announced = load(tmp_path, OPEN, {"A2A_DISCOVERY_MDNS": "true"}).settings
    with trio.fail_after(LIMIT):
        assert not await seen_on_the_network(without, "a2a")
        assert await seen_on_the_network(announced, "a2a")


@needs_multicast
@pytest.mark.parametrize("via", Via)
async def test_mdns_service_type(via: Via, tmp_path: Path) -> None:
    """Under another type it is found by those who look for that one."""
    base = merged(OPEN, nested("discovery.mdns.enabled", value=True))
    if via is Via.FILE:
        other = load(tmp_path, merged(base, nested("discovery.mdns.serviceType", "b2b"))).settings
    else:
        other = load(tmp_path, base, {"A2A_MDNS_TYPE": "b2b"}).settings
    with trio.fail_after(LIMIT):
        assert await seen_on_the_network(other, "b2b")
        assert not await seen_on_the_network(other, "a2a")


# --- gateways ---------------------------------------------------------------------------------


async def registered(peer: Peer) -> str:
    """Wait until a peer is registered with its one gateway; return the gateway's key."""
    (link,) = peer.directory.gateways
    while link.state != "accepted":
        await link.changed()
    return link.key


async def has_registered(settings: Settings, gateway: FakeGateway) -> bool:
    """Return whether a peer registers; without a gateway it has none to begin with."""
    gateway.seen.clear()
    async with open_peer(echo, settings) as peer:
        if not peer.directory.gateways:
            assert gateway.seen == []
            return False
        await registered(peer)
        (request,) = gateway.requests("POST", "/register")
        assert request.headers["authorization"] == f"Bearer {gateway.bootstrap_token}"
        return request.status == 201


@pytest.mark.parametrize("via", Via)
@pytest.mark.parametrize("row", ["url", "token", "enabled"])
async def test_gateway(via: Via, row: str, tmp_path: Path) -> None:
    """With a URL and a token the peer registers; switched off it sends nothing at all."""
    with trio.fail_after(LIMIT):
        async with open_fake_gateway() as gateway:
            values = {"url": gateway.url, "token": gateway.bootstrap_token, "enabled": False}
            others = {name: v for name, v in values.items() if name not in {row, "enabled"}}
            base = merged(BASE, nested("discovery.gateway", others))
            without = load(tmp_path, base).settings
            if via is Via.FILE:
                content = merged(base, nested(f"discovery.gateway.{row}", values[row]))
                changed = load(tmp_path, content).settings
            else:
                text = str(values[row]).lower() if row == "enabled" else str(values[row])
                changed = load(tmp_path, base, {f"A2A_GATEWAY_{row.upper()}": text}).settings
            switches_on = row != "enabled"
            assert await has_registered(without, gateway) is not switches_on
            assert await has_registered(changed, gateway) is switches_on


async def test_gateways(tmp_path: Path) -> None:
    """Each has a key of its own, by which the peers behind it are called."""
    with trio.fail_after(LIMIT):
        async with open_fake_gateway() as gateway:
            entry = {"url": gateway.url, "token": gateway.bootstrap_token}
            single = load(tmp_path, merged(BASE, {"discovery": {"gateway": entry}})).settings
            several = {"discovery": {"gateways": {"lab": entry}}}
            named = load(tmp_path, merged(BASE, several)).settings
            for settings, key in ((single, f"127.0.0.1-{gateway.url[-5:]}"), (named, "lab")):
                async with open_peer(echo, settings) as peer:
                    assert (await registered(peer)).replace(":", "") == key.replace(":", "")


# --- peers ------------------------------------------------------------------------------------


def test_peers_capabilities(tmp_path: Path) -> None:
    """What a peer is good at is what it is found by."""
    url = nested("peers.other.url", "http://127.0.0.1:9")

    def found() -> list[str]:
        done = subprocess.run(
            [sys.executable, "-m", "a2a_trio", "peers", "--capability", "Research", "--json"],
            capture_output=True,
            text=True,
            cwd=tmp_path,
            env={
                **{k: v for k, v in os.environ.items() if not k.startswith("A2A_")},
                "A2A_HOME": str(tmp_path),
            },
            timeout=LIMIT,
            check=True,
        )
        return [json.loads(line)["name"] for line in done.stdout.splitlines()]

    load(tmp_path, url)
    assert found() == []
    load(tmp_path, merged(url, nested("peers.other.capabilities", ["search", "research"])))
    assert found() == ["other"]
