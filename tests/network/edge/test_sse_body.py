# ruff: noqa: ARG001 - a test asks for the virtual clock by naming its fixture
"""Streams: frames, silence, errors, the end."""

import json
from collections.abc import Callable
from typing import Any

import pytest
import trio
from structlog.testing import capture_logs

from a2a_trio.errors import InternalError, ProtocolError, TaskNotFoundError
from a2a_trio.server.calls import EventSource, Published
from a2a_trio.server.sse_body import SseBody
from a2a_trio.wire.methods import Dialect
from a2a_trio.wire.model import Message, Part, Role
from a2a_trio.wire.sse import KEEP_ALIVE, SSEDecoder

MESSAGE = Message(message_id="m", role=Role.AGENT, parts=(Part(text="a\r\nb\u2028c"),))
Ends = list[ProtocolError | None]


class Source:
    """Hands out what a test sends it."""

    def __init__(self) -> None:
        self.send, self._receive = trio.open_memory_channel[Published | Exception | None](10)
        self.closed = 0

    async def receive(self) -> Published | None:
        value = await self._receive.receive()
        if isinstance(value, Exception):
            raise value
        return value

    def close(self) -> None:
        self.closed += 1
        self._receive.close()
        self.send.close()


Make = Callable[..., tuple[SseBody, Source, Ends]]


@pytest.fixture
def make() -> Make:
    def make_body(keep_alive: float = 15.0) -> tuple[SseBody, Source, Ends]:
        source, ends = Source(), Ends()
        checked: EventSource = source
        body = SseBody(
            checked,
            request_id="r-1",
            dialect=Dialect.V1,
            keep_alive=keep_alive,
            on_event=lambda _: None,
            on_end=ends.append,
        )
        return body, source, ends

    return make_body


def only_event(piece: bytes) -> tuple[str, str, Any]:
    (event,) = SSEDecoder().feed(piece)
    return event.event, event.id, json.loads(event.data)


async def test_an_event_is_one_frame_whatever_its_text(make: Make) -> None:
    body, source, _ = make()
    await source.send.send(Published(4, MESSAGE))
    name, event_id, value = only_event(await anext(body))
    assert (name, event_id, value["id"]) == ("", "4", "r-1")
    assert value["result"]["message"]["parts"][0]["text"] == "a\r\nb\u2028c"
    body.close()


async def test_an_event_without_version_has_no_id(make: Make) -> None:
    body, source, _ = make()
    await source.send.send(Published(-1, MESSAGE))
    assert b"id:" not in (await anext(body)).split(b"data:")[0]
    body.close()


async def test_silence_is_filled_with_comments_also_before_the_first_event(
    make: Make, autojump_clock: Any
) -> None:
    body, source, _ = make(keep_alive=15)
    started = trio.current_time()
    assert [await anext(body) for _ in range(3)] == [KEEP_ALIVE] * 3
    assert trio.current_time() - started == pytest.approx(45)
    await source.send.send(Published(1, MESSAGE))
    assert (await anext(body)).startswith(b"id: 1")
    body.close()


async def test_without_keep_alive_silence_stays_silent(make: Make, autojump_clock: Any) -> None:
    body, _, _ = make(keep_alive=0)
    with trio.move_on_after(10_000) as scope:
        await anext(body)
    assert scope.cancelled_caught
    body.close()


async def test_no_event_is_lost_to_a_comment(make: Make, autojump_clock: Any) -> None:
    body, source, _ = make(keep_alive=1)

    async def feed() -> None:
        for version in range(50):
            await trio.sleep(0.1 * (version % 20))  # some fall exactly on the interval
            await source.send.send(Published(version, MESSAGE))
        await source.send.send(None)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(feed)
        got = [only_event(piece)[1] async for piece in body if piece != KEEP_ALIVE]
    assert got == [str(version) for version in range(50)]
    body.close()


async def test_a_clean_end_has_no_frame(make: Make) -> None:
    body, source, ends = make()
    await source.send.send(None)
    assert [piece async for piece in body] == []
    assert ends == []  # told when closed, by whoever sends the body
    body.close()
    body.close()
    assert (ends, source.closed) == ([None], 1)


async def test_an_error_is_the_last_frame(make: Make) -> None:
    body, source, ends = make()
    failure = TaskNotFoundError()
    await source.send.send(Published(1, MESSAGE))
    await source.send.send(failure)
    _, last = [only_event(piece) async for piece in body]
    assert (last[0], last[2]["error"]["code"], last[2]["id"]) == ("error", -32001, "r-1")
    body.close()
    assert ends == [failure]


async def test_a_defect_is_logged_and_is_an_internal_error(make: Make) -> None:
    body, source, ends = make()
    await source.send.send(ValueError("secret"))
    with capture_logs() as logs:
        (piece,) = [piece async for piece in body]
    assert b"secret" not in piece
    assert only_event(piece)[2]["error"]["code"] == -32603
    assert [entry["log_level"] for entry in logs] == ["error"]
    body.close()
    assert isinstance(ends[0], InternalError)


async def test_closing_without_iterating_closes_the_source(make: Make) -> None:
    body, source, ends = make()
    body.close()
    assert (source.closed, ends) == (1, [None])
    with pytest.raises(StopAsyncIteration):
        await anext(body)


async def test_subscribers_share_one_encoding_per_dialect() -> None:
    published = Published(1, MESSAGE)
    first = published.encoded(Dialect.V1)
    assert published.encoded(Dialect.V1) is first
    assert published.encoded(Dialect.V03) != first
