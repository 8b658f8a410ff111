"""The agent card: strictly v1.0, and what strangers do not see."""

import attrs
import pytest
from hypothesis import given, strategies as st

from a2a_trio.rules.card import BEARER_SCHEME, MAX_SKILLS, CardFacts, build_card
from a2a_trio.wire.agent_card import AgentSkill
from a2a_trio.wire.extensions import (
    DELEGATION_EXTENSION,
    IDEMPOTENCY_EXTENSION,
    REPLAY_EXTENSION,
    SESSION_EXTENSION,
)

FACTS = CardFacts(
    name="pi", description="Reads code", version="1.2.3", url="http://127.0.0.1:9910/"
)
SKILL = AgentSkill(id="search", name="Search", description="Finds things", tags=("code",))


def uris(facts: CardFacts) -> list[str]:
    return [extension.uri for extension in build_card(facts).capabilities.extensions]


def test_one_endpoint_is_declared_for_both_versions_the_new_one_first() -> None:
    interfaces = build_card(FACTS).supported_interfaces
    assert [(i.url, i.protocol_binding, i.protocol_version) for i in interfaces] == [
        ("http://127.0.0.1:9910/", "JSONRPC", "1.0"),
        ("http://127.0.0.1:9910/", "JSONRPC", "0.3"),
    ]


def test_capabilities_are_declared_as_they_are() -> None:
    capabilities = build_card(FACTS).capabilities
    assert capabilities.streaming is True
    assert capabilities.push_notifications is False
    assert capabilities.extended_agent_card is False
    pushing = build_card(attrs.evolve(FACTS, push_notifications=True, extended_card=True))
    assert pushing.capabilities.push_notifications is True
    assert pushing.capabilities.extended_agent_card is True


def test_extensions_are_declared_only_while_they_work_and_never_required() -> None:
    assert uris(FACTS) == [DELEGATION_EXTENSION, IDEMPOTENCY_EXTENSION, REPLAY_EXTENSION]
    assert uris(attrs.evolve(FACTS, idempotency=False, replay=False)) == [DELEGATION_EXTENSION]
    assert REPLAY_EXTENSION not in uris(attrs.evolve(FACTS, streaming=False))
    assert not any(e.required for e in build_card(FACTS).capabilities.extensions)


def test_tokens_make_the_bearer_scheme_required() -> None:
    card = build_card(attrs.evolve(FACTS, secured=True))
    scheme = card.security_schemes[BEARER_SCHEME].http_auth_security_scheme
    assert scheme is not None
    assert scheme.scheme == "Bearer"
    assert [dict(r.schemes) for r in card.security_requirements] == [
        {BEARER_SCHEME: card.security_requirements[0].schemes[BEARER_SCHEME]}
    ]


def test_without_tokens_no_scheme_is_declared() -> None:
    card = build_card(FACTS)
    assert not card.security_schemes
    assert not card.security_requirements


def test_session_metadata_is_for_callers_with_an_identity() -> None:
    facts = attrs.evolve(FACTS, session={"cwd": "/home/me", "pid": 7})
    assert SESSION_EXTENSION not in uris(facts)
    known = build_card(attrs.evolve(facts, authenticated=True)).capabilities.extensions
    assert known[-1].uri == SESSION_EXTENSION
    assert known[-1].params == {"cwd": "/home/me", "pid": 7}
    assert SESSION_EXTENSION not in uris(attrs.evolve(FACTS, authenticated=True)), "not enriched"


def test_configured_skills_are_for_everybody_and_the_sessions_are_not() -> None:
    both = attrs.evolve(FACTS, session_skills=(SKILL,))
    assert [s.id for s in build_card(both).skills] == ["general"]
    assert build_card(attrs.evolve(both, authenticated=True)).skills == (SKILL,)
    other = attrs.evolve(SKILL, id="other")
    configured = attrs.evolve(both, skills=(other,), authenticated=True)
    assert build_card(configured).skills == (other,)


def test_what_a_skill_must_have_is_filled_in() -> None:
    bare = AgentSkill(id="x", name="", description="", tags=())
    assert build_card(attrs.evolve(FACTS, skills=(bare,))).skills == (
        AgentSkill(id="x", name="x", description="x", tags=("x",)),
    )


def test_skills_are_bounded() -> None:
    long = attrs.evolve(SKILL, description="d" * 5_000)
    card = build_card(attrs.evolve(FACTS, skills=(long,) * (MAX_SKILLS + 5)))
    assert len(card.skills) == MAX_SKILLS
    assert len(card.skills[0].description) == 1_024


@pytest.mark.parametrize(
    "url", ["http://0.0.0.0:9910/", "http://[::]:1/", "a.example", "ftp://a.example", ""]
)
def test_a_card_that_names_no_machine_is_refused(url: str) -> None:
    with pytest.raises(ValueError, match=r"wildcard|http://"):
        build_card(attrs.evolve(FACTS, url=url))


SKILLS = st.lists(
    st.builds(
        AgentSkill,
        id=st.text(min_size=1, max_size=5),
        name=st.text(max_size=5),
        description=st.text(max_size=5),
        tags=st.lists(st.text(min_size=1, max_size=3), max_size=2).map(tuple),
    ),
    max_size=3,
).map(tuple)


@given(
    st.builds(
        CardFacts,
        name=st.text(min_size=1, max_size=5),
        description=st.text(max_size=5),
        version=st.just("1"),
        url=st.just("https://a.example/"),
        skills=SKILLS,
        session_skills=SKILLS,
        session=st.none() | st.just({"cwd": "/secret"}),
        authenticated=st.booleans(),
        secured=st.booleans(),
    )
)
def test_every_card_has_what_v1_requires_and_strangers_see_no_session(facts: CardFacts) -> None:
    card = build_card(facts)
    assert card.skills
    for skill in card.skills:
        assert skill.id
        assert skill.name
        assert skill.tags
    stranger = build_card(attrs.evolve(facts, authenticated=False))
    same = build_card(attrs.evolve(facts, authenticated=False, session=None, session_skills=()))
    assert stranger == same
