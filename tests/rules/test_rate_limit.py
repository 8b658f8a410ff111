"""The sliding window: exact, fair, bounded."""

import math

import pytest
from hypothesis import given, strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    invariant,
    rule,
)

from a2a_trio.rules.rate_limit import Allowed, Limited, RateLimiter


def test_the_limit_is_per_window_and_identity() -> None:
    """N hits pass, the next one does not, and others are not affected."""
    limiter = RateLimiter(2)
    assert limiter.hit("a", 0.0) == Allowed()
    assert limiter.hit("a", 1.0) == Allowed()
    assert limiter.hit("a", 2.0) == Limited(58.0)
    assert limiter.hit("b", 2.0) == Allowed()


def test_a_hit_exactly_one_window_old_has_left() -> None:
    limiter = RateLimiter(1)
    limiter.hit("a", 0.0)
    assert isinstance(limiter.hit("a", math.nextafter(60.0, 0)), Limited)
    assert limiter.hit("a", 60.0) == Allowed()


def test_a_difference_that_rounds_down_does_not_make_the_repeat_too_early() -> None:
    first, now = 0.06482922690038184, 2.999597811382859
    assert now + (first + 60 - now) < first + 60, "floats do this"
    limiter = RateLimiter(1)
    limiter.hit("a", first)
    verdict = limiter.hit("a", now)
    assert isinstance(verdict, Limited)
    assert limiter.hit("a", now + verdict.retry_after) == Allowed()


def test_refused_hits_are_not_recorded() -> None:
    """Knocking does not keep the door shut."""
    limiter = RateLimiter(1)
    limiter.hit("a", 0.0)
    for second in range(1, 60):
        assert limiter.hit("a", float(second)) == Limited(60.0 - second)
    assert limiter.hit("a", 60.0) == Allowed()


def test_a_limit_of_zero_refuses_everything_for_ever() -> None:
    for per_window in (0, -1):
        limiter = RateLimiter(per_window)
        assert limiter.hit("a", 0.0) == Limited(math.inf)
        assert limiter.peek("a", 0.0) == Limited(math.inf)
        assert len(limiter) == 0


def test_a_full_table_refuses_newcomers_until_the_first_identity_falls_silent() -> None:
    limiter = RateLimiter(5, max_identities=2)
    limiter.hit("a", 0.0)
    limiter.hit("b", 1.0)
    limiter.hit("a", 2.0)
    assert limiter.hit("c", 3.0) == Limited(58.0), "b is the first to leave, at 61"
    assert limiter.hit("a", 3.0) == Allowed(), "who is known is not affected"
    assert limiter.peek("c", 3.0) == Allowed(), "and a peek tells about the identity only"
    assert limiter.hit("c", 61.0) == Allowed()
    assert len(limiter) == 2


def test_a_flood_of_identities_forgives_nobody() -> None:
    limiter = RateLimiter(1, max_identities=100)
    limiter.hit("sinner", 0.0)
    for number in range(10_000):
        limiter.hit(f"flood-{number}", 1.0)
    assert limiter.hit("sinner", 2.0) == Limited(58.0)
    assert len(limiter) == 100


def test_peek_counts_nothing() -> None:
    limiter = RateLimiter(1)
    for _ in range(3):
        assert limiter.peek("a", 0.0) == Allowed()
    limiter.hit("a", 0.0)
    assert limiter.peek("a", 1.0) == Limited(59.0)


def test_a_clock_that_steps_back_opens_nothing() -> None:
    limiter = RateLimiter(1)
    limiter.hit("a", 100.0)
    assert limiter.hit("a", 0.0) == Limited(60.0)


def test_silent_identities_are_dropped_without_being_asked_about() -> None:
    limiter = RateLimiter(3)
    for number in range(1_000):
        limiter.hit(str(number), 0.0)
    limiter.hit("other", 60.0)
    assert len(limiter) == 1


@pytest.mark.parametrize(("window", "identities"), [(0.0, 1), (-1.0, 1), (math.inf, 1), (60.0, 0)])
def test_senseless_bounds_are_refused(window: float, identities: int) -> None:
    with pytest.raises(ValueError, match="positive"):
        RateLimiter(1, window=window, max_identities=identities)


@given(
    st.lists(st.floats(0, 1e9, allow_subnormal=False), min_size=1, max_size=20),
    st.integers(1, 3),
    st.floats(0.001, 1e4),
)
def test_retry_after_is_exact(times: list[float], per_window: int, window: float) -> None:
    """A repeat is accepted after exactly that long, and not at any earlier float."""
    limiter = RateLimiter(per_window, window=window)
    for now in sorted(times):
        verdict = limiter.hit("a", now)
        if isinstance(verdict, Limited):
            at = now + verdict.retry_after
            assert isinstance(limiter.peek("a", math.nextafter(at, 0)), Limited) or at == now
            assert limiter.hit("a", at) == Allowed()
            return


class RateLimiterMachine(RuleBasedStateMachine):
    """Against a model that keeps every accepted hit for ever and counts."""

    PER_WINDOW = 3
    MAX_IDENTITIES = 4

    def __init__(self) -> None:
        super().__init__()
        self.limiter = RateLimiter(self.PER_WINDOW, window=60.0, max_identities=self.MAX_IDENTITIES)
        self.accepted: dict[str, list[float]] = {}
        self.now = 0.0

    def recent(self, identity: str) -> list[float]:
        return [at for at in self.accepted.get(identity, []) if self.now - at < 60]

    def live(self) -> list[str]:
        return [identity for identity in self.accepted if self.recent(identity)]

    # Whole seconds, so that the model's arithmetic is exact.
    @rule(seconds=st.integers(0, 70))
    def wait(self, seconds: int) -> None:
        self.now += seconds

    @rule(identity=st.sampled_from("abcdefg"))
    def hit(self, identity: str) -> None:
        recent, live = self.recent(identity), self.live()
        verdict = self.limiter.hit(identity, self.now)
        if not recent and len(live) >= self.MAX_IDENTITIES:
            free = min(max(self.accepted[other]) for other in live) + 60
            assert verdict == Limited(free - self.now)
        elif len(recent) >= self.PER_WINDOW:
            assert verdict == Limited(recent[0] + 60 - self.now)
        else:
            assert verdict == Allowed()
            self.accepted.setdefault(identity, []).append(self.now)

    @rule(identity=st.sampled_from("abcdefg"))
    def peek(self, identity: str) -> None:
        recent = self.recent(identity)
        verdict = self.limiter.peek(identity, self.now)
        assert isinstance(verdict, Limited) == (len(recent) >= self.PER_WINDOW)

    @invariant()
    def memory_is_bounded(self) -> None:
        assert len(self.limiter) <= self.MAX_IDENTITIES
        for due in self.limiter._live.values():
            assert 0 < len(due) <= self.PER_WINDOW


TestRateLimiterMachine = RateLimiterMachine.TestCase
