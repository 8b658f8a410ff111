"""How long an import takes: this package and the official SDK, alternating in fresh interpreters.

``python -m tests.bench.import_time [--rounds N]``. Prints seconds per import (median and best) and
each of our medians as a fraction of the SDK's. The first round of each, which may have to compile,
is not counted.
"""

import argparse
import statistics
import subprocess
import sys
from collections.abc import Mapping
from typing import Final

CASES: Final[Mapping[str, str]] = {
    "SDK: a2a.server, a2a.client": "import a2a.server, a2a.client",
    "ours: import a2a_trio": "import a2a_trio",
    "ours: values (Task, Part)": "from a2a_trio import Task, Part",
    "ours: client (open_client)": "from a2a_trio import open_client",
    "ours: server (serve)": "from a2a_trio import serve",
    "ours: every public name": "from a2a_trio import *",
    "ours: the command line": "import a2a_trio.cli",
}
BASELINE: Final = next(iter(CASES))


def seconds(statement: str) -> float:
    """Run a statement in a fresh interpreter and return how long it took there."""
    script = (
        "from time import perf_counter\nbegan = perf_counter()\n"
        f"{statement}\nprint(perf_counter() - began)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], check=True, capture_output=True, text=True, timeout=120
    )
    return float(done.stdout.splitlines()[-1])


def main() -> None:
    """Measure every case once per round, so that a slow moment of the machine hits all of them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=10)
    rounds = parser.parse_args().rounds
    taken: dict[str, list[float]] = {label: [] for label in CASES}
    for counted in range(rounds + 1):
        for label, statement in CASES.items():
            took = seconds(statement)
            if counted:
                taken[label].append(took)
    base = statistics.median(taken[BASELINE])
    sys.stdout.write(f"{'median of ' + str(rounds):<32} {'median':>9} {'best':>9} {'of SDK':>7}\n")
    for label, figures in taken.items():
        median = statistics.median(figures)
        sys.stdout.write(f"{label:<32} {median:8.4f}s {min(figures):8.4f}s {median / base:7.3f}\n")


if __name__ == "__main__":
    main()
