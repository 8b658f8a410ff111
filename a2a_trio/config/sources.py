"""Settings from several sources into one: what each may say, and which one counts.

Sources in order, the first that has a key wins: command line, environment, project file (keys that
are safe there), user file, defaults. They are merged key by key, so an empty source hides nothing.

A project file lies in the working directory, perhaps in a repository that someone else wrote. It may
describe (peers to call, skills, outbound patience) and nothing else; whatever else it says is
ignored with a warning. Its peers carry no credential and cannot take the name of an operator's.
"""

import difflib
from collections.abc import Iterator, Mapping
from enum import IntEnum
from types import MappingProxyType
from typing import Final, TypeAlias, final

import attrs

from a2a_trio.config.checks import check_together
from a2a_trio.config.fields import NAME_PATTERN, Declaration, Kind
from a2a_trio.config.schema import ALIASES, Settings
from a2a_trio.config.table import TABLE, Child, Section, dotted, keys, split_key
from a2a_trio.config.values import BadValueError, SecretReader, from_json, from_text, shown
from a2a_trio.errors import SettingsError
from a2a_trio.wire.model import JsonValue

__all__ = [
    "DEFAULT",
    "Layer",
    "Merged",
    "Rank",
    "merge",
    "read_cli",
    "read_environment",
    "read_object",
    "unknown_key",
]

Path: TypeAlias = tuple[str, ...]

DEFAULT: Final = "default"
MAX_NAMED: Final = 1000
"""Peers, or gateways, of one source; more are a mistake."""

_NOTHING: Final[Mapping[str, str]] = MappingProxyType({})
_FROM_PROJECT: Final = "from_project"


class Rank(IntEnum):
    """Which source counts more."""

    USER_FILE = 1
    PROJECT_FILE = 2
    ENVIRONMENT = 3
    COMMAND_LINE = 4


@final
@attrs.frozen(kw_only=True)
class Layer:
    """What one source says, already in the schema's form."""

    rank: Rank
    values: Mapping[Path, object]
    """Values by path. The path of a named object itself is there too, with None."""
    labels: Mapping[Path, str]
    """Where each value comes from, for people."""
    problems: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()


@final
@attrs.frozen(kw_only=True)
class Merged:
    """The result of all sources."""

    settings: Settings
    sources: Mapping[str, str]
    """Where each key's value comes from, by dotted key."""
    warnings: tuple[str, ...]


# --- reading one source ---------------------------------------------------------------------


@final
@attrs.define
class _Reading:
    label: str
    project: bool
    read_secret: SecretReader
    values: dict[Path, object] = attrs.Factory(dict)
    problems: list[str] = attrs.Factory(list)
    warnings: list[str] = attrs.Factory(list)

    def wrong(self, path: Path, text: str) -> None:
        self.problems.append(f"{self.label}: {dotted(path)} {text}")

    def section(self, section: Section, value: dict[str, JsonValue], path: Path) -> None:
        for name, item in value.items():
            alias = ALIASES.get(dotted((*path, name)))
            if alias is not None:
                self.aliased(alias, item)
                continue
            child = section.children.get(name)
            if child is None:
                self.unknown(section, (*path, name))
            elif item is not None:
                self.child(child, item, (*path, name))

    def aliased(self, key: str, item: JsonValue) -> None:
        found = split_key(key)
        if found is not None and found[0] not in self.values and item is not None:
            path, known = found
            self.leaf(known.declaration, item, path)

    def child(self, child: Child, item: JsonValue, path: Path) -> None:
        section = child.section
        if section is None:
            self.leaf(child.declaration, item, path)
        elif not isinstance(item, dict):
            self.wrong(path, "must be an object")
        elif child.declaration.kind is Kind.SECTION:
            self.section(section, item, path)
        else:
            self.named(section, item, path)

    def named(self, section: Section, value: dict[str, JsonValue], path: Path) -> None:
        if len(value) > MAX_NAMED:
            self.wrong(path, f"has more than {MAX_NAMED} entries")
            return
        for name, item in value.items():
            if not is_name(name):
                self.wrong(path, f'has an entry "{name:.64}"; names must match {NAME_PATTERN}')
            elif not isinstance(item, dict):
                self.wrong((*path, name), "must be an object")
            elif self.project and path != ("peers",):
                self.refused((*path, name))
            else:
                self.values[*path, name] = None
                self.section(section, item, (*path, name))

    def leaf(self, declaration: Declaration, item: JsonValue, path: Path) -> None:
        if self.project and not declaration.project_safe:
            self.refused(path)
            return
        try:
            self.values[path] = from_json(declaration, item, self.read_secret)
        except BadValueError as error:
            self.problems.append(
                error.about(f"{self.label}: {dotted(path)}", shown(declaration, item))
            )

    def refused(self, path: Path) -> None:
        self.warnings.append(
            f"{self.label}: {dotted(path)} is ignored, because a file in the working directory "
            "may not set it"
        )

    def unknown(self, section: Section, path: Path) -> None:
        near = _nearest(path[-1], section)
        hint = f'; did you mean "{near}"?' if near else ""
        self.warnings.append(f"{self.label}: unknown setting {_printable(dotted(path))}{hint}")


