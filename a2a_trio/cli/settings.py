"""The settings of one command: from its flags, the environment and the files."""

import argparse
import os
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Final

from a2a_trio.cli.console import Console
from a2a_trio.cli.text import visible
from a2a_trio.config.files import state_home, user_file
from a2a_trio.config.load import LoadedSettings, load_settings

_NO_FLAGS: Final[Mapping[str, object]] = MappingProxyType({})


def load(
    namespace: argparse.Namespace, console: Console, flags: Mapping[str, object] = _NO_FLAGS
) -> LoadedSettings:
    """Read the settings and show their warnings.

    Args:
        namespace: gives ``--settings``.
        console: where warnings go.
        flags: values of the command line, by key.

    Raises:
        SettingsError: one of the sources is wrong.
    """
    loaded = read(namespace, flags)
    for warning in loaded.warnings:
        console.warn(visible(warning))
    return loaded


def read(namespace: argparse.Namespace, flags: Mapping[str, object] = _NO_FLAGS) -> LoadedSettings:
    """Read the settings and say nothing; see ``load``."""
    given = namespace.settings
    return load_settings(
        environ=os.environ,
        cli=flags,
        project=working_folder(),
        settings_file=None if given is None else Path(given),
    )


def working_folder() -> Path | None:
    """Return the working directory, or None if it was deleted meanwhile."""
    try:
        return Path.cwd()
    except OSError:
        return None


def file_of(namespace: argparse.Namespace, environ: Mapping[str, str]) -> Path:
    """Return the settings file that a command is about, whether or not it exists or is right."""
    given = namespace.settings
    return user_file(state_home(environ)) if given is None else Path(given)
