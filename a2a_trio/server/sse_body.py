"""A task's events as the body of an HTTP response (A2A section 9.4.2).

The body is a class with a cursor into its source: no generator, so no cancel scope or nursery is
ever left hanging around a ``yield``.
"""

import math
from collections.abc import Callable
from typing import Final, final

import trio

from a2a_trio._log import get_logger
from a2a_trio.errors import InternalError, ProtocolError
from a2a_trio.server.calls import EventSource, Published
from a2a_trio.wire import jsonrpc, sse
from a2a_trio.wire.methods import Dialect

__all__ = ["SseBody"]

_log = get_logger(__name__)


@final
class SseBody:
    """An ``EventStream`` that frames events as JSON-RPC answers and fills silence with comments.

    Args:
        source: where the events come from; closed with this body.
        request_id: the id that every frame repeats.
        dialect: how the events are spelled.
        keep_alive: seconds of silence after which a comment is sent; 0 sends none.
        on_event: told of each event before it is sent; must not raise.
        on_end: called once, with the error that ended the stream or None; must not raise.

    Resources: whoever holds the body calls ``close``, also when it never iterated.
    Cancellation: a cancelled iteration loses no event and leaves the body usable.
    """

    def __init__(
        self,
        source: EventSource,
        *,
        request_id: jsonrpc.RpcId,
        dialect: Dialect,
        keep_alive: float,
        on_event: Callable[[Published], None],
        on_end: Callable[[ProtocolError | None], None],
    ) -> None:
        self._source: Final = source
        self._request_id: Final = request_id
        self._head: Final = jsonrpc.success_head(request_id)
        self._dialect: Final = dialect
        self._keep_alive: Final = keep_alive if keep_alive > 0 else math.inf
        self._on_event: Final = on_event
        self._on_end: Final = on_end
        self._last = False
        self._closed = False
        self._error: ProtocolError | None = None

    def __aiter__(self) -> "SseBody":
        return self

    async def __anext__(self) -> bytes:
        if self._last or self._closed:
            raise StopAsyncIteration
        try:
            with trio.move_on_after(self._keep_alive) as silence:
                published = await self._source.receive()
            if silence.cancelled_caught:
                return sse.KEEP_ALIVE
            if published is not None:
                return self._frame(published)
        except ProtocolError as error:
            return self._failure(error)
        except Exception:  # noqa: BLE001 - logged, and told as the stream's last frame
            _log.exception("stream failed")
            return self._failure(InternalError())
        self._last = True
        raise StopAsyncIteration

    def close(self) -> None:
        """Stop listening; may be called again."""
        if self._closed:
            return
        self._closed = True
        self._source.close()
        self._on_end(self._error)

    def _frame(self, published: Published) -> bytes:
        data = b"%b%b}" % (self._head, published.encoded(self._dialect))
        event_id = str(published.version) if published.version >= 0 else ""
        self._on_event(published)
        return sse.encode_event(data, id=event_id)

    def _failure(self, error: ProtocolError) -> bytes:
        """Return the last frame: both official SDKs read a named event with a JSON-RPC error."""
        self._last = True
        self._error = error
        return sse.encode_event(jsonrpc.failure(self._request_id, error), event="error")
