"""Growth of our server: 5 000 sends one after the other, then 64 at a time.

``python -m tests.bench.memory``. The store keeps ``server.maxTasks`` tasks (500 by default), so
everything after the first few hundred sends should leave the gauges where they are.
"""

import argparse
import sys
import time
from functools import partial

import trio

from tests.bench.load import check, read_response, request_bytes
from tests.bench.processes import OURS, ServerProcess, server

Gauges = dict[str, int]

SETTLE_SECONDS = 2.0
"""Connections that have just been closed are still read for a second."""


async def batch(url: str, first: int, count: int, connections: int) -> None:
    """Send ``count`` messages over so many keep-alive connections."""
    host, port = url.removeprefix("http://").rstrip("/").rsplit(":", 1)
    numbers = iter(range(first, first + count))

    async def one_connection() -> None:
        stream = None
        for number in numbers:
            if stream is None:
                stream = await trio.open_tcp_stream(host, int(port))
            await stream.send_all(request_bytes(f"{host}:{port}", "/", "hello", number))
            head, body = await read_response(stream)
            check(head, body)
            if b"connection: close" in head:
                await stream.aclose()
                stream = None
        if stream is not None:
            await stream.aclose()

    async with trio.open_nursery() as nursery:
        for _ in range(connections):
            nursery.start_soon(one_connection)


def show(label: str, now: Gauges, before: Gauges) -> None:
    """Print the gauges and how far they are from an earlier reading."""
    columns = "  ".join(f"{k} {now[k]} ({now[k] - before[k]:+d})" for k in now)
    sys.stdout.write(f"{label:<28} {columns}\n")
    sys.stdout.flush()


def sends(process: ServerProcess, label: str, first: int, count: int, connections: int) -> None:
    """Run batches and print the gauges after each one."""
    step = max(count // 5, 1)
    time.sleep(SETTLE_SECONDS)
    before = process.gauges()
    for start in range(first, first + count, step):
        trio.run(partial(batch, process.url, start, step, connections))
        time.sleep(SETTLE_SECONDS)
        show(f"{label} {start + step - first}", process.gauges(), before)


def main() -> None:
    """Parse the command line and measure."""
    parser = argparse.ArgumentParser(description="Memory and tasks of our server under sends")
    parser.add_argument("--sends", type=int, default=5000)
    parser.add_argument("--connections", type=int, default=64)
    arguments = parser.parse_args()
    with server(OURS) as process:
        trio.run(partial(batch, process.url, 0, 1000, 1))  # fills the store
        start = process.gauges()
        show("store filled", start, start)
        sends(process, "sequential", 1000, arguments.sends, 1)
        sends(process, "concurrent", 1_000_000, arguments.sends, arguments.connections)
        show("in all", process.gauges(), start)


if __name__ == "__main__":
    main()
