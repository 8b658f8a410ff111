"""Every row of the two configuration tables of pi-a2a: default, file, variable, range, unit."""

import json
import re
from collections.abc import Mapping
from pathlib import Path

import attrs
import pytest

from a2a_trio.config.load import LoadedSettings, load_settings
from a2a_trio.config.schema import GatewaySettings, PeerAuth, PeerSettings, Settings
from a2a_trio.config.table import key_at, keys
from a2a_trio.errors import SettingsError
from a2a_trio.wire.agent_card import AgentSkill


@attrs.frozen
class Row:
    """One row: key, attribute, default, another value in JSON and in the schema, values refused."""

    key: str
    default: object
    other: object
    value: object = None
    env: str = ""
    env_text: str = ""
    env_value: object = None
    refused: tuple[object, ...] = ()
    unit: str = ""


SKILL = {"id": "s", "name": "S", "description": "d", "tags": ["t"], "inputModes": ["text/plain"]}
TOKEN = "token-of-sixteen-characters"

ROWS = (
    Row("selfIdentity", "", "alice", env="A2A_SELF_IDENTITY", env_text="bob", env_value="bob",
        refused=("ip:1", "a b", 5, "x" * 65)),
    Row("server.enabled", False, True, env="A2A_SERVER_ENABLED", env_text="true", env_value=True,
        refused=("true", 1)),
    Row("server.port", 9910, 9911, env="A2A_PORT", env_text="9920", env_value=9920,
        refused=(-1, 65536, "9910", 1.5, True)),
    Row("server.portFallback", 10, 0, env="A2A_PORT_FALLBACK", env_text="3", env_value=3,
        refused=(-1, "10")),
    Row("server.host", "127.0.0.1", "0.0.0.0", env="A2A_HOST", env_text="::1", env_value="::1",
        refused=("a b", 1, "x\n")),
    Row("server.workspace", "", "/tmp", refused=(1, "a\nb")),  # noqa: S108 - a value, not a file
    Row("server.agentName", "", "pi", env="A2A_AGENT_NAME", env_text="pi 2", env_value="pi 2",
        refused=("x" * 101, "a\nb", 1)),
    Row("server.publicUrl", "", "https://a.example/x", env="A2A_PUBLIC_URL",
        env_text="http://b:1", env_value="http://b:1",
        refused=("ftp://x", "x", "http://", "http://0.0.0.0:1", "http://x:99999", "http://[::")),
    Row("server.sharedToken", "", TOKEN, env="A2A_BEARER_TOKEN", env_text="t" * 20,
        env_value="t" * 20, refused=("a b", 5, "naïve", "x" * 4097)),
    Row("server.peerTokens", {}, {"a": TOKEN, "b": ["x" * 20, "y" * 20]},
        {"a": (TOKEN,), "b": ("x" * 20, "y" * 20)}, env="A2A_PEER_TOKENS",
        env_text=" alice:tok1:x , bob:tok2,, alice:tok3 ",
        env_value={"alice": ("tok1:x", "tok3"), "bob": ("tok2",)},
        refused=([], {"a": ""}, {"a": 1}, {"a b": "x"}, {"a": []}, {"ip:1": "x"},
                 {"a": "same-token-of-two", "b": "same-token-of-two"})),
    Row("server.trustedPeers", (), ["a", "b"], ("a", "b"), env="A2A_TRUSTED_PEERS",
        env_text="a, b,", env_value=("a", "b"), refused=("a", [1], ["a b"], [""])),
    Row("server.allowAllUsers", False, True, env="A2A_ALLOW_ALL_USERS", env_text="ON",
        env_value=True, refused=("yes",)),
    Row("server.childTranscripts", True, False, env="A2A_CHILD_TRANSCRIPTS", env_text="0",
        env_value=False, refused=(0,)),
    Row("server.childTranscriptRetentionDays", 30, 0, env="A2A_CHILD_TRANSCRIPT_RETENTION_DAYS",
        env_text="7", env_value=7, refused=(-1, "30"), unit="days"),
    Row("server.maxConcurrent", 3, 10, env="A2A_MAX_CONCURRENT", env_text="4", env_value=4,
        refused=(0, "3")),
    Row("server.replyTimeoutSec", 300, 0, env="A2A_REPLY_TIMEOUT", env_text="2.5", env_value=2.5,
        refused=(-1, "300", 1e300), unit="seconds"),
    Row("server.asyncTimeoutSec", 86_400, 0, env="A2A_ASYNC_TIMEOUT", env_text="0", env_value=0,
        refused=(-0.1,), unit="seconds"),
    Row("server.maxPingpongTurns", 5, 20, env="A2A_MAX_PINGPONG_TURNS", env_text="1", env_value=1,
        refused=(0, 21)),
    Row("server.rateLimitPerMin", 60, 1000, env="A2A_RATE_LIMIT", env_text="30", env_value=30,
        refused=(0, -5)),
    Row("server.skills", (), [SKILL],
        (AgentSkill(id="s", name="S", description="d", tags=("t",), input_modes=("text/plain",)),),
        refused=({}, ["x"], [{"id": "s"}], [{**SKILL, "tags": "t"}], [{**SKILL, "tags": [1]}])),
    Row("timeouts.send", 360_000, 1000, refused=(0, "1"), unit="milliseconds"),
    Row("timeouts.async", 30_000, 1000, refused=(0,), unit="milliseconds"),
    Row("timeouts.stream", 120_000, 1000, refused=(0,), unit="milliseconds"),
    Row("retryAttempts", 2, 0, refused=(-1, 11, 1.5)),
    Row("verifySsl", True, False, env="A2A_VERIFY_SSL", env_text="no", env_value=False,
        refused=("false",)),
    Row("discovery.local.enabled", True, False, env="A2A_DISCOVERY_LOCAL", env_text="off",
        env_value=False, refused=(1,)),
    Row("discovery.local.heartbeatSec", 15, 5, env="A2A_HEARTBEAT_SEC", env_text="20",
        env_value=20, refused=(0,), unit="seconds"),
    Row("discovery.local.ttlSec", 60, 90, env="A2A_TTL_SEC", env_text="120", env_value=120,
        refused=(0,), unit="seconds"),
    Row("discovery.mdns.enabled", False, True, env="A2A_DISCOVERY_MDNS", env_text="yes",
        env_value=True, refused=("x",)),
    Row("discovery.mdns.serviceType", "a2a", "pi", env="A2A_MDNS_TYPE", env_text="x-1",
        env_value="x-1", refused=("a" * 16, "_a", "a.b")),
    Row("discovery.enrichCard", True, False, env="A2A_ENRICH_CARD", env_text="false",
        env_value=False, refused=(0,)),
    Row("ui.transcript", True, False, env="A2A_UI_TRANSCRIPT", env_text="false", env_value=False,
        refused=(0,)),
)  # fmt: skip


