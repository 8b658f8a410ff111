"""Admission against a model that judges each request with a plain chain of questions."""

from collections.abc import Mapping
from typing import Final

from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    rule,
)

from a2a_trio.errors import error_row
from a2a_trio.rules.admission import (
    Admission,
    AdmissionPolicy,
    Caller,
    Purpose,
    Refused,
    RequestFacts,
)
from a2a_trio.rules.rate_limit import RateLimiter

RATE: Final = 2
FLOOD: Final = 3
NO_LIMIT: Final = 10**9

LOCAL_HOSTS: Final = (("localhost",), ("[::1]:9910",), ("127.0.0.1.",))
NAMED_HOSTS: Final = (("agent.example:9910",),)
BAD_HOSTS: Final = (("evil.example\x00",), ("localhost", "localhost"), ("::1",))
GOOD_ORIGINS: Final = ((), ("http://localhost:3000",), ("https://app.example",))
BAD_ORIGINS: Final = (("null",), ("https://evil.example",))
CLIENTS: Final = ("127.0.0.1", "::1", "10.0.0.5")
# credential -> identity by token; "" is by address, None is wrong
CREDENTIALS: Final[Mapping[tuple[str, ...], str | None]] = {
    ("Bearer alice-1",): "alice",
    ("bearer alice-2",): "alice",
    ("Bearer mallory-1",): "mallory",
    ("Bearer shared",): "",
    ("Bearer minted",): "gate",
    ("Bearer wrong",): None,
    ("Bearer",): None,
    ("Bearer alice-1", "Bearer alice-1"): None,
}
OPEN_CREDENTIALS: Final[Mapping[tuple[str, ...], str | None]] = {("Bearer minted",): "gate"}
NOT_BEARER: Final = ((), ("Basic x",))


class AdmissionMachine(RuleBasedStateMachine):
    """Requests of all kinds, calls charged or not, time passing."""

    @initialize(secured=st.booleans())
    def begin(self, secured: bool) -> None:  # noqa: FBT001 - Hypothesis passes it by keyword
        self.secured = secured
        policy = AdmissionPolicy(
            tokens=(("alice", "alice-1"), ("alice", "alice-2"), ("mallory", "mallory-1")),
            shared_tokens=("shared",),
            allowed_origins=("https://app.example",),
            trusted_peers=("alice", "gate", "ip:127.0.0.1", "ip:10.0.0.5"),
        )
        if not secured:
            policy = AdmissionPolicy(allowed_origins=("https://app.example",))
        self.limiter = RateLimiter(RATE)
        self.admission = Admission(
            policy,
            limiter=self.limiter,
            polling_limiter=RateLimiter(NO_LIMIT),
            flood_limiter=RateLimiter(FLOOD),
        )
        self.admission.set_minted([("gate", "minted")])
        self.now = 0
        self.failures: dict[str, list[int]] = {}
        self.calls: dict[str, list[int]] = {}

    def recent(self, log: dict[str, list[int]], key: str) -> int:
        return sum(self.now - at < 60 for at in log.get(key, []))

    def who(self, facts: RequestFacts) -> str | None:
        """The identity, or None."""
        if facts.authorizations in NOT_BEARER:
            return None if self.secured else f"ip:{facts.client}"
        known = CREDENTIALS if self.secured else OPEN_CREDENTIALS
        name = known.get(facts.authorizations)
        return f"ip:{facts.client}" if name == "" else name

    def is_host_wrong(self, facts: RequestFacts) -> bool:
        if self.secured:
            return facts.purpose is not Purpose.OPEN and facts.hosts in BAD_HOSTS
        return facts.hosts not in LOCAL_HOSTS

    def expected(self, facts: RequestFacts) -> int | str | None:  # noqa: PLR0911 - one per stage
        """A status, an identity, or None for somebody anonymous."""
        if self.is_host_wrong(facts) or facts.origins in BAD_ORIGINS:
            return 403
        if facts.verb == "OPTIONS" or facts.purpose is Purpose.OPEN:
            return None
        if not self.secured and facts.client == "10.0.0.5":
            return 403
        if facts.purpose is Purpose.RPC and facts.content_types != ("application/json",):
            return 415
        if self.recent(self.failures, facts.client) >= FLOOD:
            return 429
        identity = self.who(facts)
        distrusted = identity in {"mallory", "ip:::1"} and self.secured
        if facts.purpose is Purpose.CARD:
            return None if distrusted else identity
        if identity is None:
            return 401
        return 403 if distrusted else identity

    @rule(seconds=st.integers(0, 61))
    def wait(self, seconds: int) -> None:
        self.now += seconds

    @rule(
        facts=st.builds(
            RequestFacts,
            purpose=st.sampled_from(Purpose),
            verb=st.sampled_from(["POST", "GET", "OPTIONS"]),
            hosts=st.sampled_from(LOCAL_HOSTS + LOCAL_HOSTS + NAMED_HOSTS + BAD_HOSTS),
            origins=st.sampled_from(GOOD_ORIGINS + GOOD_ORIGINS + BAD_ORIGINS),
            client=st.sampled_from(CLIENTS),
            content_types=st.sampled_from([("application/json",)] * 3 + [("text/plain",)]),
            authorizations=st.sampled_from([*CREDENTIALS, *NOT_BEARER]),
            identities=st.sampled_from([(), ("alice",), ("somebody",)]),
        ),
        charged=st.booleans(),
    )
    def request(self, facts: RequestFacts, charged: bool) -> None:  # noqa: FBT001 - as above
        expected = self.expected(facts)
        verdict = self.admission.admit(facts, self.now)
        if isinstance(verdict, Refused):
            assert error_row(type(verdict.error)).rpc_status == expected
        else:
            assert (verdict.identity if verdict else None) == expected
        reads_card = expected is None and facts.purpose is Purpose.CARD and facts.verb != "OPTIONS"
        if expected == 401 or (reads_card and self.who(facts) is None):
            self.failures.setdefault(facts.client, []).append(self.now)
        if isinstance(verdict, Caller) and charged:
            self.charge(verdict)

    def charge(self, caller: Caller) -> None:
        calls = self.recent(self.calls, caller.identity)
        refused = self.admission.charge(caller, polling=False, now=self.now)
        assert (refused is not None) == (calls >= RATE)
        if refused is None:
            self.calls.setdefault(caller.identity, []).append(self.now)
        assert self.admission.charge(caller, polling=True, now=self.now) is None

    @invariant()
    def nobody_is_charged_for_a_request_that_was_refused(self) -> None:
        for identity, due in self.limiter._live.items():
            assert len(due) <= len(self.calls[identity])


TestAdmissionMachine = AdmissionMachine.TestCase
