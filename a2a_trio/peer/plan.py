"""From settings to the plain values that the rooms below take; nothing here opens anything."""

import os
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, final

import attrs

from a2a_trio._version import __version__
from a2a_trio.config.schema import Settings
from a2a_trio.errors import SettingsError
from a2a_trio.peer.naming import agent_name
from a2a_trio.rules.addresses import advertised_url
from a2a_trio.rules.admission import Admission, AdmissionPolicy
from a2a_trio.rules.anti_loop import AntiLoop
from a2a_trio.rules.card import CardFacts, build_card
from a2a_trio.rules.delegation import check
from a2a_trio.rules.lifecycle import RecordLimits
from a2a_trio.rules.rate_limit import RateLimiter
from a2a_trio.server.calls import CallContext
from a2a_trio.server.cards import Cards
from a2a_trio.server.engine import RunLimits
from a2a_trio.server.store import StoreLimits
from a2a_trio.server.subscriptions import SubscriptionLimits
from a2a_trio.wire.model import JsonObject, Message

__all__ = [
    "Address",
    "admission_of",
    "cards_of",
    "guard_of",
    "record_limits",
    "run_limits",
    "store_limits",
    "subscription_limits",
    "workspace_of",
]

POLLING_FACTOR: Final = 10
"""How many times more often a caller may look than act, so that pollers do not starve."""
DESCRIPTION: Final = "An agent that speaks A2A, served by a2a_trio"


@final
@attrs.frozen(kw_only=True)
class Address:
    """Where a server is bound."""

    host: str
    port: int
    scheme: str = "http"


def admission_of(settings: Settings) -> Admission:
    """Return who is admitted.

    Raises:
        SettingsError: a host, origin or proxy is malformed.
    """
    server = settings.server
    policy = AdmissionPolicy(
        tokens=tuple((name, t) for name, tokens in server.peer_tokens.items() for t in tokens),
        shared_tokens=(server.shared_token,) if server.shared_token else (),
        allowed_hosts=server.allowed_hosts,
        allowed_origins=server.allowed_origins,
        trusted_proxies=server.trusted_proxies,
        trusted_peers=server.trusted_peers,
        allow_all_users=server.allow_all_users,
    )
    try:
        return Admission(
            policy,
            limiter=RateLimiter(server.rate_limit_per_min),
            polling_limiter=RateLimiter(server.rate_limit_per_min * POLLING_FACTOR),
            flood_limiter=RateLimiter(server.flood_limit_per_min),
        )
    except ValueError as exc:
        raise SettingsError(f"server: {exc}") from exc


def has_tokens(settings: Settings) -> bool:
    """Return whether calls need a bearer token."""
    return bool(settings.server.peer_tokens or settings.server.shared_token)


def cards_of(settings: Settings, address: Address, session: JsonObject | None) -> Cards:
    """Return the cards of a server bound at an address.

    Raises:
        SettingsError: ``server.publicUrl`` cannot be advertised.
    """
    server = settings.server
    secured = has_tokens(settings)
    try:
        url = advertised_url(
            public_url=server.public_url,
            scheme=address.scheme,
            host=address.host,
            port=address.port,
            rpc_path=server.rpc_path,
        )
    except ValueError as exc:
        raise SettingsError(f"server.publicUrl: {exc}") from exc
    facts = CardFacts(
        name=agent_name(settings),
        description=DESCRIPTION,
        version=__version__,
        url=url,
        skills=server.skills,
        session=session if settings.discovery.enrich_card else None,
        authenticated=True,
        secured=secured,
        idempotency=server.dedup_window_sec > 0,
    )
    # Without tokens every caller is on this machine and has an identity: nothing is withheld.
    public = attrs.evolve(facts, authenticated=not secured)
    return Cards(
        build_card(public),
        build_card(facts),
        compat=server.card_compat,
        modified=datetime.now(UTC),
    )


def workspace_of(settings: Settings) -> Path:
    """Return the folder that agents work in: the setting, else the current one; always absolute.

    Raises:
        SettingsError: there is no such folder.
    """
    given = settings.server.workspace
    try:
        if not given:
            return Path.cwd()
        workspace = Path(given).expanduser().absolute()
    except OSError:
        raise SettingsError(
            "the working directory was deleted; set server.workspace to an absolute path"
        ) from None
    except RuntimeError:
        raise SettingsError(f"server.workspace: {given}: the home directory is not known") from None
    if not workspace.is_dir():
        raise SettingsError(f"server.workspace: {workspace} is not a folder")
    return workspace


def session_facts(settings: Settings, started: datetime) -> JsonObject:
    """Return what the enriched card says about this process."""
    return {
        "pid": os.getpid(),
        "cwd": str(workspace_of(settings)),
        "agentName": agent_name(settings),
        "selfIdentity": settings.self_identity,
        "startedAt": started.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
    }


def guard_of(
    settings: Settings, self_id: str, now: Callable[[], float]
) -> Callable[[Message, CallContext], str]:
    """Return the guards against loops: the turn cap, then the delegation chain."""
    server = settings.server
    turns = AntiLoop(server.max_pingpong_turns, idle_ttl=server.anti_loop_idle_sec)

    def guard(message: Message, context: CallContext) -> str:
        reason = check(message.metadata, self_id=self_id, max_depth=server.max_delegation_depth)
        if reason:
            return reason
        return turns.record(context.caller.identity, message.context_id, now()).reason

    return guard


def run_limits(settings: Settings) -> RunLimits:
    """Return the limits of the run engine."""
    server = settings.server
    return RunLimits(
        max_concurrent=server.max_concurrent,
        reply_timeout=server.reply_timeout_sec,
        async_timeout=server.async_timeout_sec,
        input_timeout=server.input_timeout_sec,
        cancel_grace=server.cancel_grace_sec,
        max_parked=server.max_parked,
        max_inbox=server.max_inbox,
    )


def record_limits(settings: Settings) -> RecordLimits:
    """Return what one task may keep."""
    return RecordLimits(
        max_history=settings.server.max_history, max_bytes=settings.server.max_task_bytes
    )


def store_limits(settings: Settings) -> StoreLimits:
    """Return what the store in memory keeps."""
    server = settings.server
    return StoreLimits(
        max_ended=server.max_tasks,
        ttl=server.task_ttl_sec,
        max_events=server.max_task_events,
        max_event_bytes=server.max_task_bytes,
    )


def subscription_limits(settings: Settings) -> SubscriptionLimits:
    """Return how many may listen."""
    server = settings.server
    return SubscriptionLimits(
        buffer=server.subscriber_buffer,
        per_task=server.max_subscribers_per_task,
        total=server.max_subscribers,
    )
