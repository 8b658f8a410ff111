"""Transcripts of runs: complete, in order, private, and never in the way."""
# ruff: noqa: ARG001 - a test asks for the virtual clock by naming its fixture

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import trio
import trio.testing
from hypothesis import given, strategies as st

from a2a_trio import Message, Part, Role, ServerSettings, Settings, TaskContext, echo, open_server
from a2a_trio.agents.contract import Agent
from a2a_trio.client.client import open_client
from a2a_trio.journal import TranscriptLine
from a2a_trio.peer.transcripts import Transcriber
from a2a_trio.testing.in_process import open_in_process

LIMIT: Final = 60.0
"""Seconds after which a test on a real socket counts as hanging."""
SECRET: Final = "ghp_" + "a1B2" * 9
AT: Final = datetime(2030, 1, 1, tzinfo=UTC)


def told(line: TranscriptLine) -> tuple[str, object, str]:
    """Return what a line is about: kind, state or role, text."""
    what = line.facts.get("state") or line.facts.get("role") or line.facts.get("artifactId")
    return line.kind, what, "".join(part.text or "" for part in line.parts)


async def lines_of(agent: Agent, *texts: str) -> list[TranscriptLine]:
    """Return the lines of a task to which a caller sends so many messages."""
    lines: list[TranscriptLine] = []
    async with open_in_process(agent, observers=(Transcriber(lines.append, lambda: AT),)) as server:
        calls, task_id = server.calls("alice"), ""
        for text in texts:
            answer = await calls.send(text, task_id=task_id)
            task_id = "" if isinstance(answer, Message) else answer.id
    return lines


async def test_a_run_from_its_beginning_to_its_end(autojump_clock: trio.testing.MockClock) -> None:
    """Who, what, every step of both sides, how it ended, how long it took."""

    async def agent(task: TaskContext) -> str:
        await task.update("looking")
        branch = await task.ask("Which branch?")
        await task.artifact("log", "one\n")
        await task.artifact("log", "two", append=True, last=True)
        await trio.sleep(7)
        return f"done on {branch.text}"

    lines = await lines_of(agent, "go", "main")

    assert [told(line) for line in lines] == [
        ("begin", None, ""),
        ("message", "user", "go"),
        ("status", "working", ""),
        ("status", "working", "looking"),
        ("status", "input-required", "Which branch?"),
        ("message", "user", "main"),
        ("status", "working", ""),
        ("artifact", "log", "one\n"),
        ("artifact", "log", "two"),
        ("artifact", "reply", "done on main"),
        ("status", "completed", ""),
        ("end", "completed", ""),
    ]
    first, last = lines[0].facts, lines[-1].facts
    assert (first["identity"], first["provenance"], first["mode"]) == ("alice", "token", "blocking")
    assert (last["seconds"], last["lines"]) == (7.0, len(lines))
    assert [line.last for line in lines] == [False] * 11 + [True]
    assert {line.file for line in lines} == {f"2030-01-01T00-00-00-000Z_{first['taskId']}.jsonl"}


async def test_an_answer_without_a_task(autojump_clock: trio.testing.MockClock) -> None:
    """The message is there, though no task was kept."""

    async def agent(_task: TaskContext) -> Message:
        return Message(message_id="m", role=Role.AGENT, parts=(Part(text="hi"),))

    lines = await lines_of(agent, "hello")
    assert [told(line) for line in lines[-2:]] == [
        ("message", "agent", "hi"),
        ("end", "replied", ""),
    ]


STEPS: Final = st.lists(st.sampled_from(["update", "artifact", "ask", "raise", "fail"]), max_size=6)


