"""Callers that leave at the worst moment, on real sockets.

The promise: a task is not the child of the connection that asked for it. However a caller leaves,
its task still ends and can be fetched, and the server keeps nothing that belonged to the caller.
"""

import json
import re
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeAlias

import attrs
import pytest
import trio

from a2a_trio import Settings

if TYPE_CHECKING:
    from tests.network.conftest import Caller, House, OpenHouse

MANY: Final = 200

Leave: TypeAlias = Callable[["Caller"], Awaitable[None]]


@pytest.fixture(params=["close", "reset", "half_close"])
def leave(request: pytest.FixtureRequest) -> Leave:
    """Leave in one of three ways: FIN, RST, or half."""

    async def go(caller: "Caller") -> None:
        how: Callable[[], Awaitable[None]] = getattr(caller, request.param)
        await how()

    return go


async def check_that_the_task_ends(house: "House", context_id: str) -> None:
    """The run is still at the gate and held by a slot; open the gate and it ends and is kept."""
    assert await house.state(context_id) == "TASK_STATE_WORKING"
    house.agent.gate.set()
    await house.until_state(context_id, "TASK_STATE_COMPLETED")
    (task,) = await house.tasks(context_id)
    got = await house.call("GetTask", {"id": task["id"]})
    assert isinstance(got, dict)
    assert "through" in json.dumps(got["artifacts"])
    await house.until_gauges(slots_used=0, subscribers=0, streams_open=0)


async def test_dropping_a_blocking_send(house: "House", leave: Leave) -> None:
    """The caller of a blocking send leaves while its agent works."""
    caller = await house.caller()
    await caller.send("SendMessage", "c")
    await house.agent.run_of("c").wait()
    await leave(caller)
    await house.until_gauges(slots_used=1, subscribers=0)
    await check_that_the_task_ends(house, "c")


async def test_dropping_a_stream_midway(house: "House", leave: Leave) -> None:
    """The caller of a stream leaves after it has read the first events."""
    caller = await house.caller()
    await caller.send("SendStreamingMessage", "c")
    await caller.until(b"at the gate")
    await leave(caller)
    await house.until_gauges(slots_used=1, subscribers=0, streams_open=0)
    await check_that_the_task_ends(house, "c")


async def test_leaving_a_stream_can_cancel(
    open_house: "OpenHouse", room: Settings, leave: Leave
) -> None:
    """``streamDisconnect: "cancel"``: the run ends with the stream that asked for it."""
    server = attrs.evolve(room.server, stream_disconnect="cancel")
    async with open_house(attrs.evolve(room, server=server)) as house:
        caller = await house.caller()
        await caller.send("SendStreamingMessage", "c")
        await caller.until(b"at the gate")
        await leave(caller)
        await house.until_state("c", "TASK_STATE_CANCELED")
        await house.until_gauges(slots_used=0, subscribers=0, streams_open=0)


async def test_dropping_a_subscription(house: "House", leave: Leave) -> None:
    """A subscriber leaves; the run and the other subscriber do not notice."""
    first, second = await house.caller(), await house.caller()
    await first.send("SendStreamingMessage", "c")
    await first.until(b"at the gate")
    (task,) = await house.tasks("c")
    await second.request("SubscribeToTask", {"id": task["id"]})
    await second.until(b'"task"')
    await leave(second)
    await house.until_gauges(slots_used=1, subscribers=1, streams_open=1)
    house.agent.gate.set()
    await first.until(b"TASK_STATE_COMPLETED")
    await house.until_gauges(slots_used=0, subscribers=0, streams_open=0)


async def test_dropping_before_the_first_byte(house: "House", leave: Leave) -> None:
    """The caller leaves right after its request, before the server has written anything.

    The server may see the request or only a dead connection; if a task was made, it must end.
    """
    for number in range(20):
        for method in ("SendMessage", "SendStreamingMessage"):
            caller = await house.caller()
            await caller.send(method, f"{method}-{number}")
            await leave(caller)
    house.agent.gate.set()
    await house.until_gauges(slots_used=0, subscribers=0, streams_open=0)
    for number in range(20):
        for method in ("SendMessage", "SendStreamingMessage"):
            tasks = await house.tasks(f"{method}-{number}")
            states = [json.dumps(task["status"]) for task in tasks]
            assert all("TASK_STATE_COMPLETED" in state for state in states), states


