"""Sync agents: plain functions run in a thread, on the real clock."""

import trio

from a2a_trio import TaskContext
from a2a_trio.testing.in_process import open_in_process


async def test_sync_agent_runs_in_a_thread() -> None:
    def agent(task: TaskContext) -> str:
        trio.from_thread.run(task.update, "from a thread")
        return task.raw_text.upper()

    async with open_in_process(agent) as server:
        task = await server.calls().send_for_task("loud")

    assert task.text == "LOUD"
    assert [m.text for m in task.history] == ["loud", "from a thread"]
