"""Registering with a gateway: every answer and what follows, and a machine against a small gateway."""

import json
from random import Random
from typing import Any, Final

import pytest
from hypothesis import given, settings as hypothesis_settings, strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from a2a_trio.rules.registration import Registration, Reply, Step, read_reply

SHARED: Final = "agw_shared"
OWN: Final = "agw_own"


def registration(**changes: Any) -> Registration:
    rng = Random(1)  # noqa: S311 - jitter, and the same one every time
    usual = {"name": "desk-9910", "shared_token": SHARED, "heartbeat": 60.0, "rng": rng}
    return Registration(**{**usual, **changes})


def ok(status: int = 200, state: str = "accepted", token: str = "") -> Reply:
    return Reply(status=status, state=state, caller_token=token)


def test_first_registration_is_given_a_token_and_later_ones_show_it() -> None:
    """POST with the shared token once, then PATCH with the own one."""
    machine = registration()
    assert machine.request() == ("POST", SHARED)
    assert not machine.is_registered
    assert machine.answered(ok(201, "pending", OWN)) is Step.REGISTERED
    assert (machine.state, machine.token, machine.delay) == ("pending", OWN, 60.0)
    assert machine.request() == ("PATCH", OWN)
    assert machine.answered(ok()) is Step.REGISTERED
    assert machine.state == "accepted"


def test_kept_token_is_shown_at_once() -> None:
    """After a restart there is an entry already."""
    assert registration(caller_token=OWN).request() == ("PATCH", OWN)


@pytest.mark.parametrize("status", [401, 404])
def test_token_of_a_forgotten_entry_is_forgotten(status: int) -> None:
    """The next request begins anew, in the same beat."""
    machine = registration(caller_token=OWN)
    assert machine.answered(Reply(status=status)) is Step.AGAIN
    assert machine.request() == ("POST", SHARED)
    assert machine.answered(ok(201, "pending", "agw_new")) is Step.REGISTERED
    assert machine.request() == ("PATCH", "agw_new")


def test_gateway_that_knows_no_patch_is_remembered() -> None:
    """405 holds for as long as this process runs."""
    machine = registration(caller_token=OWN)
    assert machine.answered(Reply(status=405)) is Step.AGAIN
    assert machine.request() == ("POST", SHARED)
    machine.answered(ok())
    assert machine.request() == ("POST", SHARED)
    assert machine.token == OWN


def test_name_that_is_taken_is_changed_once() -> None:
    """By six more characters; who has a token keeps the name that belongs to it."""
    machine = registration()
    assert machine.answered(Reply(status=409)) is Step.AGAIN
    assert machine.name.startswith("desk-9910-")
    assert len(machine.name) == len("desk-9910-") + 6
    name = machine.name
    assert machine.answered(Reply(status=409)) is Step.FAILED
    assert machine.name == name

    known = registration(caller_token=OWN)
    assert known.answered(Reply(status=409)) is Step.FAILED
    assert known.name == "desk-9910"


def test_longest_name_stays_one() -> None:
    """64 characters with the suffix."""
    machine = registration(name="x" * 64)
    machine.answered(Reply(status=409))
    assert len(machine.name) == 64


@pytest.mark.parametrize("status", [403, 409, 413, 422, 429, 500, 502, 503, 303, 200, None])
def test_other_answers_end_the_beat(status: int | None) -> None:
    """No answer, a redirect, an error, or a 200 without what a gateway says."""
    machine = registration(caller_token=OWN)
    assert machine.answered(Reply(status=status)) is Step.FAILED
    assert machine.problem
    assert machine.token == OWN


def test_revoked_peer_knows_it() -> None:
    """And finds out when it is accepted again."""
    machine = registration(caller_token=OWN)
    assert machine.answered(Reply(status=403)) is Step.FAILED
    assert machine.state == "revoked"
    assert machine.request() == ("PATCH", OWN)
    machine.answered(ok())
    assert (machine.state, machine.problem) == ("accepted", "")


def test_pauses_grow_to_five_minutes_and_start_anew() -> None:
    """Twice as long each time, with jitter; success resets them."""
    machine = registration()
    delays = []
    for _ in range(8):
        machine.answered(Reply(status=500))
        delays.append(machine.delay)
    for number, delay in enumerate(delays):
        full = min(300.0, 60.0 * 2**number)
        assert full / 2 <= delay <= full
    machine.answered(ok(token=OWN))
    assert machine.delay == 60.0
    machine.answered(Reply(status=500))
    assert machine.delay <= 60.0


