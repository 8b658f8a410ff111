"""Every row of pi-a2a's two tables is shown to act; what does not act yet is told. Nothing is forgotten."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from a2a_trio.config.unused import has_no_effect, unused
from tests.effects import (
    test_client_settings,
    test_discovery_settings,
    test_network_settings,
    test_server_settings,
)
from tests.effects.conftest import LIMIT, Effect, load, nested

KEYS: Final = frozenset(
    [
        "peers.other.url",
        "peers.other.auth",
        "peers.other.timeout",
        "peers.other.capabilities",
        "selfIdentity",
        "server.enabled",
        "server.port",
        "server.portFallback",
        "server.host",
        "server.workspace",
        "server.agentName",
        "server.publicUrl",
        "server.sharedToken",
        "server.peerTokens",
        "server.trustedPeers",
        "server.allowAllUsers",
        "server.childTranscripts",
        "server.childTranscriptRetentionDays",
        "server.maxConcurrent",
        "server.replyTimeoutSec",
        "server.asyncTimeoutSec",
        "server.maxPingpongTurns",
        "server.rateLimitPerMin",
        "server.skills",
        "timeouts.send",
        "timeouts.async",
        "timeouts.stream",
        "retryAttempts",
        "verifySsl",
        "discovery.local.enabled",
        "discovery.local.heartbeatSec",
        "discovery.local.ttlSec",
        "discovery.mdns.enabled",
        "discovery.mdns.serviceType",
        "discovery.gateway.url",
        "discovery.gateways.lab.url",
        "discovery.enrichCard",
        "ui.transcript",
    ]
)
"""The rows of the first table, objects taken apart."""
VARIABLES: Final = frozenset(
    [
        "A2A_BEARER_TOKEN",
        "A2A_PEER_TOKENS",
        "A2A_HOST",
        "A2A_PORT",
        "A2A_PORT_FALLBACK",
        "A2A_AGENT_NAME",
        "A2A_PUBLIC_URL",
        "A2A_TRUSTED_PEERS",
        "A2A_ALLOW_ALL_USERS",
        "A2A_RATE_LIMIT",
        "A2A_MAX_PINGPONG_TURNS",
        "A2A_REPLY_TIMEOUT",
        "A2A_ASYNC_TIMEOUT",
        "A2A_CHILD_TRANSCRIPTS",
        "A2A_CHILD_TRANSCRIPT_RETENTION_DAYS",
        "A2A_SERVER_ENABLED",
        "A2A_SELF_IDENTITY",
        "A2A_DISCOVERY_LOCAL",
        "A2A_DISCOVERY_MDNS",
        "A2A_MDNS_TYPE",
        "A2A_GATEWAY_URL",
        "A2A_GATEWAY_TOKEN",
        "A2A_GATEWAY_ENABLED",
        "A2A_HEARTBEAT_SEC",
        "A2A_TTL_SEC",
        "A2A_ENRICH_CARD",
        "A2A_UI_TRANSCRIPT",
    ]
)
"""The rows of the second."""

NOT_YET: Final[tuple[tuple[str, object], ...]] = (("push.allowPrivate", True),)
"""The one place for what this version takes and checks but does not act on: key and value. None of
it is in pi-a2a's tables. A row goes when its feature comes."""

BY_HAND: Final = {
    "server.port": "A2A_PORT",
    "server.portFallback": "A2A_PORT_FALLBACK",
    "verifySsl": "A2A_VERIFY_SSL",
    "ui.transcript": "A2A_UI_TRANSCRIPT",
    "discovery.mdns.enabled": "A2A_DISCOVERY_MDNS",
    "discovery.mdns.serviceType": "A2A_MDNS_TYPE",
    "discovery.gateway.url": "A2A_GATEWAY_URL",
    "discovery.gateway.token": "A2A_GATEWAY_TOKEN",
    "discovery.gateway.enabled": "A2A_GATEWAY_ENABLED",
    "discovery.gateways.lab.url": "",
    "peers.other.capabilities": "",
}
"""Rows with a test of their own in ``test_network_settings`` or ``test_discovery_settings``."""


def every_effect() -> tuple[Effect, ...]:
    return (
        *test_server_settings.EFFECTS,
        *test_client_settings.EFFECTS,
        *test_network_settings.EFFECTS,
        *test_discovery_settings.EFFECTS,
    )


def test_every_row_is_shown() -> None:
    """Both tables, row by row."""
    shown = {effect.key for effect in every_effect()} | set(BY_HAND)
    assert KEYS - shown == set()
    variables = {effect.env for effect in every_effect()} | set(BY_HAND.values())
    assert VARIABLES - variables == set()


@pytest.mark.parametrize(("key", "value"), NOT_YET)
def test_what_has_no_effect_is_accepted_and_reported(
    key: str, value: object, tmp_path: Path
) -> None:
    """With the place it comes from; never for a default."""
    assert list(unused(load(tmp_path, {}))) == []
    loaded = load(tmp_path, nested(key, value))
    assert list(unused(loaded)) == [
        f"{tmp_path / 'settings.json'}: {key} has no effect in this version"
    ]


def test_what_has_an_effect_is_not_reported() -> None:
    """The keys of every table of effects."""
    assert [effect.key for effect in every_effect() if has_no_effect(effect.key)] == []


def test_config_check_tells_it(tmp_path: Path) -> None:
    """The operator who asks is told; the settings can be used all the same."""
    load(tmp_path, nested("push.allowPrivate", value=True))
    done = subprocess.run(
        [sys.executable, "-m", "a2a_trio", "config", "check", "--json"],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env={
            **{k: v for k, v in os.environ.items() if not k.startswith("A2A_")},
            "A2A_HOME": str(tmp_path),
        },
        timeout=LIMIT,
        check=False,
    )
    assert done.returncode == 0
    (warning,) = json.loads(done.stdout)["warnings"]
    assert warning.endswith("push.allowPrivate has no effect in this version")
