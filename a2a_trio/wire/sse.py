"""Server-sent events on bytes (WHATWG HTML, section 9.2): one encoder and one incremental decoder.

The decoder gives the same events however the bytes are split. What an event may hold is bounded;
an event that is not finished when the stream ends is dropped, as the standard says.
"""

import re
from typing import Final, final

import attrs

from a2a_trio.errors import PeerProtocolError

KEEP_ALIVE: Final = b":\n\n"
"""A comment: nothing to the reader, a sign of life to every proxy between."""

DEFAULT_MAX_EVENT_BYTES: Final = 16 * 1024 * 1024
"""Above the largest task that a default server stores, with its JSON envelope."""

_BOM: Final = b"\xef\xbb\xbf"
_LINE_END: Final = re.compile(rb"\r\n|\n|\r")
_DIGITS: Final = re.compile(rb"[0-9]{1,9}")


@final
@attrs.frozen(kw_only=True)
class ServerSentEvent:
    """One event.

    ``id`` is the last id that the stream has set, also by an earlier event; ``event`` is "" for
    the default type.
    """

    data: bytes
    id: str = ""
    event: str = ""

    @property
    def text(self) -> str:
        """The data as text; invalid UTF-8 is replaced."""
        return self.data.decode("utf-8", "replace")


def encode_event(
    data: bytes,
    *,
    id: str = "",  # noqa: A002 -- the field's name in SSE
    event: str = "",
    retry_ms: int | None = None,
) -> bytes:
    """Return one event.

    Args:
        data: the payload; every line of it becomes a ``data:`` line, so that no payload can
            forge a field or a second event. CR and CRLF arrive as LF.
        id: what ``Last-Event-ID`` will say after a reconnection; left out if empty.
        event: the type; left out if empty.
        retry_ms: reconnection delay for the reader, in milliseconds.

    Raises:
        ValueError: ``id`` or ``event`` has a line end or a NUL, which the format cannot carry.
    """
    head = b""
    if event:
        head += b"event: %b\n" % _field(event)
    if id:
        head += b"id: %b\n" % _field(id)
    if retry_ms is not None:
        head += b"retry: %d\n" % retry_ms
    if b"\n" in data or b"\r" in data:
        data = b"\ndata: ".join(_LINE_END.split(data))
    return b"%bdata: %b\n\n" % (head, data)


def _field(text: str) -> bytes:
    if "\n" in text or "\r" in text or "\0" in text:
        raise ValueError("an SSE field cannot hold a line end or a NUL")
    return text.encode("utf-8", "replace")


@final
class SSEDecoder:
    """Turns the bytes of one stream into events.

    Args:
        max_event_bytes: bound on one event's data, and on one line of any kind.
    """

    def __init__(self, max_event_bytes: int = DEFAULT_MAX_EVENT_BYTES) -> None:
        self._max = max_event_bytes
        self._line = bytearray()  # an unfinished line, at most max_event_bytes
        self._data = bytearray()  # finished data lines, each with its LF
        self._has_data = False
        self._event = ""
        self._first_line = True
        self._skip_lf = False
        self._failed = False
        self.last_event_id = ""
        """What a reconnection sends as ``Last-Event-ID``."""
        self.retry_ms: int | None = None
        """The reconnection delay that the stream asked for."""

    def feed(self, chunk: bytes) -> list[ServerSentEvent]:
        """Take the next bytes and return the events that they finish.

        Raises:
            PeerProtocolError: an event is larger than the bound. Events before it are returned
                first; the next call, also with no bytes, raises. Nothing is read after that.
        """
        self._check()
        events: list[ServerSentEvent] = []
        if self._skip_lf and chunk:
            # The CR that ended the last chunk's line has ended it already.
            chunk = chunk.removeprefix(b"\n")
            self._skip_lf = False
        if not chunk:
            return events
        lines = chunk.splitlines(keepends=True)
        # Bytes are split at LF, CR and CRLF only.
        unfinished = b"" if lines[-1].endswith((b"\n", b"\r")) else lines.pop()
        self._skip_lf = chunk.endswith(b"\r")
        for line in lines:
            self._take(line.rstrip(b"\r\n"), events)
            if self._failed:
                break
        else:
            self._line += unfinished
            self._failed = len(self._line) > self._max
        if self._failed and not events:
            self._check()
        return events

    def close(self) -> None:
        """Say that the stream has ended; an unfinished event is dropped.

        Raises:
            PeerProtocolError: the stream had already failed.
        """
        self._check()
        self._line.clear()
        self._data.clear()

    def _check(self) -> None:
        if self._failed:
            raise PeerProtocolError(f"an event is larger than {self._max} bytes")

    def _take(self, line: bytes, events: list[ServerSentEvent]) -> None:
        """Process one finished line."""
        if self._line:
            line = bytes(self._line) + line
            self._line.clear()
        if len(line) > self._max:
            self._failed = True
            return
        if self._first_line:
            self._first_line = False
            line = line.removeprefix(_BOM)
        if not line:
            self._dispatch(events)
            return
        name, _, value = line.partition(b":")
        self._field(name, value.removeprefix(b" "))

    def _field(self, name: bytes, value: bytes) -> None:
        if name == b"data":
            self._data += value
            self._data += b"\n"
            self._has_data = True
            self._failed = len(self._data) - 1 > self._max
        elif name == b"event":
            self._event = value.decode("utf-8", "replace")
        elif name == b"id":
            if b"\0" not in value:
                self.last_event_id = value.decode("utf-8", "replace")
        elif name == b"retry" and _DIGITS.fullmatch(value):
            self.retry_ms = int(value)

    def _dispatch(self, events: list[ServerSentEvent]) -> None:
        if self._has_data:
            data = bytes(self._data[:-1])
            events.append(ServerSentEvent(data=data, id=self.last_event_id, event=self._event))
            self._data.clear()
            self._has_data = False
        self._event = ""
