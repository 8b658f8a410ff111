"""Which source counts, what a project file may say, and what is said about mistakes."""

import pytest
from hypothesis import given, strategies as st

from a2a_trio.config.sources import (
    MAX_NAMED,
    Layer,
    merge,
    read_cli,
    read_environment,
    read_object,
)
from a2a_trio.config.table import ANY_NAME, Key, keys
from a2a_trio.errors import SettingsError
from a2a_trio.wire.model import JsonValue

TOKEN = "token-of-sixteen-characters"
SECRET_RULE = "must be visible ASCII without spaces, at most 4096 characters"


def no_secret(where: str, name: str) -> str:
    raise ValueError(f"no {where} {name}")


def user(value: JsonValue) -> Layer:
    return read_object(value, label="user.json", project=False, read_secret=no_secret)


def project(value: JsonValue) -> Layer:
    return read_object(value, label="project.json", project=True, read_secret=no_secret)


def test_precedence() -> None:
    """Command line, environment, project file, user file, default: the first that has it."""
    layers = [
        user(
            {"timeouts": {"send": 1, "async": 1, "stream": 1}, "server": {"host": "::1", "port": 1}}
        ),
        project({"timeouts": {"send": 2}}),
        read_environment({"A2A_HOST": "localhost", "A2A_PORT": "3"}),
        read_cli({"server.port": "4"}),
    ]
    for order in (layers, layers[::-1]):
        merged = merge(tuple(order))
        settings = merged.settings
        assert (settings.server.port, settings.server.host) == (4, "localhost")
        assert (settings.timeouts.send, settings.timeouts.stream) == (2, 1)
        assert merged.sources["server.port"] == "command line"
        assert merged.sources["server.host"] == "environment A2A_HOST"
        assert merged.sources["timeouts.send"] == "project.json"
        assert merged.sources["timeouts.async"] == "user.json"
        assert merged.sources["verifySsl"] == "default"


@pytest.mark.parametrize("empty", [None, {}, {"server": {}}, {"server": None}, {"peers": {}}])
def test_an_empty_project_file_hides_nothing(empty: JsonValue) -> None:
    """The operator's tokens and trust stay."""
    operator: JsonValue = {"server": {"sharedToken": TOKEN, "trustedPeers": ["a"]}}
    merged = merge((user(operator), project(empty)))
    assert merged.settings == merge((user(operator),)).settings
    assert merged.warnings == ()


EXAMPLES: dict[str, JsonValue] = {
    "a whole number": 7, "a number": 7, "true or false": True, "text": "x",
    "secret text": TOKEN, "a list of texts": ["x"], "names with tokens": {"a": TOKEN},
    "a list of skills": [{"id": "s", "name": "S"}],
}  # fmt: skip
SAFE = {
    "peers.<name>.url", "peers.<name>.timeout", "peers.<name>.capabilities",
    "peers.<name>.description", "server.skills", "timeouts.send", "timeouts.async",
    "timeouts.stream", "retryAttempts", "ui.transcript",
}  # fmt: skip


def test_what_is_safe_in_a_project_file() -> None:
    """The list is short, and a new key is not on it unless somebody says so here."""
    assert {key.name for key in keys() if key.declaration.project_safe} == SAFE


@pytest.mark.parametrize(
    "key", [key for key in keys() if key.name not in SAFE], ids=lambda key: key.name
)
def test_project_file_cannot_set(key: Key) -> None:
    """Every other key is ignored, whatever its value, with a warning that names file and key."""
    value: JsonValue = EXAMPLES[str(key.declaration.kind)]
    path = [("one" if part == ANY_NAME else part) for part in key.path]
    for name in reversed(path):
        value = {name: value}
    if path[0] == "peers" and isinstance(value, dict):
        peers = value["peers"]
        assert isinstance(peers, dict)
        one = peers["one"]
        assert isinstance(one, dict)
        one["url"] = "http://x"
    merged = merge((project(value),))
    shown = ".".join(path[:3] if path[:2] == ["discovery", "gateways"] else path)
    assert any(f"project.json: {shown} is ignored" in warning for warning in merged.warnings)
    assert merged.sources.get(".".join(path), "default") == "default"


def test_project_peers_are_marked() -> None:
    """So that no credential is ever attached to them."""
    peers: JsonValue = {"peers": {"carol": {"url": "http://c:1", "capabilities": ["x"]}}}
    merged = merge((user({"peers": {"bob": {"url": "http://b:1"}}}), project(peers)))
    assert merged.settings.peers["carol"].from_project
    assert not merged.settings.peers["bob"].from_project
    assert merged.warnings == ()


@pytest.mark.parametrize("name", ["bob", "BOB"])
def test_project_peers_cannot_shadow(name: str) -> None:
    """An operator's peer keeps its address, in any spelling of its name."""
    operator: JsonValue = {"peers": {"bob": {"url": "http://b:1", "auth": {"token": TOKEN}}}}
    merged = merge((user(operator), project({"peers": {name: {"url": "http://evil"}}})))
    assert merged.settings == merge((user(operator),)).settings
    assert merged.warnings == (
        f'project.json: peer "{name}" is ignored, because the operator has a peer of that name',
    )


