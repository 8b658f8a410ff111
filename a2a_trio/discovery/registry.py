"""The file registry: every peer of a user on this machine has a file that it keeps fresh.

A file whose time is too old, or whose process is gone, is taken away by whoever reads it next, so
that nothing has to be cleaned up after a crash. File work is done in threads.
"""

import os
import re
import time
from binascii import crc32
from contextlib import suppress
from pathlib import Path
from threading import Lock
from typing import Final, final

import trio

from a2a_trio._disk import READ, FileOps, Folder, open_private, problem_of, replace_private
from a2a_trio._log import get_logger
from a2a_trio._threads import Offload, in_thread
from a2a_trio.rules.directory import FoundPeer
from a2a_trio.rules.registry_entry import RegistryEntry, read_entry, write_entry

__all__ = ["FOLDER", "FileRegistry", "RegistryEntry", "keep_registered"]

FOLDER: Final = "a2a_registry"
MAX_ENTRY_BYTES: Final = 65_536
"""Size of a file that is read; a larger one is no entry."""
MAX_FILES: Final = 1_000
"""Files that are read at a time, the first ones by name; further ones are not seen."""
UNREGISTER_SEC: Final = 2.0
"""How long taking the own file away may hold up a shutdown."""

_NAME: Final = re.compile(r"[0-9]{1,40}\.json|\.[0-9]{1,40}\.json\.part", re.ASCII)
"""Entries, and what a crash in the middle of writing one has left."""

_log = get_logger("a2a_trio.discovery")


@final
class FileRegistry:
    """The registry in a state folder, and at most one entry of our own in it.

    Args:
        home: the state folder.
        ops: the file operations.
        offload: how blocking work is run. Under a virtual clock hand in one that runs it at once.
    """

    def __init__(
        self, home: Path, *, ops: FileOps | None = None, offload: Offload = in_thread
    ) -> None:
        self._folder = Folder(home / FOLDER, ops or FileOps(), ours=True)
        self._offload = offload
        # A thread: a write that was given up on may still be running when the file is taken away.
        self._lock = Lock()
        self._own = ""
        self._closed = False

    async def register(self, entry: RegistryEntry) -> None:
        """Write the entry, or write it again with a new time.

        Cancellation: the write may still happen, but not after ``unregister``.

        Raises:
            OSError: it cannot be written.
        """
        await self._offload(self._write, entry)

    async def unregister(self) -> None:
        """Take the entry away for good; there is nothing to do if it was never written.

        Cancellation: it is still taken away, unless the disk hangs for ever.
        """
        self._closed = True
        await self._offload(self._remove_own)

    async def peers(self, ttl: float) -> tuple[FoundPeer, ...]:
        """Return the peers that are alive; unreadable files are skipped.

        Args:
            ttl: seconds after which an entry that nobody refreshed is dead, and taken away.

        Cancellation: the reading goes on in its thread and changes nothing but dead entries.
        """
        return await self._offload(self._read_all, ttl)

    # --- in the thread ------------------------------------------------------------------------

    def _write(self, entry: RegistryEntry) -> None:
        name = file_name(entry)
        content = write_entry(entry, at_ms=int(time.time() * 1000))
        with self._lock:
            if self._closed:
                return
            with self._folder.opened() as fd:
                replace_private(self._folder.ops, name, content, folder=fd)
            self._own = name

    def _remove_own(self) -> None:
        with self._lock:
            if not self._own:
                return
            with suppress(OSError), self._folder.opened(create=False) as fd:
                self._folder.ops.remove(self._own, folder=fd)
            self._own = ""

    def _read_all(self, ttl: float) -> tuple[FoundPeer, ...]:
        try:
            with self._folder.opened(create=False) as fd:
                with os.scandir(fd) as listing:
                    names = sorted(e.name for e in listing if _NAME.fullmatch(e.name))
                found = [self._read(name, fd, ttl) for name in names[:MAX_FILES]]
        except OSError:
            return ()  # nobody has registered here yet, or the folder is not ours
        return tuple(peer for peer in found if peer is not None)

    def _read(self, name: str, folder: int, ttl: float) -> FoundPeer | None:
        ops = self._folder.ops
        try:
            fd = open_private(ops, name, READ, folder=folder)
        except OSError:
            return None
        try:
            age = time.time() - os.fstat(fd).st_mtime
            content = os.read(fd, MAX_ENTRY_BYTES + 1)
        except OSError:
            return None
        finally:
            os.close(fd)
        whole = len(content) <= MAX_ENTRY_BYTES and not name.startswith(".")
        peer = read_entry(content) if whole else None
        stale = abs(age) > ttl
        if stale or (peer is not None and not is_alive(peer.pid or 0)):
            with suppress(OSError):
                ops.remove(name, folder=folder)
            return None
        return peer


def file_name(entry: RegistryEntry) -> str:
    """Return the name of an entry's file: the process, then ten digits for the address.

    Two peers may run in one process; other implementations read every file whose name is a number.
    """
    return f"{entry.pid}{crc32(entry.url.encode()):010d}.json"


def is_alive(pid: int) -> bool:
    """Return whether a process exists, whoever it belongs to."""
    try:
        os.kill(pid, 0)
    except PermissionError:
        return True
    except (OSError, OverflowError):
        return False
    return True


async def keep_registered(
    registry: FileRegistry,
    entry: RegistryEntry,
    *,
    heartbeat: float,
    task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED,
) -> None:
    """Keep an entry fresh until cancelled, then take it away.

    A file that cannot be written is logged once, and tried again with every beat.

    Args:
        registry: the registry.
        entry: the entry.
        heartbeat: seconds between two writes.
        task_status: told after the first attempt.
    """
    problem = ""
    try:
        while True:
            before, problem = problem, await _beat(registry, entry)
            if problem and problem != before:
                _log.warning("not in the file registry", reason=problem)
            task_status.started()
            task_status = trio.TASK_STATUS_IGNORED
            await trio.sleep(heartbeat)
    finally:
        with trio.move_on_after(UNREGISTER_SEC, shield=True):
            await registry.unregister()


async def _beat(registry: FileRegistry, entry: RegistryEntry) -> str:
    try:
        await registry.register(entry)
    except OSError as error:
        return problem_of(error).value
    return ""
