"""Load the settings of this process from all their sources."""

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Final, final

import attrs

from a2a_trio.config.files import (
    project_files,
    read_root,
    read_secret_file,
    read_text,
    state_home,
    user_file,
)
from a2a_trio.config.schema import Settings
from a2a_trio.config.sources import Layer, merge, read_cli, read_environment, read_object
from a2a_trio.config.table import key_at
from a2a_trio.config.values import SecretReader
from a2a_trio.errors import SettingsError

__all__ = ["LoadedSettings", "load_settings"]

_NOTHING: Final[Mapping[str, object]] = MappingProxyType({})
_ENV_FILE: Final = ".env.local"
_PREFIX: Final = "A2A_"


@final
@attrs.frozen(kw_only=True)
class LoadedSettings:
    """The settings of this process and where they come from."""

    settings: Settings
    sources: Mapping[str, str]
    """Where each key's value comes from, by dotted key: a file, a variable, ``default``."""
    warnings: tuple[str, ...]
    """What was ignored or is doubtful, each with its file and key."""
    home: Path
    """The state directory."""
    settings_file: Path
    """The operator's settings file, whether or not it exists."""


def load_settings(
    *,
    environ: Mapping[str, str],
    cli: Mapping[str, object] = _NOTHING,
    home: Path | None = None,
    project: Path | None = None,
    settings_file: Path | None = None,
) -> LoadedSettings:
    """Read every source and merge them.

    Args:
        environ: environment variables; ``.env.local`` in the state directory adds to them.
        cli: flags by dotted key, e.g. ``{"server.port": 0}``; None means "not given".
        home: the state directory; found out from ``environ`` if None.
        project: the working directory whose files may set safe keys; none is read if None.
        settings_file: the operator's file instead of ``settings.json`` in the state directory; it
            must exist.

    Raises:
        SettingsError: anything is wrong; the text has one line for each problem.
    """
    home = state_home(environ) if home is None else home
    operator = user_file(home) if settings_file is None else settings_file
    variables, origin = _with_env_file(environ, home / _ENV_FILE)
    layers = [
        read_cli(cli),
        read_environment(variables, origin=origin),
        _file_layer(operator, project=False, environ=variables, required=settings_file is not None),
    ]
    candidates = () if project is None else project_files(project)
    layers += [
        _file_layer(path, project=True, environ=variables)
        for path in candidates
        if not _same_file(path, operator)
    ]
    merged = merge(tuple(layers))
    return LoadedSettings(
        settings=merged.settings,
        sources=merged.sources,
        warnings=merged.warnings,
        home=home,
        settings_file=operator,
    )


def _same_file(one: Path, other: Path) -> bool:
    try:
        return one.samefile(other)
    except OSError:
        return False


def _with_env_file(
    environ: Mapping[str, str], path: Path
) -> tuple[Mapping[str, str], Mapping[str, str]]:
    """Add the operator's ``.env.local``; the process's own variables count more."""
    found = read_text(path)
    if found is None:
        return environ, {}
    own = {name for name, value in environ.items() if value.strip()}
    added = {
        name: value
        for name, value in _assignments(found.text)
        if name.startswith(_PREFIX) and name not in own
    }
    return {**environ, **added}, dict.fromkeys(added, str(path))


def _assignments(text: str) -> list[tuple[str, str]]:
    found = []
    for line in text.splitlines():
        name, equals, value = line.strip().removeprefix("export ").partition("=")
        if not equals or name.startswith("#"):
            continue
        value = value.strip()
        if len(value) > 1 and value[0] == value[-1] and value[0] in "\"'":
            value = value[1:-1]
        found.append((name.strip(), value))
    return found


def _file_layer(
    path: Path, *, project: bool, environ: Mapping[str, str], required: bool = False
) -> Layer:
    label = str(path)
    reader = _secret_reader(path.parent, environ)
    found = read_text(path, project=project)
    if found is None:
        if required:
            raise SettingsError(f"{path}: there is no such file")
        return read_object(None, label=label, project=project, read_secret=reader)
    node, doubts = read_root(path, found.text)
    root = node.value if node is not None and isinstance(node.value, dict) else {}
    layer = read_object(root.get("a2a"), label=label, project=project, read_secret=reader)
    warnings = [*found.warnings, *doubts]
    if "a2a" not in root and any(name in root for name in ("server", "peers", "discovery")):
        warnings.append(f'{path}: has no "a2a" object, so nothing in it is used')
    if found.readable_by_others and _has_secrets(layer):
        warnings.append(f"{path}: holds secrets and other users can read it; use chmod 600")
    return attrs.evolve(layer, warnings=(*warnings, *layer.warnings))


def _secret_reader(folder: Path, environ: Mapping[str, str]) -> SecretReader:
    def read(where: str, name: str) -> str:
        if where == "env":
            value = environ.get(name, "").strip()
            if not value:
                raise ValueError(f"the environment variable {name:.64} is not set")
            return value
        try:
            path = Path(name).expanduser()
        except RuntimeError:
            raise ValueError("the home directory is not known") from None
        return read_secret_file(folder / path)

    return read


def _has_secrets(layer: Layer) -> bool:
    found = ((key_at(path), value) for path, value in layer.values.items())
    return any(key is not None and key.declaration.secret and value for key, value in found)
