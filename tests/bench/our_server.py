"""Our echo agent as ``a2a_trio.serve`` runs it (hypercorn), for the benchmarks.

Prints ``{"url": ...}`` once it listens and serves until standard input reaches its end. Every line
on standard input is answered by one JSON line of gauges, so that a benchmark can watch the
server's memory from outside.
"""

import gc
import json
import sys
from pathlib import Path

import trio

from a2a_trio import Settings, serve
from a2a_trio.agents import echo
from a2a_trio.config.server_schema import ServerSettings

_UNLIMITED = 1_000_000
"""Requests per minute that no benchmark reaches: all of them come from one address."""


def settings() -> Settings:
    """Return the defaults, but for the port and the limits that count one caller's requests."""
    return Settings(
        server=ServerSettings(
            port=0,
            max_concurrent=64,
            rate_limit_per_min=_UNLIMITED,
            flood_limit_per_min=_UNLIMITED,
        )
    )


def gauges() -> dict[str, int]:
    """Return what must not grow: resident kilobytes, objects, open files, Trio tasks."""
    gc.collect()
    status = Path("/proc/self/status").read_text(encoding="ascii")
    resident = next(line for line in status.splitlines() if line.startswith("VmRSS:"))
    return {
        "rss_kb": int(resident.split()[1]),
        "objects": len(gc.get_objects()),
        "files": len(list(Path("/proc/self/fd").iterdir())),
        "tasks": trio.lowlevel.current_statistics().tasks_living,
    }


async def main() -> None:
    """Serve until standard input ends."""
    async with trio.open_nursery() as nursery:
        server = await nursery.start(serve, echo, settings())
        sys.stdout.write(json.dumps({"url": server.url}) + "\n")
        sys.stdout.flush()
        while await trio.to_thread.run_sync(sys.stdin.readline):
            sys.stdout.write(json.dumps(gauges()) + "\n")
            sys.stdout.flush()
        nursery.cancel_scope.cancel()


if __name__ == "__main__":
    trio.run(main)
