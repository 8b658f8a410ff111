"""mDNS: announcing this peer on the local network and seeing others there (RFC 6762, RFC 6763).

The work is done by zeroconf, an optional library with a thread and an event loop of its own: there
is none for Trio, and a protocol with probing, caches and many broken peers is better not written
twice. Its calls block, so they are made in threads, and none of them can hold this peer up: what it
tells comes as a change of a bounded table, and closing it is given a few seconds.
"""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from enum import Enum, auto
from functools import partial
from threading import Lock
from typing import TYPE_CHECKING, Final, Protocol, final

import trio

from a2a_trio._groups import plain_errors
from a2a_trio._log import get_logger
from a2a_trio._threads import in_thread
from a2a_trio.rules.addresses import plain_address
from a2a_trio.rules.directory import FoundPeer
from a2a_trio.rules.mdns_records import (
    Announcement,
    Record,
    host_name,
    instance_name,
    read_record,
    service_name,
    txt_of,
)

if TYPE_CHECKING:
    from zeroconf import ServiceBrowser, ServiceStateChange, Zeroconf

__all__ = ["Announcement", "Mdns", "MdnsUnavailableError", "Network", "browse", "open_mdns"]

MAX_SERVICES: Final = 1_000
"""Services that are followed; further ones are not seen until one of these goes."""
MAX_LOOKUPS: Final = 4
"""Services that are asked for their address at the same time."""
LOOKUP_MS: Final = 3_000
"""How long one of them may take to tell it; it is asked again when it announces itself again."""
CLOSE_SEC: Final = 4.0
"""How long saying good-bye to the network may hold up a shutdown: what the library takes for it, after
what it takes to announce somebody."""

_log = get_logger("a2a_trio.discovery")


class MdnsUnavailableError(Exception):
    """The network cannot be used; the text says why, for people."""


class Network(Protocol):
    """What is used of a library for mDNS; every method blocks and may be called from any thread."""

    def browse(self, service: str, on_change: Callable[[str, bool], None]) -> None:
        """Tell, from another thread, the name of each service that comes (True) or goes (False)."""
        ...

    def lookup(self, service: str, instance: str) -> Record | None:
        """Return what is known of a service, after asking for it."""
        ...

    def announce(self, service: str, instance: str, announcement: Announcement) -> None:
        """Publish our own record.

        Raises:
            MdnsUnavailableError: the name is taken, or nothing can be sent.
        """
        ...

    def close(self) -> None:
        """Take our record back and stop; may be called while another method runs."""
        ...


class _Then(Enum):
    """What follows when a service has been asked."""

    DONE = auto()
    AGAIN = auto()
    """It has changed meanwhile."""
    FORGET = auto()
    """It has gone meanwhile."""


@final
class Mdns:
    """The peers that are on the network now."""

    def __init__(self, network: Network, service: str, own: str) -> None:
        self._network = network
        self._service = service
        self._own = own
        self._token = trio.lowlevel.current_trio_token()
        # The library tells of changes in its own thread.
        self._lock = Lock()
        self._pending: dict[str, bool] = {}
        self._followed: set[str] = set()
        self._asked: dict[str, _Then] = {}
        self._found: dict[str, FoundPeer] = {}
        self._wake = trio.Event()
        self._changed = trio.Event()
        self._lookups = trio.CapacityLimiter(MAX_LOOKUPS)

    def peers(self) -> tuple[FoundPeer, ...]:
        """Return them, without this one."""
        return tuple(self._found.values())

    async def changed(self) -> None:
        """Wait until somebody has come, gone or changed."""
        await self._changed.wait()

    def told(self, instance: str, present: bool) -> None:  # noqa: FBT001 - the one place where the library says it
        """Take note of a change; may be called from any thread."""
        if instance == self._own:
            return
        with self._lock:
            known = instance in self._followed
            if not known and len(self._followed) >= MAX_SERVICES:
                return
            self._followed.add(instance)
            self._pending[instance] = present
        with suppress(trio.RunFinishedError):  # the library may outlive the loop for a moment
            self._token.run_sync_soon(self._wake_up, idempotent=True)

    async def follow(self) -> None:
        """Apply the changes until cancelled."""
        async with trio.open_nursery() as lookups:
            while True:
                await self._wake.wait()
                self._wake = trio.Event()
                for instance in self._take_changes():
                    lookups.start_soon(self._look_up, instance)

    def _wake_up(self) -> None:
        self._wake.set()

    def _take_changes(self) -> list[str]:
        """Forget who has gone; return whom nobody is asking yet."""
        with self._lock:
            changes, self._pending = self._pending, {}
            self._followed -= {instance for instance, present in changes.items() if not present}
        idle = []
        for instance, present in changes.items():
            if not present:
                self._replace(instance, None)
            if instance in self._asked:
                self._asked[instance] = _Then.AGAIN if present else _Then.FORGET
            elif present:
                self._asked[instance] = _Then.DONE
                idle.append(instance)
        return idle

    async def _look_up(self, instance: str) -> None:
        """Ask for a service, and again if it has changed meanwhile; one task for each service."""
        then = _Then.AGAIN
        while then is _Then.AGAIN:
            self._asked[instance] = _Then.DONE
            async with self._lookups:
                record = await in_thread(self._network.lookup, self._service, instance)
            then = self._asked[instance]
            if then is _Then.DONE:
                self._replace(instance, None if record is None else read_record(record))
        del self._asked[instance]

    def _replace(self, instance: str, peer: FoundPeer | None) -> None:
        if self._found.get(instance) == peer:
            return
        if peer is None:
            del self._found[instance]
        else:
            self._found[instance] = peer
        self._changed.set()
        self._changed = trio.Event()


