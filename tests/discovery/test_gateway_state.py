"""The token of a gateway, kept over restarts."""

import json
import stat
from pathlib import Path

import pytest

from a2a_trio._disk import FileOps
from a2a_trio.discovery.gateway_state import FOLDER, TokenFile


def files_below(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file()]


async def test_token_is_kept_privately(tmp_path: Path) -> None:
    """For one name at one gateway."""
    tokens = TokenFile(tmp_path, "lab")
    assert await tokens.load("me") == ""
    await tokens.save("me", "agw_1")
    await tokens.save("me", "agw_2")
    await tokens.save("other", "agw_3")
    assert await TokenFile(tmp_path, "lab").load("me") == "agw_2"
    assert await TokenFile(tmp_path, "work").load("me") == ""
    path = tmp_path / FOLDER / "lab" / "me.json"
    assert json.loads(path.read_text()) == {"name": "me", "callerToken": "agw_2"}
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    await tokens.forget("me")
    await tokens.forget("me")
    assert await tokens.load("me") == ""
    assert await tokens.load("other") == "agw_3"


@pytest.mark.parametrize(
    "content",
    [
        b"", b"{", b"[]", b'"x"', b"\xff", b"[" * 5_000,
        b'{"name": "somebody else", "callerToken": "agw_1"}',
        b'{"name": "me"}',
        b'{"name": "me", "callerToken": 7}',
        b'{"name": "me", "callerToken": "a\\r\\nX: y"}',
        b'{"name": "me", "callerToken": "' + b"x" * 20_000 + b'"}',
    ],
)  # fmt: skip
async def test_file_that_is_not_ours_is_ignored(tmp_path: Path, content: bytes) -> None:
    """The peer registers anew, and then the file is."""
    folder = tmp_path / FOLDER / "lab"
    folder.mkdir(parents=True)
    (folder / "me.json").write_bytes(content)
    tokens = TokenFile(tmp_path, "lab")
    assert await tokens.load("me") == ""
    await tokens.save("me", "agw_new")
    assert await tokens.load("me") == "agw_new"


@pytest.mark.parametrize("name", ["../../escape", "a/b", "..", ".", "", "é"])
async def test_names_do_not_lead_out_of_the_folder(tmp_path: Path, name: str) -> None:
    """Names and keys come from settings, but a path is not what they are for."""
    home = tmp_path / "home"
    tokens = TokenFile(home, name)
    await tokens.save(name, "agw_1")
    assert await tokens.load(name) == "agw_1"
    (written,) = files_below(tmp_path)
    assert written.parents[2] == home


async def test_link_is_not_followed(tmp_path: Path) -> None:
    """Neither for reading nor for writing."""
    folder = tmp_path / FOLDER / "lab"
    folder.mkdir(parents=True)
    target = tmp_path / "target"
    target.write_text('{"name": "me", "callerToken": "agw_1"}')
    (folder / "me.json").symlink_to(target)
    tokens = TokenFile(tmp_path, "lab")
    assert await tokens.load("me") == ""
    await tokens.save("me", "agw_2")
    assert "agw_1" in target.read_text()


async def test_without_a_folder_nothing_is_kept() -> None:
    """The next start registers anew."""
    tokens = TokenFile(None, "lab")
    await tokens.save("me", "agw_1")
    assert await tokens.load("me") == ""
    await tokens.forget("me")


async def test_full_disk_is_told(tmp_path: Path) -> None:
    """By an error of the operating system; the old token stays."""

    class Full(FileOps):
        full = False

        def write(self, fd: int, data: bytes) -> int:
            if self.full:
                raise OSError(28, "No space left on device")
            return super().write(fd, data)

    ops = Full()
    tokens = TokenFile(tmp_path, "lab", ops=ops)
    await tokens.save("me", "agw_1")
    ops.full = True
    with pytest.raises(OSError, match="space"):
        await tokens.save("me", "agw_2")
    assert await tokens.load("me") == "agw_1"
