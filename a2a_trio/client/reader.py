"""Reads one open stream in a task of its own.

httpx can only read a body through a chain of async generators, and cancelling one read ends them
all. Because the reading is done here, a consumer may be cancelled while it waits for an event, by
``move_on_after`` say, and go on with the same stream afterwards.
"""

from typing import Final, final

import attrs
import trio

from a2a_trio.client.answers import read_event
from a2a_trio.client.call import StreamAnswer, decode_frame
from a2a_trio.client.exchange import Exchange
from a2a_trio.client.failures import TransientPeerError
from a2a_trio.client.options import ClientOptions
from a2a_trio.errors import PeerError, PeerProtocolError, PeerTimeoutError, ProtocolError
from a2a_trio.rules.lifecycle import closes_stream
from a2a_trio.wire.codec import loads
from a2a_trio.wire.model import StreamEvent, TaskArtifactUpdateEvent
from a2a_trio.wire.sse import ServerSentEvent, SSEDecoder

__all__ = ["Received", "StreamReader"]

_READ_AHEAD: Final = 16
"""Events read before somebody takes them; then the peer is kept waiting."""
_SETTLED_GRACE: Final = 1.0
"""Seconds that a peer has to close the stream after the last event. What it still sends is
delivered, and a connection that is read to its end can be used again."""
_CLOSE_GRACE: Final = 1.5
"""Seconds to wait for the reader to close its connection, which takes a second at most."""
_DEFAULT_EVENTS: Final = frozenset({"", "message", "error"})


@final
@attrs.frozen
class Received:
    """One event and the SSE id it came under."""

    event: StreamEvent
    id: str


@final
class StreamReader:
    """Decodes the events of one exchange into ``events``.

    Args:
        answer: what is known of the stream: its head, its route, what every frame must repeat.
        exchange: the open connection; closed when ``run`` ends.
        options: idle limit and sizes.

    Resources: whoever starts ``run`` calls ``aclose``.
    """

    def __init__(self, answer: StreamAnswer, exchange: Exchange, options: ClientOptions) -> None:
        self._exchange = exchange
        self._head = answer.head
        self._request_id = answer.request_id
        self._route = answer.route
        self._options = options
        self._scope = trio.CancelScope()
        self._done = trio.Event()
        self._settled = False
        self._sender, self.events = trio.open_memory_channel[Received](_READ_AHEAD)
        self.error: Exception | None = PeerError("the client was closed", url=answer.head.url)
        """Why ``events`` ended; None if the peer ended the stream. Set before they end."""

    async def run(self) -> None:
        """Read to the end.

        What goes wrong is left in ``error`` for the consumer to raise, so that no failure of one
        stream reaches the nursery that all of them share.
        """
        try:
            with self._scope, self._sender:
                self.error = await self._read()
        finally:
            self._done.set()

    async def aclose(self) -> None:
        """Stop reading and give the connection back."""
        self._scope.cancel()
        self.events.close()
        with trio.CancelScope(shield=True, deadline=trio.current_time() + _CLOSE_GRACE):
            await self._done.wait()

    async def _read(self) -> Exception | None:
        try:
            async with self._exchange:
                await self._pump()
        except TransientPeerError as exc:
            # After the last event it does not matter how the connection ends.
            return None if self._settled else exc
        except Exception as exc:  # noqa: BLE001 - raised again by the consumer
            return exc
        return None

    async def _pump(self) -> None:
        decoder = SSEDecoder(self._options.max_event_bytes)
        while True:
            chunk = await self._next_chunk()
            if chunk is None:
                decoder.close()
                return
            for frame in decoder.feed(chunk):
                event = self._decode(frame)
                if event is not None:
                    self._settled = _settled_after(event, before=self._settled)
                    await self._sender.send(Received(event, frame.id))

    async def _next_chunk(self) -> bytes | None:
        """Return the next bytes, or None when the stream is over."""
        limit = _SETTLED_GRACE if self._settled else self._options.stream_idle_timeout
        with trio.move_on_after(limit):
            return await self._exchange.next_chunk()
        if self._settled:
            return None
        raise PeerTimeoutError(
            f"the stream was silent for {limit:g} s; the task may still be running",
            url=self._head.url,
        )

    def _decode(self, frame: ServerSentEvent) -> StreamEvent | None:
        """Return the event in a frame, or None for a frame that is not meant for us.

        Raises:
            ProtocolError: the frame is the error that ends the stream.
            PeerProtocolError: the frame is not A2A.
        """
        try:
            value = loads(frame.data)
        except ProtocolError:
            value = None
        if isinstance(value, dict) and "jsonrpc" in value:
            return decode_frame(read_event(value, self._request_id, self._head), self._route)
        if frame.event not in _DEFAULT_EVENTS:
            return None  # some servers send named pings
        raise PeerProtocolError(
            "the stream carries something other than JSON-RPC", url=self._head.url
        )


def _settled_after(event: StreamEvent, *, before: bool) -> bool:
    return before if isinstance(event, TaskArtifactUpdateEvent) else closes_stream(event)
