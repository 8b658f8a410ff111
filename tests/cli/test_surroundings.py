"""How a process may be started: without streams, in a folder that is gone, with bytes for words."""

import ast
import re
import subprocess
import sys
from collections.abc import Mapping
from importlib.metadata import packages_distributions, requires
from pathlib import Path

import pytest

from a2a_trio import cli
from tests.cli.conftest import PATIENCE


def in_shell(
    script: str, *words: str, folder: Path, environment: Mapping[str, str]
) -> "subprocess.CompletedProcess[str]":
    """Run ``"$@"``, which is ``a2a-trio`` with these words, the way a script of the shell says."""
    return subprocess.run(
        ["bash", "-c", script, "bash", sys.executable, "-m", "a2a_trio", *words],  # noqa: S607 - whichever bash there is
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        cwd=folder,
        env=environment,
        timeout=PATIENCE,
        check=False,
    )


COMMANDS = [
    ["tasks", "http://127.0.0.1:9"],
    ["config", "show"],
    ["serve", "--port", "0"],
]


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_without_standard_output_nothing_is_done(
    words: list[str], tmp_path: Path, environment: Mapping[str, str]
) -> None:
    """``a2a-trio ... >&-``: one line says why, and 74 is the code of output that cannot be written."""
    done = in_shell('exec "$@" >&-', *words, folder=tmp_path, environment=environment)

    assert done.returncode == 74
    assert done.stderr == "a2a-trio: standard output: it is closed\n"


def test_without_standard_error_the_result_still_comes(
    tmp_path: Path, environment: Mapping[str, str]
) -> None:
    """Notes and warnings are for people; nobody is there."""
    # A warning is due, so that something is written to where nothing can be.
    there = {**environment, "A2A_VERIFY_SSL": "false"}
    usual = in_shell('exec "$@"', "config", "show", folder=tmp_path, environment=there)
    done = in_shell('exec "$@" 2>&-', "config", "show", folder=tmp_path, environment=there)

    assert "warning: " in usual.stderr
    assert (done.returncode, done.stdout) == (0, usual.stdout)


def test_without_both_the_code_tells(tmp_path: Path, environment: Mapping[str, str]) -> None:
    """There is no other way left."""
    done = in_shell(
        'exec "$@" >&- 2>&-', "config", "show", folder=tmp_path, environment=environment
    )

    assert done.returncode == 74


GONE = 'mkdir gone; cd gone; rmdir "$PWD"; exec "$@"'


@pytest.mark.parametrize(
    ("words", "code", "text"),
    [
        (["config", "check"], 0, "settings can be used"),
        (["config", "set", "server.port", "9000"], 0, "server.port set in"),
        (["config", "set", "server.port", "9000", "--settings", "x.json"], 2, "cannot be written"),
        (["send", "http://127.0.0.1:9", "hello"], 3, "Connection refused"),
        (["demo"], 0, "no task is left"),
        (["serve", "--port", "0"], 2, "the working directory was deleted; set server.workspace"),
        (["serve", "--port", "0", "--agent", "no_such:agent"], 2, "no module named 'no_such'"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_in_a_deleted_folder_there_is_no_project_file(
    words: list[str], code: int, text: str, tmp_path: Path, environment: Mapping[str, str]
) -> None:
    """What needs no folder goes on; what does says so."""
    done = in_shell(GONE, *words, folder=tmp_path, environment=environment)

    assert done.returncode == code
    assert text in done.stdout + done.stderr
    assert "Traceback" not in done.stderr


def test_a_folder_to_work_in_may_be_given_instead(
    tmp_path: Path, environment: Mapping[str, str]
) -> None:
    """With --workspace a server needs no working directory; it gets as far as its port."""
    words = ("serve", "--workspace", str(tmp_path), "--host", "256.0.0.1", "--token", "s" * 20)
    done = in_shell(GONE, *words, folder=tmp_path, environment=environment)

    assert done.returncode == 2
    assert "cannot serve on 256.0.0.1:9910" in done.stderr


@pytest.mark.parametrize(
    "words",
    [
        ["send", "http://127.0.0.1:9", "a\udcff\udcfe"],
        ["config", "set", "server.agentName", "\udcff"],
        ["\udcff"],
    ],
    ids=ascii,
)
def test_bytes_that_are_no_text_are_refused(
    words: list[str], tmp_path: Path, environment: Mapping[str, str]
) -> None:
    """As on standard input: what would be replaced by question marks is not sent."""
    done = in_shell('exec "$@"', *words, folder=tmp_path, environment=environment)

    assert (done.returncode, done.stdout) == (2, "")
    assert f"a2a-trio: error: argument {len(words)} is not valid utf-8\n" in done.stderr
    assert "Traceback" not in done.stderr


def test_the_commands_import_only_what_is_declared() -> None:
    """A package that another one happens to bring may be gone tomorrow."""
    declared = {
        re.split(r"[^A-Za-z0-9._-]", line)[0].lower().replace("_", "-")
        for line in requires("a2a-trio") or ()
        if "extra ==" not in line
    }
    owners = packages_distributions()
    for path in Path(cli.__file__).parent.glob("*.py"):
        for name in imported(path):
            if name in sys.stdlib_module_names or name in {"a2a_trio", "_typeshed"}:
                continue
            owned_by = {owner.lower().replace("_", "-") for owner in owners.get(name, ())}
            assert owned_by & declared, f"{path.name} imports {name}"


def imported(path: Path) -> set[str]:
    """Return the top-level names that a file imports."""
    names = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            names.add(node.module.partition(".")[0])
    return names
