"""The file registry: who is in it, who is not, and what cannot be done to it from outside."""
# ruff: noqa: ARG001 - a test asks for the virtual clock by naming its fixture

import json
import os
import stat
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, TypeVar, TypeVarTuple

import attrs
import pytest
import trio

from a2a_trio._disk import FileOps
from a2a_trio.discovery import registry as module
from a2a_trio.discovery.registry import (
    FOLDER,
    MAX_ENTRY_BYTES,
    MAX_FILES,
    FileRegistry,
    RegistryEntry,
    file_name,
    keep_registered,
)

T = TypeVar("T")
Ts = TypeVarTuple("Ts")
TTL = 60.0
URL = "http://127.0.0.1:9911/"
ENTRY = RegistryEntry(
    pid=os.getpid(),
    url=URL,
    port=9911,
    host="127.0.0.1",
    cwd="/work",
    agent_name="reader",
    skills=("reading",),
    started_at="2026-01-01T00:00:00.000Z",
)


async def at_once(function: Callable[[*Ts], T], /, *args: *Ts) -> T:
    """Run blocking work in the Trio thread, as a virtual clock needs it."""
    await trio.lowlevel.checkpoint()
    return function(*args)


def write(home: Path, name: str, content: bytes | dict[str, Any], *, age: float = 0) -> Path:
    """Put a file of another program into the registry."""
    folder = home / FOLDER
    folder.mkdir(exist_ok=True)
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else json.dumps(content).encode())
    os.utime(path, (0, time.time() - age))
    return path


def content(**changes: object) -> dict[str, Any]:
    """Return what another implementation writes, and changes to it."""
    return {
        "pid": os.getpid(),
        "url": URL,
        "port": 9911,
        "host": "127.0.0.1",
        "cwd": "/home/me/project",
        "model": {"provider": "p", "id": "m", "name": "M"},
        "agentName": "pi",
        "sessionName": None,
        "tools": ["bash", "read"],
        "skills": [{"id": "s1", "name": "Skill one"}, "two"],
        "startedAt": "2026-01-01T00:00:00Z",
        "mtime": 1,
        **changes,
    }


async def test_what_is_registered_is_found(tmp_path: Path) -> None:
    """With what it says of itself; a private file in a private folder."""
    registry = FileRegistry(tmp_path)
    await registry.register(ENTRY)
    (peer,) = await FileRegistry(tmp_path).peers(TTL)
    assert (peer.name, peer.url, peer.cwd) == ("reader", URL, "/work")
    assert (peer.capabilities, peer.pid) == (("reading",), os.getpid())
    folder = tmp_path / FOLDER
    (path,) = folder.iterdir()
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert path.name.removesuffix(".json").isdigit()

    await registry.unregister()
    assert await registry.peers(TTL) == ()
    assert list(folder.iterdir()) == []
    await registry.unregister()


async def test_two_peers_of_one_process_have_an_entry_each(tmp_path: Path) -> None:
    """And each takes away its own."""
    one, other = FileRegistry(tmp_path), FileRegistry(tmp_path)
    await one.register(ENTRY)
    await other.register(attrs.evolve(ENTRY, url="http://127.0.0.1:9912/", port=9912))
    assert {peer.url[-5:] for peer in await one.peers(TTL)} == {"9911/", "9912/"}
    await one.unregister()
    assert [peer.url[-5:] for peer in await one.peers(TTL)] == ["9912/"]


async def test_entry_of_another_implementation_is_read(tmp_path: Path) -> None:
    """Models and skills as objects, a name from the session, members that nobody knows."""
    write(tmp_path, "1.json", content(agentName=None, sessionName="refactoring", new={"a": 1}))
    (peer,) = await FileRegistry(tmp_path).peers(TTL)
    assert (peer.name, peer.model) == ("refactoring", "p/m")
    assert (peer.tools, peer.capabilities) == (("bash", "read"), ("Skill one", "two"))


