"""The pool of slots: bounds, the line of resuming runs, and nothing lost."""

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from a2a_trio.rules.slots import Slots, Waiter


def test_take_until_full_then_refuse() -> None:
    slots = Slots(2)
    assert [slots.take(), slots.take(), slots.take()] == [True, True, False]
    slots.release()
    assert slots.take()


def test_whoever_waits_goes_before_newcomers() -> None:
    slots, granted = Slots(1), list[str]()
    assert slots.take()
    slots.enqueue(lambda: granted.append("first"))
    slots.enqueue(lambda: granted.append("second"))
    assert not slots.take()
    slots.release()
    assert granted == ["first"]
    assert not slots.take()
    assert slots.in_use == 1


def test_leaving_the_line_gives_back_what_was_granted() -> None:
    slots = Slots(1)
    assert slots.take()
    waiter = slots.enqueue(lambda: None)
    slots.release()
    assert waiter.granted
    slots.leave(waiter)
    assert slots.in_use == 0


@pytest.mark.parametrize("capacity", [0, -1])
def test_a_pool_has_at_least_one_slot(capacity: int) -> None:
    with pytest.raises(ValueError, match="at least 1"):
        Slots(capacity)


def test_releasing_twice_is_a_defect() -> None:
    slots = Slots(1)
    slots.take()
    slots.release()
    with pytest.raises(RuntimeError):
        slots.release()


class SlotsMachine(RuleBasedStateMachine):
    """Against a model that is a number and a list."""

    def __init__(self) -> None:
        super().__init__()
        self.slots = Slots(3)
        self.held = 0
        self.line: list[Waiter] = []
        self.granted: list[Waiter] = []

    @rule()
    def take(self) -> None:
        expected = self.held + len(self.granted) < 3 and not self.line
        assert self.slots.take() is expected
        self.held += expected

    @rule()
    def enqueue(self) -> None:
        free = self.held + len(self.granted) < 3 and not self.line
        waiter = self.slots.enqueue(lambda: None)
        assert waiter.granted is free
        (self.granted if free else self.line).append(waiter)

    @precondition(lambda self: self.held)
    @rule()
    def release(self) -> None:
        self.held -= 1
        self.slots.release()
        self.grant()

    @precondition(lambda self: self.line or self.granted)
    @rule(data=st.data())
    def leave(self, data: st.DataObject) -> None:
        waiter = data.draw(st.sampled_from([*self.line, *self.granted]))
        was_granted = waiter.granted
        self.slots.leave(waiter)
        (self.granted if was_granted else self.line).remove(waiter)
        if was_granted:
            self.grant()

    def grant(self) -> None:
        if self.line:
            self.granted.append(self.line.pop(0))

    @invariant()
    def agrees(self) -> None:
        assert self.slots.in_use == self.held + len(self.granted) <= 3
        assert self.slots.waiting == len(self.line)
        assert all(w.granted for w in self.granted)
        assert not any(w.granted for w in self.line)


TestSlotsMachine = SlotsMachine.TestCase
