"""One ordered verdict on the head of a request."""

import attrs
import pytest

from a2a_trio.errors import error_row
from a2a_trio.rules.admission import (
    APPLIES,
    STAGES,
    Admission,
    AdmissionPolicy,
    Caller,
    Provenance,
    Purpose,
    Refused,
    RequestFacts,
    Stage,
)
from a2a_trio.rules.rate_limit import RateLimiter

OPEN = AdmissionPolicy()
SECURED = AdmissionPolicy(
    tokens=(("alice", "alice-token"), ("bob", "bob-token")), shared_tokens=("shared-token",)
)
CALL = RequestFacts(
    purpose=Purpose.RPC,
    verb="POST",
    hosts=("127.0.0.1:9910",),
    content_types=("application/json",),
    client="127.0.0.1",
)
BY_ALICE = attrs.evolve(CALL, authorizations=("Bearer alice-token",))


def admission(
    policy: AdmissionPolicy = OPEN, *, rate: int = 60, flood: int | None = 600
) -> Admission:
    return Admission(
        policy,
        limiter=RateLimiter(rate),
        polling_limiter=RateLimiter(rate * 10),
        flood_limiter=None if flood is None else RateLimiter(flood),
    )


def status(verdict: Caller | Refused | None) -> int:
    """Return the HTTP status of a refusal, 200 for a caller, 0 for somebody anonymous."""
    if isinstance(verdict, Refused):
        return error_row(type(verdict.error)).rpc_status
    return 0 if verdict is None else 200


def refusal(verdict: Caller | Refused | None) -> Refused:
    assert isinstance(verdict, Refused)
    return verdict


def caller(verdict: Caller | Refused | None) -> Caller:
    assert isinstance(verdict, Caller)
    return verdict


# --- order ----------------------------------------------------------------------------------


def test_the_order_is_the_one_that_is_documented() -> None:
    assert [stage.value for stage in STAGES] == [
        "host",
        "origin",
        "address",
        "content type",
        "flood",
        "identity",
        "trust",
        "rate",
    ]
    assert set(APPLIES) == set(Purpose)
    assert APPLIES[Purpose.RPC] == set(Stage)


def test_each_stage_hides_the_later_ones() -> None:
    """A request with every fault is told of the first; mending one shows the next."""
    policy = attrs.evolve(SECURED, allowed_hosts=("a.example",), trusted_peers=("bob",))
    judge = admission(policy, flood=1, rate=0)
    facts = attrs.evolve(
        CALL, hosts=("b.example",), origins=("null",), content_types=("text/plain",)
    )
    assert "Host" in refusal(judge.admit(facts, 0)).error.message
    facts = attrs.evolve(facts, hosts=("a.example",))
    assert "Origin" in refusal(judge.admit(facts, 0)).error.message
    facts = attrs.evolve(facts, origins=())
    assert status(judge.admit(facts, 0)) == 415
    facts = attrs.evolve(facts, content_types=("application/json",))
    assert status(judge.admit(facts, 0)) == 401
    assert status(judge.admit(facts, 0)) == 429, "one failure used up the flood limit"
    facts = attrs.evolve(facts, client="10.0.0.2", authorizations=("Bearer alice-token",))
    assert "trusted" in refusal(judge.admit(facts, 0)).error.message
    facts = attrs.evolve(facts, authorizations=("Bearer bob-token",))
    bob = caller(judge.admit(facts, 0))
    assert status(judge.charge(bob, polling=False, now=0)) == 429


# --- Host -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "host",
    [
        "localhost",
        "localhost:9910",
        "LOCALHOST.:9910",
        "127.0.0.1",
        "127.0.0.2:1",
        "[::1]",
        "[::1]:9910",
        "[::ffff:127.0.0.1]:9910",
    ],
)
def test_without_tokens_loopback_hosts_are_served(host: str) -> None:
    assert status(admission().admit(attrs.evolve(CALL, hosts=(host,)), 0)) == 200


@pytest.mark.parametrize(
    "hosts",
    [
        (),
        ("",),
        ("evil.example",),
        ("evil.example:9910",),
        ("localhost.evil.example",),
        ("127.0.0.1.evil.example",),
        ("192.168.1.1",),
        ("0.0.0.0",),
        ("[::]",),
        ("::1",),
        ("[::1",),
        ("localhost:http",),
        ("löcalhost",),
        ("localhost, evil.example",),
        ("localhost", "localhost"),
        ("a" * 10_000,),
    ],
)
@pytest.mark.parametrize("purpose", list(Purpose))
def test_without_tokens_no_other_host_is(hosts: tuple[str, ...], purpose: Purpose) -> None:
    """A page whose name was rebound to 127.0.0.1 gets nothing, by any route."""
    facts = attrs.evolve(CALL, hosts=hosts, purpose=purpose, verb="GET")
    assert status(admission().admit(facts, 0)) == 403


