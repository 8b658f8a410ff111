"""``peers``: who can be called, for people and for machines; and names in the place of URLs."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from a2a_trio.discovery.registry import FOLDER
from tests.cli.conftest import CommandLine

RESEARCHER = {"url": "http://127.0.0.1:9", "capabilities": ["search", "Research"]}


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """Return the state folder that the command line uses, with a peer in its registry."""
    folder = tmp_path / "home"
    (folder / FOLDER).mkdir(mode=0o700, parents=True)
    folder.chmod(0o700)
    entry = {"pid": os.getpid(), "url": "http://127.0.0.1:9911/", "agentName": "reader", "cwd": "/w",
             "skills": ["reading"]}  # fmt: skip
    (folder / FOLDER / "1.json").write_text(json.dumps(entry))
    return folder


def configure(home: Path, **content: Any) -> None:
    path = home / "settings.json"
    path.touch(mode=0o600)
    path.write_text(json.dumps({"a2a": content}))


def test_table_for_people(a2a: CommandLine, home: Path) -> None:
    """Columns aligned; what is not known is a dash."""
    configure(home, peers={"researcher": RESEARCHER})
    done = a2a("peers")
    assert done.returncode == 0
    assert [line.split() for line in done.stdout.splitlines()] == [
        ["NAME", "URL", "SOURCE", "FOLDER", "CAN"],
        ["reader", "http://127.0.0.1:9911/", "local", "/w", "reading"],
        ["researcher", "http://127.0.0.1:9", "config", "-", "search,", "Research"],
    ]


def test_lines_for_machines(a2a: CommandLine, home: Path) -> None:
    """Everything but credentials."""
    configure(home, peers={"researcher": {**RESEARCHER, "auth": {"token": "secret-of-them-all"}}})
    done = a2a("peers", "--json")
    reader, researcher = map(json.loads, done.stdout.splitlines())
    assert reader == {
        "name": "reader", "url": "http://127.0.0.1:9911/", "source": "local", "cwd": "/w",
        "model": "", "tools": [], "capabilities": ["reading"], "pid": os.getpid(),
        "gateway": "", "healthy": None,
    }  # fmt: skip
    assert researcher["capabilities"] == ["search", "Research"]
    assert "secret" not in done.stdout


@pytest.mark.parametrize(
    ("words", "names"),
    [
        (("--capability", "research"), ["researcher"]),
        (("--capability", "READING"), ["reader"]),
        (("--capability", "read"), []),
        (("--source", "local"), ["reader"]),
        (("--source", "config"), ["researcher"]),
        (("--source", "mdns"), []),
    ],
)
def test_choice(a2a: CommandLine, home: Path, words: tuple[str, ...], names: list[str]) -> None:
    """By what they can, whole words without regard to case, and by where they were found."""
    configure(home, peers={"researcher": RESEARCHER})
    done = a2a("peers", "--json", *words)
    assert done.returncode == 0
    assert [json.loads(line)["name"] for line in done.stdout.splitlines()] == names


def test_nobody_is_no_failure(a2a: CommandLine) -> None:
    """It is said, on standard error."""
    done = a2a("peers")
    assert (done.returncode, done.stdout) == (0, "")
    assert "no peers found" in done.stderr


def test_source_that_does_not_answer_is_a_warning(a2a: CommandLine, home: Path) -> None:
    """Those that were found are shown all the same."""
    gateway = {"url": "http://127.0.0.1:9", "token": "agw-of-the-gateway"}
    configure(home, discovery={"gateways": {"lab": gateway}})
    done = a2a("peers")
    assert done.returncode == 0
    assert "reader" in done.stdout
    assert "warning: gateway lab: " in done.stderr
    assert "agw-of" not in done.stderr


def test_hostile_entries_cannot_steer_the_terminal(a2a: CommandLine, home: Path) -> None:
    """Neither in the table nor in JSON."""
    entry = {"pid": os.getpid(), "url": "http://127.0.0.1:9912/", "agentName": "\x1b[2Jx\u202e"}
    (home / FOLDER / "2.json").write_text(json.dumps(entry))
    for words in ((), ("--json",)):
        done = a2a("peers", *words)
        assert "\x1b" not in done.stdout
        assert "\u202e" not in done.stdout


def test_found_name_is_called(a2a: CommandLine, home: Path) -> None:
    """Nothing listens there, which is what is told; an unknown name tells who there is."""
    assert home.exists()
    done = a2a("send", "reader", "hello")
    assert done.returncode == 3
    done = a2a("send", "somebody", "hello")
    assert done.returncode == 2
    assert "known: reader" in done.stderr


def test_name_behind_a_gateway_that_does_not_answer(a2a: CommandLine, home: Path) -> None:
    """It is the gateway that cannot be reached; one that is not configured is a mistake."""
    gateway = {"url": "http://127.0.0.1:9", "token": "agw-of-the-gateway"}
    configure(home, discovery={"gateways": {"lab": gateway}})
    assert a2a("send", "gw/lab/reader", "hello").returncode == 3
    assert a2a("send", "gw/other/reader", "hello").returncode == 2
