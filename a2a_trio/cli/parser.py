"""The command line: every command with its arguments and examples, in one table.

A command names its function as text, so that building the parser imports none of them.
"""

import argparse
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final, final

import attrs

from a2a_trio._version import __version__
from a2a_trio.cli import arguments, configure
from a2a_trio.cli.exits import MEANINGS
from a2a_trio.wire.extensions import PROTOCOL_VERSION

PROGRAM: Final = "a2a-trio"


@final
@attrs.frozen(kw_only=True)
class Command:
    """One command or subcommand.

    Args:
        name: the word on the command line.
        summary: one line for the list of commands.
        examples: complete command lines; tests parse each of them.
        target: ``module:function`` that runs it, or empty for a group of subcommands.
        configure: adds the arguments.
        description: more than the summary, where there is more to say.
        commands: the subcommands of a group.
    """

    name: str
    summary: str
    examples: tuple[str, ...] = ()
    target: str = ""
    configure: Callable[[argparse.ArgumentParser], None] = arguments.add_output
    description: str = ""
    commands: "tuple[Command, ...]" = ()


_LOCAL: Final = "http://127.0.0.1:9910"
_TASK: Final = "1b4f8d1c-30d5-4819-9f5e-0f3a5d6c7b80"

COMMANDS: Final = (
    Command(
        name="serve",
        summary="serve an agent until Ctrl-C",
        description="Serve an agent to other agents. Ctrl-C or SIGTERM stops it cleanly: new work"
        " is refused, streams end, running tasks get a moment. A second Ctrl-C ends it at once.",
        examples=(
            "a2a-trio serve",
            "a2a-trio serve --agent mypackage.agents:reviewer --port 9920",
            "a2a-trio serve --host 0.0.0.0 --token-file /run/secrets/a2a",
        ),
        target="a2a_trio.cli.serve:run",
        configure=configure.serve,
    ),
    Command(
        name="discover",
        summary="show what a peer says about itself",
        examples=(f"a2a-trio discover {_LOCAL}", f"a2a-trio discover {_LOCAL} --json"),
        target="a2a_trio.cli.cards:run_discover",
        configure=configure.discover,
    ),
    Command(
        name="peers",
        summary="list the agents that can be called",
        description="List the agents that can be called: those on this machine, on the network if"
        " mDNS is on, in the settings, and behind gateways. A name in the list can be given to every"
        " command instead of a URL.",
        examples=("a2a-trio peers", "a2a-trio peers --capability research --json"),
        target="a2a_trio.cli.peers:run",
        configure=configure.peers,
    ),
    Command(
        name="card",
        summary="show the agent card that these settings lead to",
        examples=("a2a-trio card", "a2a-trio card --settings ./settings.json --json"),
        target="a2a_trio.cli.cards:run_card",
        configure=configure.card,
    ),
    Command(
        name="send",
        summary="send a message and show the reply",
        description="Send a message to a peer. The reply goes to standard output, everything else"
        " to standard error.",
        examples=(
            f'a2a-trio send {_LOCAL} "Find all TODO comments"',
            f'a2a-trio send {_LOCAL} --stream "Explain the build"',
            f'a2a-trio send {_LOCAL} --detach "Reindex everything"',
            f'a2a-trio send {_LOCAL} --task {_TASK} "the main branch"',
            f"git diff | a2a-trio send {_LOCAL} -",
        ),
        target="a2a_trio.cli.talk:run",
        configure=configure.send,
    ),
    Command(
        name="status",
        summary="show a task, or wait for it",
        examples=(
            f"a2a-trio status {_LOCAL} {_TASK}",
            f"a2a-trio status {_LOCAL} {_TASK} --wait 300",
        ),
        target="a2a_trio.cli.tasks:run_status",
        configure=configure.status,
    ),
    Command(
        name="cancel",
        summary="cancel a task",
        examples=(f"a2a-trio cancel {_LOCAL} {_TASK}",),
        target="a2a_trio.cli.tasks:run_cancel",
        configure=configure.cancel,
    ),
    Command(
        name="tasks",
        summary="list tasks, newest first",
        description="List tasks, newest first. With --json, a page is one object with the token of"
        " the next page; with --all as well, each task is a line of its own.",
        examples=(
            f"a2a-trio tasks {_LOCAL}",
            f"a2a-trio tasks {_LOCAL} --state working --after 2025-01-31T12:00:00Z",
            f"a2a-trio tasks {_LOCAL} --all --json",
        ),
        target="a2a_trio.cli.tasks:run_tasks",
        configure=configure.tasks,
    ),
    Command(
        name="demo",
        summary="run an agent and call it in every way, on this machine only",
        description="Start an echo agent on a free loopback port, discover it, send, stream,"
        " dispatch detached, poll, cancel a slow task, and print what happened.",
        examples=("a2a-trio demo",),
        target="a2a_trio.cli.demo:run",
        configure=arguments.add_output,
    ),
    Command(
        name="config",
        summary="show, check and change settings",
        examples=("a2a-trio config show", "a2a-trio config set server.port 9920"),
        commands=(
            Command(
                name="show",
                summary="show every setting, where it comes from, tokens masked",
                examples=("a2a-trio config show", "a2a-trio config show --json"),
                target="a2a_trio.cli.config:run_show",
                configure=configure.settings,
            ),
            Command(
                name="get",
                summary="show one setting",
                examples=("a2a-trio config get server.port",),
                target="a2a_trio.cli.config:run_get",
                configure=configure.setting,
            ),
            Command(
                name="set",
                summary="change one setting in the file, other keys stay",
                examples=(
                    "a2a-trio config set server.agentName reviewer",
                    "pass show a2a | a2a-trio config set server.sharedToken -",
                    "a2a-trio config set server.allowedOrigins '[\"http://localhost:3000\"]'",
                ),
                target="a2a_trio.cli.config:run_set",
                configure=configure.setting_and_value,
            ),
            Command(
                name="unset",
                summary="take one setting out of the file",
                examples=("a2a-trio config unset server.port",),
                target="a2a_trio.cli.config:run_unset",
                configure=configure.setting,
            ),
            Command(
                name="check",
                summary="read all settings and report what is wrong with them",
                examples=(
                    "a2a-trio config check",
                    "a2a-trio config check --settings ./settings.json",
                ),
                target="a2a_trio.cli.config:run_check",
                configure=configure.settings,
            ),
        ),
    ),
    Command(
        name="completion",
        summary="print a completion script for a shell",
        examples=(
            "a2a-trio completion bash > ~/.local/share/bash-completion/completions/a2a-trio",
            'a2a-trio completion zsh > "${fpath[1]}/_a2a-trio"',
            "a2a-trio completion fish > ~/.config/fish/completions/a2a-trio.fish",
        ),
        target="a2a_trio.cli.completion:run",
        configure=configure.shell,
    ),
)