def test_without_tokens_configured_hosts_do_not_widen_it() -> None:
    policy = AdmissionPolicy(allowed_hosts=("a.example",))
    facts = attrs.evolve(CALL, hosts=("a.example",))
    assert status(admission(policy).admit(facts, 0)) == 403


@pytest.mark.parametrize(
    ("hosts", "expected"),
    [
        (("anything.example",), 200),
        ((), 200),
        (("a.example", "a.example"), 403),
        (("a example",), 403),
        (("user@a.example",), 403),
    ],
)
def test_with_tokens_any_well_formed_host_is_served(hosts: tuple[str, ...], expected: int) -> None:
    facts = attrs.evolve(BY_ALICE, hosts=hosts)
    assert status(admission(SECURED).admit(facts, 0)) == expected


@pytest.mark.parametrize(
    ("host", "expected"),
    [
        ("a.example", 200),
        ("A.Example.", 200),
        ("a.example:9910", 200),
        ("b.example:8443", 200),
        ("b.example", 403),
        ("b.example:1", 403),
        ("localhost", 403),
        ("x.a.example", 403),
    ],
)
def test_with_tokens_configured_hosts_are_the_only_ones(host: str, expected: int) -> None:
    judge = admission(attrs.evolve(SECURED, allowed_hosts=("a.example", "b.example:8443")))
    assert status(judge.admit(attrs.evolve(BY_ALICE, hosts=(host,)), 0)) == expected
    assert status(judge.admit(attrs.evolve(BY_ALICE, hosts=()), 0)) == 403
    probe = attrs.evolve(CALL, purpose=Purpose.OPEN, verb="GET", hosts=("10.1.2.3:9910",))
    assert status(judge.admit(probe, 0)) == 0, "health is probed by pod address"


# --- Origin ---------------------------------------------------------------------------------


@pytest.mark.parametrize("policy", [OPEN, SECURED])
@pytest.mark.parametrize("purpose", list(Purpose))
def test_pages_of_strangers_are_refused_everywhere(
    policy: AdmissionPolicy, purpose: Purpose
) -> None:
    judge = admission(policy)
    for origins in (("null",), ("https://evil.example",), ("http://localhost", "http://localhost")):
        facts = attrs.evolve(BY_ALICE, purpose=purpose, origins=origins)
        assert status(judge.admit(facts, 0)) == 403


def test_local_and_configured_pages_are_served() -> None:
    judge = admission(attrs.evolve(SECURED, allowed_origins=("https://app.example",)))
    for origin in ("http://localhost:3000", "https://app.example"):
        facts = attrs.evolve(BY_ALICE, origins=(origin,))
        assert status(judge.admit(facts, 0)) == 200
        assert ("access-control-allow-origin", origin) in judge.cors(facts)


def test_a_preflight_needs_no_credential_and_counts_for_nothing() -> None:
    judge = admission(SECURED, flood=1)
    preflight = attrs.evolve(
        CALL, verb="OPTIONS", content_types=(), origins=("http://localhost:3000",)
    )
    for _ in range(5):
        assert judge.admit(preflight, 0) is None
    names = [name for name, _ in judge.cors(preflight)]
    assert "access-control-allow-methods" in names
    evil = attrs.evolve(preflight, origins=("https://evil.example",))
    assert status(judge.admit(evil, 0)) == 403
    assert judge.cors(evil) == (("vary", "Origin"),)


# --- address --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("client", "expected"),
    [
        ("127.0.0.1", 200),
        ("::1", 200),
        ("::ffff:127.0.0.1", 200),
        ("", 200),
        ("10.0.0.5", 403),
        ("2001:4860::1", 403),
        ("127.0.0.1:4711", 403),
        ("<local>", 403),
    ],
)
def test_without_tokens_only_this_machine_is_served(client: str, expected: int) -> None:
    """Even where somebody else bound the socket, as an ASGI server does."""
    assert status(admission().admit(attrs.evolve(CALL, client=client), 0)) == expected


