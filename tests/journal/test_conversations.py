"""Conversations: names that cannot collide or escape, bounds, reading back."""

import os
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from a2a_trio._disk import FileOps, Folder
from a2a_trio.journal.conversations import Conversations, file_name
from a2a_trio.journal.lines import ConversationLine

AT = datetime(2030, 1, 1, tzinfo=UTC)
any_id = st.text(st.characters(), max_size=150) | st.text("aA/.-_\0", max_size=6)


def line(context_id: str, text: str = "hi", peer: str = "") -> ConversationLine:
    return ConversationLine(at=AT, context_id=context_id, role="user", text=text, peer=peer)


def conversations(path: Path, *, max_files: int = 10, max_bytes: int = 1_000) -> Conversations:
    return Conversations(Folder(path / "talk", FileOps(), ours=True), max_files, max_bytes)


def texts(lines: Iterable[ConversationLine]) -> list[str]:
    return [found.text for found in lines]


@given(any_id, any_id)
def test_two_contexts_never_share_a_file(one: str, other: str) -> None:
    """Not even on a file system that ignores case."""
    assert (file_name(one).lower() == file_name(other).lower()) == (one == other)


@given(any_id)
def test_a_name_stays_in_its_folder(context_id: str) -> None:
    """No separators, no dot in front, never too long for the file system, ours to see."""
    name = file_name(context_id)
    assert "/" not in name
    assert "\0" not in name
    assert not name.startswith(".")
    assert name.endswith(".jsonl")
    assert len(name.encode()) < 200


@pytest.mark.parametrize(
    ("one", "other"), [("abc", "ABC"), ("a/b", "ab"), ("", "ctx"), (".", "..")]
)
def test_ids_that_look_alike_have_files_of_their_own(one: str, other: str) -> None:
    """What is dropped from a name is still in its hash."""
    assert file_name(one).lower() != file_name(other).lower()


def test_a_harmless_id_is_its_own_name() -> None:
    """The files can be found by hand, and by pi-a2a."""
    assert file_name("ctx-0f3a_9") == "ctx-0f3a_9.jsonl"


def test_messages_read_back_in_order_and_limited(tmp_path: Path) -> None:
    """The last N, oldest first, of that conversation only."""
    talk = conversations(tmp_path)
    assert talk.append([line("a", f"a{n}") for n in range(4)] + [line("b", "b0")]) == 0
    assert texts(talk.read("a", limit=3, peer=None)) == ["a1", "a2", "a3"]
    assert texts(talk.read("b", limit=3, peer=None)) == ["b0"]
    assert talk.read("a", limit=0, peer=None) == []
    assert talk.read("unknown", limit=3, peer=None) == []


def test_another_peer_s_messages_can_be_left_out(tmp_path: Path) -> None:
    """A peer that answers with somebody else's context id does not get into that talk."""
    talk = conversations(tmp_path)
    talk.append([line("a", "mine", "alice"), line("a", "planted", "mallory")])
    assert texts(talk.read("a", limit=9, peer="alice")) == ["mine"]
    assert texts(talk.read("a", limit=9, peer=None)) == ["mine", "planted"]


def test_reading_creates_nothing(tmp_path: Path) -> None:
    """Neither the folder nor a file."""
    assert conversations(tmp_path).read("a", limit=9, peer=None) == []
    assert list(tmp_path.iterdir()) == []


def test_a_conversation_is_bounded_and_keeps_the_newest(tmp_path: Path) -> None:
    """At most two files of the limit, and reading goes across both."""
    talk = conversations(tmp_path)
    for n in range(100):
        talk.append([line("a", f"{n:03}")])
    sizes = [path.stat().st_size for path in (tmp_path / "talk").iterdir()]
    assert len(sizes) == 2
    assert max(sizes) <= 1_000
    found = texts(talk.read("a", limit=12, peer=None))
    assert found == [f"{n:03}" for n in range(88, 100)]


def test_the_longest_silent_conversations_go(tmp_path: Path) -> None:
    """At most ``max_files`` conversations; files that are none of ours stay."""
    talk = conversations(tmp_path, max_files=3)
    talk.append([line("seed")])
    (tmp_path / "talk" / "notes.txt").touch()
    for age, name in enumerate(["d", "c", "b", "a"], start=1):
        talk.append([line(name)])
        for path in (tmp_path / "talk").iterdir():
            if path.stem in {name, "seed"}:
                os.utime(path, (age * 1_000, age * 1_000))
    talk.append([line("new")])
    left = {path.name for path in (tmp_path / "talk").iterdir()}
    assert left == {"notes.txt", "new.jsonl", "a.jsonl", "seed.jsonl"}


def test_both_files_of_a_silent_conversation_go(tmp_path: Path) -> None:
    """The rotated half does not stay behind."""
    talk = conversations(tmp_path, max_files=1, max_bytes=100)
    talk.append([line("old")])
    talk.append([line("old")])
    assert {p.name for p in (tmp_path / "talk").iterdir()} == {"old.jsonl", "old.jsonl.1"}
    for path in (tmp_path / "talk").iterdir():
        os.utime(path, (1, 1))
    talk.append([line("new")])
    assert {p.name for p in (tmp_path / "talk").iterdir()} == {"new.jsonl"}


def test_messages_that_cannot_be_written_are_counted(tmp_path: Path) -> None:
    """A planted link loses its own conversation's messages, not the others'."""
    talk = conversations(tmp_path)
    talk.append([line("good")])
    (tmp_path / "target").touch()
    (tmp_path / "talk" / "bad.jsonl").symlink_to(tmp_path / "target")
    assert talk.append([line("bad"), line("good"), line("bad")]) == 2
    assert texts(talk.read("good", limit=9, peer=None)) == ["hi", "hi"]
    assert (tmp_path / "target").read_bytes() == b""
    with pytest.raises(OSError, match=r"."):
        talk.read("bad", limit=9, peer=None)


def test_without_its_folder_everything_is_counted(tmp_path: Path) -> None:
    """A file where the folder should be."""
    (tmp_path / "talk").touch()
    assert conversations(tmp_path).append([line("a"), line("b")]) == 2
