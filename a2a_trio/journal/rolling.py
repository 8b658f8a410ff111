"""A file of lines that several processes append to and that is rotated by size.

Theory of operation. Every append opens the file anew, so nobody keeps writing to a file that
another process has renamed. The lines of one append go out in one ``write`` with O_APPEND, which
the kernel does not interleave with another process's. Only rotation needs a lock, and it is never
waited for: whoever gets the lock of the current file renames it, everybody else appends meanwhile,
to the old or the new file. So the size limit may be passed by a batch; a line is never lost.

A torn last line (full disk, power cut) is closed with a line feed before the next append, so it
spoils itself only. Readers skip what does not parse.

``fsync`` is called when a file is rotated away and when the journal closes, not after each batch:
lines survive the death of the process, and the last seconds may not survive that of the machine.
"""

import os
from typing import Final, final

import attrs

from a2a_trio._disk import APPEND, READ, FileOps, open_private

# Another process rotated between our open and our lock; it cannot go on doing so.
_ROTATE_TRIES: Final = 3


@final
@attrs.frozen
class Appended:
    """What became of an append."""

    lines: int
    """How many of the lines, from the first one, are in the file."""
    error: OSError | None = None
    """Why the rest is not."""


@final
@attrs.frozen
class RollingFile:
    """``name``, with ``keep`` older files ``name.1`` (the newest) to ``name.<keep>``."""

    name: str
    max_bytes: int
    keep: int
    ops: FileOps

    def append(self, lines: list[bytes], *, folder: int) -> Appended:
        """Append whole lines, each ending in a line feed; rotate first if they do not fit."""
        data = b"".join(lines)
        try:
            fd = self._open_for(len(data), folder)
        except OSError as error:
            return Appended(0, error)
        try:
            healing = b"\n" if self._is_torn(fd) else b""
            return self._write(fd, healing, data)
        except OSError as error:
            return Appended(0, error)
        finally:
            os.close(fd)

    def sync(self, *, folder: int) -> None:
        """Wait until the current file is on the disk.

        Raises:
            OSError: the disk failed, or the file cannot be opened.
        """
        fd = self._open(folder)
        try:
            self.ops.sync(fd)
        finally:
            os.close(fd)

    def tail(self, limit: int, *, folder: int) -> bytes:
        """Return the last whole lines, at most ``limit`` bytes of them, rotated files included.

        Raises:
            OSError: a file is there but cannot be read safely.
        """
        chunks: list[bytes] = []
        for name in (self.name, *(f"{self.name}.{n}" for n in range(1, self.keep + 1))):
            try:
                fd = open_private(self.ops, name, READ, folder=folder)
            except FileNotFoundError:
                continue
            try:
                size = os.fstat(fd).st_size
                chunks.append(_read_tail(fd, size, limit))
            finally:
                os.close(fd)
            limit -= size
            if limit <= 0:
                break
        return b"".join(reversed(chunks))

    def _open(self, folder: int) -> int:
        return open_private(self.ops, self.name, APPEND, folder=folder)

    def _open_for(self, incoming: int, folder: int) -> int:
        """Open the current file, rotated if ``incoming`` bytes would pass the limit."""
        for _ in range(_ROTATE_TRIES):
            fd = self._open(folder)
            try:
                size = os.fstat(fd).st_size
                if size == 0 or size + incoming <= self.max_bytes or not self._rotate(fd, folder):
                    return fd
            except BaseException:
                os.close(fd)
                raise
            os.close(fd)
        return self._open(folder)

    def _rotate(self, fd: int, folder: int) -> bool:
        """Rename the current file away; False: another process is doing it, append as it is."""
        if not self.ops.lock(fd):
            return False
        if not self._is_current(fd, folder):
            return True
        self._remove_surplus(folder)
        if self.keep == 0:
            self.ops.remove(self.name, folder=folder)
            return True
        for n in range(self.keep - 1, 0, -1):
            try:
                self.ops.rename(f"{self.name}.{n}", f"{self.name}.{n + 1}", folder=folder)
            except FileNotFoundError:
                continue
        self.ops.rename(self.name, f"{self.name}.1", folder=folder)
        # Only now: until the rename everybody else goes on filling this file.
        self.ops.sync(fd)
        return True

    def _is_current(self, fd: int, folder: int) -> bool:
        try:
            there = os.stat(self.name, dir_fd=folder, follow_symlinks=False)
        except FileNotFoundError:
            return False
        return os.path.samestat(there, os.fstat(fd))

    def _remove_surplus(self, folder: int) -> None:
        """Remove what an earlier, larger ``keep`` left behind."""
        n = self.keep + 1
        while True:
            try:
                self.ops.remove(f"{self.name}.{n}", folder=folder)
            except FileNotFoundError:
                return
            n += 1

    def _is_torn(self, fd: int) -> bool:
        size = os.fstat(fd).st_size
        return size > 0 and os.pread(fd, 1, size - 1) != b"\n"

    def _write(self, fd: int, healing: bytes, data: bytes) -> Appended:
        whole, written = healing + data, 0
        try:
            while written < len(whole):
                written += self.ops.write(fd, whole[written:])
        except OSError as error:
            # A line that lacks only its line feed counts: the next append closes it.
            return Appended(max(0, whole[: written + 1].count(b"\n") - len(healing)), error)
        return Appended(data.count(b"\n"))


def _read_tail(fd: int, size: int, limit: int) -> bytes:
    """Return at most the last ``limit`` of ``size`` bytes, without a first line that was cut."""
    start = max(0, size - limit)
    # One byte more tells whether the cut fell between two lines.
    chunk = os.pread(fd, size - start + 1, start - 1) if start else os.pread(fd, size, 0)
    if start:
        _, _, chunk = chunk.partition(b"\n")
    # A torn end is not glued to the first line of the next file.
    return chunk + b"\n" if chunk and not chunk.endswith(b"\n") else chunk
