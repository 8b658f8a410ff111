"""One HTTP/1.1 connection: hypercorn's protocol and ASGI machinery on a Trio stream of ours.

Hypercorn parses, keeps the request's state and runs the application. What this module does
instead of ``hypercorn.trio.TCPServer``, and why:

* the idle timer is a deadline of the read, not a task that is started and cancelled per request;
* head and body of an answer leave in one segment, not in three sends;
* a closing connection first says so and then reads on for a moment: closing with bytes unread
  makes the kernel reset it, and the client may lose the answer;
* sends are shielded, as they must be, but a client that stopped reading can be cut off by
  ``abort``, so that it cannot hold up a stop;
* no upgrade to HTTP/2 or WebSocket: nothing here bounds them, and a WebSocket handshake that
  hypercorn refuses leaves the connection waiting for ever.
"""

import math
from collections.abc import Callable
from functools import partial
from typing import Final, final

import h11
import trio
from hypercorn.config import Config
from hypercorn.events import Closed, Event, RawData, Updated
from hypercorn.protocol.events import Body, EndBody, Event as StreamEvent, Request, Response
from hypercorn.protocol.h11 import STREAM_ID, H11Protocol
from hypercorn.protocol.http_stream import HTTPStream
from hypercorn.trio.task_group import TaskGroup
from hypercorn.trio.worker_context import WorkerContext
from hypercorn.typing import AppWrapper, ConnectionState, H11SendableEvent
from hypercorn.utils import parse_socket_addr

from a2a_trio.server.http import ON_DISCONNECT

__all__ = ["Connection"]

KEEP_ALIVE_TIMEOUT: Final = 60.0
"""Seconds that a connection may idle between requests; above what clients keep theirs."""
HEAD_TIMEOUT: Final = 15.0
"""Seconds for the first request's head, and for every head once it began."""
LINGER_TIMEOUT: Final = 1.0
"""Seconds that a connection which we close is still read."""
LINGER_BYTES: Final = 1024 * 1024
"""How much of it."""

_MAX_RECEIVE: Final = 65_536

Stream = trio.SocketStream | trio.SSLStream[trio.SocketStream]


@final
class Connection:
    """Serves the requests of one client, one after another.

    Args:
        app: the application, as hypercorn wraps it.
        config: hypercorn's settings.
        context: of the whole server; ``terminated`` makes every answer the last one.
        stream: owned by this connection from now on.
    """

    def __init__(
        self, app: AppWrapper, config: Config, context: WorkerContext, stream: Stream
    ) -> None:
        self._app: Final = app
        self._config: Final = config
        self._context: Final = context
        self._stream: Final = stream
        self._send_lock: Final = trio.Lock()
        self._deadline = math.inf
        self._reading: trio.CancelScope | None = None
        self._idle = True
        self._closing = False
        self._lingered = 0
        self._protocol: _Protocol | None = None

    async def run(self) -> None:
        """Serve until either side closes; the stream is closed then.

        Cancellation: the connection is closed at once.
        """
        self._deadline = trio.current_time() + HEAD_TIMEOUT
        try:
            socket, secure = await self._open()
            client = parse_socket_addr(socket.family, socket.getpeername())
            server = parse_socket_addr(socket.family, socket.getsockname())
            async with TaskGroup() as group:
                self._protocol = _Protocol(
                    self._app,
                    self._config,
                    self._context,
                    group,
                    ConnectionState({}),
                    secure,
                    client,
                    server,
                    self._take,
                )
                await self._read(self._protocol)
        except (OSError, trio.BrokenResourceError):
            pass  # gone before the first byte
        finally:
            await trio.aclose_forcefully(self._stream)

    def drain(self) -> None:
        """Close soon: at once if no request is being answered, else after its answer."""
        if self._idle and self._reading is not None:
            self._reading.cancel()

    def abort(self) -> None:
        """Close now, whatever is being sent."""
        stream = self._stream
        transport = stream.transport_stream if isinstance(stream, trio.SSLStream) else stream
        # Synchronous, and wakes whoever waits on the socket, shielded or not.
        transport.socket.close()

    async def _open(self) -> tuple[trio.socket.SocketType, bool]:
        stream = self._stream
        if not isinstance(stream, trio.SSLStream):
            return stream.socket, False
        with trio.move_on_at(self._deadline) as slow:
            await stream.do_handshake()
        if slow.cancelled_caught:
            raise trio.BrokenResourceError("the TLS handshake took too long")
        return stream.transport_stream.socket, True

    async def _read(self, protocol: "_Protocol") -> None:
        while True:
            with trio.CancelScope(deadline=self._deadline) as self._reading:
                if self._idle and self._context.terminated.is_set():
                    break
                try:
                    data = await self._stream.receive_some(_MAX_RECEIVE)
                except (trio.BrokenResourceError, trio.ClosedResourceError):
                    break  # the client is gone, which is its right
            if self._reading.cancelled_caught:
                break
            if not data or self._lingered > LINGER_BYTES:
                break
            if self._closing:
                self._lingered += len(data)
                continue
            if self._idle:
                # The head has begun: more bytes of it do not buy more time.
                self._deadline = min(self._deadline, trio.current_time() + HEAD_TIMEOUT)
            await protocol.handle(RawData(bytes(data)))
        self._reading = None
        await protocol.handle(Closed())

    async def _take(self, event: Event) -> None:
        """Do what the protocol asks for."""
        if isinstance(event, RawData):
            if event.data:
                await self._send(event.data)
        elif isinstance(event, Updated):
            self._idle = event.idle
            self._read_until(trio.current_time() + KEEP_ALIVE_TIMEOUT if event.idle else math.inf)
        elif isinstance(event, Closed):
            await self._close()

    def _read_until(self, deadline: float) -> None:
        self._deadline = deadline
        if self._reading is not None:
            self._reading.deadline = deadline

    async def _send(self, data: bytes) -> None:
        gone = False
        try:
            self._send_lock.acquire_nowait()  # nearly always free, and then no checkpoint is due
        except trio.WouldBlock:
            await self._send_lock.acquire()
        try:
            # Half a chunk on the wire would be worse than a late cancellation.
            with trio.CancelScope(shield=True):
                await self._stream.send_all(data)
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            gone = True
        finally:
            self._send_lock.release()
        if gone and self._protocol is not None:
            await self._protocol.handle(Closed())

    async def _close(self) -> None:
        """Say that nothing more comes; the read then ends by itself."""
        if self._closing:
            return
        self._closing = True
        self._idle = True
        self._read_until(trio.current_time() + LINGER_TIMEOUT)
        stream = self._stream
        try:
            if isinstance(stream, trio.SocketStream):
                await stream.send_eof()
            else:
                await trio.aclose_forcefully(stream)
        except (trio.BrokenResourceError, trio.ClosedResourceError, trio.BusyResourceError):
            pass
        if self._protocol is not None:
            await self._protocol.handle(Closed())


