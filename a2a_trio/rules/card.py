"""Build the agent card of A2A v1.0 from facts (A2A sections 4.4 and 8)."""

from typing import Final, final

import attrs

from a2a_trio.rules.addresses import is_wildcard_name, url_origin
from a2a_trio.wire.agent_card import (
    AgentCapabilities,
    AgentCard,
    AgentExtension,
    AgentInterface,
    AgentProvider,
    AgentSkill,
    HttpAuthSecurityScheme,
    SecurityRequirement,
    SecurityScheme,
    StringList,
)
from a2a_trio.wire.extensions import (
    DELEGATION_EXTENSION,
    IDEMPOTENCY_EXTENSION,
    LEGACY_PROTOCOL_VERSION,
    PROTOCOL_VERSION,
    REPLAY_EXTENSION,
    SESSION_EXTENSION,
)
from a2a_trio.wire.model import JsonObject

BEARER_SCHEME: Final = "bearer"
"""Name of the one security scheme; what a requirement refers to."""

MAX_SKILLS: Final = 200
"""Skills on a card; the rest is left out, since a card is read by models."""
MAX_SKILL_DESCRIPTION: Final = 1_024

_TEXT_PLAIN: Final = ("text/plain",)
_BEARER: Final = SecurityScheme(http_auth_security_scheme=HttpAuthSecurityScheme(scheme="Bearer"))
_NEEDS_BEARER: Final = SecurityRequirement(schemes={BEARER_SCHEME: StringList()})


@final
@attrs.frozen(kw_only=True)
class CardFacts:
    """What a card is built from; one value per kind of reader (anonymous or not)."""

    name: str
    description: str
    version: str
    """The agent's own version."""
    url: str
    """The advertised address of the RPC endpoint, as ``addresses.advertised_url`` gives it."""
    skills: tuple[AgentSkill, ...] = ()
    """Configured skills: shown to everybody."""
    session_skills: tuple[AgentSkill, ...] = ()
    """Skills found in the running session: shown instead of none, but not to strangers."""
    session: JsonObject | None = None
    """Session metadata (``discovery.enrichCard``), or None; never shown to strangers."""
    authenticated: bool = False
    """The reader was admitted with an identity; without tokens every local reader is."""
    secured: bool = False
    """Tokens are configured, so calls need a bearer token."""
    streaming: bool = True
    push_notifications: bool = False
    extended_card: bool = False
    idempotency: bool = True
    """Repeated sends are recognised (``server.dedupWindowSec`` is not 0)."""
    replay: bool = True
    """``Last-Event-ID`` is answered."""
    input_modes: tuple[str, ...] = _TEXT_PLAIN
    output_modes: tuple[str, ...] = _TEXT_PLAIN
    provider: AgentProvider | None = None
    documentation_url: str | None = None
    icon_url: str | None = None


def build_card(facts: CardFacts) -> AgentCard:
    """Build the card that one kind of reader gets.

    Raises:
        ValueError: ``facts.url`` is no http(s) URL or names a wildcard address.
    """
    if is_wildcard_name(url_origin(facts.url).host.name):
        raise ValueError("a card must not advertise a wildcard address")
    return AgentCard(
        name=facts.name,
        description=facts.description,
        version=facts.version,
        # One endpoint speaks both; the order is the preference (A2A section 8.3.1).
        supported_interfaces=tuple(
            AgentInterface(url=facts.url, protocol_binding="JSONRPC", protocol_version=version)
            for version in (PROTOCOL_VERSION, LEGACY_PROTOCOL_VERSION)
        ),
        capabilities=AgentCapabilities(
            streaming=facts.streaming,
            push_notifications=facts.push_notifications,
            extended_agent_card=facts.extended_card,
            extensions=_extensions(facts),
        ),
        default_input_modes=facts.input_modes,
        default_output_modes=facts.output_modes,
        skills=_skills(facts),
        provider=facts.provider,
        documentation_url=facts.documentation_url,
        icon_url=facts.icon_url,
        security_schemes={BEARER_SCHEME: _BEARER} if facts.secured else {},
        security_requirements=(_NEEDS_BEARER,) if facts.secured else (),
    )


def _extensions(facts: CardFacts) -> tuple[AgentExtension, ...]:
    """Declare our extensions; none is required, a caller may ignore them all."""
    declared = [
        AgentExtension(
            uri=DELEGATION_EXTENSION,
            description="Message metadata names the agents this work was handed through",
        )
    ]
    if facts.idempotency:
        declared.append(
            AgentExtension(
                uri=IDEMPOTENCY_EXTENSION,
                description="A send repeated with the same Idempotency-Key header runs once",
            )
        )
    if facts.replay and facts.streaming:
        declared.append(
            AgentExtension(
                uri=REPLAY_EXTENSION,
                description="Last-Event-ID on a subscription replays the events after it",
            )
        )
    if facts.session is not None and facts.authenticated:
        declared.append(
            AgentExtension(
                uri=SESSION_EXTENSION,
                description="Session metadata (cwd, model, tools, pid)",
                params=facts.session,
            )
        )
    return tuple(declared)


def _skills(facts: CardFacts) -> tuple[AgentSkill, ...]:
    """Choose the skills this reader sees; a card without any skill is of no use to a caller."""
    skills = facts.skills or (facts.session_skills if facts.authenticated else ())
    if not skills:
        general = AgentSkill(
            id="general",
            name=facts.name,
            description=facts.description or facts.name,
            tags=("general",),
        )
        return (general,)
    return tuple(_complete(skill) for skill in skills[:MAX_SKILLS])


def _complete(skill: AgentSkill) -> AgentSkill:
    """Fill what v1.0 requires and bound what others must read; tags are REQUIRED."""
    name = skill.name or skill.id
    return attrs.evolve(
        skill,
        name=name,
        description=(skill.description or name)[:MAX_SKILL_DESCRIPTION],
        tags=skill.tags or (skill.id,),
    )