@given(STEPS)
def test_every_run_has_one_whole_transcript(steps: list[str]) -> None:
    """Whatever the agent does: the beginning first, the end last, and as many lines as it says."""

    async def agent(task: TaskContext) -> None:
        for step in steps:
            match step:
                case "update":
                    await task.update("u")
                case "artifact":
                    await task.artifact("a", "x", append=True)
                case "ask":
                    with trio.move_on_after(1):
                        await task.ask("?")
                case "raise":
                    raise ValueError("on purpose")
                case _:
                    await task.fail("on purpose")

    async def main() -> list[TranscriptLine]:
        lines: list[TranscriptLine] = []
        observer = Transcriber(lines.append, lambda: AT)
        async with open_in_process(agent, observers=(observer,)) as server:
            await server.calls().send("go", detached=True)
            await trio.sleep(60)
        return lines

    lines = trio.run(main, clock=trio.testing.MockClock(autojump_threshold=0))
    assert [line.kind for line in lines].count("begin") == 1
    assert lines[0].kind == "begin"
    assert [line.kind for line in lines].count("end") == 1
    assert lines[-1].kind == "end"
    assert lines[-1].facts["lines"] == len(lines)


def transcripts(home: Path) -> list[list[dict[str, Any]]]:
    """Read every transcript, the oldest first."""
    paths = sorted(home.glob("a2a_sessions/*.jsonl"))
    return [[json.loads(text) for text in path.read_text().splitlines()] for path in paths]


SETTINGS: Final = Settings(server=ServerSettings(port=0))


async def send(home: Path, agent: Agent, *texts: str) -> None:
    with trio.fail_after(LIMIT):
        async with (
            open_server(agent, SETTINGS, home=home) as server,
            open_client(server.url) as client,
        ):
            for text in texts:
                await client.send(text)


async def test_files_are_private_and_hold_no_secrets(tmp_path: Path) -> None:
    """0600 in 0700, one per run, redacted on both sides."""
    await send(tmp_path, echo, f"use {SECRET}", "again")

    folder = tmp_path / "a2a_sessions"
    assert folder.stat().st_mode & 0o777 == 0o700
    assert [path.stat().st_mode & 0o777 for path in folder.iterdir()] == [0o600] * 2
    first, second = transcripts(tmp_path)
    assert first[0]["type"] == "begin"
    assert first[-1]["state"] == "completed"
    assert first[-1]["lines"] == len(first)
    assert second[1]["parts"] == [{"text": "again"}]
    assert all(SECRET not in path.read_text() for path in folder.iterdir())


async def test_a_stuck_run_has_left_what_it_did_so_far(tmp_path: Path) -> None:
    """The lines are there while it works, not at its end only."""

    async def agent(task: TaskContext) -> None:
        await task.update("step one")
        await trio.sleep_forever()

    with trio.fail_after(LIMIT):
        async with (
            open_server(agent, SETTINGS, home=tmp_path) as server,
            open_client(server.url) as client,
        ):
            task = await client.send_detached("go")
            async with client.subscribe(task.id) as events:
                async for _ in events:
                    break
            assert server.journal is not None
            await server.journal.flush()
            (so_far,) = transcripts(tmp_path)
            assert [line["type"] for line in so_far][:2] == ["begin", "message"]
            assert "end" not in {line["type"] for line in so_far}
    (whole,) = transcripts(tmp_path)
    assert whole[-1]["type"] == "end"
    assert whole[-1]["state"] == "failed"


async def test_a_planted_link_is_refused_and_nobody_waits_for_it(tmp_path: Path) -> None:
    """The run goes on, what was lost is counted, and nothing is written behind the link."""
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    home = tmp_path / "home"
    home.mkdir(mode=0o700)
    (home / "a2a_sessions").symlink_to(elsewhere)
    with trio.fail_after(LIMIT):
        async with (
            open_server(echo, SETTINGS, home=home) as server,
            open_client(server.url) as client,
        ):
            assert (await client.send("hello")).text == "hello"
            assert server.journal is not None
            await server.journal.flush()
            assert server.journal.dropped == 6
            assert server.journal.healthy
    assert list(elsewhere.iterdir()) == []
