"""Rows of pi-a2a's tables that only a real socket, a real folder or a real process shows."""

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import attrs
import pytest
import trio

from a2a_trio import PeerUnreachableError, Settings, echo, open_client, open_peer, open_server
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

trustme = pytest.importorskip("trustme", reason="makes the certificate of one of these tests")

DAY: Final = 86_400.0
PORTS: Final = range(20_011, 29_999, 31)
"""Below the ports that the system chooses itself, so that a climb is seen to be one."""
PORT_VARIABLES: Final = {"server.port": "A2A_PORT", "server.portFallback": "A2A_PORT_FALLBACK"}
BASE: Final = {"server": {"port": 0}}
WITH_TOKEN: Final = {"server": {"port": 0, "sharedToken": SHARED}}


@contextmanager
def busy_port() -> Iterator[int]:
    """Occupy a port whose next ten neighbours are free."""
    for port in PORTS:
        try:
            with socket.create_server(("127.0.0.1", port)):
                for neighbour in range(port + 1, port + 11):
                    socket.create_server(("127.0.0.1", neighbour)).close()
                yield port
                return
        except OSError:
            continue
    pytest.fail("no port is free")


def free_port() -> int:
    with busy_port() as port:
        return port


async def port_of(settings: Settings) -> int:
    async with open_server(echo, settings) as server, open_client(server.url) as client:
        assert (await client.send("hello")).text == "hello"
        return server.port


def setting(home: Path, via: Via, port: int, key: str, value: int) -> Settings:
    """Return settings with a port, and a number from the source that is tested."""
    content = nested("server.port", port)
    if via is Via.FILE:
        return load(home, merged(content, nested(key, value))).settings
    return load(home, content, {PORT_VARIABLES[key]: str(value)}).settings


@pytest.mark.parametrize("via", Via)
async def test_port(via: Via, tmp_path: Path) -> None:
    """It is bound, if it is free."""
    port = free_port()
    settings = setting(tmp_path, via, 9910, "server.port", port)
    with trio.fail_after(LIMIT):
        assert await port_of(settings) == port


@pytest.mark.parametrize("via", Via)
async def test_port_fallback(via: Via, tmp_path: Path) -> None:
    """By default the next ports are tried; 0 leaves the choice to the system at once."""
    with trio.fail_after(LIMIT), busy_port() as busy:
        climbing = load(tmp_path, nested("server.port", busy)).settings
        assert await port_of(climbing) == busy + 1
        at_once = setting(tmp_path, via, busy, "server.portFallback", 0)
        assert await port_of(at_once) not in range(busy, busy + 11)


async def bound_host(settings: Settings) -> object:
    """Return the address that listens, as the card tells it and as a connection shows it."""
    async with open_server(echo, settings) as server:
        host = server.url.removeprefix("http://").partition(":")[0]
        async with await trio.open_tcp_stream(host, server.port) as stream:
            assert stream.socket.getpeername()[0] == host
        return host


async def serves_when_asked_to(settings: Settings) -> object:
    async with open_peer(echo, settings) as peer, open_client(peer.server.url) as client:
        return (await client.send("hello")).text


def folder_of(settings: Settings) -> Path:
    """Return a state folder for a server with these settings: beside its workspace."""
    return Path(settings.server.workspace) / "state"


async def transcripts_of_a_run(settings: Settings) -> object:
    home = folder_of(settings)
    async with open_server(echo, settings, home=home) as server, open_client(server.url) as client:
        await client.send("hello")
    return len(list(home.glob("a2a_sessions/*.jsonl")))


async def ages_that_are_kept(settings: Settings) -> object:
    """Return which of several old transcripts, by age in days, a start leaves alone."""
    home = folder_of(settings)
    folder = home / "a2a_sessions"
    folder.mkdir(mode=0o700, parents=True)
    for days in (1, 10, 100, 1000):
        path = folder / f"2020-01-01T00-00-00-000Z_{days}.jsonl"
        path.write_text("{}\n")
        os.utime(path, (0, time.time() - days * DAY))
    async with open_server(echo, settings, home=home):
        pass
    return sorted(int(path.stem.rpartition("_")[2]) for path in folder.iterdir())


