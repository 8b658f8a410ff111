"""The command line: every command has help with examples, and every example parses."""

import argparse
import shlex
from collections.abc import Iterator

import attrs
import pytest

from a2a_trio.cli import arguments, parser
from a2a_trio.config.fields import declaration_of
from a2a_trio.config.schema import LogSettings
from a2a_trio.wire.model import TaskState


def _commands(
    commands: tuple[parser.Command, ...] = parser.COMMANDS, path: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], parser.Command]]:
    for command in commands:
        here = (*path, command.name)
        yield here, command
        yield from _commands(command.commands, here)


def _examples() -> list[str]:
    return [example for _, command in _commands() for example in command.examples]


def _words(example: str) -> list[str]:
    """Return the arguments of a2a-trio in a shell line: no pipes, no redirections."""
    line = example.rpartition("| ")[2].partition(" > ")[0]
    program, *words = shlex.split(line)
    assert program == "a2a-trio"
    return words


@pytest.mark.parametrize("example", _examples())
def test_every_example_parses(example: str) -> None:
    """What --help shows can be typed."""
    namespace = parser.build().parser.parse_args(_words(example))

    assert namespace.target.startswith("a2a_trio.cli.")


@pytest.mark.parametrize(
    ("path", "command"),
    list(_commands()),
    ids=lambda v: " ".join(v) if isinstance(v, tuple) else "",
)
def test_every_command_has_help_with_examples(
    path: tuple[str, ...], command: parser.Command, capsys: pytest.CaptureFixture[str]
) -> None:
    """--help works at every level and shows how the command is used."""
    with pytest.raises(SystemExit) as ended:
        parser.build().parser.parse_args([*path, "--help"])

    assert ended.value.code == 0
    assert command.examples
    assert f"examples:\n  {command.examples[0]}" in capsys.readouterr().out


@pytest.mark.parametrize(
    "words",
    [
        [],
        ["nothing"],
        ["send", "http://x"],
        ["send", "http://x", "text", "--stream", "--detach"],
        ["send", "http://x", "text", "--token", "a", "--token-file", "b"],
        ["send", "http://x", "text", "--str"],
        ["status", "http://x", "t", "--wait", "-1"],
        ["status", "http://x", "t", "--wait", "nan"],
        ["serve", "--port", "65536"],
        ["serve", "--port", "٣"],
        ["serve", "--port-fallback", "-1"],
        ["serve", "--log-level", "loud"],
        ["tasks", "http://x", "--state", "unspecified"],
        ["tasks", "http://x", "--after", "yesterday"],
        ["tasks", "http://x", "--after", "0001-01-01T00:00:00+23:59"],
        ["tasks", "http://x", "--after", "9999-12-31T23:59:59-00:01"],
        ["config"],
        ["config", "set", "server.port"],
        ["completion", "cmd"],
    ],
    ids=" ".join,
)
def test_a_wrong_line_is_refused_with_2(words: list[str]) -> None:
    """A line that cannot be meant ends before anything happens."""
    with pytest.raises(SystemExit) as ended:
        parser.build().parser.parse_args(words)

    assert ended.value.code == 2


def test_a_moment_without_offset_is_utc() -> None:
    """Times mean the same on every machine."""
    assert arguments.moment("2025-01-31T12:00:00") == arguments.moment("2025-01-31T12:00:00Z")


def test_the_ends_of_the_calendar_are_in_utc() -> None:
    """What is still a time in UTC is taken, whatever offset it is written with."""
    first = arguments.moment("0001-01-01T23:59:00+23:59")
    last = arguments.moment("9999-12-31T00:00:59-23:59")

    assert (first.isoformat(), last.isoformat()) == (
        "0001-01-01T00:00:00+00:00",
        "9999-12-31T23:59:59+00:00",
    )


def test_states_have_their_short_names() -> None:
    """Every state can be asked for by the name that tables show."""
    assert [arguments.state(state.short) for state in arguments.STATES] == [
        state for state in TaskState if state is not TaskState.UNSPECIFIED
    ]


def test_log_levels_are_those_of_the_setting() -> None:
    """The option offers what the setting allows."""
    serve = parser.build().children["serve"].parser
    (option,) = [action for action in serve._actions if action.dest == "log_level"]
    declared = declaration_of(attrs.fields(LogSettings).level)

    assert declared is not None
    assert option.choices == declared.choices


@pytest.mark.parametrize("text", ["", "x", "1.5", "-1", "+1", "1_0"])
def test_counts_are_plain_whole_numbers(text: str) -> None:
    """Python's other spellings of integers are no counts."""
    with pytest.raises(argparse.ArgumentTypeError):
        arguments.count(text)
