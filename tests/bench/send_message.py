"""SendMessage per second: our server under hypercorn and the official SDK's on uvicorn.

``python -m tests.bench.send_message``. Both run at the same time and are loaded in turns, round by
round, so that whatever else the machine does hits both. The ratio of a round compares two
neighbours in time; the median over the rounds is the figure to quote. Processor time per request
is what the server itself cost, and hardly depends on what else the machine does.
"""

import argparse
import statistics
import sys
from typing import final

import attrs

from tests.bench.processes import OURS, SDK, ServerProcess, load, server


@final
@attrs.frozen
class Round:
    """One round with one number of connections."""

    ours: dict[str, float]
    sdk: dict[str, float]

    @property
    def cpu_ratio(self) -> float:
        """How many times as much processor time per request the SDK needs."""
        return self.sdk["cpu_ms"] / self.ours["cpu_ms"]

    @property
    def ratio(self) -> float:
        """How many times as many requests as the SDK."""
        return self.ours["per_second"] / self.sdk["per_second"]


def show(connections: int, number: int, result: Round) -> None:
    """Print one round."""
    columns = (
        f"{name}: {r['per_second']:6.0f}/s  p50 {r['p50_ms']:6.2f} ms  p99 {r['p99_ms']:6.1f} ms"
        f"  cpu {r['cpu_ms']:.2f} ms"
        for name, r in (("ours", result.ours), ("sdk", result.sdk))
    )
    print_line(
        f"{connections:3d} conn  round {number}  {'   '.join(columns)}   {result.ratio:.2f}x"
    )


def print_line(text: str) -> None:
    """Print at once: rounds are seconds apart."""
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def measure(process: ServerProcess, connections: int, seconds: float) -> dict[str, float]:
    """Load one server and add what it cost the server to the summary."""
    before = process.cpu_seconds()
    summary = load(process.url, connections=connections, seconds=seconds)
    cpu_ms = (process.cpu_seconds() - before) * 1000 / summary["requests"]
    return {**summary, "cpu_ms": cpu_ms}


def compare(connections: list[int], rounds: int, seconds: float) -> None:
    """Run both servers and load them in turns."""
    with server(OURS) as ours, server(SDK) as sdk:
        for url in (ours.url, sdk.url):
            load(url, connections=max(connections), seconds=seconds)  # warm-up, not counted
        for count in connections:
            results = []
            for number in range(1, rounds + 1):
                result = Round(*(measure(s, count, seconds) for s in (ours, sdk)))
                show(count, number, result)
                results.append(result)
            ratio = statistics.median(r.ratio for r in results)
            cpu = statistics.median(r.cpu_ratio for r in results)
            print_line(f"{count:3d} conn  median ratio ours/sdk: {ratio:.2f}x  (cpu {cpu:.2f}x)")


def main() -> None:
    """Parse the command line and compare."""
    parser = argparse.ArgumentParser(description="SendMessage throughput, ours and the SDK's")
    parser.add_argument("--connections", type=int, nargs="+", default=[1, 16])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=4.0)
    arguments = parser.parse_args()
    compare(arguments.connections, arguments.rounds, arguments.seconds)


if __name__ == "__main__":
    main()
