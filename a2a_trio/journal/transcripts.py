"""One file per run: who asked, what was said on both sides, how it ended; a line as it happens.

When an agent stalls or is killed its transcript tells how far it came, so a line is on its way to
the disk before the next thing happens. Lines carry what the run said: everything is redacted here,
in the writer's thread, and large content is told by its size.
"""

import os
import re
import time
from collections import defaultdict
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Final, final

import attrs

from a2a_trio._disk import Folder, Problem, problem_of
from a2a_trio.journal.conversations import file_name
from a2a_trio.journal.lines import encode_line
from a2a_trio.journal.rolling import RollingFile
from a2a_trio.rules.audit import preview
from a2a_trio.rules.folding import weight
from a2a_trio.wire.codec import dumps
from a2a_trio.wire.model import UNSET, JsonValue, Part, timestamp_text

MAX_TEXT: Final = 32_768
"""Characters kept of one text of a transcript."""
MAX_PARTS: Final = 100
"""Parts kept of one message or chunk."""
MAX_FILE_BYTES: Final = 67_108_864
"""Size past which a transcript takes nothing but its last line, which tells how many there were."""
MAX_FILES: Final = 20_000
"""Transcripts kept while old ones are deleted at all; past that the oldest go first."""
SWEEP_EVERY: Final = 500
"""New transcripts after which old ones are looked for again; the first time is at the start."""

_DAY_SEC: Final = 86_400.0
_NAME: Final = re.compile(r"\d{4}-?\d\d-?\d\dT[^/]{1,200}\.jsonl")
# Rotation would cut a run in two; the size is bounded here instead.
_NEVER: Final = 1 << 62
_NO_FACTS: Final[Mapping[str, str | float | bool]] = {}


def transcript_name(at: datetime, task_id: str) -> str:
    """Return the file name of a run that began then; the id cannot lead out of the folder."""
    moment = timestamp_text(at).replace(":", "-").replace(".", "-")
    return f"{moment}_{file_name(task_id)}"


@final
@attrs.frozen(kw_only=True)
class TranscriptLine:
    """One thing that happened in a run."""

    file: str
    """``transcript_name`` of the run."""
    at: datetime
    kind: str
    facts: Mapping[str, str | float | bool] = _NO_FACTS
    """What is known in few words; ids and names, already fit to be kept."""
    parts: tuple[Part, ...] = ()
    """What was said, neither redacted nor cut yet."""
    last: bool = False
    """The run is over: kept even if the file is full."""

    @property
    def chars(self) -> int:
        """Roughly how much memory the line holds while it waits to be written."""
        return weight(self.parts)


@final
@attrs.define(eq=False)
class Transcripts:
    """The transcripts in one folder. Called by one thread at a time."""

    folder: Folder
    redact: Callable[[str], str]
    redact_value: Callable[[JsonValue], JsonValue]
    keep_days: float
    """Age at which a file is deleted; 0 keeps all."""
    now: Callable[[], float] = time.time
    """Seconds since 1970, to be compared with the times of files."""
    _since_sweep: int = attrs.field(default=0, init=False)

    def append(self, lines: list[TranscriptLine]) -> int:
        """Append lines, each to its run's file; return how many could not be written."""
        by_file: defaultdict[str, list[TranscriptLine]] = defaultdict(list)
        for line in lines:
            by_file[line.file].append(line)
        try:
            with self.folder.opened() as fd:
                lost = sum(self._append(name, found, fd) for name, found in by_file.items())
        except OSError:
            return len(lines)
        if self._since_sweep >= SWEEP_EVERY:
            self.sweep()
        return lost

    def sweep(self) -> Problem | None:
        """Delete what is too old; return why it could not be looked for, if so.

        Only files whose names are those of transcripts are touched, and no symlink.
        """
        self._since_sweep = 0
        if not self.keep_days:
            return None
        try:
            with self.folder.opened(create=False) as fd:
                for name in self._surplus(fd):
                    self.folder.ops.remove(name, folder=fd)
        except FileNotFoundError:
            # No folder yet, or another process of ours was faster.
            return None
        except OSError as error:
            return problem_of(error)
        return None

    def _surplus(self, fd: int) -> list[str]:
        written: dict[str, float] = {}
        with os.scandir(fd) as entries:
            for entry in entries:
                if _NAME.fullmatch(entry.name) and entry.is_file(follow_symlinks=False):
                    written[entry.name] = entry.stat(follow_symlinks=False).st_mtime
        oldest = self.now() - self.keep_days * _DAY_SEC
        newest_first = sorted(written, key=lambda name: written[name], reverse=True)
        return [
            name
            for place, name in enumerate(newest_first)
            if place >= MAX_FILES or written[name] < oldest
        ]

    def _append(self, name: str, lines: list[TranscriptLine], fd: int) -> int:
        size = _size(name, fd)
        if size is None:
            self._since_sweep += 1
        kept: list[bytes] = []
        room = MAX_FILE_BYTES - (size or 0)
        for line in lines:
            data = self._encoded(line)
            if len(data) <= room or line.last:
                kept.append(data)
                room -= len(data)
        if not kept:
            return len(lines)
        done = RollingFile(name, _NEVER, 0, self.folder.ops).append(kept, folder=fd)
        return len(lines) - done.lines

    def _encoded(self, line: TranscriptLine) -> bytes:
        members: dict[str, object] = {
            "ts": timestamp_text(line.at),
            "type": line.kind,
            **line.facts,
        }
        if line.parts:
            members["parts"] = [self._part(part) for part in line.parts[:MAX_PARTS]]
        if len(line.parts) > MAX_PARTS:
            members["partsLeftOut"] = len(line.parts) - MAX_PARTS
        return encode_line(members)

    def _part(self, part: Part) -> dict[str, object]:
        """Return a part as it is kept: its text, or what kind of content it is and how large."""
        told: dict[str, object] = {
            "text": None if part.text is None else self._text(part.text),
            "url": None if part.url is None else self._text(part.url),
            "bytes": None if part.raw is None else len(part.raw),
            "filename": self._text(part.filename) or None,
            "mediaType": self._text(part.media_type) or None,
        }
        if part.data is not UNSET:
            data = dumps(self.redact_value(part.data))
            told["data"] = self._text(data.decode("utf-8"))
        return {name: value for name, value in told.items() if value is not None}

    def _text(self, text: str) -> str:
        return preview(text, self.redact, MAX_TEXT)


def _size(name: str, folder: int) -> int | None:
    """Return the size of a file, None if there is none."""
    try:
        return os.stat(name, dir_fd=folder, follow_symlinks=False).st_size
    except FileNotFoundError:
        return None
