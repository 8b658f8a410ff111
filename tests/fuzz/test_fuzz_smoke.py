"""Every fuzz target keeps its invariant for a few hundred inputs; the long runs are by hand."""

import importlib
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[2]
NAMES = sorted(path.stem for path in (ROOT / "fuzz" / "targets").glob("*.py"))


@pytest.fixture
def harness(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The fuzz folder is not installed; it is imported from the checkout."""
    monkeypatch.syspath_prepend(str(ROOT))
    return importlib.import_module("fuzz.harness")


@pytest.mark.parametrize("name", NAMES)
def test_target_keeps_its_invariant(name: str, harness: ModuleType) -> None:
    """The corpus, then seeded mutations: the same inputs on every machine."""
    target = importlib.import_module(f"fuzz.targets.{name}").TARGET
    report = harness.run_target(target, seed=1, inputs=400, seconds=20)
    assert not report.error, f"{report.failing!r}\n{report.error}"
    assert report.inputs > len(target.corpus())


def test_a_broken_invariant_is_found_and_kept(
    harness: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:  # fmt: skip
    """The runner fails, prints the input's file, and finds the same input again from its seed."""

    def check(data: bytes) -> None:
        assert b"boom" not in data

    target = harness.Target(name="broken", check=check, words=(b"boom",))
    first = harness.run_target(target, seed=7, inputs=10_000)
    assert b"boom" in first.failing
    assert harness.run_target(target, seed=7, inputs=10_000) == first
    monkeypatch.setattr(harness, "ROOT", tmp_path)
    monkeypatch.setattr(harness, "find_targets", lambda: {"broken": target})
    assert harness.main(["broken", "--seconds", "5", "--seed", "7"]) == 1
    (saved,) = (tmp_path / "findings" / "broken").iterdir()
    assert b"boom" in saved.read_bytes()
    assert str(saved) in capsys.readouterr().out
    assert harness.main(["nobody"]) == 2