async def test_dropping_inside_a_request_body(house: "House") -> None:
    """A body that never arrives starts nothing and holds nothing."""
    stream = await trio.open_tcp_stream("127.0.0.1", house.server.port)
    await stream.send_all(
        b"POST / HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nContent-Type: application/json\r\n"
        b'Content-Length: 1000\r\n\r\n{"jsonrpc":' % house.server.port
    )
    await stream.aclose()
    await house.until_gauges(slots_used=0, subscribers=0, streams_open=0)


async def test_a_caller_that_stops_reading_is_cut(house: "House") -> None:
    """A subscriber that does not read loses its own stream and holds up nobody else."""
    stuck = await house.caller()
    await stuck.send("SendStreamingMessage", "flood", "flood")
    await stuck.until(b'"task"')
    reader = await house.caller()
    await reader.send("SendMessage", "other")
    await house.agent.run_of("other").wait()
    house.agent.gate.set()
    assert "TASK_STATE_COMPLETED" in json.dumps(await reader.answer())
    await stuck.close()
    await house.until_gauges(slots_used=0, subscribers=0, streams_open=0)


def open_files() -> int:
    """Count the file descriptors of this process."""
    return len(list(Path("/proc/self/fd").iterdir()))


async def cancelled(house: "House", context_id: str) -> None:
    """Detach a run and cancel it."""
    caller = await house.caller()
    await caller.send("SendMessage", context_id, returnImmediately=True)
    await caller.answer()
    (task,) = await house.tasks(context_id)
    await caller.request("CancelTask", {"id": task["id"]})
    assert "TASK_STATE_CANCELED" in json.dumps(await caller.answer())
    await caller.close()


async def dropped(house: "House", context_id: str) -> None:
    """Detach a run and leave before the answer."""
    caller = await house.caller()
    await caller.send("SendMessage", context_id, returnImmediately=True)
    await caller.close()


async def subscriber(house: "House", context_id: str) -> "Caller":
    """Detach a run and subscribe to it; return the connection with the stream."""
    sender = await house.caller()
    await sender.send("SendMessage", context_id, returnImmediately=True)
    await sender.answer()
    await sender.close()
    (task,) = await house.tasks(context_id)
    caller = await house.caller()
    await caller.request("SubscribeToTask", {"id": task["id"]})
    return caller


async def reset_midway(house: "House", context_id: str) -> None:
    """Detach a run, listen to it, and vanish."""
    caller = await subscriber(house, context_id)
    await caller.until(b"at the gate")
    await caller.reset()


async def read_to_the_end(house: "House", context_id: str) -> None:
    """Detach a run and listen to it until it ends."""
    caller = await subscriber(house, context_id)
    await caller.until(b"TASK_STATE_COMPLETED")
    await caller.close()


async def test_many_runs_leave_nothing_behind(house: "House") -> None:
    """Two hundred detached runs at once; their callers cancel, drop, reset and read to the end."""
    await house.call("ListTasks", {})  # whatever is opened once, is open now
    await house.until_gauges(slots_used=0)
    files, living = open_files(), trio.lowlevel.current_statistics().tasks_living
    kinds = dict(enumerate((cancelled, dropped, reset_midway, read_to_the_end) * (MANY // 4)))
    async with trio.open_nursery() as readers:
        async with trio.open_nursery() as others:
            for number, kind in kinds.items():
                nursery = readers if kind is read_to_the_end else others
                nursery.start_soon(kind, house, f"c{number}")
        # What was cancelled is gone; what was dropped or reset still works, as do the rest.
        await house.until_gauges(slots_used=MANY * 3 // 4, subscribers=MANY // 4)
        house.agent.gate.set()
    await house.until_gauges(slots_used=0, subscribers=0, streams_open=0)
    for number in kinds:
        for task in await house.tasks(f"c{number}"):
            assert re.search("COMPLETED|CANCELED", json.dumps(task["status"])), task
    while open_files() > files or trio.lowlevel.current_statistics().tasks_living > living:
        await house.gauges()