def test_the_address_names_the_caller() -> None:
    for client, identity in [("::ffff:127.0.0.1", "ip:127.0.0.1"), ("", "ip:local")]:
        who = caller(admission().admit(attrs.evolve(CALL, client=client), 0))
        assert (who.identity, who.display) == (identity, identity)
        assert who.provenance is Provenance.ADDRESS


def test_a_socket_that_names_no_address_is_one_unknown_caller() -> None:
    facts = attrs.evolve(CALL, authorizations=("Bearer shared-token",), client="a.example:1")
    assert caller(admission(SECURED).admit(facts, 0)).identity == "ip:unknown"


def test_forwarded_headers_count_only_from_a_trusted_proxy() -> None:
    policy = attrs.evolve(SECURED, trusted_proxies=("10.0.0.0/24", "192.168.7.7"))
    judge = admission(policy)
    facts = attrs.evolve(
        CALL,
        authorizations=("Bearer shared-token",),
        forwarded_for=("1.1.1.1, 203.0.113.9, 10.0.0.2",),
    )
    for client, address in [
        ("10.0.0.3", "203.0.113.9"),
        ("::ffff:10.0.0.3", "203.0.113.9"),
        ("192.168.7.7", "203.0.113.9"),
        ("192.168.7.8", "192.168.7.8"),
    ]:
        assert caller(judge.admit(attrs.evolve(facts, client=client), 0)).address == address
    bad = attrs.evolve(facts, client="10.0.0.3", forwarded_for=("unknown",))
    assert status(judge.admit(bad, 0)) == 403


def test_without_tokens_a_local_proxy_does_not_make_strangers_local() -> None:
    judge = admission(AdmissionPolicy(trusted_proxies=("127.0.0.1",)))
    assert status(judge.admit(CALL, 0)) == 200
    assert status(judge.admit(attrs.evolve(CALL, forwarded_for=("203.0.113.9",)), 0)) == 403


# --- content type ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (("application/json",), 200),
        (("application/a2a+json; charset=utf-8",), 200),
        ((), 415),
        (("text/plain",), 415),
        (("text/jsonish",), 415),
        (("application/json", "text/plain"), 415),
        (("application/jsön",), 415),
    ],
)
def test_calls_are_json(values: tuple[str, ...], expected: int) -> None:
    assert status(admission().admit(attrs.evolve(CALL, content_types=values), 0)) == expected


# --- identity -------------------------------------------------------------------------------


def test_a_peers_own_token_names_it() -> None:
    who = caller(admission(SECURED).admit(BY_ALICE, 0))
    assert who == Caller(
        identity="alice", provenance=Provenance.TOKEN, address="127.0.0.1", display="alice"
    )


def test_the_shared_token_leaves_the_address() -> None:
    facts = attrs.evolve(CALL, authorizations=("Bearer shared-token",), client="10.0.0.5")
    assert caller(admission(SECURED).admit(facts, 0)).identity == "ip:10.0.0.5"


def test_a_shared_token_alone_is_enough_to_need_one() -> None:
    judge = admission(AdmissionPolicy(shared_tokens=("shared-token",)))
    assert status(judge.admit(CALL, 0)) == 401
    facts = attrs.evolve(CALL, authorizations=("Bearer shared-token",))
    assert status(judge.admit(facts, 0)) == 200


@pytest.mark.parametrize(
    "authorizations",
    [
        (),
        ("",),
        ("Bearer",),
        ("Bearer wrong",),
        ("Bearer alice-toke",),
        ("Bearer alice-tokenx",),
        ("Bearer Alice-Token",),
        ("Bearer \xe4\xff",),
        ("Bearer " + "x" * 100_000,),
        ("Basic YWxpY2U6YWxpY2UtdG9rZW4=",),
        ("alice-token",),
        ("Bearer alice-token", "Bearer alice-token"),
    ],
)
def test_with_tokens_anything_else_is_unauthorized(authorizations: tuple[str, ...]) -> None:
    refused = refusal(
        admission(SECURED).admit(attrs.evolve(CALL, authorizations=authorizations), 0)
    )
    assert status(refused) == 401
    assert refused.headers == (("www-authenticate", "Bearer"),)


def test_without_tokens_no_credential_is_needed_but_a_wrong_one_is_wrong() -> None:
    judge = admission()
    assert status(judge.admit(CALL, 0)) == 200
    assert status(judge.admit(attrs.evolve(CALL, authorizations=("Basic x",)), 0)) == 200
    assert status(judge.admit(attrs.evolve(CALL, authorizations=("Bearer x",)), 0)) == 401


