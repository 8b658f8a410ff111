"""mDNS: who comes and goes, on a network of the test's own and on the loopback interface."""

import logging
import os
import sys
import threading
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager

import attrs
import pytest
import trio

from a2a_trio.discovery import mdns as module
from a2a_trio.discovery.mdns import Announcement, Mdns, MdnsUnavailableError, browse, open_mdns
from a2a_trio.rules.directory import Source
from a2a_trio.rules.mdns_records import Record, instance_name
from tests.discovery.conftest import LIMIT, needs_multicast

LOOPBACK = ("127.0.0.1",)
SERVICE = f"a2a-{os.getpid()}"
"""Every test run on this machine hears every other one."""
US = Announcement(
    name="us", url="http://127.0.0.1:9910/", port=9910, pid=7, addresses=LOOPBACK, cwd="/work"
)
THEM = attrs.evolve(US, name="them", url="http://127.0.0.1:9911/", port=9911)


class FakeNetwork:
    """A network whose services the test makes up; lookups wait for the test if it says so."""

    def __init__(self) -> None:
        self.records: dict[str, Record | None] = {}
        self.lookups: list[str] = []
        self.lookup_begins = trio.Event()
        self.hold: threading.Event | None = None
        self.refuses = ""
        self.announced: list[str] = []
        self.closed = False
        self._token = trio.lowlevel.current_trio_token()
        self._tell: Callable[[str, bool], None] = lambda _name, _present: None

    def open(self) -> "FakeNetwork":
        return self

    def browse(self, service: str, on_change: Callable[[str, bool], None]) -> None:
        assert service == "_a2a._tcp.local."
        self._tell = on_change

    def lookup(self, service: str, instance: str) -> Record | None:
        assert service == "_a2a._tcp.local."
        self.lookups.append(instance)
        self._token.run_sync_soon(self.lookup_begins.set)
        if self.hold is not None:
            assert self.hold.wait(LIMIT)
        return self.records.get(instance)

    def announce(self, service: str, instance: str, announcement: Announcement) -> None:
        assert announcement.port
        if self.refuses:
            raise MdnsUnavailableError(self.refuses)
        self.announced.append(f"{instance} in {service}")

    def close(self) -> None:
        self.closed = True

    async def comes(self, name: str, port: int = 9911) -> None:
        """Let a service appear, or change; the library tells it from its own thread."""
        instance = f"{name}._a2a._tcp.local."
        self.records[instance] = Record(
            instance=instance, port=port, addresses=("10.0.0.1",), txt={}
        )
        await trio.to_thread.run_sync(self._tell, instance, True)

    async def goes(self, name: str) -> None:
        await trio.to_thread.run_sync(self._tell, f"{name}._a2a._tcp.local.", False)


def opened(
    network: FakeNetwork, announcement: Announcement | None = None
) -> AbstractAsyncContextManager[Mdns]:
    return open_mdns("a2a", announcement, network=network.open)


async def until(condition: Callable[[], bool], mdns: Mdns) -> None:
    with trio.fail_after(LIMIT):
        while not condition():
            await mdns.changed()


async def test_who_comes_is_found_and_who_goes_is_forgotten() -> None:
    """With the address of the record."""
    network = FakeNetwork()
    async with opened(network) as mdns:
        assert mdns.peers() == ()
        await network.comes("reader")
        await until(lambda: len(mdns.peers()) == 1, mdns)
        (peer,) = mdns.peers()
        assert (peer.name, peer.url) == ("reader", "http://10.0.0.1:9911/")
        assert peer.source is Source.MDNS
        await network.comes("reader", port=9912)
        await until(lambda: mdns.peers()[0].url == "http://10.0.0.1:9912/", mdns)
        await network.goes("reader")
        await until(lambda: not mdns.peers(), mdns)
    assert network.closed


async def test_this_peer_is_not_its_own_neighbour() -> None:
    """Its announcement is heard by itself, too."""
    network = FakeNetwork()
    own = instance_name(US, "a2a").partition(".")[0]
    async with opened(network, US) as mdns:
        await network.comes(own)
        await network.comes("other")
        await until(lambda: bool(mdns.peers()), mdns)
        assert [peer.name for peer in mdns.peers()] == ["other"]
    assert network.lookups == ["other._a2a._tcp.local."]


async def test_who_goes_while_being_asked_stays_away() -> None:
    """The late answer is not believed; and a service has one question at a time."""
    network = FakeNetwork()
    network.hold = threading.Event()
    async with opened(network) as mdns:
        await network.comes("reader")
        with trio.fail_after(LIMIT):
            await network.lookup_begins.wait()
        for _ in range(10):
            await network.goes("reader")
            await network.comes("reader")
        await network.goes("reader")
        await network.comes("last")
        network.hold.set()
        await until(lambda: bool(mdns.peers()), mdns)
        assert [peer.name for peer in mdns.peers()] == ["last"]
    assert sorted(network.lookups) == ["last._a2a._tcp.local.", "reader._a2a._tcp.local."]