@pytest.mark.parametrize(("asked", "most"), [(200.0, 200.0), (10_000.0, 300.0), (1.0, 60.0)])
def test_retry_after_counts_if_it_is_longer(asked: float, most: float) -> None:
    """Up to five minutes."""
    machine = registration()
    machine.answered(Reply(status=429, retry_after=asked))
    assert machine.delay <= most
    assert machine.delay >= min(most, max(30.0, min(asked, 300.0)))


def test_beats_are_no_closer_than_a_quarter_of_a_minute() -> None:
    """Gateways count the requests of all peers of a machine together."""
    machine = registration(heartbeat=1.0)
    machine.answered(ok(token=OWN))
    assert machine.delay == 15.0


def test_slow_heartbeat_is_never_hurried() -> None:
    """The longest pause is not shorter than the interval that was asked for."""
    machine = registration(heartbeat=3600.0)
    for _ in range(5):
        machine.answered(Reply(status=500))
    assert machine.delay >= 1800.0


@pytest.mark.parametrize(
    ("body", "state", "token"),
    [
        (b'{"state": "pending", "caller_token": "agw_x"}', "pending", "agw_x"),
        (b'{"state": "accepted", "caller_token": null}', "accepted", ""),
        (b'{"state": "other"}', "", ""),
        (b'{"state": 7, "caller_token": 7}', "", ""),
        (b'{"state": "accepted", "caller_token": "a b"}', "accepted", ""),
        (b'{"state": "accepted", "caller_token": "a\\r\\nX: y"}', "accepted", ""),
        (b"<html>login</html>", "", ""),
        (b"", "", ""),
        (b"[]", "", ""),
        (b"[" * 10_000, "", ""),
    ],
)
def test_answers_are_read_as_far_as_they_go(body: bytes, state: str, token: str) -> None:
    """Errors have bodies of every kind, and a token becomes a header."""
    reply = read_reply(200, body, None)
    assert (reply.state, reply.caller_token) == (state, token)


@given(
    st.binary(max_size=300) | st.dictionaries(st.text(), st.text()).map(json.dumps).map(str.encode)
)
def test_no_body_is_too_strange(body: bytes) -> None:
    """Whatever a gateway says."""
    assert read_reply(200, body, None).state in {"", "pending", "accepted", "revoked"}


class Gateway(RuleBasedStateMachine):
    """A machine and the least of a gateway, which may forget, revoke, accept and fail."""

    def __init__(self) -> None:
        super().__init__()
        self.machine = registration()
        self.entries: dict[str, str] = {}
        self.state = "pending"
        self.minted = 0
        self.taken: set[str] = set()

    def serve(self) -> Reply:
        """Answer a request as a gateway does."""
        verb, token = self.machine.request()
        name = self.machine.name
        if verb == "PATCH":
            if token not in self.entries.values():
                return Reply(status=401)
            return Reply(status=403) if self.state == "revoked" else ok(200, self.state)
        if name in self.entries or name in self.taken:
            return Reply(status=409)
        self.minted += 1
        self.entries[name] = f"agw_{self.minted}"
        self.state = "pending"
        return ok(201, "pending", self.entries[name])

    @rule()
    def beat(self) -> None:
        """A beat has three requests at most, and then the machine knows what the gateway knows."""
        for _ in range(3):
            step = self.machine.answered(self.serve())
            if step is not Step.AGAIN:
                break
        else:
            pytest.fail("a beat that does not end")
        if step is Step.REGISTERED:
            assert self.entries[self.machine.name] == self.machine.token
            assert self.machine.state == self.state
            assert self.machine.problem == ""
        else:
            assert self.machine.problem

    @rule(status=st.sampled_from([None, 429, 500, 503, 303]))
    def lost(self, status: int | None) -> None:
        """A failed beat changes neither the name nor the token."""
        before = (self.machine.name, self.machine.token, self.machine.state)
        assert self.machine.answered(Reply(status=status)) is Step.FAILED
        assert (self.machine.name, self.machine.token, self.machine.state) == before

    @rule()
    def forget(self) -> None:
        """The operator deletes the entry."""
        self.entries.clear()

    @precondition(lambda self: not self.entries)
    @rule()
    def steal(self) -> None:
        """Somebody else takes the name."""
        self.taken.add("desk-9910")

    @rule(state=st.sampled_from(["accepted", "revoked"]))
    def decide(self, state: str) -> None:
        """The operator accepts or revokes."""
        if self.entries:
            self.state = state

    @invariant()
    def delay_is_bounded(self) -> None:
        """Between half the least interval and five minutes."""
        assert 30.0 <= self.machine.delay <= 300.0


Gateway.TestCase.settings = hypothesis_settings(stateful_step_count=30)
TestGateway = Gateway.TestCase
