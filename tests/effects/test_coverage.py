"""Every row of the seed's two tables is shown to act, or is told not to act yet. Nothing is forgotten."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from a2a_trio.config.unused import has_no_effect, unused
from tests.effects import test_client_settings, test_network_settings, test_server_settings
from tests.effects.conftest import LIMIT, load, merged, nested

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

NOT_YET: Final[tuple[tuple[str, object, str, str], ...]] = (
    ("discovery.local.enabled", False, "A2A_DISCOVERY_LOCAL", "false"),
    ("discovery.local.heartbeatSec", 20, "A2A_HEARTBEAT_SEC", "20"),
    ("discovery.local.ttlSec", 90, "A2A_TTL_SEC", "90"),
    ("discovery.mdns.enabled", True, "A2A_DISCOVERY_MDNS", "true"),
    ("discovery.mdns.serviceType", "b2b", "A2A_MDNS_TYPE", "b2b"),
    ("discovery.gateway.url", "http://127.0.0.1:9920", "A2A_GATEWAY_URL", "http://127.0.0.1:9920"),
    ("discovery.gateway.token", "x" * 20, "A2A_GATEWAY_TOKEN", "x" * 20),
    ("discovery.gateway.enabled", False, "A2A_GATEWAY_ENABLED", "false"),
    ("discovery.gateways.lab.url", "http://127.0.0.1:9921", "", ""),
    ("peers.other.capabilities", ["research"], "", ""),
)
"""The one place for what this version takes and checks but does not act on: key, value, variable,
its text. A row moves to a table of effects when its feature comes."""

BY_HAND: Final = {
    "server.port": "A2A_PORT",
    "server.portFallback": "A2A_PORT_FALLBACK",
    "verifySsl": "A2A_VERIFY_SSL",
    "ui.transcript": "A2A_UI_TRANSCRIPT",
}
"""Rows with a test of their own in ``test_network_settings``."""


def test_every_row_is_shown_or_listed() -> None:
    """Both tables, row by row."""
    effects = [
        *test_server_settings.EFFECTS,
        *test_client_settings.EFFECTS,
        *test_network_settings.EFFECTS,
    ]
    shown = {effect.key for effect in effects} | set(BY_HAND)
    listed = {key for key, *_ in NOT_YET}
    assert shown & listed == set()
    assert KEYS - shown - listed == set()

    variables = {effect.env for effect in effects} | set(BY_HAND.values())
    later = {variable for _, _, variable, _ in NOT_YET if variable}
    assert variables & later == set()
    assert VARIABLES - variables - later == set()


@pytest.mark.parametrize(("key", "value", "variable", "text"), NOT_YET)
def test_what_has_no_effect_is_accepted_and_reported(
    key: str, value: object, variable: str, text: str, tmp_path: Path
) -> None:
    """From a file and from a variable, with the place it comes from; never for a default."""
    base = nested("peers.other.url", "http://127.0.0.1:9")
    assert list(unused(load(tmp_path, base))) == []
    loaded = load(tmp_path, merged(base, nested(key, value)))
    assert list(unused(loaded)) == [
        f"{tmp_path / 'settings.json'}: {key} has no effect in this version"
    ]
    if variable:
        (told,) = unused(load(tmp_path, base, {variable: text}))
        assert told == f"environment {variable}: {key} has no effect in this version"


def test_what_has_an_effect_is_not_reported() -> None:
    """The keys of every table of effects."""
    effects = (
        *test_server_settings.EFFECTS,
        *test_client_settings.EFFECTS,
        *test_network_settings.EFFECTS,
    )
    assert [effect.key for effect in effects if has_no_effect(effect.key)] == []


def test_config_check_tells_it(tmp_path: Path) -> None:
    """The operator who asks is told; the settings can be used all the same."""
    load(tmp_path, nested("discovery.mdns.enabled", value=True))
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
    assert warning.endswith("discovery.mdns.enabled has no effect in this version")
