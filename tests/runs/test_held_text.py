# ruff: noqa: ARG001 - a test asks for the virtual clock by naming its fixture
"""What the outbound filter holds back, because it might begin a secret, is not lost at the end."""

from collections.abc import Awaitable, Callable

import pytest
import trio

from a2a_trio import ServerSettings, Settings, TaskContext
from a2a_trio.testing.direct import read_all
from a2a_trio.testing.in_process import open_in_process
from a2a_trio.wire.model import TaskArtifactUpdateEvent, TaskState

SECRET = "ghp_" + "a1B2" * 9


async def returns(_task: TaskContext) -> None:
    return


async def raises(_task: TaskContext) -> None:
    raise RuntimeError("broken")


async def fails(task: TaskContext) -> None:
    await task.fail("no")


async def rejects(task: TaskContext) -> None:
    await task.reject("no")


async def hangs(_task: TaskContext) -> None:
    await trio.sleep_forever()


@pytest.mark.parametrize(
    ("end", "state"),
    [
        (returns, TaskState.COMPLETED),
        (raises, TaskState.FAILED),
        (fails, TaskState.FAILED),
        (rejects, TaskState.REJECTED),
        (hangs, TaskState.FAILED),
    ],
)
async def test_the_last_word_comes_with_the_end(
    end: Callable[[TaskContext], Awaitable[None]],
    state: TaskState,
    autojump_clock: trio.testing.MockClock,
) -> None:
    """An artifact without a last chunk is complete, however the task ends."""

    async def agent(task: TaskContext) -> None:
        await task.artifact("a", "the quick brown fo")
        await task.artifact("a", "x", append=True)
        await end(task)

    settings = Settings(server=ServerSettings(reply_timeout_sec=60))
    async with open_in_process(agent, settings) as server:
        ended = await server.calls().send_for_task("go")

    assert ended.state is state
    assert [artifact.text for artifact in ended.artifacts] == ["the quick brown fox"]


async def test_a_secret_split_over_chunks_is_in_no_event(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """Neither the stream nor the task shows it, and the words around it stay."""

    async def agent(task: TaskContext) -> None:
        for part in ("key: ", SECRET[:10], SECRET[10:20], SECRET[20:], " end"):
            await task.artifact("a", part, append=True)

    async with open_in_process(agent) as server:
        async with server.calls().stream("go") as stream:
            events = await read_all(stream)
        (task,) = (await server.calls().list()).tasks
        kept = await server.calls().get(task.id)

    chunks = [e.artifact.text for e in events if isinstance(e, TaskArtifactUpdateEvent)]
    assert "".join(chunks) == kept.artifacts[0].text
    assert kept.artifacts[0].text.startswith("key: [redacted-")
    assert kept.artifacts[0].text.endswith("] end")
    assert not any(SECRET[:10] in chunk or SECRET[20:] in chunk for chunk in chunks)
