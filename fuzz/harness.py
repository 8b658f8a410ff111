"""A bounded mutation fuzzer without dependencies.

A target is one file in ``fuzz/targets`` with one ``TARGET = Target(...)``:

* ``name``: its name on the command line, and of its folder of inputs under ``fuzz/corpus``;
* ``check``: takes bytes and raises, whatever it likes, if the invariant is broken. What the code
  under test is documented to raise is caught in ``check``;
* ``words``: tokens of the format, which random bytes would never hit;
* ``names``: member names, for a target that takes JSON; then most mutations keep it JSON.

Every run is a function of its seed. A failing input is written to ``fuzz/findings`` and its
invariant is the first thing in the report. Move it into the corpus once it is fixed.
"""

import argparse
import hashlib
import importlib
import random
import sys
import time
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final, final

import attrs

from fuzz.mutation import mutate_bytes, mutate_json

ROOT: Final = Path(__file__).resolve().parent
MAX_POOL: Final = 1000
"""Inputs that are kept to be mutated again."""

POOL_GROWTH: Final = 0.02
JSON_SHARE: Final = 0.8

MAX_SECONDS_PER_INPUT: Final = 2.0
"""One input that takes longer is a finding: parsing is linear."""


@final
@attrs.frozen(kw_only=True)
class Target:
    """One parser and the invariant that every input must keep."""

    name: str
    check: Callable[[bytes], None]
    words: tuple[bytes, ...] = ()
    names: tuple[str, ...] = ()

    def corpus(self) -> list[bytes]:
        """Return the seed inputs, in a stable order."""
        folder = ROOT / "corpus" / self.name
        return [path.read_bytes() for path in sorted(folder.glob("*")) if path.is_file()]


@final
@attrs.frozen(kw_only=True)
class Report:
    """What one run did; ``failing`` is None if every input kept the invariant."""

    target: str
    inputs: int
    failing: bytes | None = None
    error: str = ""


def find_targets() -> dict[str, Target]:
    """Load every file of ``fuzz/targets``."""
    found = {}
    for path in sorted((ROOT / "targets").glob("*.py")):
        target = importlib.import_module(f"fuzz.targets.{path.stem}").TARGET
        found[target.name] = target
    return found


def run_target(
    target: Target, *, seed: int, seconds: float = float("inf"), inputs: int = 2**62
) -> Report:
    """Try the corpus, then mutations of it, until time or inputs are used up or one fails."""
    rng = random.Random(f"{target.name}:{seed}")
    pool = [b"", *target.corpus()]
    deadline = time.monotonic() + seconds
    done = 0
    for data in pool:
        error = _failure(target, data)
        done += 1
        if error:
            return Report(target=target.name, inputs=done, failing=data, error=error)
    while done < inputs and time.monotonic() < deadline:
        if target.names and rng.random() < JSON_SHARE:
            data = mutate_json(rng, pool, target.names)
        else:
            data = mutate_bytes(rng, pool, target.words)
        error = _failure(target, data)
        done += 1
        if error:
            return Report(target=target.name, inputs=done, failing=data, error=error)
        if len(pool) < MAX_POOL and rng.random() < POOL_GROWTH:
            pool.append(data)
    return Report(target=target.name, inputs=done)


def _failure(target: Target, data: bytes) -> str:
    started = time.thread_time()
    try:
        target.check(data)
    except Exception:  # noqa: BLE001 -- whatever it is, it is the finding
        return traceback.format_exc()
    if time.thread_time() - started > MAX_SECONDS_PER_INPUT:
        return f"slower than {MAX_SECONDS_PER_INPUT} s"
    return ""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run targets from the command line; return 1 if one failed, 2 for wrong usage."""
    parser = argparse.ArgumentParser(prog="fuzz/run.py", description="Fuzz parsers for a while.")
    parser.add_argument("targets", nargs="*", metavar="target", help="all if none is given")
    parser.add_argument("--seconds", type=float, default=10.0, help="per target")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args(arguments)
    targets = find_targets()
    unknown = sorted(set(options.targets) - targets.keys())
    if unknown:
        print(f"unknown: {', '.join(unknown)}; known: {', '.join(targets)}", file=sys.stderr)
        return 2
    status = 0
    for name in options.targets or targets:
        report = run_target(targets[name], seed=options.seed, seconds=options.seconds)
        print(f"{report.target}: {report.inputs} inputs, {'FAILED' if report.error else 'ok'}")
        if report.failing is not None:
            folder = ROOT / "findings" / name
            folder.mkdir(parents=True, exist_ok=True)
            path = folder / hashlib.sha256(report.failing).hexdigest()[:16]
            path.write_bytes(report.failing)
            print(f"{report.error}\ninput: {path}")
            status = 1
    return status
