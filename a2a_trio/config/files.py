"""The only input and output of the configuration: find, read and write its files.

A settings file holds tokens, so it is written with mode 0600 in a folder of mode 0700, in one step,
and only over a file that could be read. It is refused when another user could have written it, and
doubted when another user can read it. A file in the working directory is not trusted at all: a
symbolic link is not followed there, because it could make error texts tell of other files.
"""

import errno
import fcntl
import os
import stat
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final, final

import attrs
import platformdirs

from a2a_trio.config.jsonc import JsoncError, Node, parse
from a2a_trio.errors import SettingsError

__all__ = [
    "APP_NAME",
    "MAX_BYTES",
    "FileText",
    "permission_problem",
    "project_files",
    "read_root",
    "read_secret_file",
    "read_text",
    "rewrite",
    "state_home",
    "user_file",
]

APP_NAME: Final = "a2a-trio"
SETTINGS_NAME: Final = "settings.json"
MAX_BYTES: Final = 1_048_576
"""Largest settings file; ours have a few kilobytes."""
MAX_SECRET_BYTES: Final = 16_384

_PROJECT_FOLDERS: Final = (".pi", ".a2a")
"""Later ones count more."""
_UTF16_MARKS: Final = (b"\xff\xfe", b"\xfe\xff")
_OTHERS_READ: Final = stat.S_IRGRP | stat.S_IROTH
_HOLD_LINKS: Final = (errno.ELOOP, errno.EMLINK)


@final
@attrs.frozen
class FileText:
    """What a file says and what is doubtful about it."""

    text: str
    readable_by_others: bool = False
    warnings: tuple[str, ...] = ()


# --- where the files are --------------------------------------------------------------------


def state_home(environ: Mapping[str, str]) -> Path:
    """Return the state directory: ``A2A_HOME``, else the platform's for ``a2a-trio``.

    Raises:
        SettingsError: ``A2A_HOME`` is relative, so it would change with the working directory.
    """
    given = environ.get("A2A_HOME", "").strip()
    if not given:
        return platformdirs.user_state_path(APP_NAME, appauthor=False)
    if given == "~" or given.startswith("~/"):
        given = environ.get("HOME", str(Path.home())) + given[1:]
    home = Path(given)
    if not home.is_absolute():
        raise SettingsError("environment: A2A_HOME must be an absolute path or begin with ~/")
    return home


def user_file(home: Path) -> Path:
    """Return the operator's settings file in a state directory."""
    return home / SETTINGS_NAME


def project_files(project: Path) -> tuple[Path, ...]:
    """Return where a working directory may have settings; later ones count more."""
    return tuple(project / folder / SETTINGS_NAME for folder in _PROJECT_FOLDERS)


# --- reading --------------------------------------------------------------------------------


def read_text(path: Path, *, project: bool = False, limit: int = MAX_BYTES) -> FileText | None:
    """Read a small text file, or return None if there is none.

    Args:
        path: the file.
        project: it lies in the working directory, so links are not followed and what is wrong about
            the file itself makes it ignored with a warning.
        limit: largest size in bytes.

    Raises:
        SettingsError: it cannot be read, is no regular file, too large, not UTF-8, or may have been
            written by another user.
    """
    if project and path.parent.is_symlink():
        return _ignored(path, "its folder is a symbolic link", project=project)
    try:
        descriptor = os.open(path, _open_flags(project=project))
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        linked = project and error.errno in _HOLD_LINKS
        reason = "it is a symbolic link" if linked else _reason(error)
        return _ignored(path, reason, project=project)
    try:
        found = os.fstat(descriptor)
        problem = permission_problem(found, os.geteuid())
        if problem is None and found.st_size > limit:
            problem = f"it is larger than {limit} bytes"
        data = b"" if problem is not None else _read_all(descriptor, limit)
    except OSError as error:
        problem = _reason(error)
    finally:
        os.close(descriptor)
    if problem is not None:
        return _ignored(path, problem, project=project)
    others = bool(found.st_mode & _OTHERS_READ)
    return FileText(_decode(path, data), readable_by_others=others)


