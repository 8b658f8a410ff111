"""Standard error of a server: lines that nobody reads never hold the event loop up.

A terminal that was stopped with Ctrl-S, or a pipe whose reader is stuck, blocks whoever writes to
it. A server writes a line for every call, so all of its lines go through here: into a bounded queue
that a thread empties. When the queue is full lines are dropped, and what is written next tells how
many. The thread writes to the file descriptor itself and holds no lock of Python's, so the process
can end while it is stuck.
"""

import io
import os
import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final, TextIO, final

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

MAX_WAITING_BYTES: Final = 262_144
"""Text that waits to be written; past that further lines are dropped and counted."""
CLOSE_SEC: Final = 0.5
"""How long the end of the program waits for what is left to be read."""
_CHUNK: Final = 4_096
"""Bytes of one write: no more than a pipe takes whole, so that lines of other writers stay whole."""


@final
class Outlet(io.BufferedIOBase):
    """A byte stream that never blocks; made by ``open_outlet``.

    Args:
        write: writes bytes, may block, and returns how many it took.
        is_terminal: what ``isatty`` answers.
    """

    def __init__(self, write: Callable[[bytes], int], *, is_terminal: bool) -> None:
        super().__init__()
        self._sink = write
        self._is_terminal = is_terminal
        self._waiting: deque[bytes] = deque()
        self._size = 0
        self._dropped = 0
        self._ending = False
        self._changed = threading.Condition()
        # A daemon: it may be stuck when the process wants to end.
        self._thread = threading.Thread(target=self._run, name="a2a-trio stderr", daemon=True)
        self._thread.start()

    @property
    def name(self) -> str:
        """What the stream is called in messages about it."""
        return "<stderr>"

    @property
    def dropped(self) -> int:
        """How many writes were dropped since the last one that was taken."""
        return self._dropped

    def writable(self) -> bool:
        """Return True."""
        return True

    def isatty(self) -> bool:
        """Return whether a person sees what is written."""
        return self._is_terminal

    def write(self, data: "ReadableBuffer", /) -> int:
        """Queue bytes; a full queue drops them. Never blocks."""
        taken = bytes(data)
        length = len(taken)
        with self._changed:
            if self._size + length > MAX_WAITING_BYTES or self._ending:
                self._dropped += 1
            else:
                if self._dropped:
                    taken = b"(%d lines left out)\n" % self._dropped + taken
                    self._dropped = 0
                self._waiting.append(taken)
                self._size += len(taken)
                self._changed.notify_all()
        return length

    def end(self, seconds: float) -> None:
        """Take nothing more and give the thread so many seconds for what is left."""
        with self._changed:
            self._ending = True
            self._changed.notify_all()
        self._thread.join(seconds)

    def _run(self) -> None:
        while True:
            with self._changed:
                while not self._waiting and not self._ending:
                    self._changed.wait()
                if not self._waiting:
                    return
                data = self._waiting.popleft()
            self._write_whole(data)
            with self._changed:
                # Only now: what is being written is still in memory.
                self._size -= len(data)

    def _write_whole(self, data: bytes) -> None:
        try:
            while data:
                data = data[self._sink(data[:_CHUNK]) :]
        except OSError:
            # Nobody can read it: that is no reason to stop serving.
            return


@contextmanager
def open_outlet(stream: TextIO) -> Iterator[TextIO]:
    """Give a stream in front of another one that drops lines where the other one would block.

    Args:
        stream: standard error. One that is no file, as in a test, is given back as it is.

    **Resources**: the end of the block waits up to ``CLOSE_SEC`` for what was written.
    """
    try:
        fd = stream.fileno()
    except (OSError, ValueError):
        yield stream
        return
    stream.flush()
    outlet = Outlet(lambda data: os.write(fd, data), is_terminal=stream.isatty())
    text = io.TextIOWrapper(
        outlet, encoding=stream.encoding, errors="backslashreplace", write_through=True
    )
    try:
        yield text
    finally:
        outlet.end(CLOSE_SEC)
