"""Private files: what is refused, what is tightened, how a failure is named."""

import errno
import os
from pathlib import Path

import pytest

from a2a_trio._disk import APPEND, READ, FileOps, Folder, Problem, open_private, problem_of


def open_descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def test_folders_are_created_private(tmp_path: Path) -> None:
    """0700, also where a folder of the name was open to others before."""
    path = tmp_path / "deep" / "ours"
    with Folder(path, FileOps(), ours=True).opened():
        assert path.stat().st_mode & 0o777 == 0o700
        assert path.parent.stat().st_mode & 0o777 == 0o700
    path.chmod(0o755)
    with Folder(path, FileOps(), ours=True).opened():
        assert path.stat().st_mode & 0o777 == 0o700


def test_the_home_folder_keeps_its_mode_and_may_be_a_link(tmp_path: Path) -> None:
    """The operator chose it, perhaps together with another program."""
    (tmp_path / "real").mkdir(mode=0o755)
    (tmp_path / "link").symlink_to("real")
    with Folder(tmp_path / "link", FileOps(), ours=False).opened() as fd:
        assert os.fstat(fd).st_mode & 0o777 == 0o755


def test_a_linked_folder_of_ours_is_refused(tmp_path: Path) -> None:
    """Nobody can point our own folder somewhere else."""
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    with (
        pytest.raises(OSError, match=r".") as caught,
        Folder(tmp_path / "link", FileOps(), ours=True).opened(),
    ):
        pass
    assert problem_of(caught.value) == Problem.UNSAFE


def test_a_folder_is_not_created_for_reading(tmp_path: Path) -> None:
    """Looking for what is not there leaves no trace."""
    folder = Folder(tmp_path / "none", FileOps(), ours=True)
    with pytest.raises(FileNotFoundError), folder.opened(create=False):
        pass
    assert not (tmp_path / "none").exists()


@pytest.mark.parametrize("owner", [0, 4_242])
def test_folders_of_other_users_are_refused(
    tmp_path: Path, owner: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Root's home folder is taken (a volume in a container), anybody else's is not."""

    class Foreign(FileOps):
        def owner(self, fd: int) -> int:
            return owner if fd >= 0 else -1

    monkeypatch.setattr(os, "geteuid", lambda: 1_000)
    with (
        pytest.raises(PermissionError),
        Folder(tmp_path / "ours", Foreign(), ours=True).opened(),
    ):
        pass
    home = Folder(tmp_path, Foreign(), ours=False)
    if owner == 0:
        with home.opened() as fd:
            assert fd >= 0
    else:
        with pytest.raises(PermissionError), home.opened():
            pass


@pytest.mark.parametrize("flags", [READ, APPEND])
@pytest.mark.parametrize("kind", ["link", "fifo", "folder"])
def test_only_regular_files_are_opened(tmp_path: Path, kind: str, flags: int) -> None:
    """A link is not followed, a FIFO is not waited for, and no descriptor is left open."""
    if kind == "link":
        (tmp_path / "target").write_text("precious", encoding="ascii")
        (tmp_path / "log").symlink_to("target")
    elif kind == "fifo":
        os.mkfifo(tmp_path / "log")
    else:
        (tmp_path / "log").mkdir()
    folder = os.open(tmp_path, os.O_RDONLY)
    before = open_descriptors()
    with pytest.raises(OSError, match=r"."):
        open_private(FileOps(), "log", flags, folder=folder)
    assert open_descriptors() == before
    os.close(folder)
    if kind == "link":
        assert (tmp_path / "target").read_text(encoding="ascii") == "precious"


def test_a_file_of_another_user_is_refused(tmp_path: Path) -> None:
    """Whoever got there first does not get to read along."""

    class Foreign(FileOps):
        def owner(self, fd: int) -> int:
            return super().owner(fd) + 1

    (tmp_path / "log").touch()
    folder = os.open(tmp_path, os.O_RDONLY)
    with pytest.raises(PermissionError):
        open_private(Foreign(), "log", APPEND, folder=folder)
    os.close(folder)


def test_a_file_that_others_may_read_is_closed_to_them(tmp_path: Path) -> None:
    """An older program may have left it 0644."""
    (tmp_path / "log").touch(mode=0o644)
    folder = os.open(tmp_path, os.O_RDONLY)
    os.close(open_private(FileOps(), "log", APPEND, folder=folder))
    os.close(folder)
    assert (tmp_path / "log").stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize(
    ("number", "problem"),
    [
        (errno.ENOSPC, "disk full"),
        (errno.EDQUOT, "disk full"),
        (errno.EACCES, "permission denied"),
        (errno.EROFS, "permission denied"),
        (errno.ELOOP, "not a private file"),
        (errno.EIO, "write failed"),
    ],
)
def test_each_failure_has_a_fixed_name(number: int, problem: str) -> None:
    """No path and no text of the operating system goes out."""
    assert problem_of(OSError(number, "secret/path")) == problem