def is_name(text: str) -> bool:
    """Tell whether a text can name a peer or a gateway."""
    allowed = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-")
    return 0 < len(text) <= 64 and allowed.issuperset(text)  # noqa: PLR2004 - NAME_PATTERN


def _printable(text: str) -> str:
    return "".join(c if c.isprintable() else "?" for c in text[:100])


def _nearest(name: str, section: Section) -> str:
    close = difflib.get_close_matches(name[:64], section.children, n=1, cutoff=0.6)
    if close:
        return close[0]
    everywhere = {key.path[-1]: key.name for key in keys()}
    close = difflib.get_close_matches(name[:64], everywhere, n=1, cutoff=0.8)
    return everywhere[close[0]] if close else ""


def unknown_key(key: str) -> str:
    """Return what to say about a dotted key that is no setting: the key and the nearest one."""
    close = difflib.get_close_matches(key[:100], [known.name for known in keys()], n=1)
    hint = f'; did you mean "{close[0]}"?' if close else ""
    return f"unknown setting {_printable(key)}{hint}"


def read_object(value: JsonValue, *, label: str, project: bool, read_secret: SecretReader) -> Layer:
    """Read the ``a2a`` object of a settings file.

    Args:
        value: the object; None stands for an absent one.
        label: name of the file in messages.
        project: the file lies in the working directory, so only safe keys count. Its secrets are
            never looked up.
        read_secret: reads secrets that stand elsewhere.
    """
    reading = _Reading(label, project, read_secret)
    if isinstance(value, dict):
        reading.section(TABLE, value, ())
    elif value is not None:
        reading.problems.append(f'{label}: "a2a" must be an object')
    return _layer(reading, Rank.PROJECT_FILE if project else Rank.USER_FILE)


def _layer(reading: _Reading, rank: Rank, labels: Mapping[Path, str] | None = None) -> Layer:
    return Layer(
        rank=rank,
        values=MappingProxyType(reading.values),
        labels=labels or MappingProxyType(dict.fromkeys(reading.values, reading.label)),
        problems=tuple(reading.problems),
        warnings=tuple(reading.warnings),
    )


def read_environment(environ: Mapping[str, str], *, origin: Mapping[str, str] = _NOTHING) -> Layer:
    """Read the environment variables of the table; an empty one is not set.

    Args:
        environ: the variables.
        origin: the file that a variable comes from, if it is not the process's own.
    """
    values: dict[Path, object] = {}
    labels: dict[Path, str] = {}
    problems: list[str] = []
    for key in keys():
        variable = key.declaration.env
        text = environ.get(variable, "") if variable else ""
        if not text.strip():
            continue
        place = f" ({origin[variable]})" if variable in origin else ""
        try:
            values[key.path] = from_text(key.declaration, text)
            labels[key.path] = f"environment {variable}{place}"
        except BadValueError as error:
            told = error.about(variable, shown(key.declaration, text))
            problems.append(f"environment{place}: {told}")
    return Layer(rank=Rank.ENVIRONMENT, values=values, labels=labels, problems=tuple(problems))


def read_cli(flags: Mapping[str, object]) -> Layer:
    """Read the command line: dotted keys with texts or values; None means "not given"."""
    values: dict[Path, object] = {}
    problems: list[str] = []
    for name, value in flags.items():
        if value is None:
            continue
        found = split_key(name)
        if found is None:
            problems.append(f"command line: {unknown_key(name)}")
            continue
        path, key = found
        try:
            values[path] = _flag_value(key.declaration, value)
        except BadValueError as error:
            problems.append(f"command line: {error.about(name, shown(key.declaration, value))}")
    labels = dict.fromkeys(values, "command line")
    return Layer(rank=Rank.COMMAND_LINE, values=values, labels=labels, problems=tuple(problems))