def test_a_minted_token_is_accepted_in_both_modes_and_switches_neither() -> None:
    by_gateway = attrs.evolve(CALL, authorizations=("Bearer minted",))
    for policy, without in [(OPEN, 200), (SECURED, 401)]:
        judge = admission(policy)
        assert status(judge.admit(by_gateway, 0)) == 401
        judge.set_minted([("gw/work", "minted")])
        assert caller(judge.admit(by_gateway, 0)).identity == "gw/work"
        assert status(judge.admit(CALL, 0)) == without


def test_tokens_that_are_not_ascii_are_compared_as_bytes() -> None:
    judge = admission(AdmissionPolicy(tokens=(("alice", "schlüssel"),)))
    on_the_wire = "schlüssel".encode().decode("latin-1")
    facts = attrs.evolve(CALL, authorizations=(f"Bearer {on_the_wire}",))
    assert caller(judge.admit(facts, 0)).identity == "alice"


@pytest.mark.parametrize(
    ("identities", "display", "provenance"),
    [
        (("pi-kimchi",), "pi-kimchi", Provenance.ASSERTED),
        (("alice",), "ip:10.0.0.5", Provenance.ADDRESS),
        (("ALICE",), "ip:10.0.0.5", Provenance.ADDRESS),
        (("carol",), "ip:10.0.0.5", Provenance.ADDRESS),
        (("gate",), "ip:10.0.0.5", Provenance.ADDRESS),
        (("a b",), "ip:10.0.0.5", Provenance.ADDRESS),
        (("one", "two"), "ip:10.0.0.5", Provenance.ADDRESS),
        ((), "ip:10.0.0.5", Provenance.ADDRESS),
    ],
)
def test_an_asserted_name_is_only_for_display(
    identities: tuple[str, ...], display: str, provenance: Provenance
) -> None:
    """It owns nothing, and it is never the name of somebody who has a token."""
    judge = admission(attrs.evolve(SECURED, trusted_peers=("carol", "ip:10.0.0.5")))
    judge.set_minted([("gate", "minted")])
    facts = attrs.evolve(
        CALL, authorizations=("Bearer shared-token",), identities=identities, client="10.0.0.5"
    )
    who = caller(judge.admit(facts, 0))
    assert who.identity == "ip:10.0.0.5"
    assert (who.display, who.provenance) == (display, provenance)


def test_an_asserted_name_changes_neither_a_token_nor_a_refusal() -> None:
    judge = admission(SECURED)
    named = attrs.evolve(BY_ALICE, identities=("bob",))
    assert caller(judge.admit(named, 0)).display == "alice"
    assert status(judge.admit(attrs.evolve(CALL, identities=("alice",)), 0)) == 401


@pytest.mark.parametrize(
    "policy",
    [
        AdmissionPolicy(tokens=(("alice", ""),)),
        AdmissionPolicy(tokens=(("", "x"),)),
        AdmissionPolicy(tokens=(("ip:10.0.0.1", "x"),)),
        AdmissionPolicy(shared_tokens=("",)),
        AdmissionPolicy(allowed_hosts=("http://a.example",)),
        AdmissionPolicy(allowed_origins=("a.example",)),
        AdmissionPolicy(trusted_proxies=("proxy.example",)),
    ],
)
def test_a_policy_that_cannot_be_meant_is_refused(policy: AdmissionPolicy) -> None:
    with pytest.raises(ValueError, match=r".+"):
        admission(policy)


# --- trust ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("policy", "expected"),
    [
        (SECURED, 200),
        (attrs.evolve(SECURED, trusted_peers=("alice",)), 200),
        (attrs.evolve(SECURED, trusted_peers=("bob",)), 403),
        (attrs.evolve(SECURED, trusted_peers=("Alice",)), 403),
        (attrs.evolve(SECURED, trusted_peers=("bob",), allow_all_users=True), 200),
    ],
)
def test_the_trust_list(policy: AdmissionPolicy, expected: int) -> None:
    judge = admission(policy)
    assert status(judge.admit(BY_ALICE, 0)) == expected
    metrics = attrs.evolve(BY_ALICE, purpose=Purpose.METRICS)
    assert status(judge.admit(metrics, 0)) == expected


def test_shared_token_callers_are_trusted_by_address_in_any_spelling() -> None:
    judge = admission(attrs.evolve(SECURED, trusted_peers=("ip:::ffff:10.0.0.5",)))
    facts = attrs.evolve(CALL, authorizations=("Bearer shared-token",), client="10.0.0.5")
    assert status(judge.admit(facts, 0)) == 200
    assert status(judge.admit(attrs.evolve(facts, client="10.0.0.6"), 0)) == 403


