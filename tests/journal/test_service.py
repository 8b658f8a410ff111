"""The journal as a service: never in the way, healthy again by itself, drained at the end."""
# ruff: noqa: ARG001 - pytest-trio hands the clock of a test's arguments to trio.run

import errno
import json
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import TypeVar, TypeVarTuple

import attrs
import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from a2a_trio._disk import FileOps
from a2a_trio.journal import ConversationLine, Journal, open_journal
from a2a_trio.journal.files import MAX_PENDING
from a2a_trio.journal.service import DRAIN_SEC, MAX_BATCH, MAX_QUEUED, MAX_QUEUED_CHARS, RETRY_SEC
from a2a_trio.rules.audit import AuditEntry

AT = datetime(2030, 1, 1, tzinfo=UTC)


_T = TypeVar("_T")
_Ts = TypeVarTuple("_Ts")


@attrs.define(eq=False)
class Disk(FileOps):
    """A disk whose free room, errors and file owners a test sets."""

    room: int = 1 << 40
    """Bytes that can still be written; a write takes what fits and then fails."""
    broken: int = 0
    """errno that every open fails with, 0 for none."""
    foreign: bool = False
    """Whether every file and folder belongs to somebody else."""
    writes: list[int] = attrs.field(factory=list)
    syncs: int = 0

    def open(self, name: str, flags: int, *, folder: int) -> int:
        if self.broken:
            raise OSError(self.broken, "as the test wants it")
        return super().open(name, flags, folder=folder)

    def owner(self, fd: int) -> int:
        return super().owner(fd) + 4_242 * self.foreign

    def write(self, fd: int, data: bytes) -> int:
        if data and not self.room:
            raise OSError(errno.ENOSPC, "no room")
        taken = super().write(fd, data[: self.room])
        self.room -= taken
        self.writes.append(taken)
        return taken

    def sync(self, fd: int) -> None:
        self.syncs += 1
        super().sync(fd)


@attrs.define(eq=False)
class AtOnce:
    """Runs blocking work in the Trio thread: a virtual clock does not see worker threads."""

    hangs: bool = False
    calls: int = 0

    async def __call__(self, function: Callable[[*_Ts], _T], /, *args: *_Ts) -> _T:
        self.calls += 1
        await trio.lowlevel.checkpoint()
        if self.hangs:
            await trio.sleep_forever()
        return function(*args)


@pytest.fixture
def disk() -> Disk:
    return Disk()


@pytest.fixture
def at_once() -> AtOnce:
    return AtOnce()


def entry(n: int, *, preview: str = "") -> AuditEntry:
    return AuditEntry(
        at=AT, direction="inbound", phase="request", identity=f"peer-{n}", preview=preview
    )


def line(text: str, context_id: str = "c") -> ConversationLine:
    return ConversationLine(at=AT, context_id=context_id, role="user", text=text)


def members(home: Path) -> list[dict[str, object]]:
    """Read the audit log; a line torn by a full disk is left out."""
    text = (home / "a2a_audit.jsonl").read_text(encoding="ascii")
    return [json.loads(found) for found in text.splitlines() if found.endswith("}")]


def identities(home: Path) -> list[object]:
    return [found["identity"] for found in members(home)]


def files_below(path: Path) -> list[Path]:
    return list(path.iterdir())


async def test_entries_are_on_disk_when_the_block_ends(tmp_path: Path) -> None:
    """In order, in a real thread, in a home folder that was not there."""
    home = tmp_path / "state" / "a2a-trio"
    async with open_journal(home, max_bytes=100_000, keep=1) as journal:
        for n in range(700):
            journal.record(entry(n))
    assert identities(home) == [f"peer-{n}" for n in range(700)]
    assert home.stat().st_mode & 0o777 == 0o700
    assert (journal.healthy, journal.problem, journal.dropped) == (True, "", 0)


async def test_what_piled_up_goes_out_in_one_write(
    tmp_path: Path, disk: Disk, at_once: AtOnce, autojump_clock: trio.testing.MockClock
) -> None:
    """One thread call and one write per batch, not per entry; synced at the end only."""
    async with open_journal(
        tmp_path, max_bytes=1_000_000, keep=1, ops=disk, offload=at_once
    ) as journal:
        for n in range(MAX_BATCH + 1):
            journal.record(entry(n))
        await journal.flush()
        assert [taken for taken in disk.writes if taken] == disk.writes[-2:]
        assert disk.syncs == 0
    assert disk.syncs == 1
    assert len(identities(tmp_path)) == MAX_BATCH + 1


async def test_a_full_queue_drops_and_says_so(
    tmp_path: Path, at_once: AtOnce, autojump_clock: trio.testing.MockClock
) -> None:
    """The count is a property at once and stands in the next line that is written."""
    async with open_journal(tmp_path, max_bytes=10_000_000, keep=1, offload=at_once) as journal:
        # The writer waits already and is handed the first one.
        for n in range(MAX_QUEUED + 4):
            journal.record(entry(n))
        assert journal.dropped == 3
        await journal.flush()
    found = members(tmp_path)
    assert [member.get("dropped") for member in found[:2]] == [3, None]
    assert sum("dropped" in member for member in found) == 1
    assert len(found) == MAX_QUEUED + 1


