"""Calls over real sockets: early answers, leaving in every way, streams, stopping."""

import json
import socket
from functools import partial
from typing import Any

import pytest
import trio
from hypercorn.config import Config
from hypercorn.trio import serve

from a2a_trio.rules.admission import AdmissionPolicy
from a2a_trio.server.asgi import AsgiApp
from a2a_trio.server.calls import Published
from a2a_trio.wire.model import Message, Part, Role

SEND = {"message": {"messageId": "m", "role": "ROLE_USER", "parts": [{"text": "x"}]}}


def call(method: str, params: object = SEND, *headers: bytes) -> bytes:
    request = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
    body = json.dumps(request).encode()
    lines = (
        b"POST / HTTP/1.1",
        b"Host: localhost",
        b"Content-Type: application/json",
        b"Content-Length: %d" % len(body),
        *headers,
        b"",
        body,
    )
    return b"\r\n".join(lines)


async def until(condition: Any) -> None:
    """Wait for something that the network brings about."""
    with trio.fail_after(5):
        while not condition():  # noqa: ASYNC110 - what is waited for has no event to wait on
            await trio.sleep(0.005)


# --- early answers --------------------------------------------------------------------------


@pytest.mark.parametrize("framing", ["length", "chunked"])
async def test_a_refused_upload_gets_its_answer_and_the_connection_lives(
    make_edge: Any, serve_app: Any, framing: str
) -> None:
    edge = make_edge(AdmissionPolicy(tokens=(("alice", "t"),)))
    served = await serve_app(AsgiApp(edge.endpoint))
    wire = await served.connect()
    head = b"POST / HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n"
    if framing == "length":
        await wire.send(head + b"Content-Length: 400000\r\n\r\n")
    else:
        await wire.send(head + b"Transfer-Encoding: chunked\r\n\r\n61a80\r\n")
    assert (await wire.answer()).status == 401  # before the body was sent
    await wire.send(b"x" * 400_000 + (b"\r\n0\r\n\r\n" if framing == "chunked" else b""))
    await wire.send(call("SendMessage", SEND, b"Authorization: Bearer t"))
    assert (await wire.answer()).status == 200


