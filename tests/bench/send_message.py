"""SendMessage per second: our server under hypercorn and the official SDK's on uvicorn.

``python -m tests.bench.send_message``. Both run at the same time and are loaded in turns, round by
round, so that whatever else the machine does hits both. The ratio of a round compares two
neighbours in time; the median over the rounds is the figure to quote.
"""

import argparse
import statistics
import sys
from typing import final

import attrs

from tests.bench.processes import OURS, SDK, load, server


@final
@attrs.frozen
class Round:
    """One round with one number of connections."""

    ours: dict[str, float]
    sdk: dict[str, float]

    @property
    def ratio(self) -> float:
        """How many times as many requests as the SDK."""
        return self.ours["per_second"] / self.sdk["per_second"]


def show(connections: int, number: int, result: Round) -> None:
    """Print one round."""
    columns = (
        f"{name}: {r['per_second']:7.1f}/s  p50 {r['p50_ms']:6.2f} ms  p99 {r['p99_ms']:7.2f} ms"
        for name, r in (("ours", result.ours), ("sdk", result.sdk))
    )
    print_line(
        f"{connections:3d} conn  round {number}  {'   '.join(columns)}   {result.ratio:.2f}x"
    )


def print_line(text: str) -> None:
    """Print at once: rounds are seconds apart."""
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def compare(connections: list[int], rounds: int, seconds: float) -> None:
    """Run both servers and load them in turns."""
    with server(OURS) as ours, server(SDK) as sdk:
        for url in (ours.url, sdk.url):
            load(url, connections=max(connections), seconds=seconds)  # warm-up, not counted
        for count in connections:
            results = []
            for number in range(1, rounds + 1):
                result = Round(
                    *(load(s.url, connections=count, seconds=seconds) for s in (ours, sdk))
                )
                show(count, number, result)
                results.append(result)
            median = statistics.median(r.ratio for r in results)
            print_line(f"{count:3d} conn  median ratio ours/sdk: {median:.2f}x")


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
