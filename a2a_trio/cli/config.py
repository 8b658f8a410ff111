"""``a2a-trio config``: show, get, set, unset and check settings."""

import argparse
import os
from pathlib import Path
from typing import Final

from a2a_trio.cli import render
from a2a_trio.cli.console import Console
from a2a_trio.cli.exits import ExitCode
from a2a_trio.cli.settings import file_of, load, read
from a2a_trio.cli.stdin import from_stdin
from a2a_trio.cli.text import label, spelled_out, visible
from a2a_trio.config.edit import Explained, explain, explain_key, set_value, unset_value
from a2a_trio.config.table import is_section
from a2a_trio.config.unused import unused
from a2a_trio.errors import SettingsError
from a2a_trio.wire.codec import dumps
from a2a_trio.wire.model import JsonValue

MAX_STDIN_BYTES: Final = 65_536
"""A value from standard input that is longer than this is surely something else."""

_LONGEST_VALUE: Final = 60


def run_show(namespace: argparse.Namespace, console: Console) -> ExitCode:
    """Run ``a2a-trio config show``."""
    _show(explain(load(namespace, console)), console)
    return ExitCode.OK


def run_get(namespace: argparse.Namespace, console: Console) -> ExitCode:
    """Run ``a2a-trio config get``: the value in force, whatever source it comes from."""
    key: str = namespace.key
    found = explain_key(load(namespace, console), key)
    if not found:
        console.note(f"{key} is not set")
    elif len(found) == 1 and not is_section(key) and not console.json:
        console.line(_shown(found[0].value))
    else:
        _show(found, console)
    return ExitCode.OK


def run_set(namespace: argparse.Namespace, console: Console) -> ExitCode:
    """Run ``a2a-trio config set``."""
    key: str = namespace.key
    path = file_of(namespace, os.environ)
    value = from_stdin(MAX_STDIN_BYTES) if namespace.value == "-" else namespace.value
    set_value(path, key, value)
    _report("set", key, path, console)
    _tell_what_counts(namespace, key, path, console)
    return ExitCode.OK


def run_unset(namespace: argparse.Namespace, console: Console) -> ExitCode:
    """Run ``a2a-trio config unset``."""
    key: str = namespace.key
    path = file_of(namespace, os.environ)
    _report("unset" if unset_value(path, key) else "not set", key, path, console)
    return ExitCode.OK


def run_check(namespace: argparse.Namespace, console: Console) -> ExitCode:
    """Run ``a2a-trio config check``: 0 if the settings can be used, 2 if not."""
    loaded = read(namespace)
    told = (*loaded.warnings, *unused(loaded))
    if console.json:
        warnings: list[JsonValue] = list(told)
        console.record({"ok": True, "file": str(loaded.settings_file), "warnings": warnings})
        return ExitCode.OK
    for warning in told:
        console.line(f"warning: {visible(warning)}")
    there = "" if loaded.settings_file.exists() else " (there is none)"
    console.line(f"settings can be used; file: {loaded.settings_file}{there}")
    return ExitCode.OK


def _show(found: tuple[Explained, ...], console: Console) -> None:
    if console.json:
        for entry in found:
            console.record({"key": entry.key, "value": entry.value, "source": entry.source})
        return
    rows = [("KEY", "VALUE", "SOURCE")]
    rows += [(e.key, label(_shown(e.value), _LONGEST_VALUE), visible(e.source)) for e in found]
    for line in render.aligned(rows):
        console.line(line)


def _shown(value: JsonValue) -> str:
    return visible(value) if isinstance(value, str) else spelled_out(dumps(value).decode("utf-8"))


def _report(what: str, key: str, path: Path, console: Console) -> None:
    if console.json:
        console.record({"key": key, "result": what, "file": str(path)})
    else:
        console.note(f"{key} {what} in {path}")


def _tell_what_counts(
    namespace: argparse.Namespace, key: str, path: Path, console: Console
) -> None:
    """Say so if the file as it is now cannot be used, or if something else beats it."""
    try:
        loaded = read(namespace)
    except SettingsError as error:
        console.warn(f"with this, the settings cannot be used: {visible(str(error))}")
        return
    source = loaded.sources.get(key, str(path))
    if source != str(path):
        console.warn(f"{key} comes from {visible(source)}, which counts more than this file")
