"""Get, set, unset and show single settings."""

import json
from pathlib import Path

import pytest

from a2a_trio.config.edit import explain, get_value, set_value, unset_value
from a2a_trio.config.load import load_settings
from a2a_trio.errors import SettingsError
from a2a_trio.wire.model import JsonValue

TOKEN = "token-of-sixteen-characters"
FILE = '{\n  "theme": "dark", // mine\n  "a2a": {\n    "server": {"port": 1} // ours\n  }\n}\n'


@pytest.fixture
def path(tmp_path: Path) -> Path:
    file = tmp_path / "settings.json"
    file.write_text(FILE)
    file.chmod(0o600)
    return file


@pytest.mark.parametrize(
    ("key", "given", "written"),
    [
        ("server.port", "9920", 9920),
        ("server.port", 9920, 9920),
        ("server.enabled", "yes", True),
        ("server.replyTimeoutSec", "1.5", 1.5),
        ("server.trustedPeers", "a, b", ["a", "b"]),
        ("server.trustedPeers", ["a"], ["a"]),
        ("server.streamDisconnect", "cancel", "cancel"),
        ("server.sharedToken", TOKEN, TOKEN),
        ("server.sharedToken", {"file": "t"}, {"file": "t"}),
        ("server.peerTokens", "a:tok1,b:tok2", {"a": "tok1", "b": "tok2"}),
        ("server.peerTokens.a", "x:1", "x:1"),
        ("server.peerTokens.a", ["old-token", "new-token"], ["old-token", "new-token"]),
        ("server.peerTokens.a.b", {"env": "T"}, {"env": "T"}),
        ("server.skills", '[{"id": "s", "name": "S"}]', [{"id": "s", "name": "S"}]),
        ("peers.my.host.url", "http://x", "http://x"),
        ("peers.bob.timeout", "12", 12),
        ("discovery.gateways.lab.token", TOKEN, TOKEN),
        ("a2a.retryAttempts", "0", 0),
        ("discovery.mdnsEnabled", "true", True),
    ],
)
def test_set_then_get(path: Path, key: str, given: object, written: JsonValue) -> None:
    """Texts of a command line become what the key holds; the rest of the file stays."""
    set_value(path, key, given)
    assert get_value(path, key) == written
    text = path.read_text()
    assert '"theme": "dark", // mine' in text
    assert "// ours" in text
    assert unset_value(path, key)
    assert get_value(path, key) is None
    assert not unset_value(path, key)
    assert '"theme": "dark", // mine' in path.read_text()


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("server.port", "x", 'server.port is "x"; it must be a whole number from 0 to 65535'),
        ("server.port", 1.5, "server.port is 1.5; it must be"),
        ("server.prot", "1", 'unknown setting server.prot; did you mean "server.port"?'),
        ("server", {}, "unknown setting server"),
        ("server.sharedToken", "a b", "server.sharedToken is ••••; it must be visible ASCII"),
        ("server.peerTokens.a b", "x", "server.peerTokens.a b is ••••"),
        ("server.skills", "not json", "server.skills must be a list of skills"),
        ("server.port", object(), "server.port must be a whole number"),
        ("peers.bob.url", "ftp://x", "peers.bob.url is"),
    ],
)
def test_wrong_set_changes_nothing(path: Path, key: str, value: object, message: str) -> None:
    """With the same texts as when a file is loaded."""
    with pytest.raises(SettingsError) as caught:
        set_value(path, key, value)
    assert message in str(caught.value)
    assert path.read_text() == FILE


@pytest.mark.parametrize("content", ['{"a2a": {', "[]", '{"a2a": 5}', "\x00"])
def test_corrupt_file_is_never_replaced(path: Path, content: str) -> None:
    """Neither by set nor by unset."""
    path.write_text(content)
    with pytest.raises(SettingsError):
        set_value(path, "server.port", 1)
    assert path.read_text() == content


def test_set_makes_the_file(tmp_path: Path) -> None:
    """With its folder; what was set is loaded."""
    path = tmp_path / "home" / "settings.json"
    set_value(path, "server.port", "9920")
    assert json.loads(path.read_text()) == {"a2a": {"server": {"port": 9920}}}
    assert load_settings(environ={}, home=path.parent).settings.server.port == 9920
    assert get_value(tmp_path / "none.json", "server.port") is None


def test_set_in_an_empty_file(path: Path) -> None:
    """An empty file counts as an empty object."""
    path.write_text("")
    set_value(path, "server.port", 5)
    assert get_value(path, "server.port") == 5


def test_explain_masks_secrets_and_names_sources(path: Path) -> None:
    """Every key in force, with where its value comes from, and no secret."""
    set_value(path, "server.sharedToken", TOKEN)
    set_value(path, "server.peerTokens.alice", TOKEN + "-a")
    set_value(path, "peers.bob.url", "http://b:1")
    set_value(path, "peers.bob.auth.token", TOKEN + "-b")
    set_value(path, "server.skills", '[{"id": "s", "name": "S"}]')
    loaded = load_settings(environ={"A2A_HOST": "::1"}, home=path.parent, cli={"server.port": 0})
    rows = {row.key: row for row in explain(loaded)}
    assert TOKEN not in repr(rows)
    assert rows["server.sharedToken"].value == "••••"
    assert rows["server.peerTokens"].value == {"alice": "••••"}
    assert rows["peers.bob.auth.token"].value == "••••"
    assert rows["peers.bob.url"].source == str(path)
    assert (rows["server.host"].value, rows["server.host"].source) == (
        "::1",
        "environment A2A_HOST",
    )
    assert (rows["server.port"].value, rows["server.port"].source) == (0, "command line")
    assert rows["server.skills"].value == [{"id": "s", "name": "S", "description": "", "tags": []}]
    assert (rows["verifySsl"].value, rows["verifySsl"].source) == (True, "default")
    assert rows["verifySsl"].doc.endswith(".")
    json.dumps([row.value for row in rows.values()])


def test_unset_removes_a_whole_entry_of_a_map(path: Path) -> None:
    """A peer that was entered by mistake can be taken out again, and only that one."""
    set_value(path, "peers.bob.url", "http://bob.example:9910")
    set_value(path, "peers.carl.timeout", "5")
    set_value(path, "discovery.gateways.lab.url", "http://gw.example:9920")
    set_value(path, "server.peerTokens.alice", TOKEN)

    assert unset_value(path, "peers.carl")
    assert not unset_value(path, "peers.carl")
    assert unset_value(path, "discovery.gateways.lab")
    assert unset_value(path, "server.peerTokens.alice")
    assert get_value(path, "peers.bob.url") == "http://bob.example:9910"
    assert get_value(path, "peers.carl.timeout") is None
    assert "// mine" in path.read_text()


@pytest.mark.parametrize("key", ["peers", "peers.", "peers.b!d", "discovery.gateways", "server"])
def test_unset_of_what_is_no_setting_changes_nothing(path: Path, key: str) -> None:
    with pytest.raises(SettingsError):
        unset_value(path, key)
    assert path.read_text() == FILE