async def test_an_upload_of_any_size_does_not_wedge_the_connection(
    make_edge: Any, serve_app: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Above what is discarded the connection ends, but the answer arrives first."""
    monkeypatch.setattr("a2a_trio.server.asgi.DISCARD_BYTES", 200_000)
    served = await serve_app(AsgiApp(make_edge(max_body_bytes=1_000).endpoint))
    wire = await served.connect()
    head = b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    await wire.send(head + b"Content-Length: 50000000\r\n\r\n")
    sent = 0

    async def upload() -> None:
        nonlocal sent
        while sent < 50_000_000:
            await wire.send(b"x" * 50_000)
            sent += 50_000

    async with trio.open_nursery() as nursery:

        @nursery.start_soon
        async def upload_until_closed() -> None:
            with pytest.raises(trio.BrokenResourceError):
                await upload()

        assert (await wire.answer()).status == 413
    assert sent < 50_000_000
    assert (await served.ask(call("SendMessage"))).status == 200


async def test_a_client_that_waits_for_100_continue_is_told_to_go_on(
    edge: Any, serve_app: Any
) -> None:
    served = await serve_app(AsgiApp(edge.endpoint))
    wire = await served.connect()
    head, _, body = call("SendMessage", SEND, b"Expect: 100-continue").partition(b"\r\n\r\n")
    await wire.send(head + b"\r\n\r\n")
    assert (await wire.head()).status == 100
    await wire.send(body)
    assert (await wire.answer()).status == 200


# --- leaving --------------------------------------------------------------------------------


@pytest.mark.parametrize("how", ["close", "half-close", "reset"])
@pytest.mark.parametrize("method", ["SendMessage", "SendStreamingMessage", "SubscribeToTask"])
async def test_a_caller_that_leaves_ends_only_its_own_wait(
    edge: Any, serve_app: Any, method: str, how: str
) -> None:
    edge.operations.wait = 3600.0
    served = await serve_app(AsgiApp(edge.endpoint))
    wire = await served.connect()
    await wire.send(call(method, {"id": "t-1"} if method == "SubscribeToTask" else SEND))
    await until(lambda: edge.operations.calls)
    await leave(wire, how)
    await until(lambda: edge.audit[-1].phase == "outcome")
    assert edge.audit[-1].error == "disconnected"
    edge.operations.wait = 0.0
    assert (await served.ask(call("SendMessage"))).status == 200


@pytest.mark.parametrize("method", ["SendMessage", "SendStreamingMessage"])
async def test_callers_that_are_gone_at_once_leave_nothing_waiting(
    edge: Any, serve_app: Any, method: str
) -> None:
    """Whether the client or the application is faster is a race: many runs, no leak."""
    edge.operations.wait = 3600.0
    app = AsgiApp(edge.endpoint)
    entered = left = 0

    async def counted(scope: Any, receive: Any, send: Any) -> None:
        nonlocal entered, left
        entered += 1
        try:
            await app(scope, receive, send)
        finally:
            left += 1

    served = await serve_app(counted)
    for _ in range(60):
        # Without a checkpoint, so that the server finds the request and the end of it together.
        with socket.create_connection(("127.0.0.1", served.port)) as client:
            client.sendall(call(method))
    await until(lambda: entered == left == 60)
    assert sum(entry.phase == "request" for entry in edge.audit) == len(edge.operations.calls)
    assert all(e.error == "disconnected" for e in edge.audit if e.phase == "outcome")


@pytest.mark.parametrize("how", ["close", "half-close", "reset"])
async def test_a_caller_that_leaves_a_stream_frees_it(edge: Any, serve_app: Any, how: str) -> None:
    source = edge.operations.source
    source._steps.insert(1, 3600.0)
    served = await serve_app(AsgiApp(edge.endpoint))
    wire = await served.connect()
    await wire.send(call("SendStreamingMessage"))
    await wire.until(b"data: ")
    await leave(wire, how)
    await until(lambda: source.closed)
    assert b"a2a_streams_open 0.0" in edge.metrics.render()[0]


async def leave(wire: Any, how: str) -> None:
    if how == "half-close":
        await wire.stream.send_eof()
    elif how == "reset":
        wire.stream.setsockopt(1, 13, b"\x01\x00\x00\x00\x00\x00\x00\x00")  # SO_LINGER of 0 s
        await wire.close()
    else:
        await wire.close()


# --- streams --------------------------------------------------------------------------------


async def test_a_stream_ends_with_its_last_chunk_and_the_connection_lives(
    edge: Any, serve_app: Any
) -> None:
    served = await serve_app(AsgiApp(edge.endpoint))
    wire = await served.connect()
    await wire.send(call("SendStreamingMessage"))
    assert (await wire.head()).headers["content-type"] == "text/event-stream"
    text = await wire.until(b"\r\n0\r\n\r\n")
    assert text.count(b"data: ") == 3
    await wire.send(call("SendMessage"))
    assert (await wire.answer()).status == 200


async def test_comments_fill_silence_before_the_first_event(make_edge: Any, serve_app: Any) -> None:
    edge = make_edge(keep_alive_sec=0.05)
    edge.operations.source._steps.insert(0, 3600.0)
    served = await serve_app(AsgiApp(edge.endpoint))
    wire = await served.connect()
    await wire.send(call("SendStreamingMessage"))
    await wire.head()
    assert await wire.until(b":\n\n")
    assert await wire.until(b":\n\n")


async def test_stopping_is_not_held_up_by_any_client(edge: Any, serve_app: Any) -> None:
    """An idle one, one in a stream, one that waits and one that stopped reading: under 3 s."""
    big = Message(message_id="m", role=Role.AGENT, parts=(Part(text="x" * 100_000),))
    stuck_source = edge.operations.source
    stuck_source._steps[:] = [Published(1, big)] * 1_000
    served = await serve_app(AsgiApp(edge.endpoint))
    stuck = await served.connect()
    await stuck.send(call("SendStreamingMessage"))
    await stuck.head()
    edge.operations.source = type(stuck_source)(3600.0)
    reading = await served.connect()
    await reading.send(call("SendStreamingMessage"))
    await reading.head()
    idle = await served.connect()
    await idle.send(call("SendMessage"))
    await idle.answer()
    edge.operations.wait = 3600.0
    waiting = await served.connect()
    await waiting.send(call("SendMessage"))
    await until(lambda: len(edge.operations.calls) == 4)
    assert await served.stop() < 2.0
    assert stuck_source.closed == 1
    assert await idle.ended()
    assert await reading.ended()


# --- the same app under hypercorn's own server ----------------------------------------------


async def test_the_app_needs_no_listener_of_ours(edge: Any, nursery: trio.Nursery) -> None:
    app: Any = AsgiApp(edge.endpoint)
    config = Config()
    config.bind = ["127.0.0.1:0"]
    config.errorlog = None
    shutdown = trio.Event()

    async def run(started: trio.Event, urls: list[str]) -> None:
        async with trio.open_nursery() as inner:
            urls += await inner.start(partial(serve, app, config, shutdown_trigger=shutdown.wait))
            started.set()

    started, urls = trio.Event(), list[str]()
    nursery.start_soon(run, started, urls)
    await started.wait()
    stream = await trio.open_tcp_stream("127.0.0.1", int(urls[0].rpartition(":")[2]))
    async with stream:
        for _ in range(3):
            await stream.send_all(call("SendMessage"))
            data = b""
            while not data.endswith(b"}}}"):
                data += await stream.receive_some()
            assert data.startswith(b"HTTP/1.1 200")
        edge.operations.wait = 3600.0
        await stream.send_all(call("SendMessage"))
        await until(lambda: len(edge.operations.calls) == 4)
    await until(lambda: edge.audit[-1].error == "disconnected")
    shutdown.set()
