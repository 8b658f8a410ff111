"""One of four servers for ``edge``: a fixed answer, or an endpoint over fixed operations.

``edge_server.py {bare,endpoint} {hypercorn,ours}`` prints ``{"url": ...}`` and serves until its
standard input ends. What ``bare`` costs is HTTP; the difference to ``endpoint`` is the edge.
"""

import json
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from functools import partial
from typing import Any, Final, cast

import trio
from hypercorn.config import Config
from hypercorn.trio import serve

from a2a_trio.config.schema import Settings
from a2a_trio.rules.admission import Admission, AdmissionPolicy
from a2a_trio.rules.card import CardFacts, build_card
from a2a_trio.rules.rate_limit import RateLimiter
from a2a_trio.server.asgi import AsgiApp, Receive, Scope, Send
from a2a_trio.server.calls import CallContext, Operations
from a2a_trio.server.cards import Cards
from a2a_trio.server.endpoint import Endpoint
from a2a_trio.server.listen import bind, serve_http
from a2a_trio.server.metrics import Metrics
from a2a_trio.wire.model import Artifact, Part, Task, TaskState, TaskStatus
from a2a_trio.wire.requests import SendMessageRequest, SendMessageResponse

_MANY: Final = 10**9
_TASK: Final = Task(
    id="11111111-1111-4111-8111-111111111111",
    context_id="22222222-2222-4222-8222-222222222222",
    status=TaskStatus(state=TaskState.COMPLETED, timestamp=datetime(2026, 1, 1, tzinfo=UTC)),
    artifacts=(Artifact(artifact_id="reply", parts=(Part(text="hello there"),)),),
)
_BODY: Final = b'{"jsonrpc":"2.0","id":1,"result":{"task":"TASK_STATE_COMPLETED"}}'


async def bare(scope: Scope, receive: Receive, send: Send) -> None:
    """Answer every request with the same bytes."""
    if scope["type"] == "lifespan":
        await receive()
        await send({"type": "lifespan.startup.complete"})
        await receive()
        await send({"type": "lifespan.shutdown.complete"})
        return
    while (await receive())["more_body"]:
        pass
    headers = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(_BODY))]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": _BODY})


class FixedOperations:
    """Operations that cost nothing."""

    async def send_message(
        self, _request: SendMessageRequest, _context: CallContext, /
    ) -> SendMessageResponse:
        """Return the same task every time."""
        await trio.lowlevel.checkpoint()
        return SendMessageResponse(task=_TASK)

    def stored_dialect(self, _task_id: str, /) -> None:
        """Know no task."""


def endpoint() -> AsgiApp:
    """Return the edge over operations that cost nothing."""
    facts = CardFacts(name="bench", description="-", version="1", url="http://127.0.0.1/")
    card = build_card(facts)
    return AsgiApp(
        Endpoint(
            cast("Operations", FixedOperations()),  # the load only sends
            admission=Admission(
                AdmissionPolicy(),
                limiter=RateLimiter(_MANY),
                polling_limiter=RateLimiter(_MANY),
                flood_limiter=RateLimiter(_MANY),
            ),
            cards=Cards(card, card, compat=False, modified=datetime.now(UTC)),
            settings=Settings(),
            metrics=Metrics(),
            audit=lambda _: None,
            redact=lambda text: text,
            now=time.monotonic,
            utc=lambda: datetime.now(UTC),
            ready=lambda: True,
        )
    )


@asynccontextmanager
async def running(app: Any, server: str) -> AsyncIterator[str]:
    """Serve an app and give its URL."""
    async with trio.open_nursery() as nursery:
        if server == "ours":
            sock = bind("127.0.0.1", 0)
            url = f"http://127.0.0.1:{sock.getsockname()[1]}/"
            await nursery.start(partial(serve_http, app, sock, shutdown=trio.Event()))
        else:
            config = Config()
            config.bind = ["127.0.0.1:0"]
            config.errorlog = None
            config.keep_alive_max_requests = _MANY
            (bound,) = await nursery.start(serve, app, config)
            url = f"{bound}/"
        yield url
        nursery.cancel_scope.cancel()


async def main(kind: str, server: str) -> None:
    """Serve until standard input ends."""
    async with running(bare if kind == "bare" else endpoint(), server) as url:
        sys.stdout.write(json.dumps({"url": url}) + "\n")
        sys.stdout.flush()
        await trio.to_thread.run_sync(sys.stdin.read)


if __name__ == "__main__":
    trio.run(main, sys.argv[1], sys.argv[2])
