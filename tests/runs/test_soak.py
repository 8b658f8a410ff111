"""A bounded run of the soak; the long ones are by hand."""

import importlib
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def soak(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The fuzz folder is not installed; it is imported from the checkout."""
    monkeypatch.syspath_prepend(str(ROOT))
    return importlib.import_module("fuzz.soak")


def test_two_thousand_callers_leave_nothing_behind(soak: ModuleType) -> None:
    """Hours of callers that drop, cancel, reconnect and answer, and every invariant holds."""
    report = soak.soak(seed=11, callers=2000, hours=8)

    assert sum(report.tasks.values()) > 1000
    assert {"busy", "cancel", "reconnect", "stream dropped"} <= set(report.faults)
    assert report.checks > 10_000


def test_same_seed_same_day(soak: ModuleType) -> None:
    """A failure can be looked at again."""
    assert soak.soak(seed=3, callers=150, hours=1) == soak.soak(seed=3, callers=150, hours=1)


def test_a_broken_invariant_is_found(soak: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    """The soak fails where the server breaks a bound."""
    monkeypatch.setattr(soak, "SLOTS", 1)

    broken = pytest.RaisesExc(AssertionError, match="slots stay within their bound")
    with pytest.RaisesGroup(broken, allow_unwrapped=True, flatten_subgroups=True):
        soak.soak(seed=3, callers=150, hours=1)
