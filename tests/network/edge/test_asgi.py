# ruff: noqa: ARG001 - a test asks for the virtual clock by naming its fixture
"""The ASGI adapter against a server that a test plays."""

import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any, final

import pytest
import trio
import trio.testing
from structlog.testing import capture_logs

from a2a_trio.server import asgi
from a2a_trio.server.asgi import AsgiApp
from a2a_trio.server.http import ON_DISCONNECT

CALL = json.dumps(
    {
        "jsonrpc": "2.0",
        "id": 7,
        "method": "SendMessage",
        "params": {"message": {"messageId": "m", "role": "ROLE_USER", "parts": [{"text": "x"}]}},
    }
).encode()
STREAM = CALL.replace(b"SendMessage", b"SendStreamingMessage")

Events = list[dict[str, Any]]


@final
class Server:
    """Plays the server of one request: events in, events out."""

    def __init__(self, **scope: Any) -> None:
        self.scope: dict[str, Any] = {
            "type": "http",
            "http_version": "1.1",
            "method": "POST",
            "scheme": "http",
            "path": "/",
            "query_string": b"",
            "root_path": "",
            "headers": [(b"host", b"127.0.0.1"), (b"content-type", b"application/json")],
            "client": ("127.0.0.1", 5),
            "extensions": {},
            **scope,
        }
        self.put, self._get = trio.open_memory_channel[dict[str, Any]](1000)
        self.sent: Events = []
        self.send_takes = 0.0
        self.send_fails: Exception | None = None

    def header(self, name: bytes, value: bytes) -> "Server":
        self.scope["headers"].append((name, value))
        return self

    def body(self, *chunks: bytes, last: bool = True, length: bool = True) -> "Server":
        if length:
            self.header(b"content-length", b"%d" % sum(map(len, chunks)))
        for chunk in chunks:
            self.put.send_nowait({"type": "http.request", "body": chunk, "more_body": True})
        if last:
            self.put.send_nowait({"type": "http.request", "body": b"", "more_body": False})
        return self

    def leave(self) -> None:
        self.put.send_nowait({"type": "http.disconnect"})

    async def run(self, app: AsgiApp) -> "Server":
        await app(self.scope, self._get.receive, self._send)
        return self

    async def _send(self, event: Any) -> None:
        await trio.sleep(self.send_takes)
        if self.send_fails is not None:
            raise self.send_fails
        self.sent.append(dict(event))
        if event["type"] == "http.response.body" and not event.get("more_body"):
            self.leave()  # as servers do

    @property
    def status(self) -> int:
        status: int = self.sent[0]["status"]
        return status

    @property
    def headers(self) -> dict[bytes, bytes]:
        return dict(self.sent[0]["headers"])

    @property
    def content(self) -> bytes:
        return b"".join(event["body"] for event in self.sent[1:])

    @property
    def finished(self) -> bool:
        last = self.sent[-1] if self.sent else {"type": "nothing"}
        return last["type"] == "http.response.body" and not last.get("more_body")


@pytest.fixture
def app(edge: Any) -> AsgiApp:
    return AsgiApp(edge.endpoint)


# --- bodies ---------------------------------------------------------------------------------


async def test_a_call_is_three_events_at_most(app: AsgiApp) -> None:
    server = await Server().body(CALL).run(app)
    assert (server.status, len(server.sent)) == (200, 2)
    assert json.loads(server.content)["result"]
    assert server.headers[b"content-length"] == str(len(server.content)).encode()


async def test_a_body_in_pieces_is_joined(app: AsgiApp) -> None:
    server = await Server().body(*(CALL[i : i + 9] for i in range(0, len(CALL), 9))).run(app)
    assert json.loads(server.content)["result"]


async def test_a_declared_length_above_the_limit_is_refused_unread(make_edge: Any) -> None:
    app = AsgiApp(make_edge(max_body_bytes=10).endpoint)
    server = Server().body(b"x" * 11, last=False)
    server.leave()
    await server.run(app)
    assert (server.status, server.finished) == (413, True)


async def test_a_chunked_body_is_counted(make_edge: Any) -> None:
    app = AsgiApp(make_edge(max_body_bytes=10).endpoint)
    for size, status in ((2, 200), (3, 413)):
        server = Server().header(b"transfer-encoding", b"chunked")
        await server.body(*([b" " * size] * 5), length=False).run(app)
        assert server.status == status
        assert server.finished


