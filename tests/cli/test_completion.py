"""Completion scripts offer what the parser accepts."""

import re
import subprocess

import pytest

from a2a_trio.cli import completion, parser
from tests.cli.conftest import PATIENCE


def _complete(*words: str) -> list[str]:
    """Ask bash what it would offer for the last word."""
    quoted = " ".join(f"'{word}'" for word in words)
    asked = (
        f"{completion.script('bash')}\nCOMP_WORDS=({quoted}); COMP_CWORD={len(words) - 1};"
        ' compopt() { :; }; _a2a_trio; printf "%s\\n" "${COMPREPLY[@]}"'
    )
    done = subprocess.run(
        ["bash", "-u", "-c", asked],  # noqa: S607 - whichever bash there is
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=True,
    )
    assert done.stderr == ""
    return done.stdout.split()


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        (("a2a-trio", "se"), ["serve", "send"]),
        (("a2a-trio", "completion", ""), ["bash", "zsh", "fish", "-h", "--help"]),
        (("a2a-trio", "config", "s"), ["show", "set"]),
        (("a2a-trio", "config", "set", "--se"), ["--settings"]),
        (("a2a-trio", "config", "get", "server.portF"), ["server.portFallback"]),
        (("a2a-trio", "serve", "--log-level", "w"), ["warning"]),
        (("a2a-trio", "tasks", "http://x", "--state", "input"), ["input-required"]),
        (("a2a-trio", "send", "--str"), ["--stream"]),
        (("a2a-trio", "send", "--token", ""), []),
    ],
)
def test_bash_offers_what_fits(words: tuple[str, ...], offered: list[str]) -> None:
    """The script, run by bash, completes commands, subcommands, options and values."""
    assert _complete(*words) == offered


def test_bash_offers_files_for_settings(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An option that takes a file completes files."""
    folder = tmp_path_factory.mktemp("files")
    (folder / "settings.json").touch()
    monkeypatch.chdir(folder)

    assert _complete("a2a-trio", "serve", "--settings", "set") == ["settings.json"]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_every_command_and_option_is_in_every_script(shell: str) -> None:
    """Nothing the parser knows is missing from a script."""
    script = completion.script(shell)
    tree = completion.describe(parser.build(), ())

    for node in tree.walk():
        for word in (*node.words, *node.path):
            assert re.search(rf"\b{re.escape(word)}\b", script), word
        for flag in node.flags:
            for name in flag.names:
                spelled = name.lstrip("-") if shell == "fish" else name
                assert spelled in script


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_quotes_are_balanced(shell: str) -> None:
    """Help texts cannot break out of the quotes that the script puts around them."""
    for line in completion.script(shell).splitlines():
        assert line.count("'") % 2 == 0, line


def test_zsh_describes_each_command_once() -> None:
    """Each command has one function, and each function is called."""
    script = completion.script("zsh")
    names = re.findall(r"^(_a2a_trio\w*)\(\) \{$", script, re.MULTILINE)

    assert script.startswith("#compdef a2a-trio\n")
    assert len(names) == len(set(names))
    for name in names:
        assert script.count(f"{name} ;;") + script.count(f'{name} "$@"') == 1
    assert "compdef _a2a_trio a2a-trio" in script
