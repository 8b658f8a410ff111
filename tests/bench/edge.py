"""What HTTP and the edge cost per request, without any agent: four servers, loaded in turns.

``python -m tests.bench.edge``. Processor time of the server per request is the figure to compare:
unlike the rate it hardly depends on what else the machine does.
"""

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from tests.bench.processes import load

_SERVER: Final = Path(__file__).parent / "edge_server.py"
_KINDS: Final = (
    ("bare", "hypercorn"),
    ("bare", "ours"),
    ("endpoint", "hypercorn"),
    ("endpoint", "ours"),
)


def processor_seconds(pid: int) -> float:
    """Return what a process has used, user and system, from Linux's /proc."""
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@contextmanager
def running(kind: str, server: str) -> Iterator[tuple[str, int]]:
    """Run one server; give its URL and process id."""
    with subprocess.Popen(
        [sys.executable, str(_SERVER), kind, server],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as process:
        assert process.stdout is not None
        yield json.loads(process.stdout.readline())["url"], process.pid


def main() -> None:
    """Parse the command line and measure."""
    parser = argparse.ArgumentParser(description="cost of HTTP and of the endpoint")
    parser.add_argument("--connections", type=int, default=16)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=3.0)
    arguments = parser.parse_args()
    for _ in range(arguments.rounds):
        for kind, server in _KINDS:
            with running(kind, server) as (url, pid):
                load(url, connections=arguments.connections, seconds=0.5)  # warm-up
                before = processor_seconds(pid)
                result = load(url, connections=arguments.connections, seconds=arguments.seconds)
                used = (processor_seconds(pid) - before) / result["requests"]
            sys.stdout.write(
                f"{kind:8s} on {server:9s}  {used * 1e6:5.0f} us of processor per request"
                f"  {result['per_second']:7.1f}/s  p50 {result['p50_ms']:6.2f} ms"
                f"  p99 {result['p99_ms']:6.2f} ms\n"
            )
            sys.stdout.flush()


if __name__ == "__main__":
    main()