def load(
    home: Path, a2a: object = None, environ: Mapping[str, str] | None = None
) -> LoadedSettings:
    if a2a is not None:
        file = home / "settings.json"
        file.write_text(json.dumps({"a2a": a2a}))
        file.chmod(0o600)
    return load_settings(environ=environ or {}, home=home)


def nested(key: str, value: object) -> object:
    for name in reversed(key.split(".")):
        value = {name: value}
    return value


def value_of(settings: Settings, key: str) -> object:
    value: object = settings
    for name in key.split("."):
        snake = re.sub(r"(?=[A-Z])", "_", name).lower()
        value = getattr(value, "async_" if snake == "async" else snake)
    return value


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.key)
def test_default(row: Row, tmp_path: Path) -> None:
    """Without any source pi-a2a's default counts, and ``Settings()`` has it too."""
    assert value_of(load(tmp_path).settings, row.key) == row.default
    assert value_of(Settings(), row.key) == row.default


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.key)
def test_from_the_settings_file(row: Row, tmp_path: Path) -> None:
    """The operator's file sets the key, and the source says so."""
    loaded = load(tmp_path, nested(row.key, row.other))
    assert value_of(loaded.settings, row.key) == (row.other if row.value is None else row.value)
    assert loaded.sources[row.key] == str(tmp_path / "settings.json")


@pytest.mark.parametrize("row", [row for row in ROWS if row.env], ids=lambda row: row.env)
def test_from_the_environment(row: Row, tmp_path: Path) -> None:
    """The variable sets the key and counts more than the file; an empty one is not set."""
    loaded = load(tmp_path, nested(row.key, row.other), {row.env: row.env_text})
    assert value_of(loaded.settings, row.key) == row.env_value
    assert loaded.sources[row.key] == f"environment {row.env}"
    loaded = load(tmp_path, nested(row.key, row.other), {row.env: " "})
    assert loaded.sources[row.key] == str(tmp_path / "settings.json")


@pytest.mark.parametrize(
    ("row", "value"), [(row, value) for row in ROWS for value in row.refused],
    ids=lambda given: given.key if isinstance(given, Row) else repr(given)[:20],
)  # fmt: skip
def test_wrong_value_is_refused(row: Row, value: object, tmp_path: Path) -> None:
    """Type and range are checked; the error names file and key, and never shows a secret."""
    with pytest.raises(SettingsError) as caught:
        load(tmp_path, nested(row.key, value))
    text = str(caught.value)
    assert str(tmp_path / "settings.json") in text
    assert row.key in text
    key = key_at(tuple(row.key.split(".")))
    assert key is not None
    if key.declaration.secret and isinstance(value, str):
        assert value not in text


@pytest.mark.parametrize("row", [row for row in ROWS if row.unit], ids=lambda row: row.key)
def test_unit(row: Row) -> None:
    """The table says in which unit a duration is."""
    key = key_at(tuple(row.key.split(".")))
    assert key is not None
    assert key.declaration.unit == row.unit


