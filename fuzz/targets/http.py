"""Invariant: whatever bytes a client sends, the connection ends and no answer is a server's fault.

The bytes go through the real connection, the ASGI adapter and the endpoint, over a socket pair and
under a virtual clock. Every answer is HTTP/1.1, none is 500, no JSON-RPC error is -32603, and no
stream stays open.
"""

import re
import socket
from contextlib import suppress
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final, cast

import trio
import trio.testing
from hypercorn.app_wrappers import ASGIWrapper
from hypercorn.config import Config
from hypercorn.trio.worker_context import WorkerContext

from a2a_trio.config.schema import Settings
from a2a_trio.config.server_schema import ServerSettings
from a2a_trio.errors import TaskNotFoundError
from a2a_trio.rules.admission import Admission, AdmissionPolicy
from a2a_trio.rules.card import CardFacts, build_card
from a2a_trio.rules.rate_limit import RateLimiter
from a2a_trio.server.asgi import AsgiApp
from a2a_trio.server.calls import CallContext, Operations, Published
from a2a_trio.server.cards import Cards
from a2a_trio.server.connection import Connection
from a2a_trio.server.endpoint import Endpoint
from a2a_trio.server.metrics import Metrics
from a2a_trio.wire.model import Message, Part, Role
from a2a_trio.wire.requests import SendMessageResponse
from fuzz.harness import Target

if TYPE_CHECKING:
    from hypercorn.typing import ASGIFramework

_MANY: Final = 10**9
_AT: Final = datetime(2026, 1, 1, tzinfo=UTC)
_MESSAGE: Final = Message(message_id="m", role=Role.AGENT, parts=(Part(text="x"),))
_PATIENCE: Final = 3600.0
"""Virtual seconds after which a connection will never end."""

_STATUS: Final = re.compile(rb"HTTP/1\.1 (\d{3}) ")


class OneEvent:
    """A stream of one message."""

    def __init__(self) -> None:
        self._left = [Published(1, _MESSAGE)]

    async def receive(self) -> Published | None:
        """Return the message, then the end."""
        await trio.lowlevel.checkpoint()
        return self._left.pop() if self._left else None

    def close(self) -> None:
        """Hold nothing."""


class Fixed:
    """Operations that know no task and answer every message."""

    async def send_message(self, _request: object, _context: CallContext, /) -> SendMessageResponse:
        """Answer."""
        await trio.lowlevel.checkpoint()
        return SendMessageResponse(message=_MESSAGE)

    async def send_streaming_message(self, _request: object, _context: CallContext, /) -> OneEvent:
        """Answer as a stream."""
        await trio.lowlevel.checkpoint()
        return OneEvent()

    async def _unknown(self, _request: object, _context: CallContext, /) -> None:
        await trio.lowlevel.checkpoint()
        raise TaskNotFoundError

    get_task = list_tasks = cancel_task = subscribe_to_task = _unknown

    def stored_dialect(self, _task_id: str, /) -> None:
        """Know no task."""


def endpoint(metrics: Metrics) -> Endpoint:
    """Return an endpoint with a small body limit and no other."""
    facts = CardFacts(name="fuzz", description="-", version="1", url="http://127.0.0.1/")
    card = build_card(facts)
    limiter = RateLimiter(_MANY)
    return Endpoint(
        cast("Operations", Fixed()),  # none of its answers is looked at
        admission=Admission(
            AdmissionPolicy(), limiter=limiter, polling_limiter=limiter, flood_limiter=None
        ),
        cards=Cards(card, card, compat=True, modified=_AT),
        settings=Settings(server=ServerSettings(max_body_bytes=2_000)),
        metrics=metrics,
        audit=lambda _: None,
        redact=lambda text: text,
        now=trio.current_time,
        utc=lambda: _AT,
        ready=lambda: True,
    )


async def exchange(data: bytes, metrics: Metrics) -> bytes:
    """Send bytes, end the sending side, and return everything that comes back."""
    ours, theirs = (trio.SocketStream(s) for s in trio.socket.socketpair(socket.AF_UNIX))
    config = Config()
    config.errorlog = None
    app = ASGIWrapper(cast("ASGIFramework", AsgiApp(endpoint(metrics))))
    connection = Connection(app, config, WorkerContext(None), theirs)
    answer = bytearray()
    with trio.fail_after(_PATIENCE):
        async with ours, trio.open_nursery() as nursery:
            nursery.start_soon(connection.run)
            nursery.start_soon(send, ours, data)
            while chunk := await ours.receive_some():
                answer += chunk
    return bytes(answer)


async def send(stream: trio.SocketStream, data: bytes) -> None:
    """Send, and let the virtual clock end what waits for more."""
    with suppress(trio.BrokenResourceError):  # the server had enough
        await stream.send_all(data)


def check(data: bytes) -> None:
    """Be a client."""
    metrics = Metrics()
    clock = trio.testing.MockClock(autojump_threshold=0)
    answer = trio.run(exchange, data, metrics, clock=clock)
    assert not answer or _STATUS.match(answer), answer[:100]
    assert b"HTTP/1.1 500 " not in answer
    assert b"-32603" not in answer
    assert b"a2a_streams_open 0.0" in metrics.render()[0]


TARGET = Target(
    name="http",
    check=check,
    words=(
        b"GET ", b"POST ", b"HEAD ", b"OPTIONS ", b"/", b"/health", b"/metrics", b"/.well-known/agent.json",
        b"?A2A-Version=0.3", b" HTTP/1.1\r\n", b" HTTP/1.0\r\n", b" HTTP/2.0\r\n", b"Host: localhost\r\n",
        b"Content-Type: application/json\r\n", b"Content-Length: 0\r\n", b"Content-Length: 12\r\n",
        b"Transfer-Encoding: chunked\r\n", b"Connection: close\r\n", b"Connection: upgrade\r\n",
        b"Upgrade: websocket\r\n", b"Upgrade: h2c\r\n", b"Expect: 100-continue\r\n", b"\r\n", b"\r\n\r\n",
        b"0\r\n\r\n", b"5\r\nhello\r\n", b"Origin: null\r\n", b"If-None-Match: *\r\n",
        b"If-Modified-Since: x\r\n", b"Last-Event-ID: 1\r\n", b"A2A-Version: 1.0\r\n", b"\0", b"\xff",
        b'{"jsonrpc":"2.0","id":1,"method":"SendStreamingMessage","params":{}}',
    ),
)  # fmt: skip
