"""Private files in private folders: who may own them, how they are opened, why it failed.

Everything here runs in a worker thread. Files are 0600 and folders 0700. A name that turns out
to be a symlink, a device, or somebody else's file is refused rather than followed: the folder may
be shared with other programs of the same user, but never with another user's plans.
"""

import errno
import fcntl
import os
import stat
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from enum import StrEnum
from pathlib import Path
from typing import Final, final

import attrs

FILE_MODE: Final = 0o600
FOLDER_MODE: Final = 0o700
_SAFE_FLAGS: Final = os.O_NOFOLLOW | os.O_CLOEXEC
# O_NONBLOCK: a FIFO under our name must be refused, not waited for.
READ: Final = os.O_RDONLY | os.O_NONBLOCK | _SAFE_FLAGS
_CREATE: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | _SAFE_FLAGS
APPEND: Final = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_NONBLOCK | _SAFE_FLAGS


class Problem(StrEnum):
    """Why a private file cannot be written; a fixed text, safe to show in ``/ready`` and metrics."""

    DISK_FULL = "disk full"
    PERMISSION = "permission denied"
    UNSAFE = "not a private file"
    FAILED = "write failed"


_PROBLEM_OF: Final[Mapping[int, Problem]] = {
    errno.ENOSPC: Problem.DISK_FULL,
    errno.EDQUOT: Problem.DISK_FULL,
    errno.EACCES: Problem.PERMISSION,
    errno.EPERM: Problem.PERMISSION,
    errno.EROFS: Problem.PERMISSION,
    errno.ELOOP: Problem.UNSAFE,
    errno.ENOTDIR: Problem.UNSAFE,
    # Opening a FIFO or a socket without a reader behind it.
    errno.ENXIO: Problem.UNSAFE,
}


def problem_of(error: OSError) -> Problem:
    """Return the fixed reason of a failed operation."""
    return _PROBLEM_OF.get(error.errno or 0, Problem.FAILED)


class FileOps:
    """The operating system's file operations that may fail.

    A subclass that fails on purpose stands in for a full disk or a foreign file in tests.
    """

    def open(self, name: str, flags: int, *, folder: int) -> int:
        """Open a file below an open folder."""
        return os.open(name, flags, FILE_MODE, dir_fd=folder)

    def open_folder(self, path: Path, flags: int) -> int:
        """Open a folder."""
        return os.open(path, flags)

    def make_folder(self, path: Path) -> None:
        """Create a folder and its missing parents, all of them private."""
        if not path.parent.is_dir():
            self.make_folder(path.parent)
        path.mkdir(mode=FOLDER_MODE, exist_ok=True)

    def owner(self, fd: int) -> int:
        """Return the user id that owns an open file or folder."""
        return os.fstat(fd).st_uid

    def write(self, fd: int, data: bytes) -> int:
        """Write once; return how many bytes were taken."""
        return os.write(fd, data)

    def sync(self, fd: int) -> None:
        """Wait until the data is on the disk."""
        os.fsync(fd)

    def rename(self, name: str, to: str, *, folder: int) -> None:
        """Rename within one folder, replacing what is there."""
        os.replace(name, to, src_dir_fd=folder, dst_dir_fd=folder)

    def remove(self, name: str, *, folder: int) -> None:
        """Remove a file below an open folder."""
        os.unlink(name, dir_fd=folder)

    def lock(self, fd: int) -> bool:
        """Take the file's exclusive lock unless another process has it; closing releases it."""
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True


@final
@attrs.frozen
class Folder:
    """A folder that files are kept in."""

    path: Path
    ops: FileOps
    ours: bool
    """True: no other program uses it, so a symlink is refused and its mode is tightened.
    False: the home folder, which the operator chose and may have linked or shared."""

    @contextmanager
    def opened(self, *, create: bool = True) -> Iterator[int]:
        """Give a descriptor of the folder.

        Raises:
            OSError: it cannot be opened, or is not ours.
        """
        if create:
            self.ops.make_folder(self.path)
        flags = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC | (os.O_NOFOLLOW if self.ours else 0)
        fd = self.ops.open_folder(self.path, flags)
        try:
            self._check(fd)
            yield fd
        finally:
            os.close(fd)

    def _check(self, fd: int) -> None:
        owner, me = self.ops.owner(fd), os.geteuid()
        # A volume in a container often belongs to root and is writable for the group only.
        if owner != me and (self.ours or owner != 0):
            raise OSError(errno.EPERM, "the folder belongs to another user")
        if self.ours and stat.S_IMODE(os.fstat(fd).st_mode) != FOLDER_MODE:
            os.fchmod(fd, FOLDER_MODE)


def open_private(ops: FileOps, name: str, flags: int, *, folder: int) -> int:
    """Open a regular file of ours; an older one that others may read is closed to them.

    Raises:
        OSError: it cannot be opened, is no regular file, or belongs to another user.
    """
    fd = ops.open(name, flags, folder=folder)
    try:
        _claim(ops, fd)
    except BaseException:
        os.close(fd)
        raise
    return fd


def part_of(name: str) -> str:
    """Return the name of what ``replace_private`` leaves behind when it is cut off."""
    return f".{name}.part"


def replace_private(
    ops: FileOps, name: str, content: bytes, *, folder: int, sync: bool = False
) -> None:
    """Write a file of ours whole: beside the old one, then in its place, so nobody reads half.

    Args:
        ops: the file operations.
        name: the file, below an open folder.
        content: what is in it afterwards.
        folder: the folder.
        sync: wait until it is on the disk.

    Raises:
        OSError: it cannot be written; the old file is as it was.
    """
    part = part_of(name)
    with suppress(FileNotFoundError):
        ops.remove(part, folder=folder)
    fd = ops.open(part, _CREATE, folder=folder)
    try:
        rest = memoryview(content)
        while rest:
            rest = rest[ops.write(fd, bytes(rest)) :]
        if sync:
            ops.sync(fd)
    finally:
        os.close(fd)
    ops.rename(part, name, folder=folder)


def _claim(ops: FileOps, fd: int) -> None:
    mode = os.fstat(fd).st_mode
    if not stat.S_ISREG(mode):
        raise OSError(errno.ELOOP, "not a regular file")
    if ops.owner(fd) != os.geteuid():
        raise OSError(errno.EPERM, "the file belongs to another user")
    if stat.S_IMODE(mode) != FILE_MODE:
        os.fchmod(fd, FILE_MODE)
