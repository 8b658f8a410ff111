"""One file per conversation: what it is called, how many there are, how they are read back."""

import hashlib
import os
import re
from collections import defaultdict
from typing import Final, final

import attrs

from a2a_trio._disk import Folder
from a2a_trio.journal.lines import ConversationLine, conversation_line, parse_conversation
from a2a_trio.journal.rolling import RollingFile

MAX_FILES: Final = 1_000
"""Conversations kept; past that the ones not written to for the longest time are removed."""
MAX_FILE_BYTES: Final = 1_048_576
"""Size at which a conversation's file is rotated; one older file is kept beside it."""

_SUFFIX: Final = ".jsonl"
_OLDER: Final = 1
# Lower case only: on some file systems two names that differ in case are one file.
_PLAIN: Final = re.compile(r"[a-z0-9_-]{1,100}")
_NOT_PLAIN: Final = re.compile(r"[^a-z0-9_-]")
_PREFIX: Final = 32


def file_name(context_id: str) -> str:
    """Return the file name of a conversation; two ids never share one.

    Peers choose context ids. One that is a harmless name is used as it is, so the files can be
    found by hand and shared with pi-a2a. Any other is hashed; the dot before
    the hash cannot occur in a harmless name, so the two kinds do not meet.
    """
    if _PLAIN.fullmatch(context_id):
        return context_id + _SUFFIX
    digest = hashlib.sha256(context_id.encode("utf-8", "surrogatepass")).hexdigest()
    readable = _NOT_PLAIN.sub("", context_id.lower()[:_PREFIX]) or "ctx"
    return f"{readable}.{digest}{_SUFFIX}"


@final
@attrs.frozen
class Conversations:
    """The conversations in one folder. Runs in a worker thread."""

    folder: Folder
    max_files: int = MAX_FILES
    max_bytes: int = MAX_FILE_BYTES

    def append(self, lines: list[ConversationLine]) -> int:
        """Append messages, each to its conversation; return how many could not be written."""
        by_file: defaultdict[str, list[bytes]] = defaultdict(list)
        for line in lines:
            by_file[file_name(line.context_id)].append(conversation_line(line))
        lost = 0
        try:
            with self.folder.opened() as fd:
                for name, texts in by_file.items():
                    is_new = not _exists(name, fd)
                    lost += len(texts) - self._file(name).append(texts, folder=fd).lines
                    if is_new:
                        self._prune(fd)
        except OSError:
            return len(lines)
        return lost

    def read(self, context_id: str, *, limit: int, peer: str | None) -> list[ConversationLine]:
        """Return the last ``limit`` messages, oldest first.

        Raises:
            OSError: the file is there but cannot be read, or is not ours.
        """
        name = file_name(context_id)
        try:
            with self.folder.opened(create=False) as fd:
                data = self._file(name).tail((_OLDER + 1) * self.max_bytes, folder=fd)
        except FileNotFoundError:
            return []
        found = [
            line
            for line in parse_conversation(data, context_id=context_id)
            if peer is None or line.peer == peer
        ]
        return found[max(0, len(found) - limit) :]

    def _file(self, name: str) -> RollingFile:
        return RollingFile(name, self.max_bytes, _OLDER, self.folder.ops)

    def _prune(self, fd: int) -> None:
        """Remove the conversations that were silent the longest, down to ``max_files``."""
        newest: dict[str, float] = {}
        with os.scandir(fd) as entries:
            for entry in entries:
                stem = _stem(entry.name)
                if stem and entry.is_file(follow_symlinks=False):
                    written = entry.stat(follow_symlinks=False).st_mtime
                    newest[stem] = max(newest.get(stem, written), written)
        silent = sorted(newest, key=lambda stem: newest[stem])
        for stem in silent[: max(0, len(silent) - self.max_files)]:
            for name in (stem, f"{stem}.{_OLDER}"):
                try:
                    self.folder.ops.remove(name, folder=fd)
                except FileNotFoundError:
                    continue


def _stem(name: str) -> str:
    """Return the conversation's file that a name belongs to, "" for a file that is not ours."""
    stem = name.removesuffix(f".{_OLDER}")
    return stem if stem.endswith(_SUFFIX) else ""


def _exists(name: str, folder: int) -> bool:
    try:
        os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return False
    return True
