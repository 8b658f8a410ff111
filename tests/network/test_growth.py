"""Thousands of sends leave behind what the settings say, and no more."""

from functools import partial
from typing import TYPE_CHECKING, Final

import attrs
import trio

from a2a_trio import Settings, echo, open_server

if TYPE_CHECKING:
    from tests.network.conftest import House, MakeHouse

SENDS: Final = 5000
TOGETHER: Final = 64
MAX_TASKS: Final = 100


async def send_many(house: "House", first: int, count: int) -> None:
    """Send messages one after the other on one connection."""
    caller = await house.caller()
    for number in range(first, first + count):
        await caller.send("SendMessage", f"c{number}", "hello")
        answer = await caller.answer()
        assert isinstance(answer, dict)
        assert "result" in answer, answer
    await caller.close()


async def test_the_store_keeps_its_bound(make_house: "MakeHouse", room: Settings) -> None:
    """Whatever number of tasks ended, ``maxTasks`` of them are kept."""
    server = attrs.evolve(room.server, max_tasks=MAX_TASKS)
    async with open_server(echo, attrs.evolve(room, server=server)) as opened:
        house = make_house(opened)
        await send_many(house, 0, SENDS)
        assert (await house.gauges())["a2a_tasks_stored"] == MAX_TASKS
        async with trio.open_nursery() as nursery:
            for number in range(TOGETHER):
                nursery.start_soon(partial(send_many, house, 10_000 + number * 10, 10))
        await house.until_gauges(slots_used=0, subscribers=0, streams_open=0)
        assert (await house.gauges())["a2a_tasks_stored"] == MAX_TASKS
        listed = await house.call("ListTasks", {"pageSize": 1})
        assert isinstance(listed, dict)
        assert listed["totalSize"] == MAX_TASKS
        house.close()
