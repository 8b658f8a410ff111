"""``a2a-trio completion``: scripts for shells, generated from the parser.

The scripts are static: completing a command line starts no Python.
"""

import argparse
from collections.abc import Iterator, Sequence
from typing import Final, final

import attrs

from a2a_trio.cli import parser
from a2a_trio.cli.console import Console
from a2a_trio.cli.exits import ExitCode
from a2a_trio.config.table import ANY_NAME, keys
from a2a_trio.wire.model import TaskState

_FILES: Final = frozenset({"FILE"})
_FOLDERS: Final = frozenset({"DIR"})


@final
@attrs.frozen(kw_only=True)
class Flag:
    """One option of a command, as a shell needs to know it."""

    names: tuple[str, ...]
    help: str
    takes_value: bool = False
    choices: tuple[str, ...] = ()
    files: bool = False
    folders: bool = False


@final
@attrs.frozen(kw_only=True)
class Node:
    """One command: the words that lead to it, its options, and what may follow."""

    path: tuple[str, ...]
    help: str
    flags: tuple[Flag, ...]
    words: tuple[str, ...] = ()
    """Subcommands, or the choices of the first positional argument."""
    children: "tuple[Node, ...]" = ()

    def walk(self) -> "Iterator[Node]":
        """Yield this command and all below it."""
        yield self
        for child in self.children:
            yield from child.walk()


def run(namespace: argparse.Namespace, console: Console) -> ExitCode:
    """Run ``a2a-trio completion``."""
    console.write(script(namespace.shell))
    return ExitCode.OK


def script(shell: str) -> str:
    """Return the completion script for bash, zsh or fish."""
    tree = describe(parser.build(), ())
    match shell:
        case "bash":
            lines = _bash(tree)
        case "zsh":
            lines = _zsh(tree)
        case _:
            lines = _fish(tree)
    return "\n".join(lines) + "\n"


def describe(tree: parser.ParserTree, path: tuple[str, ...], summary: str = "") -> Node:
    """Return what a shell needs to know of a parser and the ones below it."""
    helps = {command.name: command.summary for command in _commands_at(path)}
    children = tuple(
        describe(child, (*path, name), helps[name]) for name, child in tree.children.items()
    )
    words = tuple(tree.children)
    flags = []
    for action in tree.parser._actions:  # noqa: SLF001 - argparse has no public way to list them
        if action.option_strings:
            flags.append(_flag(action))
        elif not words:
            words = _words_of(action)
    return Node(path=path, help=summary, flags=tuple(flags), words=words, children=children)


def _commands_at(path: Sequence[str]) -> tuple[parser.Command, ...]:
    commands: tuple[parser.Command, ...] = parser.COMMANDS
    for word in path:
        commands = next(command.commands for command in commands if command.name == word)
    return commands


def _flag(action: argparse.Action) -> Flag:
    metavar = action.metavar if isinstance(action.metavar, str) else ""
    return Flag(
        names=tuple(action.option_strings),
        help=(action.help or "").split(";")[0].split(" (default")[0],
        takes_value=action.nargs != 0,
        choices=tuple(_word(choice) for choice in action.choices or ()),
        files=metavar in _FILES,
        folders=metavar in _FOLDERS,
    )


def _words_of(positional: argparse.Action) -> tuple[str, ...]:
    """Return what may stand in a place of the command line, as far as that is known."""
    if positional.metavar == "KEY":
        return tuple(key.name for key in keys() if ANY_NAME not in key.path)
    return tuple(_word(choice) for choice in positional.choices or ())


def _word(choice: object) -> str:
    return choice.short if isinstance(choice, TaskState) else str(choice)


# --- bash -----------------------------------------------------------------------------------


def _bash(tree: Node) -> Iterator[str]:
    yield "# bash completion for a2a-trio"
    yield "_a2a_trio() {"
    yield "    local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD-1]}"
    yield "    local command='' word"
    yield '    for word in "${COMP_WORDS[@]:1:COMP_CWORD-1}"; do'
    yield '        case "$command $word" in'
    inner = [node for node in tree.walk() if node.path]
    for node in inner:
        parent = " ".join(node.path[:-1])
        yield f"            '{parent} {node.path[-1]}') command='{' '.join(node.path)}' ;;"
    yield "        esac"
    yield "    done"
    yield '    case "$command $previous" in'
    for node in tree.walk():
        yield from _bash_values(node)
    yield "    esac"
    yield '    case "$command" in'
    for node in tree.walk():
        names = [name for flag in node.flags for name in flag.names]
        words = " ".join([*node.words, *names])
        yield f"        '{' '.join(node.path)}') _a2a_trio_words '{words}' ;;"
    yield "    esac"
    yield "}"
    yield "_a2a_trio_words() {"
    yield '    mapfile -t COMPREPLY < <(compgen -W "$1" -- "$current")'
    yield "}"
    yield "_a2a_trio_paths() {"
    yield "    compopt -o filenames"
    yield '    mapfile -t COMPREPLY < <(compgen "$1" -- "$current")'
    yield "}"
    yield "complete -F _a2a_trio a2a-trio"


