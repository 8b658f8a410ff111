"""What the operator is shown of inbound work: one line per event, whatever callers and agents say."""
# ruff: noqa: ARG001 - a test asks for the virtual clock by naming its fixture

import pytest
import trio
from hypothesis import given, strategies as st

from a2a_trio import Message, Part, Role, ServerSettings, Settings, TaskContext, TaskState, echo
from a2a_trio.agents.contract import Agent
from a2a_trio.peer.activity import MAX_PEER, MAX_PREVIEW, Activity, dispatch_label
from a2a_trio.rules.redaction import Redactor
from a2a_trio.testing.in_process import InProcessServer, open_in_process

SECRET = "ghp_" + "a1B2" * 9


def watched(lines: list[str]) -> Activity:
    return Activity(lines.append, Redactor().text)


async def lines_of(agent: Agent, text: str = "count the files", caller: str = "alice") -> list[str]:
    """Return the lines that one message leads to, with ``LABEL`` for the dispatch's label."""
    lines: list[str] = []
    async with open_in_process(agent, observers=(watched(lines),)) as server:
        answer = await server.calls(caller).send(text)
    label = dispatch_label(getattr(answer, "id", "")) if not isinstance(answer, Message) else ""
    return [line.replace(label, "LABEL") if label else line for line in lines]


async def test_arrival_progress_and_completion(autojump_clock: trio.testing.MockClock) -> None:
    """Each in a line, the last one with the time that it took."""

    async def agent(task: TaskContext) -> str:
        await task.update("reading")
        await trio.sleep(12.3)
        return "42 files"

    assert await lines_of(agent) == [
        "[A2A inbound] dispatch from alice (LABEL): count the files",
        "[A2A inbound] LABEL reading",
        "[A2A inbound] A2A dispatch LABEL completed (12.3s) — 42 files",
    ]


async def test_failure_tells_why(autojump_clock: trio.testing.MockClock) -> None:
    """The text that the caller gets."""

    async def agent(_task: TaskContext) -> str:
        await trio.sleep(2)
        raise RuntimeError("no disk")

    last = (await lines_of(agent))[-1]
    assert last == "[A2A inbound] A2A dispatch LABEL failed (2.0s): the agent failed: no disk"


async def test_rejection_tells_why(autojump_clock: trio.testing.MockClock) -> None:
    """And is no completion."""

    async def agent(task: TaskContext) -> None:
        await task.reject("not my business")

    last = (await lines_of(agent))[-1]
    assert last == "[A2A inbound] A2A dispatch LABEL rejected (0.0s): not my business"


async def test_an_answer_without_a_task_is_a_completion(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """Its text is the preview."""

    async def agent(_task: TaskContext) -> Message:
        return Message(message_id="m", role=Role.AGENT, parts=(Part(text="hi"),))

    last = (await lines_of(agent))[-1]
    assert last.endswith(" completed (0.0s) — hi")


async def test_an_empty_reply_is_said_to_be_none(autojump_clock: trio.testing.MockClock) -> None:
    """Neither the message nor the reply has text."""

    async def agent(_task: TaskContext) -> None:
        return

    lines = await lines_of(agent, " ")
    assert lines[0].endswith("(LABEL): (no text)")
    assert lines[-1].endswith(" completed (0.0s) — (no reply)")


async def test_a_question_and_its_answer(autojump_clock: trio.testing.MockClock) -> None:
    """A dispatch that waits says so, and further messages to it are told."""

    async def agent(task: TaskContext) -> str:
        return (await task.ask("Which branch?")).text

    lines: list[str] = []
    async with open_in_process(agent, observers=(watched(lines),)) as server:
        asked = await server.calls("alice").send_for_task("go")
        await server.calls("alice").send("main", task_id=asked.id)
    label = dispatch_label(asked.id)
    assert lines[1:] == [
        f"[A2A inbound] {label} input-required: Which branch?",
        f"[A2A inbound] {label} message from alice: main",
        f"[A2A inbound] A2A dispatch {label} completed (0.0s) — main",
    ]


async def test_cancel(autojump_clock: trio.testing.MockClock) -> None:
    """Neither failed nor completed."""

    async def agent(_task: TaskContext) -> None:
        await trio.sleep_forever()

    lines: list[str] = []
    async with open_in_process(agent, observers=(watched(lines),)) as server:
        task = await server.calls().send_for_task("go", detached=True)
        await trio.sleep(1.5)
        assert (await server.calls().cancel(task.id)).state is TaskState.CANCELED
    assert lines[-1] == f"[A2A inbound] A2A dispatch {dispatch_label(task.id)} canceled (1.5s)"


@pytest.mark.parametrize(
    "text",
    ["\x1b[2J\x1b]0;mine\x07", "a\nb\r\nc", "\u202egnp.exe", "x" * 100_000, f"key {SECRET}"],
    ids=["escape", "lines", "bidi", "long", "secret"],
)
async def test_no_text_steers_the_terminal(
    text: str, autojump_clock: trio.testing.MockClock
) -> None:
    """From callers, from their names and from agents: one short printable line without secrets."""

    async def agent(task: TaskContext) -> str:
        await task.update(text)
        return text

    lines = await lines_of(agent, text, caller=text)
    assert len(lines) == 3
    for line in lines:
        assert line.isprintable()
        assert len(line) < MAX_PREVIEW + MAX_PEER + 80
        assert SECRET not in line or SECRET in line.partition("(LABEL)")[0]


async def test_work_of_two_callers_is_told_apart(autojump_clock: trio.testing.MockClock) -> None:
    """By the label, in the order in which things happen."""

    async def agent(task: TaskContext) -> str:
        await trio.sleep(float(task.raw_text))
        return task.identity

    lines: list[str] = []
    settings = Settings(server=ServerSettings(max_concurrent=2))

    async def call(server: InProcessServer, identity: str, text: str) -> None:
        await server.calls(identity).send(text)

    async with (
        open_in_process(agent, settings, observers=(watched(lines),)) as server,
        trio.open_nursery() as nursery,
    ):
        nursery.start_soon(call, server, "alice", "5")
        nursery.start_soon(call, server, "bob", "3")
    assert [line.rpartition(" ")[2] for line in lines[2:]] == ["bob", "alice"]


async def test_a_detached_run_is_told_to_its_end(autojump_clock: trio.testing.MockClock) -> None:
    """Though no call waits for it."""
    lines: list[str] = []
    async with open_in_process(echo, observers=(watched(lines),)) as server:
        await server.calls().send("hello", detached=True)
        await trio.sleep(1)
    assert len(lines) == 2


@given(st.text())
def test_labels_are_short_and_of_hex_digits(task_id: str) -> None:
    """Whatever an id is."""
    label = dispatch_label(task_id)
    assert label.startswith("a2a-")
    assert len(label) <= 7
    assert set(label[4:]) <= set("0123456789abcdef")


def test_label_of_a_task() -> None:
    """The first three digits, as pi-a2a shows them."""
    assert dispatch_label("1b4f8d1c-30d5-4819-9f5e-0f3a5d6c7b80") == "a2a-1b4"
