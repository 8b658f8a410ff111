"""The turn cap: only idleness forgives."""

import math

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from a2a_trio.rules.anti_loop import MAX_CAP, AntiLoop, Turn


def test_the_turn_after_the_cap_is_refused() -> None:
    loop = AntiLoop(2)
    assert loop.record("a", "c", 0.0) == Turn(1, allowed=True)
    assert loop.record("a", "c", 1.0) == Turn(2, allowed=True)
    refused = loop.record("a", "c", 2.0)
    assert refused == Turn(3, allowed=False)
    assert "turn 3" in refused.reason


def test_another_identity_in_the_same_context_has_its_own_turns() -> None:
    """Nobody can use up a conversation by guessing its contextId."""
    loop = AntiLoop(1)
    loop.record("mallory", "c", 0.0)
    assert not loop.record("mallory", "c", 0.0).allowed
    assert loop.record("alice", "c", 0.0).allowed


def test_identity_and_context_are_not_run_together() -> None:
    loop = AntiLoop(1)
    assert loop.record("ab", "c", 0.0).allowed
    assert loop.record("a", "bc", 0.0).allowed


@pytest.mark.parametrize(("cap", "in_force"), [(-3, 1), (0, 1), (5, 5), (20, 20), (21, MAX_CAP)])
def test_the_cap_is_clamped(cap: int, in_force: int) -> None:
    loop = AntiLoop(cap)
    turns = [loop.record("a", "c", 0.0).allowed for _ in range(30)]
    assert loop.cap == in_force == sum(turns)


def test_idleness_forgives_and_asking_on_does_not() -> None:
    """A refused attempt is activity: a loop that goes on stays refused."""
    loop = AntiLoop(1, idle_ttl=10)
    loop.record("a", "c", 0.0)
    for second in range(1, 50, 9):
        assert not loop.record("a", "c", float(second)).allowed
    assert loop.record("a", "c", 56.0) == Turn(1, allowed=True), "46 was the last attempt"


def test_a_busy_conversation_does_not_keep_an_idle_one_from_being_forgotten() -> None:
    loop = AntiLoop(1, idle_ttl=10)
    loop.record("a", "busy", 0.0)
    loop.record("a", "idle", 1.0)
    loop.record("a", "busy", 9.0)
    assert loop.record("a", "idle", 11.0) == Turn(1, allowed=True)
    assert len(loop) == 2


def test_a_flood_of_contexts_forgives_nobody() -> None:
    loop = AntiLoop(1, max_contexts=50)
    loop.record("a", "c", 0.0)
    assert not loop.record("a", "c", 0.0).allowed
    for number in range(10_000):
        loop.record("a", str(number), 1.0)
        loop.record(str(number), "c", 1.0)
    assert not loop.record("a", "c", 2.0).allowed
    assert len(loop) == 50


def test_a_full_table_refuses_newcomers_with_a_reason() -> None:
    loop = AntiLoop(5, max_contexts=1, idle_ttl=10)
    loop.record("a", "c", 0.0)
    newcomer = loop.record("b", "c", 9.0)
    assert newcomer == Turn(0, allowed=False)
    assert "too many conversations" in newcomer.reason
    assert loop.record("a", "c", 9.0).allowed
    assert loop.record("b", "c", 19.0).allowed


def test_a_huge_context_id_costs_no_memory() -> None:
    loop = AntiLoop(5)
    loop.record("a", "x" * 5_000_000, 0.0)
    loop.record("a", "\ud800", 0.0)
    assert all(len(key) == 16 for key in loop._counts)


def test_no_idle_time_turns_the_guard_off() -> None:
    loop = AntiLoop(1, idle_ttl=0)
    assert all(loop.record("a", "c", 0.0).allowed for _ in range(5))


def test_a_clock_that_steps_back_forgives_nobody() -> None:
    loop = AntiLoop(1, idle_ttl=10)
    loop.record("a", "c", 100.0)
    assert not loop.record("a", "c", 0.0).allowed


@pytest.mark.parametrize(("contexts", "idle"), [(0, 1.0), (1, -1.0), (1, math.nan)])
def test_senseless_bounds_are_refused(contexts: int, idle: float) -> None:
    with pytest.raises(ValueError, match="idle_ttl"):
        AntiLoop(1, max_contexts=contexts, idle_ttl=idle)


class AntiLoopMachine(RuleBasedStateMachine):
    """Against a model that scans a plain list of attempts."""

    CAP = 3
    MAX_CONTEXTS = 4
    IDLE = 10

    def __init__(self) -> None:
        super().__init__()
        self.loop = AntiLoop(self.CAP, max_contexts=self.MAX_CONTEXTS, idle_ttl=self.IDLE)
        self.attempts: dict[tuple[str, str], list[int]] = {}
        self.now = 0

    @rule(seconds=st.integers(0, 12))
    def wait(self, seconds: int) -> None:
        self.now += seconds

    @rule(identity=st.sampled_from("ab"), context=st.sampled_from("wxyz"))
    def record(self, identity: str, context: str) -> None:
        live = {
            key: times for key, times in self.attempts.items() if self.now - times[-1] < self.IDLE
        }
        self.attempts = live
        turn = self.loop.record(identity, context, float(self.now))
        key = (identity, context)
        if key not in live and len(live) >= self.MAX_CONTEXTS:
            assert turn == Turn(0, allowed=False)
            return
        times = live.setdefault(key, [])
        times.append(self.now)
        assert turn == Turn(len(times), allowed=len(times) <= self.CAP)

    @invariant()
    def memory_is_bounded(self) -> None:
        assert len(self.loop) <= self.MAX_CONTEXTS


TestAntiLoopMachine = AntiLoopMachine.TestCase