@pytest.mark.parametrize(
    "bad",
    [
        b"",
        b"{",
        b"\xff\xfe",
        b"[" * 60_000,
        b"null",
        b"[]",
        b'{"url": "http://127.0.0.1:9911/"}',
        json.dumps(content(pid=0)).encode(),
        json.dumps(content(pid=-1)).encode(),
        json.dumps(content(pid=True)).encode(),
        json.dumps(content(pid="1")).encode(),
        json.dumps(content(pid=2**40)).encode(),
        json.dumps(content(pid=1.5)).encode(),
        json.dumps(content(url="")).encode(),
        json.dumps(content(url=7)).encode(),
        json.dumps(content(url="file:///etc/passwd")).encode(),
        json.dumps(content(url="http://user:secret@127.0.0.1/")).encode(),
        json.dumps(content(url="http://127.0.0.1:9911/\u202e")).encode(),
        json.dumps(content(url="http://127.0.0.1/" + "a" * 5_000)).encode(),
        json.dumps(content(cwd="x" * MAX_ENTRY_BYTES)).encode(),
    ],
    ids=range(20),
)
async def test_what_is_no_entry_is_skipped_and_left_alone(tmp_path: Path, bad: bytes) -> None:
    """It hides nobody else, and somebody may want to look at it."""
    path = write(tmp_path, "1.json", bad)
    write(tmp_path, "2.json", content())
    assert [peer.name for peer in await FileRegistry(tmp_path).peers(TTL)] == ["pi"]
    assert path.exists()


async def test_texts_are_harmless(tmp_path: Path) -> None:
    """One short line each, without anything that steers a terminal or hides text."""
    hostile = "a\x1b[31m\n\u202e\u200bb" + "c" * 300
    write(tmp_path, "1.json", content(agentName=hostile, cwd=hostile, tools=[hostile, 7, ""] * 30))
    (peer,) = await FileRegistry(tmp_path).peers(TTL)
    assert peer.name.startswith("a[31m bccc")
    assert len(peer.name) == len(peer.cwd) == 200
    assert all(text.isprintable() for text in (peer.name, peer.cwd, *peer.tools))
    assert 0 < len(peer.tools) <= 50


@pytest.mark.parametrize(("age", "found"), [(0, 1), (55, 1), (65, 0), (-55, 1), (-100_000, 0)])
async def test_entry_that_nobody_refreshes_goes_away(
    tmp_path: Path, age: float, found: int
) -> None:
    """The time of the file counts, not what it says; a time far ahead is as good as none."""
    path = write(tmp_path, "1.json", content(mtime=10**15), age=age)
    assert len(await FileRegistry(tmp_path).peers(TTL)) == found
    assert path.exists() == bool(found)


async def test_entry_of_a_process_that_is_gone_goes_away(tmp_path: Path) -> None:
    """Also when it is fresh: its process crashed."""
    done = await trio.run_process(
        [sys.executable, "-c", "import os; print(os.getpid())"], capture_stdout=True
    )
    path = write(tmp_path, "1.json", content(pid=int(done.stdout)))
    assert await FileRegistry(tmp_path).peers(TTL) == ()
    assert not path.exists()


async def test_other_files_are_none_of_our_business(tmp_path: Path) -> None:
    """Whatever their age."""
    kept = [
        write(tmp_path, name, content(), age=10_000)
        for name in ("notes.txt", "1.json.bak", "a.json", "-1.json", "\u0661.json")
    ]
    assert await FileRegistry(tmp_path).peers(TTL) == ()
    assert all(path.exists() for path in kept)


async def test_links_pipes_and_folders_are_not_read(tmp_path: Path) -> None:
    """A name in the registry leads nowhere else, and waits for nobody."""
    target = tmp_path / "target"
    target.write_text(json.dumps(content()))
    folder = tmp_path / FOLDER
    folder.mkdir()
    (folder / "1.json").symlink_to(target)
    os.mkfifo(folder / "2.json")
    (folder / "3.json").mkdir()
    assert await FileRegistry(tmp_path).peers(TTL) == ()
    assert target.exists()


async def test_folder_that_is_a_link_is_not_used(tmp_path: Path) -> None:
    """Neither for reading nor for writing."""
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (tmp_path / FOLDER).symlink_to(elsewhere)
    registry = FileRegistry(tmp_path)
    assert await registry.peers(TTL) == ()
    with pytest.raises(OSError, match=FOLDER):
        await registry.register(ENTRY)
    assert list(elsewhere.iterdir()) == []