def test_without_tokens_the_trust_list_has_nobody_to_apply_to() -> None:
    assert status(admission(AdmissionPolicy(trusted_peers=("alice",))).admit(CALL, 0)) == 200


# --- purposes -------------------------------------------------------------------------------


def test_the_card_is_for_everybody_and_knows_its_reader() -> None:
    judge = admission(SECURED)
    read = attrs.evolve(CALL, purpose=Purpose.CARD, verb="GET", content_types=())
    assert judge.admit(read, 0) is None
    wrong = attrs.evolve(read, authorizations=("Bearer wrong",))
    assert judge.admit(wrong, 0) is None
    by_alice = attrs.evolve(read, authorizations=("Bearer alice-token",))
    assert caller(judge.admit(by_alice, 0)).identity == "alice"
    distrusting = admission(attrs.evolve(SECURED, trusted_peers=("bob",)))
    assert distrusting.admit(by_alice, 0) is None, "who is not trusted reads what strangers read"
    assert caller(admission().admit(read, 0)).identity == "ip:127.0.0.1"


def test_metrics_need_a_credential_when_there_are_tokens() -> None:
    read = attrs.evolve(CALL, purpose=Purpose.METRICS, verb="GET", content_types=())
    assert status(admission(SECURED).admit(read, 0)) == 401
    assert status(admission().admit(read, 0)) == 200


def test_health_is_open() -> None:
    read = RequestFacts(purpose=Purpose.OPEN, verb="GET", client="10.0.0.9")
    judge = admission(SECURED, flood=1)
    for _ in range(3):
        assert judge.admit(read, 0) is None


# --- limits ---------------------------------------------------------------------------------


def test_calls_and_polls_have_their_own_buckets() -> None:
    judge = admission(SECURED, rate=2)
    who = caller(judge.admit(BY_ALICE, 0))
    assert [status(judge.charge(who, polling=False, now=0)) for _ in range(3)] == [0, 0, 429]
    assert [status(judge.charge(who, polling=True, now=0)) for _ in range(21)] == [0] * 20 + [429]
    bob = attrs.evolve(who, identity="bob")
    assert judge.charge(bob, polling=False, now=0) is None


def test_a_refusal_says_when_to_come_back() -> None:
    judge = admission(rate=1)
    who = caller(judge.admit(CALL, 0))
    judge.charge(who, polling=False, now=0)
    refused = judge.charge(who, polling=False, now=0.5)
    assert refused is not None
    assert refused.headers == (("retry-after", "60"),)
    assert refused.error.retry_after == 59.5
    never = admission(rate=0).charge(who, polling=False, now=0)
    assert never is not None
    assert never.headers == ()
    assert never.error.retry_after is None


def test_only_failures_count_towards_the_flood_limit() -> None:
    judge = admission(SECURED, flood=2)
    for _ in range(10):
        assert status(judge.admit(BY_ALICE, 0)) == 200
    assert [status(judge.admit(CALL, 0)) for _ in range(3)] == [401, 401, 429]
    assert status(judge.admit(BY_ALICE, 1)) == 429, "guesses beyond the limit are not even checked"
    assert status(judge.admit(attrs.evolve(BY_ALICE, client="10.0.0.2"), 1)) == 200
    assert status(judge.admit(BY_ALICE, 60)) == 200


def test_strangers_reading_the_card_are_limited_too() -> None:
    judge = admission(SECURED, flood=2)
    read = attrs.evolve(CALL, purpose=Purpose.CARD, verb="GET")
    assert [status(judge.admit(read, 0)) for _ in range(3)] == [0, 0, 429]


def test_a_flood_from_everywhere_keeps_out_nobody_with_a_credential() -> None:
    judge = Admission(
        SECURED,
        limiter=RateLimiter(60),
        polling_limiter=RateLimiter(600),
        flood_limiter=RateLimiter(600, max_identities=10),
    )
    for number in range(50):
        verdict = judge.admit(attrs.evolve(CALL, client=f"10.0.0.{number}"), 0)
        assert status(verdict) == (401 if number < 10 else 429)
    assert status(judge.admit(attrs.evolve(BY_ALICE, client="10.9.9.9"), 0)) == 200


def test_without_a_flood_limit_failures_are_only_refused() -> None:
    judge = admission(SECURED, flood=None)
    assert {status(judge.admit(CALL, 0)) for _ in range(1_000)} == {401}