def test_project_secrets_are_not_looked_up() -> None:
    """A repository cannot make this process read a file or a variable."""

    def read(where: str, name: str) -> str:
        raise AssertionError(f"looked up {where} {name}")

    value: JsonValue = {
        "server": {"sharedToken": {"file": "/etc/passwd"}},
        "peers": {"x": {"url": "http://x", "auth": {"token": {"env": "HOME"}}}},
    }
    layer = read_object(value, label="project.json", project=True, read_secret=read)
    merged = merge((layer,))
    assert merged.settings.secrets() == ()
    assert len(merged.warnings) == 2


@pytest.mark.parametrize(
    ("value", "hint"),
    [
        ({"sever": {}}, 'unknown setting sever; did you mean "server"?'),
        ({"server": {"prot": 1}}, 'unknown setting server.prot; did you mean "port"?'),
        ({"port": 1}, 'unknown setting port; did you mean "server.port"?'),
        ({"zzz": 1}, "unknown setting zzz"),
        ({"peers": {"a": {"url": "http://x", "tokn": 1}}}, "unknown setting peers.a.tokn"),
        ({"a\x1b[31m": 1}, "unknown setting a?[31m"),
    ],
)
def test_unknown_key_is_a_warning_with_the_nearest_name(value: JsonValue, hint: str) -> None:
    """A typing mistake is told and does not stop the peer."""
    merged = merge((user(value),))
    assert len(merged.warnings) == 1
    assert merged.warnings[0].startswith(f"user.json: {hint}")


def test_all_problems_are_told_at_once() -> None:
    """One line for each, from every source."""
    layers = (
        user({"server": {"port": "x", "host": 1}, "peers": []}),
        read_environment({"A2A_PORT": "99999", "A2A_BEARER_TOKEN": "no good"}),
        read_cli({"server.prot": 1, "verifySsl": "maybe", "server.maxTasks": 1.5}),
    )
    with pytest.raises(SettingsError) as caught:
        merge(layers)
    lines = str(caught.value).splitlines()
    assert lines[0] == "8 settings are wrong:"
    assert lines[1:] == [
        'user.json: server.port is "x"; it must be a whole number from 0 to 65535',
        r"user.json: server.host is 1; it must be text that matches [A-Za-z0-9._:%\[\]-]{1,255}",
        "user.json: peers must be an object",
        'environment: A2A_PORT is "99999"; it must be a whole number from 0 to 65535',
        f"environment: A2A_BEARER_TOKEN is ••••; it {SECRET_RULE}",
        'command line: unknown setting server.prot; did you mean "server.port"?',
        'command line: verifySsl is "maybe"; it must be true or false',
        "command line: server.maxTasks is 1.5; it must be a whole number from 1 to 1000000",
    ]


@pytest.mark.parametrize("text", ["alice", "alice:", ":tok", "alice:a b", "al ice:tok", "a:ä"])
def test_wrong_peer_tokens_variable(text: str) -> None:
    """Refused, and the token is not shown."""
    layer = read_environment({"A2A_PEER_TOKENS": f"bob:good-token-0123456789,{text}"})
    with pytest.raises(SettingsError, match="A2A_PEER_TOKENS") as caught:
        merge((layer,))
    assert "good-token" not in str(caught.value)


def test_secrets_that_stand_elsewhere() -> None:
    """A file or a variable can hold the value; one that cannot be read is told."""

    def read(where: str, name: str) -> str:
        return f"{where}-of-{name}"

    value: JsonValue = {
        "server": {
            "sharedToken": {"file": "shared"},
            "peerTokens": {"a": {"env": "TOKEN_A"}, "b": ["plain-token", {"file": "b"}]},
        }
    }
    layer = read_object(value, label="user.json", project=False, read_secret=read)
    server = merge((layer,)).settings.server
    assert server.shared_token == "file-of-shared"
    assert server.peer_tokens == {"a": ("env-of-TOKEN_A",), "b": ("plain-token", "file-of-b")}
    with pytest.raises(SettingsError, match=r"server.sharedToken cannot be read: no file shared"):
        merge((user({"server": {"sharedToken": {"file": "shared"}}}),))