def _bash_values(node: Node) -> Iterator[str]:
    command = " ".join(node.path)
    for flag in node.flags:
        if not flag.takes_value:
            continue
        if flag.choices:
            action = f"_a2a_trio_words '{' '.join(flag.choices)}'"
        elif flag.files:
            action = "_a2a_trio_paths -f"
        elif flag.folders:
            action = "_a2a_trio_paths -d"
        else:
            action = "COMPREPLY=()"
        patterns = "|".join(f"'{command} {name}'" for name in flag.names)
        yield f"        {patterns}) {action}; return ;;"


# --- zsh ------------------------------------------------------------------------------------


def _zsh(tree: Node) -> Iterator[str]:
    yield "#compdef a2a-trio"
    for node in reversed(list(tree.walk())):
        yield from _zsh_function(node)
    # Autoloaded from a folder of fpath it completes at once; sourced, it registers itself.
    yield 'if [ "$funcstack[1]" = _a2a-trio ]; then'
    yield f'    {_zsh_name(tree.path)} "$@"'
    yield "else"
    yield f"    compdef {_zsh_name(tree.path)} a2a-trio"
    yield "fi"


def _zsh_name(path: Sequence[str]) -> str:
    return "_".join(("_a2a_trio", *path))


def _zsh_function(node: Node) -> Iterator[str]:
    yield f"{_zsh_name(node.path)}() {{"
    specs = [_zsh_flag(flag) for flag in node.flags]
    if node.children:
        yield '    local curcontext="$curcontext" context state line'
        yield "    local -a commands"
        yield "    commands=("
        for child in node.children:
            yield f"        {_single(f'{child.path[-1]}:{child.help}')}"
        yield "    )"
        specs += ["'1:command:->command'", "'*::argument:->argument'"]
    elif node.words:
        specs.append(f"'1:word:({' '.join(node.words)})'")
    yield "    _arguments -C \\"
    yield " \\\n".join(f"        {spec}" for spec in specs)
    if node.children:
        yield "    case $state in"
        yield "        command) _describe command commands ;;"
        yield "        argument) case $line[1] in"
        for child in node.children:
            yield f"            {child.path[-1]}) {_zsh_name(child.path)} ;;"
        yield "        esac ;;"
        yield "    esac"
    yield "}"


def _zsh_flag(flag: Flag) -> str:
    text = flag.help.replace("[", "(").replace("]", ")").replace(":", "\\:")
    names = flag.names[0] if len(flag.names) == 1 else f"{{{','.join(flag.names)}}}"
    value = ""
    if flag.takes_value:
        value = ":value:"
        if flag.choices:
            value += f"({' '.join(flag.choices)})"
        elif flag.files:
            value += "_files"
        elif flag.folders:
            value += "_files -/"
    return f"{names}{_single(f'[{text}]{value}')}"


# --- fish -----------------------------------------------------------------------------------


def _fish(tree: Node) -> Iterator[str]:
    yield "# fish completion for a2a-trio"
    yield "complete -c a2a-trio -f"
    for node in tree.walk():
        condition = _fish_condition(node)
        for child in node.children:
            yield (
                f"complete -c a2a-trio -n {_single(condition)}"
                f" -a {child.path[-1]} -d {_single(child.help)}"
            )
        if node.words and not node.children:
            yield f"complete -c a2a-trio -n {_single(condition)} -a {_single(' '.join(node.words))}"
        for flag in node.flags:
            yield f"complete -c a2a-trio -n {_single(condition)} {_fish_flag(flag)}"


def _fish_condition(node: Node) -> str:
    if not node.path:
        return "__fish_use_subcommand"
    seen = "; and ".join(f"__fish_seen_subcommand_from {word}" for word in node.path)
    if node.children:
        below = " ".join(child.path[-1] for child in node.children)
        return f"{seen}; and not __fish_seen_subcommand_from {below}"
    return seen


def _fish_flag(flag: Flag) -> str:
    names = " ".join(
        f"-l {name[2:]}" if name.startswith("--") else f"-s {name[1:]}" for name in flag.names
    )
    value = ""
    if flag.choices:
        value = f" -x -a {_single(' '.join(flag.choices))}"
    elif flag.files or flag.folders:
        value = " -r -F"
    elif flag.takes_value:
        value = " -x"
    return f"{names}{value} -d {_single(flag.help)}"


def _single(text: str) -> str:
    """Quote for all three shells; an apostrophe inside is dropped, no help text needs one."""
    return "'" + text.replace("'", "") + "'"
