"""Records of outbound calls: in a running peer's journal, and by a command at its end."""

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import pytest
import trio

from a2a_trio import (
    Message,
    Part,
    PeerUnreachableError,
    Role,
    ServerSettings,
    Settings,
    TaskContext,
    echo,
    open_peer,
    open_server,
)
from a2a_trio.client.client import open_client
from a2a_trio.client.options import Said
from a2a_trio.config.schema import FilterSettings, PeerSettings
from a2a_trio.peer.calling import call_for
from a2a_trio.peer.recording import MAX_ENTRIES, recording
from a2a_trio.rules.audit import AuditEntry
from a2a_trio.testing.fake_peer import FakePeer, Result, Unreachable
from a2a_trio.wire.model import Task, TaskState, TaskStatus

LIMIT: Final = 60.0
"""Seconds after which a test on a real socket counts as hanging."""
SECRET: Final = "ghp_" + "a1B2" * 9
HERE: Final = ServerSettings(port=0)


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(text) for text in path.read_text().splitlines()]


def everything(home: Path) -> str:
    return "".join(path.read_text() for path in home.rglob("*.jsonl"))


def outbound(home: Path) -> list[dict[str, Any]]:
    return [e for e in lines(home / "a2a_audit.jsonl") if e["direction"] == "outbound"]


def conversation(home: Path, context_id: str) -> list[tuple[str, str, str]]:
    found = lines(home / "a2a_conversations" / f"{context_id}.jsonl")
    return [(line["role"], line["text"], line["peer"]) for line in found]


async def test_a_peer_keeps_its_calls_under_the_context_that_came_back(tmp_path: Path) -> None:
    """Request, outcome and both messages, and the next message goes into the same file."""
    with trio.fail_after(LIMIT):
        async with open_server(echo, Settings(server=HERE)) as other:
            known = Settings(server=HERE, peers={"other": PeerSettings(url=other.url)})
            async with open_peer(echo, known, home=tmp_path) as me, me.client("other") as client:
                reply = await client.send("hello")
                async with client.stream("again", context_id=reply.context_id) as events:
                    async for _ in events:
                        pass
                assert me.server.journal is not None
                kept = await me.server.journal.conversation(reply.context_id)
                assert [line.text for line in kept] == ["hello", "hello", "again", "again"]

    assert reply.context_id
    assert conversation(tmp_path, reply.context_id) == [
        ("user", "hello", "other"),
        ("agent", "hello", "other"),
        ("user", "again", "other"),
        ("agent", "again", "other"),
    ]
    entries = [(e["method"], e["phase"], e.get("state")) for e in outbound(tmp_path)]
    assert entries == [
        ("SendMessage", "request", None),
        ("SendMessage", "outcome", "completed"),
        ("SendStreamingMessage", "request", None),
        ("SendStreamingMessage", "outcome", "completed"),
    ]


async def test_without_a_state_folder_nothing_is_recorded() -> None:
    """And calls work as well."""
    with trio.fail_after(LIMIT):
        async with open_server(echo, Settings(server=HERE)) as other:
            async with open_peer(echo, Settings(server=HERE)) as me, me.client(other.url) as client:
                assert (await client.send("hello")).text == "hello"
            assert me.server.journal is None


async def call(home: Path, settings: Settings, peer: FakePeer, text: str = "hello") -> None:
    """Make one call as a command does."""
    with recording(home, settings) as recorder:
        how = call_for(peer.url, settings, recorder=recorder)
        async with open_client(how.url, options=how.options, transport=peer.transport) as client:
            await client.send(text)


def fake(*, text: str = "done") -> FakePeer:
    peer = FakePeer()
    message = Message(message_id="m", role=Role.AGENT, parts=(Part(text=text),))
    status = TaskStatus(state=TaskState.COMPLETED, message=message)
    peer.answers("SendMessage", Result(Task(id="t", context_id="c", status=status)))
    return peer


async def test_a_command_writes_when_it_is_done(tmp_path: Path) -> None:
    """All at once, into a folder that was not there."""
    home = tmp_path / "state"
    await call(home, Settings(), fake())

    assert conversation(home, "c") == [
        ("user", "hello", "http://peer.test"),
        ("agent", "done", "http://peer.test"),
    ]
    assert [e["phase"] for e in outbound(home)] == ["request", "outcome"]
    assert home.stat().st_mode & 0o777 == 0o700
    assert (home / "a2a_audit.jsonl").stat().st_mode & 0o777 == 0o600


async def test_a_command_that_fails_writes_why(
    tmp_path: Path, autojump_clock: trio.testing.MockClock
) -> None:
    """The audit log has the error; there is no conversation without an answer."""
    del autojump_clock
    peer = FakePeer()
    peer.answers("SendMessage", Unreachable())
    with pytest.raises(PeerUnreachableError):
        await call(tmp_path, Settings(), peer)

    assert outbound(tmp_path)[-1]["error"].startswith("PeerUnreachableError")
    assert not (tmp_path / "a2a_conversations").exists()


@pytest.mark.parametrize("redacts", [True, False])
async def test_records_hold_no_secrets_whatever_leaves(tmp_path: Path, *, redacts: bool) -> None:
    """Switching the outbound filter off is a decision about the peer, not about the disk."""
    settings = Settings(filters=FilterSettings(redact_outbound=redacts))
    peer = fake(text=f"mine is {SECRET}")
    await call(tmp_path, settings, peer, f"use {SECRET}")

    assert (SECRET in peer.called("SendMessage")[0].text) is not redacts
    written = everything(tmp_path)
    assert "use [redacted-" in written
    assert SECRET not in written


async def test_a_folder_that_cannot_be_written_costs_the_record_only(tmp_path: Path) -> None:
    """The call has been made; a file in the folder's place does not undo it."""
    (tmp_path / "state").write_text("a file")
    await call(tmp_path / "state", Settings(), fake())
    assert (tmp_path / "state").read_text() == "a file"


def test_a_command_that_calls_for_ever_keeps_a_bounded_number(tmp_path: Path) -> None:
    """The first ones; what they were about is then known well enough."""
    entry = AuditEntry(
        at=datetime(2030, 1, 1, tzinfo=UTC), direction="outbound", phase="request", identity="x"
    )
    said = Said(at=entry.at, role="user", text="hi", context_id="c", task_id="t")
    with recording(tmp_path, Settings()) as recorder:
        for _ in range(MAX_ENTRIES + 5):
            recorder.audit(entry)
            recorder.said("x", said)
    assert len(outbound(tmp_path)) == MAX_ENTRIES
    assert len(conversation(tmp_path, "c")) == MAX_ENTRIES


def test_a_command_that_called_nobody_writes_nothing(tmp_path: Path) -> None:
    """Not even the folder."""
    with recording(tmp_path / "state", Settings()):
        pass
    assert not (tmp_path / "state").exists()


async def test_an_answer_to_a_detached_task_is_not_guessed_at(tmp_path: Path) -> None:
    """What was sent is kept; looking at the task later adds nothing."""

    async def agent(task: TaskContext) -> str:
        return f"you said {task.raw_text}"

    with trio.fail_after(LIMIT):
        async with (
            open_server(agent, Settings(server=HERE)) as other,
            open_peer(echo, Settings(server=HERE), home=tmp_path) as me,
            me.client(other.url) as client,
        ):
            task = await client.send_detached("hello")
            await client.wait(task.id)
            await client.get(task.id)
    roles = [role for role, _, _ in conversation(tmp_path, task.context_id)]
    assert roles.count("user") == 1
    # A run that was over before the acknowledgement left has its answer in it.
    assert roles.count("agent") <= 1
