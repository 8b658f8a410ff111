"""The content filters: time per character, and what doubling hostile text costs.

``python -m tests.bench.filters [--size N]``. Each hostile text is filtered at N and 2N characters in
turns; a ratio near 2 is linear, near 4 quadratic.
"""

import argparse
import time
from collections.abc import Callable, Mapping
from typing import Final

from a2a_trio.rules.framing import defang
from a2a_trio.rules.redaction import Redactor

OWN: Final = "own-secret/value+1"
REDACTOR: Final = Redactor([OWN])

ORDINARY: Final[Mapping[str, str]] = {
    "prose and code": "The agent reads the api key from config.py and calls write(x) in /usr/lib.\n",
    "base64": "aB3/x9Zk",
    "other scripts": "Größe 12 °C, 路径不能为空, привет мир. ",
}
HOSTILE: Final[Mapping[str, tuple[Callable[[str], str], tuple[str, ...]]]] = {
    "redaction": (
        REDACTOR.text,
        (
            "eyJ", "eyJaaaaaaaaaaa.", "sk-", "a@b.", "://a:", "password=", "bearer ", "ghp_", "basic ",
            "-----BEGIN PRIVATE KEY-----\n", "-----BEGIN ", "api_key ", OWN[:-1], 'token="', "=",
        ),
    ),
    "framing": (
        defang,
        (
            "ignore", "ignore all ", "<", "<|", "<system ", "é<system ", "[ ", "\n#", "you are now ",
            "disregard all of the ", "\u200b", "from now on ", "\n> ",
        ),
    ),
}  # fmt: skip
ROUNDS: Final = 5


def seconds(run: Callable[[str], str], text: str) -> float:
    """Return the processor time of one run."""
    began = time.process_time()
    run(text)
    return time.process_time() - began


def text_of(unit: str, size: int) -> str:
    """Repeat a unit up to a size."""
    return unit * (size // len(unit))


def main() -> None:
    """Print both tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", type=int, default=50_000, help="characters of the smaller text")
    size = parser.parse_args().size
    print("nanoseconds per character")  # noqa: T201 - a benchmark reports by printing
    for name, unit in ORDINARY.items():
        text = text_of(unit, 2 * size)
        costs = [min(seconds(run, text) for _ in range(ROUNDS)) for run, _ in HOSTILE.values()]
        shown = "  ".join(
            f"{what} {cost / len(text) * 1e9:6.0f}"
            for what, cost in zip(HOSTILE, costs, strict=True)
        )
        print(f"  {name:16} {shown}")  # noqa: T201 - same
    for what, (run, units) in HOSTILE.items():
        print(f"{what}: time for twice the text / time for the text")  # noqa: T201 - same
        for unit in units:
            one, two = text_of(unit, size), text_of(unit, 2 * size)
            pairs = [(seconds(run, one), seconds(run, two)) for _ in range(ROUNDS)]
            ratio = min(b for _, b in pairs) / max(min(a for a, _ in pairs), 1e-9)
            print(f"  {unit[:24]!r:32} {ratio:5.2f}")  # noqa: T201 - same


if __name__ == "__main__":
    main()