async def test_what_is_dropped_while_a_batch_is_written_is_told_too(
    tmp_path: Path, autojump_clock: trio.testing.MockClock
) -> None:
    """Two losses, one before and one during a write: two lines tell, each of its own."""

    async def slowly(function: Callable[[*_Ts], _T], /, *args: *_Ts) -> _T:
        await trio.sleep(1)
        return function(*args)

    async with open_journal(tmp_path, max_bytes=10_000_000, keep=1, offload=slowly) as journal:
        for n in range(1 + MAX_QUEUED + 2):
            journal.record(entry(n))
        await trio.sleep(0.5)
        for n in range(MAX_BATCH + 5):
            journal.record(entry(n))
        await trio.sleep(20)
        journal.record(entry(0))
        await journal.flush()
    told = [member["dropped"] for member in members(tmp_path) if "dropped" in member]
    assert told == [2, 6]
    assert journal.dropped == 8


async def test_long_texts_fill_the_queue_too(
    tmp_path: Path, at_once: AtOnce, autojump_clock: trio.testing.MockClock
) -> None:
    """Memory is bounded in characters; room comes back when they are written."""
    big = "x" * (MAX_QUEUED_CHARS // 4)
    async with open_journal(tmp_path, max_bytes=10_000_000, keep=1, offload=at_once) as journal:
        for _ in range(7):
            journal.converse(line(big[:-1]))
        assert journal.dropped == 3
        await journal.flush()
        journal.converse(line("small"))
        assert (await journal.conversation("c"))[-1].text == "small"
        assert journal.dropped == 3


@attrs.frozen
class Failure:
    """How a disk is broken and mended, and what the journal calls it."""

    attribute: str
    broken: int
    mended: int
    reason: str


@pytest.mark.parametrize(
    "failure",
    [
        Failure("room", 100, 1 << 40, "disk full"),
        Failure("broken", errno.EACCES, 0, "permission denied"),
        Failure("foreign", 1, 0, "permission denied"),
    ],
)
async def test_a_disk_that_fails_is_reported_and_recovers_alone(
    failure: Failure,
    tmp_path: Path,
    disk: Disk,
    at_once: AtOnce,
    autojump_clock: trio.testing.MockClock,
) -> None:
    """Nothing is lost, and nobody has to record anything for it to be tried again."""
    async with open_journal(
        tmp_path, max_bytes=1_000_000, keep=1, ops=disk, offload=at_once
    ) as journal:
        setattr(disk, failure.attribute, failure.broken)
        for n in range(5):
            journal.record(entry(n))
        await journal.flush()
        assert (journal.healthy, journal.problem) == (False, failure.reason)
        setattr(disk, failure.attribute, failure.mended)
        await trio.sleep(RETRY_SEC + 0.1)
        assert (journal.healthy, journal.problem, journal.dropped) == (True, "", 0)
    assert identities(tmp_path) == [f"peer-{n}" for n in range(5)]


async def test_a_home_that_cannot_be_written_is_known_at_once(
    tmp_path: Path, disk: Disk, at_once: AtOnce, autojump_clock: trio.testing.MockClock
) -> None:
    """Before the first entry; opening the journal does not fail."""
    disk.broken = errno.EROFS
    async with open_journal(
        tmp_path, max_bytes=1_000, keep=1, ops=disk, offload=at_once
    ) as journal:
        assert journal.problem == "permission denied"


async def test_a_planted_link_is_refused(
    tmp_path: Path, at_once: AtOnce, autojump_clock: trio.testing.MockClock
) -> None:
    """The audit log never writes through a link."""
    (tmp_path / "precious").write_text("keep", encoding="ascii")
    (tmp_path / "a2a_audit.jsonl").symlink_to("precious")
    async with open_journal(tmp_path, max_bytes=1_000, keep=1, offload=at_once) as journal:
        journal.record(entry(0))
        await journal.flush()
        assert journal.problem == "not a private file"
    assert (tmp_path / "precious").read_text(encoding="ascii") == "keep"
    assert journal.dropped == 1


async def test_entries_kept_for_a_retry_are_bounded(
    tmp_path: Path, disk: Disk, at_once: AtOnce, autojump_clock: trio.testing.MockClock
) -> None:
    """The oldest stay, the rest is counted, and the file tells after recovery."""
    async with open_journal(
        tmp_path, max_bytes=10_000_000, keep=1, ops=disk, offload=at_once
    ) as journal:
        disk.broken = errno.EIO
        for n in range(MAX_PENDING + 10):
            journal.record(entry(n))
        await journal.flush()
        assert (journal.problem, journal.dropped) == ("write failed", 10)
        disk.broken = 0
    found = members(tmp_path)
    assert found[0]["dropped"] == 10
    assert [m["identity"] for m in found] == [f"peer-{n}" for n in range(MAX_PENDING)]


async def test_a_disk_that_hangs_does_not_hold_the_end_up(
    tmp_path: Path, at_once: AtOnce, autojump_clock: trio.testing.MockClock
) -> None:
    """The drain is bounded, the rest is counted, and whoever waits for it is let go."""
    async with open_journal(tmp_path, max_bytes=1_000, keep=1, offload=at_once) as journal:
        at_once.hangs = True
        journal.record(entry(0))
        await wait_all_tasks_blocked()
        journal.record(entry(1))
        started = trio.current_time()
    assert trio.current_time() - started == pytest.approx(DRAIN_SEC)
    assert journal.dropped == 1


async def test_whoever_waits_for_a_disk_that_hangs_is_let_go_at_the_end(
    tmp_path: Path, at_once: AtOnce, autojump_clock: trio.testing.MockClock
) -> None:
    """``flush`` outlives neither the writer nor its bound."""

    async def run(task_status: trio.TaskStatus[Journal]) -> None:
        async with open_journal(tmp_path, max_bytes=1_000, keep=1, offload=at_once) as journal:
            task_status.started(journal)
            await trio.sleep(10)

    async with trio.open_nursery() as nursery:
        journal = await nursery.start(run)
        at_once.hangs = True
        journal.record(entry(0))
        # One waits for the batch that is being written, one for what is still queued.
        async with trio.open_nursery() as waiting:
            waiting.start_soon(journal.flush)
            await wait_all_tasks_blocked()
            waiting.start_soon(journal.flush)
        assert trio.current_time() == pytest.approx(10 + DRAIN_SEC)


async def test_what_is_recorded_while_the_block_is_cancelled_is_written(
    tmp_path: Path, at_once: AtOnce, autojump_clock: trio.testing.MockClock
) -> None:
    """The journal is the last to stop: clean-up under a shield is still recorded."""
    with trio.move_on_after(1) as scope:
        async with open_journal(tmp_path, max_bytes=10_000, keep=1, offload=at_once) as journal:
            try:
                await trio.sleep_forever()
            finally:
                with trio.CancelScope(shield=True):
                    await trio.sleep(5)
                    journal.record(entry(1))
    assert scope.cancelled_caught
    assert identities(tmp_path) == ["peer-1"]


async def test_the_block_s_own_error_comes_out_plain(
    tmp_path: Path, at_once: AtOnce, autojump_clock: trio.testing.MockClock
) -> None:
    """Not in a group, and with the cause that it had."""
    with pytest.raises(KeyError) as caught:
        async with open_journal(tmp_path, max_bytes=10_000, keep=1, offload=at_once):
            raise KeyError("mine") from ValueError("cause")
    assert isinstance(caught.value.__cause__, ValueError)


async def test_a_closed_journal_counts_what_it_does_not_take(tmp_path: Path) -> None:
    """A late caller is no error and does not wait."""
    async with open_journal(tmp_path, max_bytes=10_000, keep=1) as journal:
        pass
    journal.record(entry(0))
    journal.converse(line("late"))
    await journal.flush()
    assert journal.dropped == 2


async def test_conversations_are_read_with_what_is_still_queued(
    tmp_path: Path, at_once: AtOnce, autojump_clock: trio.testing.MockClock
) -> None:
    """A message is there as soon as it was handed over, whatever its context is called."""
    async with open_journal(tmp_path, max_bytes=10_000, keep=1, offload=at_once) as journal:
        journal.converse(line("one", "../../etc/passwd"))
        journal.converse(line("two", "../../etc/passwd"))
        found = await journal.conversation("../../etc/passwd", limit=1)
        assert [m.text for m in found] == ["two"]
        assert await journal.conversation("nobody") == ()
    assert (tmp_path / "a2a_conversations").stat().st_mode & 0o777 == 0o700
    assert len(files_below(tmp_path / "a2a_conversations")) == 1


async def test_a_conversation_that_cannot_be_read_is_empty(
    tmp_path: Path, at_once: AtOnce, autojump_clock: trio.testing.MockClock
) -> None:
    """A planted link shows nothing of what it points to, and the audit log stays healthy."""
    (tmp_path / "a2a_conversations").mkdir()
    (tmp_path / "other").write_text('{"text":"secret"}\n', encoding="ascii")
    (tmp_path / "a2a_conversations" / "c.jsonl").symlink_to(tmp_path / "other")
    async with open_journal(tmp_path, max_bytes=10_000, keep=1, offload=at_once) as journal:
        journal.converse(line("mine"))
        assert await journal.conversation("c") == ()
        assert (journal.healthy, journal.dropped) == (True, 1)


async def test_an_idle_journal_costs_nothing(
    tmp_path: Path, at_once: AtOnce, autojump_clock: trio.testing.MockClock
) -> None:
    """A healthy journal does not wake up by itself."""
    async with open_journal(tmp_path, max_bytes=1_000, keep=1, offload=at_once):
        await wait_all_tasks_blocked()
        before = at_once.calls
        await trio.sleep(86_400)
        assert at_once.calls == before