def _flag_value(declaration: Declaration, value: object) -> object:
    if isinstance(value, str):
        return from_text(declaration, value)
    found = tuple(value) if isinstance(value, list) else value
    problem = declaration.problem(found)
    if problem is not None:
        raise BadValueError(problem)
    return found


# --- merging --------------------------------------------------------------------------------


def merge(layers: tuple[Layer, ...]) -> Merged:
    """Merge what the sources say.

    Raises:
        SettingsError: anything in any source is wrong; the text has one line for each problem.
    """
    ordered = sorted(layers, key=lambda layer: layer.rank)
    warnings = [warning for layer in ordered for warning in layer.warnings]
    problems = [problem for layer in ordered for problem in layer.problems]
    shadows = _shadowing(ordered)
    values: dict[Path, object] = {}
    labels: dict[Path, str] = {}
    for layer in ordered:
        for path, value in layer.values.items():
            if layer.rank is Rank.PROJECT_FILE and path[:1] == ("peers",) and path[1] in shadows:
                continue
            values[path] = value
            labels[path] = layer.labels[path]
            if layer.rank is Rank.PROJECT_FILE and path[:1] == ("peers",):
                values[*path[:2], _FROM_PROJECT] = True
    warnings += [
        f'{label}: peer "{name}" is ignored, because the operator has a peer of that name'
        for name, label in sorted(shadows.items())
    ]
    problems += _incomplete(values, labels)
    if problems:
        raise _error(problems)
    settings = _build(TABLE, (), values)
    if not isinstance(settings, Settings):
        raise TypeError("the table begins with Settings")
    wrong, doubtful = check_together(settings, labels)
    if wrong:
        raise _error(wrong)
    sources = {key.name: DEFAULT for key in keys() if "<name>" not in key.path}
    sources |= {dotted(path): label for path, label in labels.items() if values[path] is not None}
    return Merged(
        settings=settings, sources=MappingProxyType(sources), warnings=(*warnings, *doubtful)
    )


def _error(problems: list[str]) -> SettingsError:
    if len(problems) == 1:
        return SettingsError(problems[0])
    return SettingsError("\n".join((f"{len(problems)} settings are wrong:", *problems)))


def _shadowing(layers: list[Layer]) -> dict[str, str]:
    """Return the project's peers that take an operator's name, in any spelling, and their file."""
    operator = {
        path[1].casefold()
        for layer in layers
        if layer.rank is not Rank.PROJECT_FILE
        for path in layer.values
        if path[:1] == ("peers",)
    }
    return {
        path[1]: layer.labels[path]
        for layer in layers
        if layer.rank is Rank.PROJECT_FILE
        for path in layer.values
        if path[:1] == ("peers",) and path[1].casefold() in operator
    }


def _incomplete(values: Mapping[Path, object], labels: Mapping[Path, str]) -> Iterator[str]:
    for path in _names(values, ("peers",)):
        if not values.get((*path, "url")):
            label = labels.get(path) or next(
                (labels[p] for p in labels if p[: len(path)] == path), DEFAULT
            )
            yield f"{label}: {dotted(path)} needs a url"


def _names(values: Mapping[Path, object], path: Path) -> tuple[Path, ...]:
    size = len(path) + 1
    return tuple(
        dict.fromkeys(p[:size] for p in values if len(p) >= size and p[: size - 1] == path)
    )


def _build(section: Section, path: Path, values: Mapping[Path, object]) -> object:
    found: dict[str, object] = {}
    for name, child in section.children.items():
        here = (*path, name)
        if child.section is None:
            if here in values:
                found[child.attribute] = values[here]
        elif child.declaration.kind is Kind.SECTIONS:
            found[child.attribute] = {
                named[-1]: _build(child.section, named, values) for named in _names(values, here)
            }
        elif _names(values, here):
            found[child.attribute] = _build(child.section, here, values)
    if values.get((*path, _FROM_PROJECT)) is True:
        found[_FROM_PROJECT] = True
    return section.cls(**found)
