"""The rotated file: nothing lost, nothing glued together, never more than it should be."""

import errno
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from a2a_trio._disk import FileOps
from a2a_trio.journal.rolling import RollingFile

NAME = "log"


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[int]:
    fd = os.open(tmp_path, os.O_RDONLY)
    yield fd
    os.close(fd)


def numbered(n: int) -> bytes:
    return b"line %06d\n" % n


def test_lines_are_appended_and_the_file_is_private(tmp_path: Path, folder: int) -> None:
    """0600, whatever the umask of the process lets through."""
    file = RollingFile(NAME, 1_000, 2, FileOps())
    assert file.append([b"a\n", b"b\n"], folder=folder).lines == 2
    assert file.append([b"c\n"], folder=folder).lines == 1
    assert (tmp_path / NAME).read_bytes() == b"a\nb\nc\n"
    assert (tmp_path / NAME).stat().st_mode & 0o777 == 0o600


def test_a_full_file_is_rotated_and_the_oldest_goes(tmp_path: Path, folder: int) -> None:
    """``keep`` older files, newest first, each within the limit."""
    file = RollingFile(NAME, 30, 2, FileOps())
    for n in range(10):
        file.append([numbered(n)], folder=folder)
    there = {p.name: p.read_bytes() for p in tmp_path.iterdir()}
    assert there == {
        "log": numbered(8) + numbered(9),
        "log.1": numbered(6) + numbered(7),
        "log.2": numbered(4) + numbered(5),
    }


def test_keeping_none_starts_over(tmp_path: Path, folder: int) -> None:
    """``keep`` 0 bounds the log to one file."""
    file = RollingFile(NAME, 30, 0, FileOps())
    for n in range(5):
        file.append([numbered(n)], folder=folder)
    assert [p.name for p in tmp_path.iterdir()] == [NAME]
    assert (tmp_path / NAME).read_bytes() == numbered(4)


def test_files_of_a_larger_keep_are_removed(tmp_path: Path, folder: int) -> None:
    """Lowering the setting frees the room at the next rotation."""
    for n in range(12):
        RollingFile(NAME, 30, 4, FileOps()).append([numbered(n)], folder=folder)
    assert (tmp_path / "log.4").exists()
    for n in range(2):
        RollingFile(NAME, 30, 1, FileOps()).append([numbered(n)], folder=folder)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["log", "log.1"]


def test_a_batch_larger_than_the_limit_is_still_written(tmp_path: Path, folder: int) -> None:
    """The limit decides when to rotate, not what may be said."""
    file = RollingFile(NAME, 10, 1, FileOps())
    assert file.append([b"x" * 50 + b"\n"], folder=folder).lines == 1
    assert [path.stat().st_size for path in tmp_path.iterdir()] == [51]


def test_while_another_process_rotates_lines_go_on(tmp_path: Path, folder: int) -> None:
    """Nobody waits for the lock: the file passes its limit by a batch instead."""

    class Busy(FileOps):
        def lock(self, fd: int) -> bool:
            return fd < 0

    for n in range(4):
        RollingFile(NAME, 30, 1, Busy()).append([numbered(n)], folder=folder)
    assert (tmp_path / NAME).read_bytes() == b"".join(map(numbered, range(4)))


def test_a_file_renamed_between_open_and_lock_is_left_alone(tmp_path: Path, folder: int) -> None:
    """Two processes that both see a full file rotate it once."""

    class Overtaken(FileOps):
        def lock(self, fd: int) -> bool:
            if (tmp_path / NAME).read_bytes().startswith(b"old"):
                (tmp_path / NAME).rename(tmp_path / "log.1")
                (tmp_path / NAME).write_bytes(b"new\n")
            return super().lock(fd)

    (tmp_path / NAME).write_bytes(b"old" * 10 + b"\n")
    RollingFile(NAME, 20, 1, Overtaken()).append([b"mine\n"], folder=folder)
    assert (tmp_path / NAME).read_bytes() == b"new\nmine\n"
    assert (tmp_path / "log.1").read_bytes() == b"old" * 10 + b"\n"


