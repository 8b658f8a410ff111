"""Reference pages of the documentation that are tables in the code.

``python -m a2a_trio.cli.reference docs/reference`` writes them; a test compares them, so that
neither the code nor the page can change alone.
"""

import argparse
import inspect
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Final

from a2a_trio import errors
from a2a_trio.cli import completion, parser
from a2a_trio.cli.exits import MEANINGS
from a2a_trio.rules.lifecycle import TRANSITIONS
from a2a_trio.wire.methods import METHODS
from a2a_trio.wire.model import TaskState

_GENERATED: Final = "<!-- Written by `python -m a2a_trio.cli.reference docs/reference`. -->"


def methods_page() -> str:
    """Return ``methods.md``: every operation and its names."""
    rows = [
        (
            f"`{method.operation.value}`",
            f"`{method.aliases[0]}`" if method.aliases[0] else "",
            ", ".join(f"`{alias}`" for alias in method.aliases[1:] if alias),
            f"`{method.params.__name__}`",
            f"`{method.result.__name__}`" + (" (stream)" if method.streaming else ""),
            "polling" if method.polling else "normal",
        )
        for method in METHODS
    ]
    header = ("Method", "v0.3 name", "Other names", "Parameters", "Answer", "Rate limit")
    return _page(
        "Methods",
        "All operations are JSON-RPC 2.0 calls: `POST` to the setting `server.rpcPath`.",
        "Parameters and answers are classes of `a2a_trio.wire`; their JSON is the ProtoJSON of A2A"
        " v1.0, or the older shapes where the caller uses an older name with `A2A-Version: 0.3`."
        " A stream is an SSE answer, each event one JSON-RPC answer.",
        "The rate limit counts polling methods in a bucket of their own, ten times as large.",
        *_table(header, rows),
    )


def errors_page() -> str:
    """Return ``errors.md``: every error with its codes."""
    rows = [
        (
            str(row.code),
            f"`{row.error.__name__}`",
            str(row.rpc_status),
            str(row.http_status),
            row.grpc_status,
            f"`{row.reason}`",
            _first_line(row.error),
            row.message,
        )
        for row in errors.ERROR_TABLE
    ]
    header = ("Code", "Class", "HTTP", "HTTP+JSON", "gRPC", "Reason", "Meaning", "Fixed text")
    local = [
        (f"`{kind.__name__}`", f"`{kind.__bases__[0].__name__}`", _first_line(kind))
        for kind in _other_errors()
    ]
    return _page(
        "Errors",
        "Everything that this package raises on purpose is an `A2AError` of `a2a_trio.errors`.",
        "A server answers a `ProtocolError`; the client of the caller raises the same class"
        " again. `HTTP` is the status of the JSON-RPC answer; `HTTP+JSON` and `gRPC` are the ones"
        " that the specification gives to the other bindings. `error.data` carries a"
        " `google.rpc.ErrorInfo` with the reason, and for -32602 a `google.rpc.BadRequest` that"
        " names each bad field.",
        *_table(header, rows),
        "## Errors that are not answers",
        *_table(("Class", "Kind of", "Meaning"), local),
    )


def commands_page() -> str:
    """Return ``commands.md``: every command, its options and the exit codes."""
    blocks: list[str] = []
    tree = completion.describe(parser.build(), ())
    summaries = dict(_all_commands(parser.COMMANDS, ()))
    for node in tree.walk():
        if not node.path or node.children:
            continue
        command = summaries[node.path]
        blocks.append(f"## a2a-trio {' '.join(node.path)}")
        blocks.append(command.description or f"{command.summary.capitalize()}.")
        blocks.append("```text\n" + "\n".join(command.examples) + "\n```")
        blocks += _table(("Argument", "Meaning"), list(_argument_rows(_parser_at(node.path))))
    blocks.append("## Exit codes")
    blocks += _table(
        ("Code", "Meaning"), [(str(code.value), text) for code, text in MEANINGS.items()]
    )
    return _page(
        "Commands",
        "Results go to standard output, everything else to standard error. `--json` makes"
        " results machine-readable: one JSON object per line, for a stream one per event.",
        *blocks,
    )


