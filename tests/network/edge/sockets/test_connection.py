"""How a connection lives and ends, whatever the application."""

from collections.abc import Awaitable, Callable
from typing import Any, cast

import pytest
import trio
from hypercorn.typing import ASGIFramework

from a2a_trio.server import connection, listen

Event = dict[str, Any]
Receive = Callable[[], Awaitable[Event]]
Send = Callable[[Event], Awaitable[None]]
Plain = Callable[[dict[str, Any], Receive, Send], Awaitable[None]]

GET = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n"
GET_CLOSE = b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"


def app(plain: Plain) -> ASGIFramework:
    return cast("ASGIFramework", plain)


@app
async def hello(scope: dict[str, Any], receive: Receive, send: Send) -> None:
    while (await receive())["more_body"]:
        pass
    body = scope["http_version"].encode()
    length = str(len(body)).encode()
    await send(
        {"type": "http.response.start", "status": 200, "headers": [(b"content-length", length)]}
    )
    await send({"type": "http.response.body", "body": body})


@app
async def flood(_scope: dict[str, Any], receive: Receive, send: Send) -> None:
    await receive()
    await send({"type": "http.response.start", "status": 200, "headers": []})
    while True:
        await send({"type": "http.response.body", "body": b"x" * 65_536, "more_body": True})


@app
async def silent(_scope: dict[str, Any], receive: Receive, send: Send) -> None:
    await receive()
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await trio.sleep_forever()


@app
async def broken(_scope: dict[str, Any], receive: Receive, _send: Send) -> None:
    await receive()
    raise RuntimeError("the application is wrong")


async def test_requests_share_a_connection(serve_app: Any) -> None:
    served = await serve_app(hello)
    wire = await served.connect()
    for _ in range(50):
        await wire.send(GET)
        assert (await wire.answer()).body == b"1.1"


async def test_pipelined_requests_are_answered_in_order(serve_app: Any) -> None:
    served = await serve_app(hello)
    wire = await served.connect()
    await wire.send(GET * 5)
    assert [(await wire.answer()).status for _ in range(5)] == [200] * 5


@pytest.mark.parametrize("request_", [GET_CLOSE, b"GET / HTTP/1.0\r\n\r\n"], ids=["close", "1.0"])
async def test_the_last_answer_ends_the_connection(serve_app: Any, request_: bytes) -> None:
    served = await serve_app(hello)
    wire = await served.connect()
    await wire.send(request_)
    assert (await wire.answer()).status == 200
    assert await wire.ended()


async def test_an_answer_of_known_length_is_one_segment(serve_app: Any) -> None:
    served = await serve_app(hello)
    wire = await served.connect()
    await wire.send(GET)
    first = await wire.more()
    assert first.startswith(b"HTTP/1.1 200")
    assert first.endswith(b"1.1")


async def test_the_head_of_a_stream_is_sent_before_its_first_piece(serve_app: Any) -> None:
    served = await serve_app(silent)
    wire = await served.connect()
    await wire.send(GET)
    assert (await wire.head()).headers["transfer-encoding"] == "chunked"


async def test_an_idle_connection_is_closed(
    serve_app: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection, "KEEP_ALIVE_TIMEOUT", 0.1)
    served = await serve_app(hello)
    wire = await served.connect()
    await wire.send(GET)
    await wire.answer()
    assert await wire.ended()


@pytest.mark.parametrize("start", [b"", b"GET / HT", GET[:-2]], ids=["nothing", "line", "headers"])
async def test_a_head_that_does_not_come_ends_the_connection(
    serve_app: Any, monkeypatch: pytest.MonkeyPatch, start: bytes
) -> None:
    monkeypatch.setattr(connection, "HEAD_TIMEOUT", 0.1)
    served = await serve_app(hello)
    wire = await served.connect()
    if start:
        await wire.send(start)
    assert await wire.ended()


async def test_a_trickled_head_does_not_buy_time(
    serve_app: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection, "HEAD_TIMEOUT", 0.3)
    served = await serve_app(hello)
    wire = await served.connect()
    await wire.send(GET)
    await wire.answer()
    started = trio.current_time()

    async def trickle() -> None:
        while trio.current_time() - started < 5.0:
            await wire.send(b"G")
            await trio.sleep(0.02)  # a real socket on the real clock

    with pytest.raises(trio.BrokenResourceError):
        await trickle()
    assert trio.current_time() - started < 4.0


async def test_an_exception_of_the_application_ends_only_its_request(serve_app: Any) -> None:
    served = await serve_app(broken)
    assert (await served.ask(GET)).status == 500
    assert (await served.ask(GET)).status == 500


async def test_http2_is_not_spoken_on_a_plain_connection(serve_app: Any) -> None:
    served = await serve_app(hello)
    upgrade = b"GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade, HTTP2-Settings\r\n"
    answer = await served.ask(upgrade + b"Upgrade: h2c\r\nHTTP2-Settings: AAMAAABk\r\n\r\n")
    assert (answer.status, answer.body) == (200, b"1.1")
    wire = await served.connect()
    await wire.send(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
    data = await wire.more()
    assert data.startswith(b"HTTP/1.1 ")
    assert await wire.ended()


async def test_connections_beyond_the_bound_are_closed(
    serve_app: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listen, "MAX_CONNECTIONS", 1)
    served = await serve_app(hello)
    first = await served.connect()
    await first.send(GET)
    await first.answer()
    second = await served.connect()
    assert await second.ended()
    await first.send(GET)
    assert (await first.answer()).status == 200


async def test_stopping_waits_for_no_idle_stuck_or_endless_client(serve_app: Any) -> None:
    served = await serve_app(flood)
    stuck = await served.connect()
    await stuck.send(GET)
    await stuck.head()
    await trio.sleep(0.2)  # real sockets: let its buffers fill
    idle = await served.connect()
    reader = await served.connect()
    await reader.send(GET)
    await reader.head()
    assert await served.stop() < 2.5
    assert await idle.ended()


async def test_stopping_lets_a_request_finish(serve_app: Any, nursery: trio.Nursery) -> None:
    entered = trio.Event()

    @app
    async def slow(_scope: dict[str, Any], receive: Receive, send: Send) -> None:
        await receive()
        entered.set()
        await trio.sleep(0.2)
        headers = [(b"content-length", b"2")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": b"ok"})

    served = await serve_app(slow)
    wire = await served.connect()
    await wire.send(GET)
    await entered.wait()
    nursery.start_soon(served.stop)
    assert (await wire.answer()).body == b"ok"
    assert await wire.ended()


async def test_stopping_with_idle_keep_alive_clients_is_immediate(serve_app: Any) -> None:
    served = await serve_app(hello)
    wires = [await served.connect() for _ in range(20)]
    for wire in wires:
        await wire.send(GET)
        await wire.answer()
    assert await served.stop() < 0.4