async def test_an_early_answer_is_sent_before_the_rest_is_read(
    make_edge: Any, autojump_clock: Any
) -> None:
    """A client that sees a reset instead of its 413 would try again."""
    app = AsgiApp(make_edge(max_body_bytes=10).endpoint)
    server = Server().body(b"x" * 20, last=False)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(server.run, app)
        await trio.testing.wait_all_tasks_blocked()
        assert server.status == 413
        assert json.loads(server.content)["error"]["code"] == -32600
        assert not server.finished  # still reading
        server.body(length=False)
    assert server.finished


async def test_a_client_that_never_finishes_its_body_is_left_after_a_while(
    make_edge: Any, autojump_clock: Any
) -> None:
    app = AsgiApp(make_edge(max_body_bytes=10).endpoint)
    server = Server().body(b"x" * 20, last=False)
    started = trio.current_time()
    await server.run(app)
    assert server.finished
    assert trio.current_time() - started == pytest.approx(asgi.DISCARD_TIMEOUT)


async def test_a_flood_is_discarded_up_to_a_bound(
    make_edge: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(asgi, "DISCARD_BYTES", 30)
    app = AsgiApp(make_edge(max_body_bytes=10).endpoint)
    server = await Server().body(*([b"x" * 10] * 100), last=False).run(app)
    assert server.finished


# --- leaving --------------------------------------------------------------------------------


async def test_a_caller_that_leaves_cancels_the_wait(
    edge: Any, app: AsgiApp, autojump_clock: Any
) -> None:
    edge.operations.wait = 1000.0
    server = Server().body(CALL)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(server.run, app)
        await trio.sleep(3)
        server.leave()
    assert trio.current_time() < 100
    assert server.sent == []
    assert edge.audit[-1].error == "disconnected"


async def test_a_caller_that_leaves_within_its_body_starts_nothing(edge: Any, app: AsgiApp) -> None:
    server = Server().header(b"content-length", b"99").body(CALL[:10], last=False, length=False)
    server.leave()
    await server.run(app)
    assert server.sent == []
    assert edge.operations.calls == []


async def test_our_listener_reports_leaving_without_a_task(
    edge: Any, app: AsgiApp, autojump_clock: Any
) -> None:
    edge.operations.wait = 1000.0
    leave: list[Callable[[], None]] = []
    server = Server(extensions={ON_DISCONNECT: {"call": leave.append}}).body(CALL)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(server.run, app)
        await trio.sleep(3)
        leave[0]()
    assert trio.current_time() < 100
    assert edge.audit[-1].error == "disconnected"


@pytest.mark.parametrize("extension", [True, False])
async def test_the_last_send_survives_the_disconnect_that_it_causes(
    app: AsgiApp, autojump_clock: Any, *, extension: bool
) -> None:
    leave: list[Callable[[], None]] = []
    extensions = {ON_DISCONNECT: {"call": leave.append}} if extension else {}
    for body in (CALL, STREAM):
        server = Server(extensions=extensions).body(body)
        server.send_takes = 0.5
        await server.run(app)
        assert server.finished


async def test_the_last_send_is_bounded_when_cancelled(app: AsgiApp, autojump_clock: Any) -> None:
    server = Server().body(CALL)
    server.send_takes = 1e6
    started = trio.current_time()
    with trio.move_on_after(1):
        await server.run(app)
    assert trio.current_time() - started == pytest.approx(asgi.LAST_SEND_TIMEOUT)


# --- streams --------------------------------------------------------------------------------


async def test_a_stream_is_sent_piece_by_piece_and_closed(edge: Any, app: AsgiApp) -> None:
    server = await Server().body(STREAM).run(app)
    assert server.headers[b"content-type"] == b"text/event-stream"
    assert b"content-length" not in server.headers
    assert len(server.sent) == 5
    assert server.finished
    assert edge.operations.source.closed == 1


async def test_a_stream_whose_caller_leaves_is_closed(
    edge: Any, app: AsgiApp, autojump_clock: Any
) -> None:
    edge.operations.source._steps.insert(1, 1000.0)
    server = Server().body(STREAM)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(server.run, app)
        await trio.sleep(3)
        server.leave()
    assert trio.current_time() < 100
    assert edge.operations.source.closed == 1
    assert not server.finished
    assert b"a2a_streams_open 0.0" in edge.metrics.render()[0]


async def test_a_send_that_fails_closes_the_stream(edge: Any, app: AsgiApp) -> None:
    server = Server().body(STREAM)
    server.send_fails = OSError("gone")
    with pytest.RaisesGroup(OSError):
        await server.run(app)
    assert edge.operations.source.closed == 1


async def test_leaving_at_any_moment_leaks_no_stream(make_edge: Any) -> None:
    """Whatever step the caller leaves at, a source that was handed out is closed once."""
    outcomes = set()
    for steps in range(25):
        edge = make_edge()
        server = Server().body(STREAM)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(server.run, AsgiApp(edge.endpoint))
            for _ in range(steps):
                await trio.lowlevel.checkpoint()
            nursery.cancel_scope.cancel()
        assert edge.operations.source.closed == edge.operations.handed_out
        assert b"a2a_streams_open 0.0" in edge.metrics.render()[0]
        outcomes.add((edge.operations.handed_out, server.finished))
    assert outcomes == {(0, False), (1, False), (1, True)}  # before, midway, too late


# --- framing and other scopes ---------------------------------------------------------------


async def test_two_framings_at_once_are_refused(app: AsgiApp) -> None:
    server = Server().header(b"transfer-encoding", b"chunked").body(CALL)
    await server.run(app)
    assert (server.status, server.headers[b"connection"]) == (400, b"close")


@pytest.mark.parametrize(("version", "status"), [("1.0", 200), ("2", 200), ("9.9", 505)])
async def test_unknown_http_versions_are_refused(app: AsgiApp, version: str, status: int) -> None:
    assert (await Server(http_version=version).body(CALL).run(app)).status == status


@pytest.mark.parametrize(
    ("path", "root_path", "status"),
    [("/a/b/", "/a/b", 200), ("/a/b", "/a/b", 200), ("/", "/a/b", 200), ("/a/bc", "/a/b", 404)],
)
async def test_a_mounted_app_answers_below_its_prefix(
    app: AsgiApp, path: str, root_path: str, status: int
) -> None:
    server = await Server(path=path, root_path=root_path).body(CALL).run(app)
    assert server.status == status


async def test_head_has_no_body_but_its_length(app: AsgiApp) -> None:
    server = await Server(method="HEAD", path="/health").run(app)
    assert (server.status, server.content) == (200, b"")
    assert int(server.headers[b"content-length"]) > 0


async def test_304_has_no_length(app: AsgiApp) -> None:
    server = Server(method="GET", path="/.well-known/agent-card.json")
    await server.header(b"if-none-match", b"*").run(app)
    assert server.status == 304
    assert b"content-length" not in server.headers


async def test_a_websocket_is_refused(app: AsgiApp) -> None:
    server = Server(type="websocket")
    server.put.send_nowait({"type": "websocket.connect"})
    await server.run(app)
    assert [event["type"] for event in server.sent] == ["websocket.close"]


async def test_an_unknown_scope_is_an_error(app: AsgiApp) -> None:
    with pytest.raises(NotImplementedError):
        await Server(type="carrier-pigeon").run(app)


async def test_services_live_as_long_as_the_lifespan(edge: Any) -> None:
    log: list[str] = []

    @asynccontextmanager
    async def services() -> AsyncIterator[None]:
        log.append("opened")
        yield
        log.append("closed")

    app = AsgiApp(edge.endpoint, services=services)
    server = Server(type="lifespan")
    server.put.send_nowait({"type": "lifespan.startup"})
    async with trio.open_nursery() as nursery:
        nursery.start_soon(server.run, app)
        await trio.testing.wait_all_tasks_blocked()
        assert log == ["opened"]
        server.put.send_nowait({"type": "lifespan.shutdown"})
    assert log == ["opened", "closed"]
    assert [e["type"] for e in server.sent] == [
        "lifespan.startup.complete",
        "lifespan.shutdown.complete",
    ]


async def test_services_that_do_not_start_fail_the_startup(edge: Any) -> None:
    @asynccontextmanager
    async def services() -> AsyncIterator[None]:
        raise OSError("no journal")
        yield

    server = Server(type="lifespan")
    server.put.send_nowait({"type": "lifespan.startup"})
    with capture_logs() as logs:
        await server.run(AsgiApp(edge.endpoint, services=services))
    assert [e["type"] for e in server.sent] == ["lifespan.startup.failed"]
    assert len(logs) == 1
