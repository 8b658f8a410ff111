"""An agent inside a Quart application."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, cast

import pytest
import trio

from a2a_trio.server.asgi import AsgiApp
from a2a_trio.server.quart_app import AgentQuart, quart_app


@pytest.fixture
def app(edge: Any) -> AgentQuart:
    app = quart_app(AsgiApp(edge.endpoint))

    @app.get("/hello")
    async def hello() -> str:
        return "from quart"

    return app


async def get(app: AgentQuart, path: str, root_path: str = "") -> tuple[int, bytes]:
    """Make one request as a server would."""
    put, receive = trio.open_memory_channel[Any](10)
    put.send_nowait({"type": "http.request", "body": b"", "more_body": False})
    sent: list[dict[str, Any]] = []

    async def send(event: Any) -> None:
        await trio.lowlevel.checkpoint()
        sent.append(event)

    scope = {
        "type": "http",
        "http_version": "1.1",
        "method": "GET",
        "scheme": "http",
        "path": path,
        "raw_path": path.encode(),
        "query_string": b"",
        "root_path": root_path,
        "headers": [(b"host", b"localhost")],
        "client": ("127.0.0.1", 5),
        "server": ("127.0.0.1", 80),
        "extensions": {},
        "state": {},
        "asgi": {"version": "3.0", "spec_version": "2.1"},
    }
    await app(cast("Any", scope), receive.receive, send)
    body = b"".join(event.get("body", b"") for event in sent[1:])
    return sent[0]["status"], body


@pytest.mark.parametrize("path", ["/", "/health", "/.well-known/agent-card.json"])
async def test_the_agents_routes_are_answered_by_the_agent(app: AgentQuart, path: str) -> None:
    status, body = await get(app, path)
    assert status == 200
    assert b"pi" in body


async def test_other_routes_are_the_users(app: AgentQuart) -> None:
    assert await get(app, "/hello") == (200, b"from quart")
    status, body = await get(app, "/nothing")
    assert status == 404
    assert b"jsonrpc" not in body


async def test_an_app_below_a_prefix(app: AgentQuart) -> None:
    assert (await get(app, "/agents/pi/health", "/agents/pi"))[0] == 200
    assert await get(app, "/agents/pi/hello", "/agents/pi") == (200, b"from quart")


async def test_services_are_open_while_the_application_lives(edge: Any) -> None:
    log: list[str] = []

    @asynccontextmanager
    async def services() -> AsyncIterator[None]:
        log.append("opened")
        yield
        log.append("closed")

    app = quart_app(AsgiApp(edge.endpoint, services=services))
    async with app.test_app():
        assert log == ["opened"]
    assert log == ["opened", "closed"]


async def test_without_a_lifespan_the_services_can_be_opened_by_hand(app: AgentQuart) -> None:
    async with app.agent.services():
        assert (await get(app, "/health"))[0] == 200