def test_a_torn_line_spoils_only_itself(tmp_path: Path, folder: int) -> None:
    """What a crash left without its line feed is not glued to the next line."""
    (tmp_path / NAME).write_bytes(b"whole\nto")
    RollingFile(NAME, 1_000, 1, FileOps()).append([b"next\n"], folder=folder)
    assert (tmp_path / NAME).read_bytes() == b"whole\nto\nnext\n"


@given(lengths=st.lists(st.integers(0, 12), min_size=1, max_size=6), room=st.integers(0, 60))
def test_a_disk_that_fills_up_tells_which_lines_it_took(
    lengths: list[int], room: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """The count is exact, so a repeat of the rest writes each line once."""

    class Small(FileOps):
        left = room

        def write(self, fd: int, data: bytes) -> int:
            if not self.left:
                raise OSError(errno.ENOSPC, "no room")
            taken = super().write(fd, data[: self.left])
            self.left -= taken
            return taken

    path = tmp_path_factory.mktemp("disk")
    fd = os.open(path, os.O_RDONLY)
    try:
        lines = [b"%d:" % n + b"x" * length + b"\n" for n, length in enumerate(lengths)]
        done = RollingFile(NAME, 10_000, 1, Small()).append(lines, folder=fd)
        assert done.error is not None or done.lines == len(lines)
        RollingFile(NAME, 10_000, 1, FileOps()).append(lines[done.lines :], folder=fd)
        kept = (path / NAME).read_bytes().splitlines(keepends=True)
        assert [line for line in kept if line in lines] == lines
    finally:
        os.close(fd)


@given(
    sizes=st.lists(st.integers(0, 30), max_size=20),
    wanted=st.integers(0, 8),
    more=st.integers(-2, 2),
)
def test_the_tail_is_the_last_whole_lines(
    sizes: list[int], wanted: int, more: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """As many as fit, never more, never a piece of one, across the rotation."""
    path = tmp_path_factory.mktemp("tail")
    fd = os.open(path, os.O_RDONLY)
    try:
        file = RollingFile(NAME, 100, 30, FileOps())
        lines = [b"%03d" % n + b"x" * size + b"\n" for n, size in enumerate(sizes)]
        for line in lines:
            file.append([line], folder=fd)
        # At and around the border between two lines.
        limit = max(0, len(b"".join(lines[len(lines) - min(wanted, len(lines)) :])) + more)
        tail = file.tail(limit, folder=fd)
    finally:
        os.close(fd)
    assert len(tail) <= limit
    found = tail.splitlines(keepends=True)
    rest = lines[: len(lines) - len(found)]
    assert rest + found == lines
    assert not rest or len(tail) + len(rest[-1]) > limit


def test_processes_that_append_at_once_lose_and_mix_nothing(tmp_path: Path) -> None:
    """Four writers, many rotations: every line is there once and whole."""
    script = (
        "import os, sys\n"
        "from a2a_trio._disk import FileOps\n"
        "from a2a_trio.journal.rolling import RollingFile\n"
        "fd = os.open(sys.argv[1], os.O_RDONLY)\n"
        "file = RollingFile('log', 4000, 400, FileOps())\n"
        "for n in range(150):\n"
        "    lines = [f'{sys.argv[2]} {n} {part} {\"x\" * 40}\\n'.encode() for part in range(3)]\n"
        "    assert file.append(lines, folder=fd).error is None\n"
    )
    command = [sys.executable, "-c", script, str(tmp_path)]
    writers = [subprocess.Popen([*command, str(n)]) for n in range(4)]
    assert [writer.wait(timeout=60) for writer in writers] == [0, 0, 0, 0]
    found = [
        line for path in tmp_path.iterdir() for line in path.read_text(encoding="ascii").split("\n")
    ]
    expected = [
        f"{w} {n} {part} {'x' * 40}" for w in range(4) for n in range(150) for part in "012"
    ]
    assert sorted(filter(None, found)) == sorted(expected)
    # How often depends on the scheduler: whoever is overtaken writes on without rotating.
    assert (tmp_path / "log.2").exists()
