"""Transcripts: names, what is kept of what was said, bounds in size and age."""

import json
import os
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from a2a_trio._disk import FileOps, Folder, Problem
from a2a_trio.journal import transcripts
from a2a_trio.journal.transcripts import TranscriptLine, Transcripts, transcript_name
from a2a_trio.rules.redaction import Redactor
from a2a_trio.wire.model import Part

AT = datetime(2030, 1, 1, 12, 30, 15, 250_000, tzinfo=UTC)
NOW = AT.timestamp()
DAY = 86_400.0
SECRET = "ghp_" + "a1B2" * 9
FILE = "2030-01-01T12-30-15-250Z_t.jsonl"


def line(
    *parts: Part, file: str = FILE, last: bool = False, facts: Mapping[str, str] | None = None
) -> TranscriptLine:
    return TranscriptLine(
        file=file, at=AT, kind="message", facts=facts or {}, parts=parts, last=last
    )


def folder(home: Path) -> Path:
    return home / "runs"


def kept(home: Path, *, keep_days: float = 7.0, ops: FileOps | None = None) -> Transcripts:
    redactor = Redactor()
    return Transcripts(
        folder=Folder(folder(home), ops or FileOps(), ours=True),
        redact=redactor.text,
        redact_value=redactor.value,
        keep_days=keep_days,
        now=lambda: NOW,
    )


def read(home: Path, file: str = FILE) -> list[dict[str, object]]:
    return [json.loads(text) for text in (folder(home) / file).read_text().splitlines()]


def aged(home: Path, name: str, days: float) -> Path:
    folder(home).mkdir(mode=0o700, exist_ok=True)
    path = folder(home) / name
    path.write_text("{}\n")
    os.utime(path, (NOW - days * DAY, NOW - days * DAY))
    return path


@given(st.text(st.characters(), max_size=100))
def test_a_name_begins_with_the_moment_and_stays_in_its_folder(task_id: str) -> None:
    """Sorted by name is sorted by time, whatever a task is called."""
    name = transcript_name(AT, task_id)
    assert name.startswith("2030-01-01T12-30-15-250Z_")
    assert name.endswith(".jsonl")
    assert not {"/", "\0", ":"} & set(name)
    assert transcripts._NAME.fullmatch(name), "or it would never be deleted"


def test_each_kind_of_content_is_told_and_none_of_it_shows_a_secret(tmp_path: Path) -> None:
    """Text and data are redacted, files are told by size and kind."""
    parts = (
        Part(text=f"use {SECRET}"),
        Part(raw=b"12345", filename=f"{SECRET}.bin", media_type="application/pdf"),
        Part(url=f"http://x/?token={SECRET}"),
        Part(data={"password": "hunter22", "deep": [SECRET]}),
    )
    assert kept(tmp_path).append([line(*parts, facts={"role": "user"})]) == 0

    text = (folder(tmp_path) / FILE).read_text()
    assert SECRET not in text
    assert "hunter22" not in text
    (told,) = read(tmp_path)
    assert told["ts"] == "2030-01-01T12:30:15.250Z"
    assert (told["type"], told["role"]) == ("message", "user")
    shown = told["parts"]
    assert isinstance(shown, list)
    assert shown[0]["text"].startswith("use [redacted-")
    assert (shown[1]["bytes"], shown[1]["mediaType"]) == (5, "application/pdf")
    assert set(shown[2]) == {"url"}
    assert set(shown[3]) == {"data"}


def test_long_texts_and_many_parts_are_cut(tmp_path: Path) -> None:
    """What is left out is told by number."""
    many = tuple(Part(text=str(number)) for number in range(transcripts.MAX_PARTS + 3))
    kept(tmp_path).append([line(Part(text="word " * 20_000)), line(*many)])

    long, full = read(tmp_path)
    assert isinstance(long["parts"], list)
    assert len(long["parts"][0]["text"]) == transcripts.MAX_TEXT
    assert isinstance(full["parts"], list)
    assert len(full["parts"]) == transcripts.MAX_PARTS
    assert full["partsLeftOut"] == 3


def test_a_full_file_takes_only_its_last_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And says how many did not fit."""
    monkeypatch.setattr(transcripts, "MAX_FILE_BYTES", 300)
    log = kept(tmp_path)
    assert log.append([line(Part(text="x" * 100))]) == 0
    assert log.append([line(Part(text="x" * 200)), line(last=True)]) == 1

    assert len(read(tmp_path)) == 2
    assert "parts" not in read(tmp_path)[-1]


def test_runs_have_files_of_their_own(tmp_path: Path) -> None:
    """Lines of two runs in one batch do not mix, and keep their order."""
    other = FILE.replace("_t", "_u")
    kept(tmp_path).append(
        [line(Part(text="1")), line(Part(text="a"), file=other), line(Part(text="2"))]
    )

    assert [told["parts"] for told in read(tmp_path)] == [[{"text": "1"}], [{"text": "2"}]]
    assert [told["parts"] for told in read(tmp_path, other)] == [[{"text": "a"}]]


def test_only_old_transcripts_are_deleted(tmp_path: Path) -> None:
    """Foreign files and links stay, however old they are."""
    old, young = aged(tmp_path, FILE, 8), aged(tmp_path, FILE.replace("_t", "_u"), 6)
    foreign = aged(tmp_path, "notes.jsonl", 100)
    target = aged(tmp_path, "target.txt", 100)
    link = folder(tmp_path) / FILE.replace("_t", "_link")
    link.symlink_to(target)
    os.utime(link, (NOW - 100 * DAY, NOW - 100 * DAY), follow_symlinks=False)

    assert kept(tmp_path).sweep() is None

    assert not old.exists()
    assert young.exists()
    assert foreign.exists()
    assert link.is_symlink()


def test_nothing_is_deleted_where_all_is_kept(tmp_path: Path) -> None:
    """0 days is no limit."""
    old = aged(tmp_path, FILE, 1_000)
    assert kept(tmp_path, keep_days=0).sweep() is None
    assert old.exists()


def test_the_number_of_files_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Past it the oldest go, though they are not old."""
    monkeypatch.setattr(transcripts, "MAX_FILES", 2)
    paths = [aged(tmp_path, FILE.replace("_t", f"_{n}"), n / 10) for n in range(4)]
    assert kept(tmp_path).sweep() is None
    assert [path.exists() for path in paths] == [True, True, False, False]


def test_new_transcripts_cause_a_sweep(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A peer that runs for years does not keep every transcript until it is restarted."""
    monkeypatch.setattr(transcripts, "SWEEP_EVERY", 3)
    old = aged(tmp_path, FILE.replace("_t", "_old"), 8)
    log = kept(tmp_path)
    for number in range(3):
        assert old.exists()
        log.append([line(file=FILE.replace("_t", f"_{number}"))])
    assert not old.exists()


def test_a_folder_that_is_not_there_is_no_problem_and_one_that_cannot_be_read_is(
    tmp_path: Path,
) -> None:
    """Looking creates nothing; a link in the folder's place is refused."""
    assert kept(tmp_path).sweep() is None
    assert not folder(tmp_path).exists()

    folder(tmp_path).symlink_to(tmp_path)
    assert kept(tmp_path).sweep() is Problem.UNSAFE
    assert kept(tmp_path).append([line(), line()]) == 2


def test_what_waits_is_weighed_with_everything_in_it() -> None:
    """The queue's bound counts data and links too, not texts alone."""
    for part in (Part(text="x" * 1000), Part(raw=b"x" * 1000), Part(url="x" * 1000)):
        assert line(part).chars >= 1000
    assert line(Part(data={"k": "x" * 1000})).chars >= 1000