def _read_all(descriptor: int, limit: int) -> bytes:
    """Read to the end, or to the limit of a file that is growing."""
    data = b""
    while len(data) < limit:
        piece = os.read(descriptor, limit - len(data))
        if not piece:
            break
        data += piece
    return data


def _open_flags(*, project: bool) -> int:
    # NONBLOCK: opening a FIFO must not wait for its writer.
    flags = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK
    return flags | os.O_NOFOLLOW if project else flags


def _ignored(path: Path, reason: str, *, project: bool) -> FileText:
    if not project:
        raise SettingsError(f"{path}: cannot be used: {reason}")
    return FileText("{}", warnings=(f"{path}: ignored: {reason}",))


def permission_problem(found: os.stat_result, user: int) -> str | None:
    """Return why a file is not to be trusted, or None.

    Args:
        found: what the file system says of it.
        user: the id of the user this process runs as.
    """
    if not stat.S_ISREG(found.st_mode):
        return "it is not a regular file"
    if found.st_uid not in {user, 0} and user != 0:
        return f"it belongs to another user (id {found.st_uid})"
    if found.st_mode & stat.S_IWOTH:
        return "every user may write it; use chmod 600"
    return None


def _reason(error: OSError) -> str:
    return (error.strerror or "it cannot be read").lower()


def _decode(path: Path, data: bytes) -> str:
    if data.startswith(_UTF16_MARKS):
        raise SettingsError(f"{path}: is UTF-16; it must be UTF-8")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise SettingsError(f"{path}: is not UTF-8 (byte {error.start})") from None


def read_secret_file(path: Path) -> str:
    """Read a secret from a file of its own; white space around it is not part of it.

    Raises:
        ValueError: it cannot be read, or is empty.
    """
    try:
        found = read_text(path, limit=MAX_SECRET_BYTES)
    except SettingsError as error:
        raise ValueError(str(error)) from None
    if found is None:
        raise ValueError(f"there is no file {path}")
    secret = found.text.strip()
    if not secret:
        raise ValueError(f"the file {path} is empty")
    return secret


def read_root(path: Path, text: str) -> tuple[Node | None, tuple[str, ...]]:
    """Read the text of a settings file; return its root object and warnings, None if it is empty.

    Raises:
        SettingsError: it is no JSON with comments, or no object.
    """
    if not text.strip():
        return None, (f"{path}: is empty",)
    try:
        node, twice = parse(text)
    except JsoncError as error:
        raise SettingsError(f"{path}: is not valid JSON: {error}") from None
    if not isinstance(node.value, dict):
        raise SettingsError(f"{path}: must hold a JSON object")
    warnings = [f'{path}: "{name:.64}" is given twice; the last one counts' for name in twice]
    return node, tuple(warnings)


# --- writing --------------------------------------------------------------------------------


def rewrite(path: Path, change: Callable[[str], str]) -> None:
    """Change a settings file in one step; nothing is written if ``change`` raises.

    A file that does not exist is made. A symbolic link stays and its target is changed. Two
    processes that do this at the same time take turns.

    Raises:
        SettingsError: the file cannot be read or written; it is as it was.
    """
    try:
        # Fails for a relative path if the working directory was deleted.
        target = Path(os.path.realpath(path))
        _make_folder(target.parent)
        with _locked(target.parent):
            found = read_text(target)
            before = "{}\n" if found is None or not found.text.strip() else found.text
            after = change(before)
            if found is None or after != found.text:
                _replace(target, after)
    except OSError as error:
        raise SettingsError(f"{path}: cannot be written: {_reason(error)}") from None


def _make_folder(folder: Path) -> None:
    if not folder.is_dir():
        _make_folder(folder.parent)
        # A folder that another process makes at the same time is as good.
        folder.mkdir(mode=0o700, exist_ok=True)


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    descriptor = os.open(folder, os.O_RDONLY | os.O_CLOEXEC | os.O_DIRECTORY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _replace(target: Path, text: str) -> None:
    data = text.encode("utf-8", "surrogatepass")
    # mkstemp makes the file with mode 0600.
    descriptor, name = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
    temporary = Path(name)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