@final
@attrs.frozen
class ParserTree:
    """A parser and, for a group, the parsers of its commands by name."""

    parser: argparse.ArgumentParser
    children: "Mapping[str, ParserTree]" = MappingProxyType({})


def build() -> ParserTree:
    """Return the parser of the whole command line."""
    parser = argparse.ArgumentParser(
        prog=PROGRAM,
        description="An Agent2Agent (A2A) peer: serve an agent, call other agents.",
        epilog=_epilog(
            (
                "a2a-trio demo",
                "a2a-trio serve --agent echo",
                f'a2a-trio send {_LOCAL} "hello"',
            )
        )
        + "\n\nexit codes:\n"
        + "\n".join(f"  {code.value:<4} {text}" for code, text in MEANINGS.items()),
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument(
        "--version",
        action="version",
        version=f"{PROGRAM} {__version__} (A2A {PROTOCOL_VERSION})",
    )
    return ParserTree(parser, _add_commands(parser, COMMANDS))


def _add_commands(
    parser: argparse.ArgumentParser, commands: tuple[Command, ...]
) -> Mapping[str, ParserTree]:
    group = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    children: dict[str, ParserTree] = {}
    for command in commands:
        child = group.add_parser(
            command.name,
            help=command.summary,
            description=command.description or f"{command.summary.capitalize()}.",
            epilog=_epilog(command.examples),
            formatter_class=argparse.RawDescriptionHelpFormatter,
            allow_abbrev=False,
        )
        if command.commands:
            children[command.name] = ParserTree(child, _add_commands(child, command.commands))
        else:
            command.configure(child)
            child.set_defaults(target=command.target)
            children[command.name] = ParserTree(child)
    return children


def _epilog(examples: tuple[str, ...]) -> str:
    return "examples:\n" + "\n".join(f"  {example}" for example in examples)