def test_peers_as_the_seed_writes_them(tmp_path: Path) -> None:
    """pi-a2a's own example; the time-out of a peer is in seconds."""
    loaded = load(
        tmp_path,
        {
            "peers": {
                "hermes_desktop": {
                    "url": "http://172.30.55.31:9900",
                    "auth": {"type": "bearer", "token": TOKEN},
                    "timeout": 120,
                    "capabilities": ["web_search", "research"],
                },
                "researcher": {"url": "http://localhost:9999", "description": "reads"},
            }
        },
    )
    assert loaded.settings.peers == {
        "hermes_desktop": PeerSettings(
            url="http://172.30.55.31:9900",
            auth=PeerAuth(type="bearer", token=TOKEN),
            timeout=120,
            capabilities=("web_search", "research"),
        ),
        "researcher": PeerSettings(url="http://localhost:9999", description="reads"),
    }
    assert loaded.warnings == ()
    assert loaded.sources["peers.hermes_desktop.timeout"] == str(tmp_path / "settings.json")


@pytest.mark.parametrize(
    "peer",
    [
        {}, {"url": ""}, {"url": "ftp://x"}, {"url": "http://x", "timeout": 0}, {"url": 5}, "x",
        {"url": "http://x", "auth": {"type": "digest"}}, {"url": "http://x", "capabilities": "a"},
        {"url": "http://x", "auth": {"token": "a b"}}, {"url": "http://x", "auth": "bearer"},
    ],
)  # fmt: skip
def test_wrong_peer_is_refused(peer: object, tmp_path: Path) -> None:
    """A peer needs a URL, and each part has its type."""
    with pytest.raises(SettingsError, match=r"peers\.bob"):
        load(tmp_path, {"peers": {"bob": peer}})


@pytest.mark.parametrize("name", ["", "a b", "x" * 65, "a/b", "ä", "a\nb"])
def test_wrong_name_of_a_peer_is_refused(name: str, tmp_path: Path) -> None:
    """Names become parts of paths and answers."""
    with pytest.raises(SettingsError, match="names must match"):
        load(tmp_path, {"peers": {name: {"url": "http://x"}}})


GATEWAY = {
    "enabled": True, "url": "http://127.0.0.1:9920", "token": TOKEN, "name": "pi-1",
    "upstreamToken": TOKEN + "2", "heartbeatSec": 30, "channel": False,
}  # fmt: skip


def test_single_gateway(tmp_path: Path) -> None:
    """Unset by default; every key of it is read, and its key is made of host and port."""
    assert load(tmp_path).settings.discovery.gateway is None
    discovery = load(tmp_path, {"discovery": {"gateway": GATEWAY}}).settings.discovery
    assert discovery.gateway == GatewaySettings(
        enabled=True, url="http://127.0.0.1:9920", token=TOKEN, name="pi-1",
        upstream_token=TOKEN + "2", heartbeat_sec=30, channel=False,
    )  # fmt: skip
    assert list(discovery.all_gateways()) == ["127.0.0.1-9920"]


def test_gateways(tmp_path: Path) -> None:
    """Several, by key; an entry wins over the single one with the same key."""
    lab = {"url": "http://127.0.0.1:9920", "token": TOKEN, "channel": False}
    discovery = load(
        tmp_path,
        {"discovery": {"gateway": GATEWAY, "gateways": {"127.0.0.1-9920": lab, "lab": lab}}},
    ).settings.discovery
    assert list(discovery.gateways) == ["127.0.0.1-9920", "lab"]
    assert discovery.gateways["lab"].heartbeat_sec == 60
    assert discovery.gateways["lab"].active
    assert discovery.all_gateways()["127.0.0.1-9920"].heartbeat_sec == 60


def test_gateway_from_the_environment(tmp_path: Path) -> None:
    """Address and token together switch it on; A2A_GATEWAY_ENABLED=false keeps them and rests."""
    environ = {"A2A_GATEWAY_URL": "http://g:1", "A2A_GATEWAY_TOKEN": TOKEN}
    gateway = load(tmp_path, environ=environ).settings.discovery.gateway
    assert gateway == GatewaySettings(url="http://g:1", token=TOKEN)
    assert gateway.active
    environ["A2A_GATEWAY_ENABLED"] = "false"
    gateway = load(tmp_path, environ=environ).settings.discovery.gateway
    assert gateway is not None
    assert not gateway.active


def test_older_spelling_of_the_mdns_switch(tmp_path: Path) -> None:
    """``discovery.mdnsEnabled`` is read, and the newer spelling counts more."""
    assert load(tmp_path, {"discovery": {"mdnsEnabled": True}}).settings.discovery.mdns.enabled
    both = {"discovery": {"mdns": {"enabled": False}, "mdnsEnabled": True}}
    assert not load(tmp_path, both).settings.discovery.mdns.enabled


def test_every_variable_has_one_key() -> None:
    """No variable sets two keys."""
    variables = [key.declaration.env for key in keys() if key.declaration.env]
    assert len(variables) == len(set(variables))
    tested = {row.env for row in ROWS if row.env}
    tested |= {"A2A_GATEWAY_URL", "A2A_GATEWAY_TOKEN", "A2A_GATEWAY_ENABLED"}
    assert len(tested) >= 26
    assert tested <= set(variables)