@final
class _Protocol(H11Protocol):
    """Hypercorn's HTTP/1.1 without upgrades, and with fewer sends."""

    _held = b""
    _to_come = 0
    _leave: Callable[[], None] | None = None

    async def stream_send(self, event: StreamEvent) -> None:
        """Hold the head of an answer of known length back until its body is there."""
        if isinstance(event, Response):
            self._to_come = _announced(event)
        elif isinstance(event, Body):
            self._to_come -= len(event.data)
        elif isinstance(event, EndBody):
            self._to_come = 0
        await super().stream_send(event)

    async def _send_h11_event(self, event: H11SendableEvent) -> None:
        try:
            data = self.connection.send(event)
        except h11.LocalProtocolError:
            if self.connection.their_state is not h11.ERROR:
                raise
            return
        self._held += data or b""
        if self._to_come <= 0:
            data, self._held = self._held, b""
            await self.send(RawData(data=data))

    async def _check_protocol(self, event: h11.Request) -> None:
        """Upgrade to nothing."""

    async def _create_stream(self, request: h11.Request) -> None:
        """Start the application on a request, whatever it would like to be upgraded to."""
        stream = HTTPStream(
            self.app,
            self.config,
            self.context,
            self.task_group,
            self.ssl,
            self.client,
            self.server,
            self.stream_send,
            STREAM_ID,
        )
        self.stream = stream
        self._leave = None
        await stream.handle(
            Request(
                stream_id=STREAM_ID,
                headers=list(request.headers),
                http_version=request.http_version.decode("ascii"),
                method=request.method.decode("ascii").upper(),
                raw_path=request.target,
                state=self.connection_state,
            )
        )
        # The application was spawned, but nothing has let it run yet.
        stream.scope["extensions"][ON_DISCONNECT] = {"call": partial(self._on_disconnect, stream)}

    def _on_disconnect(self, stream: HTTPStream, leave: Callable[[], None]) -> None:
        if self.stream is stream:
            self._leave = leave
        else:
            leave()  # the client was faster than the application

    async def _close_stream(self) -> None:
        if self._leave is not None:
            self._leave()
            self._leave = None
        await super()._close_stream()


def _announced(response: Response) -> int:
    for name, value in response.headers:
        if name == b"content-length":
            return int(value)
    return 0
