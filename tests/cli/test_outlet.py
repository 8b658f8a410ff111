"""Standard error that nobody reads: writing never waits, and what is lost is told."""

import io
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import trio

from a2a_trio import open_client
from a2a_trio.cli.outlet import MAX_WAITING_BYTES, Outlet, open_outlet
from tests.cli.conftest import PATIENCE

LINE: Final = b"x" * 999 + b"\n"


class Reader:
    """Takes what is written, as soon as somebody opens the gate."""

    def __init__(self) -> None:
        self.gate = threading.Event()
        self.taken = bytearray()
        self.error: OSError | None = None
        self._more = threading.Condition()

    def write(self, data: bytes) -> int:
        self.gate.wait()
        if self.error is not None:
            raise self.error
        with self._more:
            self.taken += data
            self._more.notify_all()
        return len(data)

    def wait_for(self, length: int) -> None:
        """Wait until so many bytes have been taken."""
        with self._more:
            assert self._more.wait_for(lambda: len(self.taken) >= length, PATIENCE)

    def lines(self) -> list[str]:
        return self.taken.decode().splitlines()


def test_what_is_written_arrives_whole_and_in_order() -> None:
    """Also what is longer than one write."""
    reader = Reader()
    reader.gate.set()
    outlet = Outlet(reader.write, is_terminal=False)
    texts = [f"line {number}\n".encode() * (number % 40) for number in range(300)]
    texts.append(b"y" * 20_000 + b"\n")
    for text in texts:
        outlet.write(text)
    outlet.end(PATIENCE)
    assert bytes(reader.taken) == b"".join(texts)


def test_a_reader_that_stands_still_costs_lines_and_no_time() -> None:
    """The oldest stay; the next that is taken tells how many are gone."""
    reader = Reader()
    outlet = Outlet(reader.write, is_terminal=True)
    fit = MAX_WAITING_BYTES // len(LINE)
    for _ in range(fit + 7):
        assert outlet.write(LINE) == len(LINE)
    assert outlet.dropped == 7

    reader.gate.set()
    reader.wait_for(fit * len(LINE))
    outlet.write(b"last\n")
    outlet.end(PATIENCE)

    *whole, told, last = reader.lines()
    assert len(whole) == fit
    assert told == "(7 lines left out)"
    assert last == "last"


def test_the_end_does_not_wait_for_ever() -> None:
    """A reader that never reads holds nobody; nothing more is taken afterwards."""
    outlet = Outlet(Reader().write, is_terminal=False)
    outlet.write(LINE)
    outlet.end(0.01)
    assert outlet.write(LINE) == len(LINE)
    assert outlet.dropped == 1


def test_a_reader_that_is_gone_is_forgotten() -> None:
    """A closed pipe is no reason to stop serving."""
    reader = Reader()
    reader.error = BrokenPipeError()
    reader.gate.set()
    outlet = Outlet(reader.write, is_terminal=False)
    for _ in range(3):
        outlet.write(LINE)
    outlet.end(PATIENCE)
    assert outlet.dropped == 0
    assert reader.taken == b""


def test_the_stream_is_text_with_the_encoding_of_the_other() -> None:
    """What it cannot spell is escaped; a pipe is no terminal."""
    read_end, write_end = os.pipe()
    with (
        open(read_end, encoding="ascii") as reader,  # noqa: PTH123 - a descriptor
        open(write_end, "w", encoding="ascii") as pipe,  # noqa: PTH123 - a descriptor
    ):
        with open_outlet(pipe) as stream:
            assert not stream.isatty()
            stream.write("naïve\n")
            stream.flush()
        assert reader.readline() == "na\\xefve\n"


def test_a_stream_that_is_no_file_is_used_as_it_is() -> None:
    """A program that shows standard error in a window of its own, or a test."""
    stream = io.StringIO()
    with open_outlet(stream) as same:
        assert same is stream


def test_a_server_whose_log_nobody_reads_goes_on(
    environment: Mapping[str, str], tmp_path: Path
) -> None:
    """Hundreds of calls with several lines each, into a pipe that holds 64 KiB of them."""
    process = subprocess.Popen(
        [sys.executable, "-m", "a2a_trio", "serve", "--port", "0", "--log-level", "info"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=tmp_path,
        env={**environment, "A2A_RATE_LIMIT": "100000"},
    )
    with process:
        assert process.stdout is not None
        assert process.stderr is not None
        url = process.stdout.readline().split()[-1]

        async def calls() -> None:
            with trio.fail_after(PATIENCE):
                async with open_client(url) as client:
                    for number in range(400):
                        reply = await client.send(f"{number}: " + "word " * 40)
                        assert reply.text.startswith(f"{number}: ")

        try:
            trio.run(calls)
            process.send_signal(signal.SIGTERM)
            assert process.wait(PATIENCE) == 0
        finally:
            process.kill()
        shown = process.stderr.read()
    assert "[A2A inbound] dispatch" in shown
    assert "399: " not in shown, "the pipe was never full"