EFFECTS: Final = (
    Effect(
        key="server.host", value="127.0.0.2", env="A2A_HOST", text="127.0.0.2", base=WITH_TOKEN,
        probe=bound_host, before="127.0.0.1", after="127.0.0.2",
    ),
    Effect(
        key="server.host", value="0.0.0.0", env="A2A_HOST", text="0.0.0.0", base=BASE,
        probe=bound_host, before="127.0.0.1", after="127.0.0.1",
    ),
    Effect(
        key="server.enabled", value=True, env="A2A_SERVER_ENABLED", text="true", base=BASE,
        probe=serves_when_asked_to, before="hello", after="hello",
    ),
    Effect(
        key="server.childTranscripts", value=False, env="A2A_CHILD_TRANSCRIPTS", text="false",
        base=BASE, probe=transcripts_of_a_run, before=1, after=0,
    ),
    Effect(
        key="server.childTranscriptRetentionDays", value=7,
        env="A2A_CHILD_TRANSCRIPT_RETENTION_DAYS", text="7",
        base=BASE, probe=ages_that_are_kept, before=[1, 10], after=[1],
    ),
    Effect(
        key="server.childTranscriptRetentionDays", value=0,
        env="A2A_CHILD_TRANSCRIPT_RETENTION_DAYS", text="0",
        base=BASE, probe=ages_that_are_kept, before=[1, 10], after=[1, 10, 100, 1000],
    ),
)  # fmt: skip
"""``server.enabled`` is for programs that may serve or not: those that are asked to serve always do."""


@pytest.mark.parametrize(("effect", "via"), cases(EFFECTS), ids=case_ids(EFFECTS))
async def test_setting_has_its_effect(effect: Effect, via: Via, tmp_path: Path) -> None:
    """Two settings files, or one and a variable: the servers differ as the table says."""
    with trio.fail_after(LIMIT):
        before = in_folder(without_effect(tmp_path / "config", effect), tmp_path / "before")
        assert await effect.probe(before) == effect.before
        after = in_folder(with_effect(tmp_path / "config", effect, via), tmp_path / "after")
        assert await effect.probe(after) == effect.after


def in_folder(settings: Settings, folder: Path) -> Settings:
    """Return the settings with a folder of their own to work in."""
    folder.mkdir()
    server = attrs.evolve(settings.server, workspace=str(folder))
    return attrs.evolve(settings, server=server)


@pytest.mark.parametrize("verify", [True, False])
async def test_verify_ssl(tmp_path: Path, *, verify: bool) -> None:
    """A certificate that nobody vouches for is believed by who does not verify only."""
    issued = trustme.CA().issue_cert("127.0.0.1")
    issued.private_key_pem.write_to_path(str(tmp_path / "key.pem"))
    issued.cert_chain_pems[0].write_to_path(str(tmp_path / "cert.pem"))
    tls = {"tlsCertFile": str(tmp_path / "cert.pem"), "tlsKeyFile": str(tmp_path / "key.pem")}
    serving = load(tmp_path / "a", {"server": {"port": 0, **tls}}).settings
    calling = load(tmp_path / "b", {"verifySsl": verify, **BASE}).settings
    with trio.fail_after(LIMIT):
        async with (
            open_server(echo, serving) as server,
            open_peer(echo, calling) as peer,
            peer.client(server.url) as client,
        ):
            if verify:
                with pytest.raises(PeerUnreachableError, match="not trusted"):
                    await client.send("hello")
            else:
                assert (await client.send("hello")).text == "hello"


def shown_by_serve(
    home: Path, environ: Mapping[str, str], *flags: str
) -> tuple[list[str], list[str]]:
    """Run ``a2a-trio serve``, send it one message, and return its activity and other lines."""
    process = subprocess.Popen(
        [sys.executable, "-m", "a2a_trio", "serve", "--port", "0", *flags],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=home,
        env={
            **{k: v for k, v in os.environ.items() if not k.startswith("A2A_")},
            "A2A_HOME": str(home),
            **environ,
        },
    )
    with process:
        assert process.stdout is not None
        url = process.stdout.readline().split()[-1]

        async def call() -> None:
            with trio.fail_after(LIMIT):
                async with open_client(url) as client:
                    await client.send("hello")

        try:
            trio.run(call)
        finally:
            process.send_signal(signal.SIGTERM)
            _, err = process.communicate(timeout=LIMIT)
    lines = err.splitlines()
    activity = [line for line in lines if "[A2A inbound]" in line]
    return activity, [line for line in lines if line not in activity]


@pytest.mark.parametrize(
    ("content", "environ", "flags", "shown"),
    [
        ({}, {}, (), 2),
        ({"ui": {"transcript": False}}, {}, (), 0),
        ({}, {"A2A_UI_TRANSCRIPT": "false"}, (), 0),
        ({}, {}, ("--quiet",), 0),
        ({}, {}, ("--log-json",), 0),
    ],
    ids=["default", "ui.transcript", "A2A_UI_TRANSCRIPT", "quiet", "json"],
)
def test_ui_transcript(
    content: Mapping[str, object],
    environ: Mapping[str, str],
    flags: tuple[str, ...],
    shown: int,
    tmp_path: Path,
) -> None:
    """Two lines for a dispatch, or none; the log line of the call is there in any case."""
    load(tmp_path, content)
    activity, others = shown_by_serve(tmp_path, environ, *flags)
    assert len(activity) == shown
    assert len([line for line in others if "SendMessage" in line and "completed" in line]) == 1
    if shown:
        assert activity[0].endswith("): hello")
        assert activity[1].endswith(" — hello")