async def test_who_changes_while_being_asked_is_asked_again() -> None:
    """The answer may be from before the change."""
    network = FakeNetwork()
    network.hold = threading.Event()
    async with opened(network) as mdns:
        await network.comes("reader", port=1)
        with trio.fail_after(LIMIT):
            await network.lookup_begins.wait()
        await network.comes("reader", port=2)
        network.hold.set()
        await until(lambda: [p.url for p in mdns.peers()] == ["http://10.0.0.1:2/"], mdns)


async def test_service_that_does_not_answer_is_no_peer() -> None:
    """It may announce itself again later."""
    network = FakeNetwork()
    async with opened(network) as mdns:
        await network.comes("mute")
        network.records.clear()
        await network.comes("other")
        await until(lambda: bool(mdns.peers()), mdns)
        assert [peer.name for peer in mdns.peers()] == ["other"]


async def test_number_of_services_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Further ones are not seen until one of the others goes."""
    monkeypatch.setattr(module, "MAX_SERVICES", 3)
    network = FakeNetwork()
    async with opened(network) as mdns:
        for number in range(10):
            await network.comes(f"peer-{number}")
        await until(lambda: len(mdns.peers()) == 3, mdns)
        await network.goes("peer-0")
        await until(lambda: len(mdns.peers()) == 2, mdns)
        await network.comes("peer-9")
        await until(lambda: len(mdns.peers()) == 3, mdns)
        assert {peer.name for peer in mdns.peers()} == {"peer-1", "peer-2", "peer-9"}


class Listener(logging.Handler):
    """Tells when something is logged."""

    def __init__(self) -> None:
        super().__init__()
        self.heard = trio.Event()
        self.texts: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.texts.append(record.getMessage())
        self.heard.set()


async def test_name_that_is_taken_is_told_and_looking_goes_on() -> None:
    """The peer works; it cannot be found in this way."""
    network = FakeNetwork()
    network.refuses = "the name is taken"
    listener, logger = Listener(), logging.getLogger("a2a_trio.discovery")
    logger.addHandler(listener)
    try:
        async with opened(network, US) as mdns:
            with trio.fail_after(LIMIT):
                await listener.heard.wait()
            await network.comes("other")
            await until(lambda: bool(mdns.peers()), mdns)
    finally:
        logger.removeHandler(listener)
    assert network.announced == []
    assert "the name is taken" in listener.texts[0]


async def test_interface_that_does_not_exist_is_told() -> None:
    """In words. In a process of its own, since the library forgets a socket when it fails."""
    program = """
import trio
from a2a_trio.discovery.mdns import MdnsUnavailableError, browse
try:
    trio.run(lambda: browse("a2a", 0, interfaces=("203.0.113.77",)))
except MdnsUnavailableError as error:
    print(error)
"""
    done = await trio.run_process([sys.executable, "-c", program], capture_stdout=True)
    assert done.stdout.startswith(b"no interface can be used: ")


async def test_library_that_is_not_there_is_told() -> None:
    """With what to install; nothing else needs it."""
    program = """
import sys
sys.modules["zeroconf"] = None
import trio
from a2a_trio.discovery.mdns import MdnsUnavailableError, browse
try:
    trio.run(lambda: browse("a2a", 0))
except MdnsUnavailableError as error:
    print(error)
"""
    done = await trio.run_process([sys.executable, "-c", program], capture_stdout=True)
    assert b"a2a-trio[mdns]" in done.stdout


@needs_multicast
async def test_two_peers_see_each_other_come_and_go() -> None:
    """For real, on the loopback interface; afterwards no thread is left."""
    before = set(threading.enumerate())
    with trio.fail_after(LIMIT):
        async with open_mdns(SERVICE, US, interfaces=LOOPBACK) as one:
            async with open_mdns(SERVICE, THEM, interfaces=LOOPBACK) as other:
                await until(lambda: bool(one.peers()), one)
                await until(lambda: bool(other.peers()), other)
                assert [(p.name, p.url) for p in one.peers()] == [("them", THEM.url)]
                assert [(p.name, p.cwd) for p in other.peers()] == [("us", "/work")]
            await until(lambda: not one.peers(), one)
        assert await browse(SERVICE, 0.1, interfaces=LOOPBACK) == ()
    left = [t for t in threading.enumerate() if t not in before and "Trio thread" not in t.name]
    assert left == []


@needs_multicast
async def test_end_in_the_middle_of_announcing_is_a_quiet_one() -> None:
    """Asking whether a name is free takes a second, in which the peer may be stopped."""
    program = f"""
import trio
from a2a_trio.discovery.mdns import Announcement, open_mdns

us = Announcement(name="us", url="http://127.0.0.1:1/", port=1, pid=7, addresses=("127.0.0.1",))

async def main():
    async with open_mdns("{SERVICE}", us, interfaces={LOOPBACK}):
        await trio.sleep(0.3)

trio.run(main)
"""
    done = await trio.run_process(
        [sys.executable, "-X", "dev", "-c", program], capture_stdout=True, capture_stderr=True
    )
    assert (done.stdout, done.stderr) == (b"", b"")