async def test_number_of_files_is_bounded(tmp_path: Path) -> None:
    """A folder that somebody has filled is still read in no time."""
    write(tmp_path, "1.json", content())
    for number in range(MAX_FILES + 50):
        (tmp_path / FOLDER / f"{10**9 + number}.json").write_bytes(b"{}")
    assert len(await FileRegistry(tmp_path).peers(TTL)) == 1


async def test_nobody_reads_half_an_entry(tmp_path: Path) -> None:
    """A full disk leaves the old entry whole; what is left of the new one goes away with time."""

    class Full(FileOps):
        full = False

        def write(self, fd: int, data: bytes) -> int:
            if self.full:
                super().write(fd, data[:10])
                raise OSError(28, "No space left on device")
            return super().write(fd, data)

    ops = Full()
    registry = FileRegistry(tmp_path, ops=ops)
    await registry.register(ENTRY)
    ops.full = True
    with pytest.raises(OSError, match="space"):
        await registry.register(attrs.evolve(ENTRY, cwd="/elsewhere"))
    assert [peer.cwd for peer in await registry.peers(TTL)] == ["/work"]
    (part,) = (tmp_path / FOLDER).glob(".*.part")
    os.utime(part, (0, time.time() - 100))
    await registry.peers(TTL)
    assert not part.exists()
    ops.full = False
    await registry.register(ENTRY)


async def test_a_write_that_comes_late_does_not_bring_the_entry_back(tmp_path: Path) -> None:
    """It was given up on when the peer stopped, and its thread went on."""
    registry = FileRegistry(tmp_path)
    await registry.register(ENTRY)
    await registry.unregister()
    await registry.register(ENTRY)
    assert await registry.peers(TTL) == ()


async def test_entry_is_kept_fresh_and_taken_away(
    tmp_path: Path, autojump_clock: trio.testing.MockClock
) -> None:
    """A write at once and one with every beat; nothing is left after the end."""
    writes: list[float] = []

    class Counting(FileOps):
        def rename(self, name: str, to: str, *, folder: int) -> None:
            writes.append(trio.current_time())
            super().rename(name, to, folder=folder)

    registry = FileRegistry(tmp_path, ops=Counting(), offload=at_once)
    async with trio.open_nursery() as nursery:
        await nursery.start(partial(keep_registered, registry, ENTRY, heartbeat=15))
        assert len(await registry.peers(TTL)) == 1
        await trio.sleep(50)
        nursery.cancel_scope.cancel()
    assert [at - writes[0] for at in writes] == pytest.approx([0, 15, 30, 45])
    assert await registry.peers(TTL) == ()


async def test_registry_that_cannot_be_written_is_tried_again(
    tmp_path: Path, autojump_clock: trio.testing.MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    """The peer starts all the same, the operator is told once, and later it works."""
    (tmp_path / FOLDER).write_text("in the way")
    registry = FileRegistry(tmp_path, offload=at_once)
    async with trio.open_nursery() as nursery:
        await nursery.start(partial(keep_registered, registry, ENTRY, heartbeat=15))
        await trio.sleep(50)
        assert len([r for r in caplog.records if "not in the file registry" in r.message]) == 1
        (tmp_path / FOLDER).unlink()
        await trio.sleep(15)
        assert len(await registry.peers(TTL)) == 1
        nursery.cancel_scope.cancel()


async def test_disk_that_hangs_does_not_hold_the_end_up(
    tmp_path: Path, autojump_clock: trio.testing.MockClock
) -> None:
    """The entry is given up on, and goes away by its age."""

    async def hanging(function: Callable[[*Ts], T], /, *args: *Ts) -> T:
        if "remove" in getattr(function, "__name__", ""):
            await trio.sleep_forever()
        return await at_once(function, *args)

    registry = FileRegistry(tmp_path, offload=hanging)
    began = trio.current_time()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(partial(keep_registered, registry, ENTRY, heartbeat=15))
        await trio.sleep(1)
        nursery.cancel_scope.cancel()
    assert trio.current_time() - began == pytest.approx(1 + module.UNREGISTER_SEC)


def test_names_of_files_are_numbers_of_one_length() -> None:
    """So that other implementations read them, and two addresses never share one."""
    names = {
        file_name(attrs.evolve(ENTRY, url=f"http://127.0.0.1:{port}/")) for port in range(1, 2000)
    }
    assert len(names) == 1999
    assert all(name.removesuffix(".json").isdigit() for name in names)
