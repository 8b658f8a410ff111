"""Stopping with callers still there: idle, on a stream, and no longer reading."""

from typing import TYPE_CHECKING, Final

import pytest
import trio

if TYPE_CHECKING:
    from tests.network.conftest import Caller, House, OpenHouse

STOP_LIMIT: Final = 3.0
"""Seconds that callers may add to a stop, on top of what it takes with nobody there."""


async def seconds_to_drain(house: "House") -> float:
    """Stop a server and return how long it took."""
    begin = trio.current_time()
    await house.server.drain()
    return trio.current_time() - begin


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
    """A caller whose stream is full up to its own buffers, and who reads no more of it."""
    caller = await house.caller()
    await caller.send("SendStreamingMessage", "flood", "flood")
    await caller.until(b'"task"')
    await house.agent.run_of("flood").wait()
    return caller


async def test_a_stop_is_prompt_whoever_is_there(open_house: "OpenHouse") -> None:
    """Nobody who hangs on to a connection holds up the stop."""
    async with open_house() as house:
        alone = await seconds_to_drain(house)
    async with open_house() as house:
        callers = [await kind(house) for kind in (idle, on_a_stream, not_reading)]
        assert len(callers) == 3
        assert await seconds_to_drain(house) < alone + STOP_LIMIT


async def test_a_cancelled_server_is_prompt_too(open_house: "OpenHouse") -> None:
    """Cancelling ``serve`` closes everything at once, without a drain."""
    async with open_house() as house:
        callers = [await kind(house) for kind in (idle, on_a_stream, not_reading)]
        assert len(callers) == 3
        begin = trio.current_time()
    assert trio.current_time() - begin < STOP_LIMIT


async def test_an_open_stream_sees_a_clean_end(open_house: "OpenHouse") -> None:
    """The reader of a stream gets the task's last state and the end of the body, not a cut."""
    async with open_house() as house:
        caller = await on_a_stream(house)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(house.server.drain)
            body = await caller.end()
    assert body.endswith(b"0\r\n\r\n")


async def test_an_idle_connection_is_closed(open_house: "OpenHouse") -> None:
    """An idle keep-alive client sees the end of its connection, so that it does not reuse it."""
    async with open_house() as house:
        caller = await idle(house)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(house.server.drain)
            assert await caller.end() == b""


async def test_nobody_gets_in_afterwards(open_house: "OpenHouse") -> None:
    """The port is free again."""
    async with open_house() as house:
        await house.server.drain()
        with pytest.raises(OSError, match=r"refused|failed"):
            await house.caller()
