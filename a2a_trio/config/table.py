"""The declarations of ``schema`` as a table: JSON names, paths, and the way back to attributes."""

import re
import typing
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Final, final

import attrs

from a2a_trio.config.fields import NAME_PATTERN, Declaration, Kind, declaration_of
from a2a_trio.config.schema import ALIASES, SINGLE_GATEWAY_VARIABLES, Settings

__all__ = [
    "ANY_NAME",
    "TABLE",
    "Key",
    "Section",
    "dotted",
    "is_section",
    "key_at",
    "keys",
    "split_key",
    "values_of",
]

Path: typing.TypeAlias = tuple[str, ...]

ANY_NAME: Final = "<name>"
"""Stands for the name of a peer or gateway in the path of a key."""


@final
@attrs.frozen
class Key:
    """One setting."""

    path: Path
    declaration: Declaration
    default: object

    @property
    def name(self) -> str:
        """The dotted path, e.g. ``peers.<name>.timeout``."""
        return dotted(self.path)


@final
@attrs.frozen
class Child:
    """What a JSON name in a section stands for."""

    attribute: str
    declaration: Declaration
    default: object = None
    section: "Section | None" = None


@final
@attrs.frozen
class Section:
    """One class of settings by its JSON names."""

    cls: type[attrs.AttrsInstance]
    children: Mapping[str, Child]


def dotted(path: Path) -> str:
    """Join a path for people."""
    return ".".join(path)


def _json_name(attribute: str) -> str:
    head, *tail = attribute.rstrip("_").split("_")
    return head + "".join(word.capitalize() for word in tail)


def _inner_class(declared: object) -> type[attrs.AttrsInstance]:
    """Return the settings class in ``X``, ``X | None`` or ``Mapping[str, X]``."""
    candidates = typing.get_args(declared) or (declared,)
    for candidate in candidates:
        if isinstance(candidate, type) and attrs.has(candidate):
            return candidate
    raise AssertionError(f"no settings class in {declared}")


def _section(cls: type[attrs.AttrsInstance], path: Path = ()) -> Section:
    children: dict[str, Child] = {}
    for attribute in attrs.fields(cls):
        declaration = declaration_of(attribute)
        if declaration is None:
            continue
        name = _json_name(attribute.name)
        inner = None
        if declaration.kind in {Kind.SECTION, Kind.SECTIONS}:
            inner = _section(_inner_class(attribute.type), (*path, name))
        if path == ("discovery", "gateway"):
            variable = SINGLE_GATEWAY_VARIABLES.get(name, "")
            declaration = attrs.evolve(declaration, env=variable)
        children[name] = Child(attribute.name, declaration, attribute.default, inner)
    return Section(cls, MappingProxyType(children))


TABLE: Final = _section(Settings)


def keys(section: Section = TABLE, path: Path = ()) -> Iterator[Key]:
    """Yield every setting in the order of the schema; maps have ``<name>`` in their paths."""
    for name, child in section.children.items():
        here = (*path, name)
        if child.section is None:
            yield Key(here, child.declaration, child.default)
        else:
            many = child.declaration.kind is Kind.SECTIONS
            yield from keys(child.section, (*here, ANY_NAME) if many else here)


def values_of(
    settings: object, section: Section = TABLE, path: Path = ()
) -> Iterator[tuple[Path, Declaration, object]]:
    """Yield the value of every setting, entries of maps one by one; absent sections are left out."""
    for name, child in section.children.items():
        here = (*path, name)
        value = getattr(settings, child.attribute)
        if child.section is None:
            yield here, child.declaration, value
        elif isinstance(value, Mapping):
            for entry, item in value.items():
                yield from values_of(item, child.section, (*here, entry))
        elif value is not None:
            yield from values_of(value, child.section, here)


_KEYS: Final[Mapping[Path, Key]] = MappingProxyType({key.path: key for key in keys()})
_PATTERNS: Final = tuple(
    (
        re.compile(
            re.escape(key.name).replace(re.escape(ANY_NAME), f"(?P<name>{NAME_PATTERN})")
            + (r"(?:\.(?P<entry>.+))?" if key.declaration.kind is Kind.TOKENS else "")
        ),
        key,
    )
    for key in _KEYS.values()
)


def split_entry(text: str) -> Path | None:
    """Return the path of a whole entry of a map of sections, e.g. ``peers.alice``, or None."""
    text = text.removeprefix("a2a.")
    for path in _KEYS:
        if ANY_NAME not in path:
            continue
        section = path[: path.index(ANY_NAME)]
        prefix = f"{'.'.join(section)}."
        name = text.removeprefix(prefix)
        if text.startswith(prefix) and re.fullmatch(NAME_PATTERN, name):
            return (*section, name)
    return None


def is_section(text: str) -> bool:
    """Return whether a dotted name stands for several settings, e.g. ``server`` or ``peers.alice``."""
    wanted = f"{text.removeprefix('a2a.')}."
    return split_entry(text) is not None or any(
        key.name.startswith(wanted) for key in _KEYS.values()
    )


def key_at(path: Path) -> Key | None:
    """Return the setting at a concrete path such as ``("peers", "alice", "url")``."""
    for known, key in _KEYS.items():
        if len(known) == len(path) and all(
            k in {ANY_NAME, p} for k, p in zip(known, path, strict=True)
        ):
            return key
    return None


def split_key(text: str) -> tuple[Path, Key] | None:
    """Return the path and the setting that a dotted key names, or None if there is no such setting.

    Names of peers and callers may contain dots. ``server.peerTokens.alice`` names one entry.
    """
    text = text.removeprefix("a2a.")
    text = ALIASES.get(text, text)
    for pattern, key in _PATTERNS:
        match = pattern.fullmatch(text)
        if match is None:
            continue
        found = match.groupdict()
        name, entry = found.get("name"), found.get("entry")
        path = tuple(name if part == ANY_NAME and name else part for part in key.path)
        return (path if entry is None else (*path, entry)), key
    return None
