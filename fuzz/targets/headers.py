"""Invariant: any header values have one verdict and never raise.

Without a credential nobody gets in with tokens, without a loopback Host nobody without, nobody owns
anything by a name of their own choice, and nothing that a caller writes becomes a broken header.
"""

from a2a_trio.rules.addresses import is_loopback_name, parse_host
from a2a_trio.rules.admission import (
    Admission,
    AdmissionPolicy,
    Caller,
    Provenance,
    Purpose,
    Refused,
    RequestFacts,
)
from a2a_trio.rules.rate_limit import RateLimiter
from fuzz.harness import Target

POLICIES = (
    AdmissionPolicy(trusted_proxies=("127.0.0.1",), allowed_origins=("https://app.example",)),
    AdmissionPolicy(
        tokens=(("alice", "t"),),
        shared_tokens=("s",),
        allowed_hosts=("a.example",),
        trusted_peers=("alice", "ip:127.0.0.1"),
        trusted_proxies=("127.0.0.1", "10.0.0.0/8"),
    ),
)


def facts_of(data: bytes, purpose: Purpose) -> RequestFacts:
    """Lines become headers: the first character says which, values are latin-1 as on the wire."""
    fields: dict[str, list[str]] = {letter: [] for letter in "hocaif"}
    for line in data.split(b"\n"):
        letter = chr(line[0]) if line else ""
        fields.get(letter, []).append(line[1:].decode("latin-1"))
    return RequestFacts(
        purpose=purpose,
        verb="OPTIONS" if data.endswith(b"P") else "POST",
        hosts=tuple(fields["h"]),
        origins=tuple(fields["o"]),
        content_types=tuple(fields["c"]),
        authorizations=tuple(fields["a"]),
        identities=tuple(fields["i"]),
        forwarded_for=tuple(fields["f"]),
        client="127.0.0.1",
    )


def check_caller(policy: AdmissionPolicy, facts: RequestFacts, caller: Caller) -> None:
    """Who got in had what it takes, and owns nothing by a name that it gave itself."""
    if policy.has_tokens:
        assert len(facts.authorizations) == 1
        assert facts.authorizations[0].strip(" \t")[:7].lower() == "bearer "
    else:
        host = parse_host(facts.hosts[0])
        assert host is not None
        assert host.is_loopback
        assert is_loopback_name(caller.address)
    if caller.provenance is Provenance.TOKEN:
        assert caller.identity == caller.display == "alice"
    else:
        assert caller.identity == f"ip:{caller.address}"
        assert caller.display.lower() != "alice" or not policy.tokens


def check(data: bytes) -> None:
    """Put the headers to both modes and every purpose."""
    for policy in POLICIES:
        admission = Admission(
            policy,
            limiter=RateLimiter(1),
            polling_limiter=RateLimiter(1),
            flood_limiter=RateLimiter(5),
        )
        for purpose in Purpose:
            facts = facts_of(data, purpose)
            verdict = admission.admit(facts, 0.0)
            if isinstance(verdict, Caller):
                check_caller(policy, facts, verdict)
            elif verdict is None:
                anonymous = purpose in {Purpose.CARD, Purpose.OPEN}
                assert anonymous or facts.verb == "OPTIONS"
            headers = verdict.headers if isinstance(verdict, Refused) else ()
            for _, value in (*headers, *admission.cors(facts)):
                assert value.isascii()
                assert value.isprintable()


TARGET = Target(
    name="headers",
    check=check,
    words=(
        b"\nhlocalhost", b"\nh[::1]:9910", b"\nha.example", b"\nhlocalhost.", b"\nonull",
        b"\nohttp://localhost:3000", b"\nohttps://app.example", b"\ncapplication/json",
        b"\ncapplication/a2a+json; charset=utf-8", b'; x="y"', b"; charset=", b"\naBearer t", b"\naBearer s",
        b"\nabearer  t ", b"\naBasic t", b"\nialice", b"\niALICE", b"\nisomebody", b"\nf1.2.3.4, 10.0.0.1",
        b"\nf[::1]:5", b"\nf127.0.0.1", b"\nf10.1.1.1:5", b",", b";", b" ", b"\t", b"\xff", b"\r", b"\0", b"P",
        b"x" * 400,
    ),
)  # fmt: skip
