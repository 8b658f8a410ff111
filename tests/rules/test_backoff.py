"""Back-off: bounded, never shrinking, reset by success."""

import math
import random

import pytest
from hypothesis import given, strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule

from a2a_trio.rules.backoff import MAX_RETRY_AFTER, Backoff, parse_retry_after


class Fixed:
    """A source of chance that always answers the same."""

    def __init__(self, value: float) -> None:
        self.value = value

    def random(self) -> float:
        return self.value


def test_delays_double_up_to_the_cap() -> None:
    backoff = Backoff(1, 30, Fixed(1.0))
    assert [backoff.failed() for _ in range(7)] == [1, 2, 4, 8, 16, 30, 30]
    assert backoff.failures == 7


def test_jitter_takes_off_at_most_half() -> None:
    backoff = Backoff(1, 30, Fixed(0.0))
    assert [backoff.failed() for _ in range(7)] == [0.5, 1, 2, 4, 8, 15, 15]


def test_success_begins_again() -> None:
    backoff = Backoff(1, 30, Fixed(1.0))
    backoff.failed()
    backoff.failed()
    backoff.succeeded()
    assert backoff.failures == 0
    assert backoff.failed() == 1


def test_retry_after_wins_only_if_longer() -> None:
    backoff = Backoff(10, 300, Fixed(1.0))
    assert backoff.failed(5) == 10
    assert backoff.failed(77) == 77
    assert backoff.failed() == 40, "and it does not move the steps"


def test_a_hostile_retry_after_is_bounded() -> None:
    backoff = Backoff(1, 300, Fixed(1.0))
    assert backoff.failed(1e300) == MAX_RETRY_AFTER
    assert backoff.failed(math.inf) == MAX_RETRY_AFTER
    assert backoff.failed(math.nan) == 4
    assert backoff.failed(-5) == 8


def test_a_thousand_failures_do_not_overflow() -> None:
    backoff = Backoff(1, 300, Fixed(1.0))
    assert [backoff.failed() for _ in range(5_000)][-1] == 300


@pytest.mark.parametrize(
    ("base", "cap"), [(0, 1), (-1, 1), (2, 1), (1, math.inf), (math.nan, 1), (1, math.nan)]
)
def test_senseless_delays_are_refused(base: float, cap: float) -> None:
    with pytest.raises(ValueError, match="back-off"):
        Backoff(base, cap, Fixed(0.5))


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("120", 120.0),
        (" 7 ", 7.0),
        ("0.5", 0.5),
        ("0", 0.0),
        (None, None),
        ("", None),
        ("-1", None),
        ("1e9", None),
        ("inf", None),
        ("nan", None),
        ("9" * 10, None),
        ("٣", None),
        ("Wed, 21 Oct 2026 07:28:00 GMT", None),
    ],
)
def test_only_a_number_of_seconds_is_read(text: str | None, seconds: float | None) -> None:
    assert parse_retry_after(text) == seconds


@given(st.text(max_size=30))
def test_any_retry_after_is_read_or_ignored(text: str) -> None:
    seconds = parse_retry_after(text)
    assert seconds is None or 0 <= seconds < 1e9 + 1


class BackoffMachine(RuleBasedStateMachine):
    """Between successes delays never shrink and stay within the cap, whatever chance says."""

    def __init__(self) -> None:
        super().__init__()
        self.backoff = Backoff(2, 300, random.Random(7))  # noqa: S311 - jitter, no secret
        self.delays: list[float] = []

    @rule()
    def fail(self) -> None:
        delay = self.backoff.failed()
        step = min(300, 2 * 2 ** len(self.delays))
        assert step / 2 <= delay <= step
        assert delay >= max(self.delays, default=0)
        self.delays.append(delay)

    @rule(seconds=st.floats(0, 1e6))
    def fail_with_retry_after(self, seconds: float) -> None:
        delay = self.backoff.failed(seconds)
        step = min(300, 2 * 2 ** len(self.delays))
        assert min(seconds, MAX_RETRY_AFTER) <= delay <= max(step, min(seconds, MAX_RETRY_AFTER))
        self.delays.append(self.backoff._last)

    @rule()
    def succeed(self) -> None:
        self.backoff.succeeded()
        self.delays.clear()


TestBackoffMachine = BackoffMachine.TestCase