def states_page() -> str:
    """Return ``states.md``: the life cycle as a diagram and as a table."""
    edges: dict[tuple[TaskState, TaskState], list[str]] = {}
    for state, row in TRANSITIONS.items():
        for event, target in row.items():
            edges.setdefault((state, target), []).append(event.__name__)
    diagram = ["```mermaid", "stateDiagram-v2", f"    [*] --> {_node(TaskState.SUBMITTED)}"]
    diagram += [
        f"    {_node(source)} --> {_node(target)}: {', '.join(names)}"
        for (source, target), names in edges.items()
        if source is not target
    ]
    diagram += [f"    {_node(state)} --> [*]" for state, row in TRANSITIONS.items() if not row]
    diagram.append("```")
    rows = [
        (f"`{state.value}`", f"`{event.__name__}`", _first_line(event), f"`{target.value}`")
        for state, row in TRANSITIONS.items()
        for event, target in row.items()
    ]
    return _page(
        "Task states",
        "A task changes only by the events of this table, whatever side they come from. A state"
        " without the event refuses it and nothing changes; ended tasks accept none, so the first"
        " ending is the only one.",
        "\n".join(diagram),
        *_table(("State", "Event", "What happened", "Next state"), rows),
    )


PAGES: Final[Mapping[str, Callable[[], str]]] = MappingProxyType(
    {
        "methods.md": methods_page,
        "errors.md": errors_page,
        "commands.md": commands_page,
        "states.md": states_page,
    }
)


def _page(title: str, *blocks: str) -> str:
    return "\n\n".join((f"# {title}", _GENERATED, *blocks)) + "\n"


def _table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> tuple[str, ...]:
    lines = [header, ["---"] * len(header), *rows]
    return ("\n".join("| " + " | ".join(map(_cell, line)) + " |" for line in lines),)


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("``", "`")


def _node(state: TaskState) -> str:
    return state.name


def _first_line(kind: type) -> str:
    return (inspect.getdoc(kind) or "").split("\n", 1)[0]


def _other_errors() -> Iterator[type[errors.A2AError]]:
    for name in errors.__all__:
        kind = getattr(errors, name)
        if (
            isinstance(kind, type)
            and issubclass(kind, errors.A2AError)
            and not issubclass(kind, errors.ProtocolError)
            and kind is not errors.A2AError
        ):
            yield kind


def _all_commands(
    commands: tuple[parser.Command, ...], path: tuple[str, ...]
) -> Iterator[tuple[tuple[str, ...], parser.Command]]:
    for command in commands:
        yield (*path, command.name), command
        yield from _all_commands(command.commands, (*path, command.name))


def _parser_at(path: Sequence[str]) -> argparse.ArgumentParser:
    tree = parser.build()
    for word in path:
        tree = tree.children[word]
    return tree.parser


def _argument_rows(tree: argparse.ArgumentParser) -> Iterator[tuple[str, str]]:
    for action in tree._actions:  # noqa: SLF001 - argparse has no public way to list them
        if isinstance(action, argparse._HelpAction):  # noqa: SLF001 - same
            continue
        text = (action.help or "") % {"default": action.default}
        yield f"`{_usage(action)}`", text


def _usage(action: argparse.Action) -> str:
    value = action.metavar if isinstance(action.metavar, str) else action.dest.upper()
    if action.choices is not None and not isinstance(action.metavar, str):
        value = "{" + ",".join(str(choice) for choice in action.choices) + "}"
    names = ", ".join(action.option_strings)
    if not names:
        return value
    return names if action.nargs == 0 else f"{names} {value}"


def main(argv: Sequence[str]) -> int:
    """Write all pages into the folder that is named by the one argument."""
    (folder,) = argv
    for name, build in PAGES.items():
        Path(folder, name).write_text(build(), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
