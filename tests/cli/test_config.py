"""``config`` and ``card``: what is in force, where it comes from, and what may not be shown."""

import json
from pathlib import Path

import pytest

from tests.cli.conftest import CommandLine

SECRET = "correct-horse-battery-staple"


@pytest.fixture
def settings(tmp_path: Path) -> Path:
    """Return the operator's settings file, with a comment and a secret."""
    home = tmp_path / "home"
    home.mkdir(mode=0o700)
    path = home / "settings.json"
    path.write_text(
        '{"other": 1, "a2a": {\n'
        "  // who may call\n"
        f'  "server": {{"port": 9931, "sharedToken": "{SECRET}"}}\n'
        "}}\n"
    )
    path.chmod(0o600)
    return path


def test_show_names_every_value_with_its_source(a2a: CommandLine, settings: Path) -> None:
    """File, variable and default are told apart; secrets are masked."""
    done = a2a("config", "show", "--json", env={"A2A_REPLY_TIMEOUT": "7"})
    shown = {entry["key"]: entry for entry in map(json.loads, done.stdout.splitlines())}

    assert shown["server.port"] == {"key": "server.port", "value": 9931, "source": str(settings)}
    assert shown["server.replyTimeoutSec"]["value"] == 7
    assert "A2A_REPLY_TIMEOUT" in shown["server.replyTimeoutSec"]["source"]
    assert shown["server.maxTasks"]["source"] == "default"
    assert SECRET not in done.stdout + done.stderr


def test_show_for_people_is_a_table(a2a: CommandLine, settings: Path) -> None:
    """One line per setting, columns aligned."""
    done = a2a("config", "show")

    assert done.returncode == 0
    assert done.stdout.splitlines()[0].split() == ["KEY", "VALUE", "SOURCE"]
    assert ["server.port", "9931", str(settings)] in [
        line.split() for line in done.stdout.splitlines()
    ]
    assert SECRET not in done.stdout


def test_get_prints_the_value_alone(a2a: CommandLine, settings: Path) -> None:
    """``$(a2a-trio config get server.port)`` works; a secret stays masked."""
    assert settings.exists()
    assert a2a("config", "get", "server.port").stdout == "9931\n"
    assert a2a("config", "get", "server.host").stdout == "127.0.0.1\n"
    assert a2a("config", "get", "server.sharedToken").stdout == "••••\n"


def test_get_of_one_callers_token(a2a: CommandLine) -> None:
    """An entry of a map is a key of its own, as it is for ``set``."""
    assert a2a("config", "set", "server.peerTokens.alice", SECRET).returncode == 0
    assert a2a("config", "get", "server.peerTokens.alice").stdout == "••••\n"
    other = a2a("config", "get", "server.peerTokens.bob")
    assert (other.returncode, other.stdout) == (0, "")
    assert "not set" in other.stderr


@pytest.mark.parametrize("name", ["a2a.server.port", "server.port"])
def test_get_takes_every_spelling(a2a: CommandLine, settings: Path, name: str) -> None:
    """With and without the name of the whole object."""
    assert settings.exists()
    assert a2a("config", "get", name).stdout == "9931\n"


def test_get_of_a_section_that_nobody_filled(a2a: CommandLine) -> None:
    """It is no mistake to ask for it; a name that does not exist is one."""
    assert a2a("config", "get", "peers").returncode == 0
    assert a2a("config", "get", "peers.bob").returncode == 0
    assert a2a("config", "get", "peerz").returncode == 2


def test_get_of_a_section_shows_all_of_it(a2a: CommandLine) -> None:
    """A name above settings lists those below."""
    done = a2a("config", "get", "timeouts", "--json")

    assert [json.loads(line)["key"] for line in done.stdout.splitlines()] == [
        "timeouts.send",
        "timeouts.async",
        "timeouts.stream",
    ]


def test_set_and_unset_keep_everything_else(a2a: CommandLine, settings: Path) -> None:
    """Comments and foreign keys are not this command's business."""
    before = settings.read_text()

    assert a2a("config", "set", "server.maxTasks", "9").returncode == 0
    assert a2a("config", "get", "server.maxTasks").stdout == "9\n"
    changed = settings.read_text()
    assert a2a("config", "unset", "server.maxTasks").returncode == 0

    assert a2a("config", "get", "server.maxTasks").stdout == "500\n"
    for text in (changed, settings.read_text()):
        assert "// who may call" in text
        assert '"other": 1' in text
        assert SECRET in text
    assert settings.stat().st_mode & 0o777 == 0o600
    assert before.count("\n") <= changed.count("\n")


