"""Stopping with callers still there: idle, on a stream, and no longer reading."""

import os
import re
import signal
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest
import trio

from a2a_trio.peer.serving import HTTP_GRACE_SEC

if TYPE_CHECKING:
    from tests.network.conftest import Caller, Connect, House, OpenHouse

STOP_LIMIT: Final = 3.0
"""Seconds that callers may add to a stop, on top of what it takes with nobody there."""
GRACE: Final = 1.0
"""``server.drainGraceSec``: how long the runs themselves may go on."""


async def idle(house: "House") -> "Caller":
    """A caller that made a call and keeps its connection."""
    caller = await house.caller()
    await caller.request("ListTasks", {})
    await caller.answer()
    return caller


async def on_a_stream(house: "House") -> "Caller":
    """A caller that reads a stream which has no end in sight."""
    caller = await house.caller()
    await caller.send("SendStreamingMessage", "stream")
    await caller.until(b"at the gate")
    return caller


async def not_reading(house: "House") -> "Caller":
    """A caller who reads no more of a stream that is far larger than every buffer on the way."""
    caller = await house.caller()
    await caller.send("SendStreamingMessage", "flood", "flood")
    await caller.until(b'"task"')
    # The run has written all that a task may keep; its stream cannot have got rid of it.
    await house.until_state("flood", "TASK_STATE_FAILED")
    return caller


async def everybody(house: "House") -> None:
    """All three at once, and two of them on open streams."""
    for kind in (idle, on_a_stream, not_reading):
        await kind(house)
    await house.until_gauges(streams_open=2)


async def test_a_stop_is_prompt_whoever_is_there(open_house: "OpenHouse") -> None:
    """Nobody who hangs on to a connection holds up the stop."""
    async with open_house() as house:
        alone = await house.stop()
    async with open_house() as house:
        await everybody(house)
        assert await house.stop() < alone + STOP_LIMIT


async def test_a_cancelled_server_is_prompt_too(open_house: "OpenHouse") -> None:
    """Cancelling ``serve`` closes everything at once, without a drain."""
    async with open_house() as house:
        await everybody(house)
        begin = trio.current_time()
    assert trio.current_time() - begin < STOP_LIMIT


async def test_an_open_stream_sees_a_clean_end(open_house: "OpenHouse") -> None:
    """The reader of a stream gets the task's last state and the end of the body, not a cut."""
    async with open_house() as house:
        caller = await on_a_stream(house)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(house.stop)
            body = await caller.end()
    assert body.endswith(b"0\r\n\r\n")


async def test_an_idle_connection_is_closed(open_house: "OpenHouse") -> None:
    """An idle keep-alive client sees the end of its connection at once, without any grace."""
    async with open_house() as house:
        alone = await house.stop()
    async with open_house() as house:
        caller = await idle(house)
        assert await house.stop() < alone + HTTP_GRACE_SEC
        assert await caller.end() == b""


async def test_nobody_gets_in_afterwards(open_house: "OpenHouse") -> None:
    """The port is free again."""
    async with open_house() as house:
        await house.stop()
        with pytest.raises(OSError, match=r"refused|failed"):
            await house.caller()


AGENT: Final = """
import trio

async def agent(task):
    await task.update("at the gate")
    for _ in range(16 if task.raw_text == "flood" else 0):
        await task.artifact("flood", "x" * 262_144, append=True)
    await trio.sleep_forever()
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
async def test_the_command_stops_on_a_signal(
    connect: "Connect", tmp_path: Path, number: signal.Signals
) -> None:
    """The process ends in time and with success, whoever is connected."""
    (tmp_path / "gated.py").write_text(AGENT, encoding="utf-8")
    environ = {k: v for k, v in os.environ.items() if not k.startswith("A2A_")}
    environ |= {"A2A_HOME": str(tmp_path), "PYTHONPATH": str(tmp_path), "PYTHONUNBUFFERED": "1"}
    command = [sys.executable, "-m", "a2a_trio", "serve", "--port", "0", "--agent", "gated:agent"]
    with trio.fail_after(60):
        async with trio.open_nursery() as nursery:
            process = await nursery.start(
                partial(
                    trio.run_process,
                    command,
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.STDOUT,
                    env=environ,
                    cwd=tmp_path,
                    check=False,
                )
            )
            port = await port_of(process)
            callers = [await connect(port) for _ in range(3)]
            await callers[0].request("ListTasks", {})
            await callers[0].answer()
            await callers[1].send("SendStreamingMessage", "stream")
            await callers[1].until(b"at the gate")
            await callers[2].send("SendStreamingMessage", "flood", "flood")
            await callers[2].until(b"xxxx")
            process.send_signal(number)
            with trio.fail_after(STOP_LIMIT + GRACE):
                assert await process.wait() == 0
            nursery.cancel_scope.cancel()


async def port_of(process: trio.Process) -> int:
    """Read what the command prints until it names its address."""
    output = b""
    assert process.stdout is not None
    while (found := re.search(rb"http://127\.0\.0\.1:(\d+)", output)) is None:
        chunk = await process.stdout.receive_some(4096)
        assert chunk, output.decode()
        output += chunk
    return int(found[1])