@asynccontextmanager
async def open_mdns(
    service_type: str,
    announcement: Announcement | None,
    *,
    interfaces: tuple[str, ...] | None = None,
    network: Callable[[], Network] | None = None,
) -> AsyncIterator[Mdns]:
    """Look for peers, and announce this one, for the length of a block.

    Announcing goes on in the background, since asking whether the name is free takes a second; if
    it fails that is logged, and looking goes on.

    Args:
        service_type: without underscore, e.g. ``a2a``.
        announcement: what is said about this peer; nothing if None.
        interfaces: addresses of the interfaces to use; all if None.
        network: makes the library's side; for tests.

    Raises:
        MdnsUnavailableError: the library is missing, or no interface can be used.

    **Resources**: when the block ends the record is taken back, within ``CLOSE_SEC``.
    """
    service = service_name(service_type)
    own = "" if announcement is None else instance_name(announcement, service_type)
    make = network or partial(_zeroconf, interfaces)
    # Not abandoned when cancelled: it takes no time, and what it opened would stay open.
    opened = await trio.to_thread.run_sync(make)
    try:
        mdns = Mdns(opened, service, own)
        with plain_errors():
            async with trio.open_nursery() as nursery:
                nursery.start_soon(mdns.follow)
                await in_thread(opened.browse, service, mdns.told)
                if announcement is not None:
                    nursery.start_soon(_announce, opened, service, own, announcement)
                yield mdns
                nursery.cancel_scope.cancel()
    finally:
        with trio.move_on_after(CLOSE_SEC, shield=True):
            await in_thread(opened.close)


async def browse(
    service_type: str, seconds: float, *, interfaces: tuple[str, ...] | None = None
) -> tuple[FoundPeer, ...]:
    """Return who is heard within so many seconds.

    Raises:
        MdnsUnavailableError: as ``open_mdns``.
    """
    async with open_mdns(service_type, None, interfaces=interfaces) as mdns:
        await trio.sleep(seconds)
        return mdns.peers()


async def _announce(network: Network, service: str, own: str, announcement: Announcement) -> None:
    try:
        await in_thread(network.announce, service, own, announcement)
    except MdnsUnavailableError as error:
        _log.warning("not announced by mDNS", reason=str(error))


def _zeroconf(interfaces: tuple[str, ...] | None) -> Network:
    # Imported here: the library is optional, and few use it.
    try:
        import zeroconf  # noqa: PLC0415 - reason above
    except ImportError:
        raise MdnsUnavailableError(
            "the library zeroconf is not installed: pip install 'a2a-trio[mdns]'"
        ) from None
    try:
        used = zeroconf.InterfaceChoice.All if interfaces is None else list(interfaces)
        return _Zeroconf(zeroconf.Zeroconf(interfaces=used))
    except OSError as error:
        raise MdnsUnavailableError(f"no interface can be used: {error.strerror or error}") from None


@final
class _Zeroconf:
    """The library behind the protocol."""

    def __init__(self, zeroconf: "Zeroconf") -> None:
        self._zeroconf = zeroconf
        self._browser: ServiceBrowser | None = None
        # The library complains, on standard error, when it is closed in the middle of announcing.
        self._announcing = Lock()

    def browse(self, service: str, on_change: Callable[[str, bool], None]) -> None:
        from zeroconf import ServiceBrowser, ServiceStateChange  # noqa: PLC0415 - optional

        def heard(
            zeroconf: "Zeroconf",  # noqa: ARG001 - the library calls it by keywords
            service_type: str,  # noqa: ARG001 - as above
            name: str,
            state_change: "ServiceStateChange",
        ) -> None:
            on_change(name, state_change is not ServiceStateChange.Removed)

        self._browser = ServiceBrowser(self._zeroconf, service, handlers=[heard])

    def lookup(self, service: str, instance: str) -> Record | None:
        from zeroconf import Error  # noqa: PLC0415 - optional

        try:
            info = self._zeroconf.get_service_info(service, instance, timeout=LOOKUP_MS)
        except (Error, OSError):
            return None
        if info is None or info.port is None:
            return None
        return Record(
            instance=instance,
            port=info.port,
            addresses=tuple(info.parsed_addresses()),
            txt=info.properties,
        )

    def announce(self, service: str, instance: str, announcement: Announcement) -> None:
        from zeroconf import Error, ServiceInfo  # noqa: PLC0415 - optional

        addresses = announcement.addresses or _every_address()
        info = ServiceInfo(
            service,
            instance,
            parsed_addresses=list(addresses),
            port=announcement.port,
            properties=txt_of(announcement),
            server=host_name(announcement),
        )
        try:
            with self._announcing:
                self._zeroconf.register_service(info)
        except (Error, OSError) as error:
            reason = str(error) or type(error).__name__
            raise MdnsUnavailableError(reason) from None

    def close(self) -> None:
        if self._browser is not None:
            self._browser.cancel()  # the library ends other threads of its own, but not this one
        with self._announcing:
            self._zeroconf.close()


def _every_address() -> tuple[str, ...]:
    """Return the addresses of this machine that others can reach."""
    import ifaddr  # noqa: PLC0415 - zeroconf brings it

    texts = [
        ip.ip if isinstance(ip.ip, str) else ip.ip[0]
        for adapter in ifaddr.get_adapters()
        for ip in adapter.ips
    ]
    known = {text: plain_address(text) for text in texts}
    return tuple(t for t, a in known.items() if a and not (a.is_loopback or a.is_link_local))