@pytest.mark.parametrize(
    "value", [{"path": "x"}, {"file": 1}, {"file": ""}, {"file": "a", "env": "b"}, 5, [], True]
)
def test_wrong_secret(value: JsonValue) -> None:
    """A secret is text or names one place."""
    with pytest.raises(SettingsError, match="must be text"):
        merge((user({"server": {"sharedToken": value}}),))


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ({"server": {"tlsCertFile": "c.pem"}}, "server.tlsKeyFile is missing"),
        ({"server": {"trustedProxies": ["10.0.0.300"]}}, "no address or network"),
        ({"server": {"allowedOrigins": ["example.com"]}}, "not scheme://host"),
        ({"server": {"peerTokens": {"a": TOKEN, "b": TOKEN}}}, "the same token"),
        ({"discovery": {"gateways": {"g": {"enabled": True}}}}, "is missing, but the gateway"),
        ({"peers": {"a": {"url": "http://x:0x1"}}}, "is no URL"),
        ({"discovery": {"gateway": {"url": "http://x/prefix"}}}, "gateway x-80 must have no path"),
        (
            {"discovery": {"gateways": {"g": {"url": "http://x/?a=b"}}}},
            "gateway g must have no path",
        ),
    ],
)
def test_problems_of_several_settings_together(value: JsonValue, text: str) -> None:
    """What no single value shows."""
    with pytest.raises(SettingsError, match=text):
        merge((user(value),))


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ({"server": {"sharedToken": "short"}}, "server.sharedToken is weak"),
        ({"server": {"peerTokens": {"a": "short"}}}, 'weak token for "a"'),
        ({"server": {"sharedToken": TOKEN, "peerTokens": {"a": TOKEN}}}, 'also the token of "a"'),
        ({"selfIdentity": "b", "server": {"peerTokens": {"a": TOKEN}}}, "has no token"),
        ({"server": {"trustedPeers": ["z"], "peerTokens": {"a": TOKEN}}}, 'has "z"'),
        ({"server": {"trustedPeers": ["z"], "allowAllUsers": True}}, "no effect"),
        ({"server": {"trustedPeers": ["gw/lab"]}}, "no gateway"),
        ({"verifySsl": False}, "not verified"),
        ({"discovery": {"local": {"ttlSec": 10}}}, "look stale"),
    ],
)
def test_doubtful_settings_are_warned_about(value: JsonValue, text: str) -> None:
    """They work, and probably not as meant."""
    merged = merge((user(value),))
    assert any(text in warning for warning in merged.warnings)
    assert all(TOKEN not in warning and "short," not in warning for warning in merged.warnings)


def test_every_kind_of_caller_can_be_trusted() -> None:
    """By name, behind a gateway and by address; what can be nobody is refused."""
    gateways: JsonValue = {"gateways": {"lab": {"url": "http://h", "token": TOKEN}}}
    trusted: list[JsonValue] = ["a", "gw/lab", "ip:192.168.1.7", "ip:::1"]
    server: JsonValue = {"trustedPeers": trusted, "peerTokens": {"a": TOKEN}}
    merged = merge((user({"server": server, "discovery": gateways}),))
    assert merged.settings.server.trusted_peers == tuple(trusted)
    assert merged.warnings == ()
    for wrong in ("gw/", "gw/a/b", "ip:", "ip:host.example", "a b", "x/y"):
        with pytest.raises(SettingsError, match="trustedPeers"):
            merge((user({"server": {"trustedPeers": [wrong]}}),))


def test_flags_that_are_not_given_do_not_count() -> None:
    """None is how a parser says "not given"."""
    merged = merge((user({"server": {"port": 1}}), read_cli({"server.port": None})))
    assert merged.settings.server.port == 1


def test_flags_in_python_form() -> None:
    """Lists, numbers and switches as a parser gives them."""
    flags = {"server.trustedPeers": ["a"], "server.port": 0, "server.enabled": True,
             "peers.x.url": "http://x"}  # fmt: skip
    settings = merge((read_cli(flags),)).settings
    assert settings.server.trusted_peers == ("a",)
    assert settings.server.enabled
    assert settings.peers["x"].url == "http://x"


def test_too_many_peers() -> None:
    """A directory has a bound."""
    peers: dict[str, JsonValue] = {f"p{n}": {"url": "http://x"} for n in range(MAX_NAMED + 1)}
    with pytest.raises(SettingsError, match="more than 1000"):
        merge((user({"peers": peers}),))


names = st.sampled_from([part for key in keys() for part in key.path] + ["x", "", "a2a"])
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8)
    | st.sampled_from(["http://x:1", "127.0.0.1", TOKEN]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=4),
    max_leaves=20,
)  # fmt: skip


@given(json_values, json_values, st.dictionaries(names, json_values, max_size=3))
def test_any_json_is_read_or_refused(
    one: JsonValue, two: JsonValue, flags: dict[str, object]
) -> None:
    """Whatever the files and flags say: settings or the one error."""
    try:
        merged = merge((user(one), project(two), read_cli(flags)))
    except SettingsError:
        return
    safe = merged.settings
    assert not safe.server.enabled or "enabled" in str(one)


@given(json_values)
def test_a_project_file_never_changes_what_is_not_safe(value: JsonValue) -> None:
    """For any JSON: with the safe keys taken back, the operator's settings are left."""
    operator = user({"server": {"sharedToken": TOKEN}, "peers": {"bob": {"url": "http://b"}}})
    base = merge((operator,))
    try:
        merged = merge((operator, project(value)))
    except SettingsError:
        return
    changed = {name for name, label in merged.sources.items() if label == "project.json"}
    for name in changed:
        assert any(
            name == safe or (safe.startswith("peers.") and name.startswith("peers."))
            for safe in SAFE
        )
    assert merged.settings.server.shared_token == TOKEN
    assert merged.settings.peers["bob"] == base.settings.peers["bob"]
    assert all(p.auth.token == "" for n, p in merged.settings.peers.items() if n != "bob")