def test_set_takes_a_secret_from_standard_input(a2a: CommandLine, tmp_path: Path) -> None:
    """So that it is in no process list; and no output repeats it."""
    done = a2a("config", "set", "server.sharedToken", "-", stdin=SECRET + "\n")

    path = tmp_path / "home" / "settings.json"
    assert done.returncode == 0
    assert json.loads(path.read_text()) == {"a2a": {"server": {"sharedToken": SECRET}}}
    assert path.stat().st_mode & 0o777 == 0o600
    assert SECRET not in done.stdout + done.stderr


def test_set_in_another_file(a2a: CommandLine, tmp_path: Path) -> None:
    """--settings names the file to change."""
    assert a2a("config", "set", "server.port", "1", "--settings", "mine.json").returncode == 0

    assert json.loads((tmp_path / "mine.json").read_text()) == {"a2a": {"server": {"port": 1}}}


def test_set_warns_if_something_counts_more(a2a: CommandLine) -> None:
    """A value that has no effect is not left to be wondered about."""
    done = a2a("config", "set", "server.port", "1", env={"A2A_PORT": "2"})

    assert done.returncode == 0
    assert "A2A_PORT" in done.stderr
    assert "counts more" in done.stderr


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (("get", "server.prt"), 'did you mean "server.port"?'),
        (("set", "server.prt", "1"), 'did you mean "server.port"?'),
        (("unset", "server.prt"), 'did you mean "server.port"?'),
        (("set", "server.port", "many"), "from 0 to 65535"),
        (("check", "--settings", "missing.json"), "no such file"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_mistakes_are_named_and_change_nothing(
    a2a: CommandLine, settings: Path, words: tuple[str, ...], text: str
) -> None:
    """Exit code 2, and the file is as it was."""
    before = settings.read_bytes()
    done = a2a("config", *words)

    assert done.returncode == 2
    assert text in done.stderr
    assert settings.read_bytes() == before


def test_check_says_that_all_is_well(a2a: CommandLine, settings: Path) -> None:
    """0, and which file it was."""
    done = a2a("config", "check")

    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == f"settings can be used; file: {settings}\n"


def test_check_lists_every_mistake(a2a: CommandLine, settings: Path) -> None:
    """2, with a line per problem."""
    settings.write_text('{"a2a": {"server": {"port": "many", "maxTasks": 0}}}')
    done = a2a("config", "check")

    assert done.returncode == 2
    assert "server.port" in done.stderr
    assert "server.maxTasks" in done.stderr


def test_check_reports_what_a_repository_tried(a2a: CommandLine, tmp_path: Path) -> None:
    """A project file cannot open the server; that it tried is said."""
    folder = tmp_path / ".a2a"
    folder.mkdir()
    (folder / "settings.json").write_text('{"a2a": {"server": {"host": "0.0.0.0"}}}')
    done = a2a("config", "check", "--json")

    found = json.loads(done.stdout)
    assert found["ok"] is True
    assert "server.host" in found["warnings"][0]
    assert a2a("config", "get", "server.host").stdout == "127.0.0.1\n"


def test_wrong_settings_stop_every_command(a2a: CommandLine, settings: Path) -> None:
    """Nothing is served or sent with settings that are half understood."""
    settings.write_text("{")

    for words in (("serve",), ("send", "http://127.0.0.1:9", "hi"), ("card",)):
        done = a2a(*words)
        assert done.returncode == 2
        assert "settings.json" in done.stderr


def test_warnings_are_shown_by_every_command(a2a: CommandLine, settings: Path) -> None:
    """What is ignored is said, on standard error."""
    settings.write_text('{"a2a": {"server": {"prt": 1}}}')
    done = a2a("card", "--json")

    assert done.returncode == 0
    assert "warning: " in done.stderr
    assert "server.prt" in done.stderr
    json.loads(done.stdout)


def test_card_follows_the_settings(a2a: CommandLine, settings: Path) -> None:
    """Name, address and access are what a server with these settings would say."""
    settings.write_text(
        f'{{"a2a": {{"server": {{"agentName": "reviewer", "sharedToken": "{SECRET}"}}}}}}'
    )
    settings.chmod(0o600)
    card = json.loads(a2a("card", "--json", "--url", "https://agents.example/reviewer").stdout)

    assert card["name"] == "reviewer"
    assert card["supportedInterfaces"][0]["url"].startswith("https://agents.example/reviewer")
    assert card["securityRequirements"] == [{"schemes": {"bearer": {}}}]
    assert SECRET not in json.dumps(card)
    assert a2a("card").stdout.startswith("reviewer ")
