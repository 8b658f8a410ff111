"""Show every setting with its source; get, set or unset one in a settings file."""

import json
from pathlib import Path
from typing import final

import attrs

from a2a_trio.config.fields import Kind
from a2a_trio.config.files import read_root, read_text, rewrite
from a2a_trio.config.jsonc import JsoncError, parse, put, remove
from a2a_trio.config.load import LoadedSettings
from a2a_trio.config.sources import DEFAULT, unknown_key
from a2a_trio.config.table import Key, dotted, is_section, split_entry, split_key, values_of
from a2a_trio.config.values import BadValueError, from_json, from_text, mask, shown, to_json
from a2a_trio.errors import SettingsError
from a2a_trio.wire.model import JsonValue

__all__ = ["Explained", "explain", "explain_key", "get_value", "set_value", "unset_value"]


@final
@attrs.frozen(kw_only=True)
class Explained:
    """One setting in force."""

    key: str
    value: JsonValue
    """Secrets are masked."""
    source: str
    """A file, a variable, the command line or ``default``."""
    doc: str


def explain(loaded: LoadedSettings) -> tuple[Explained, ...]:
    """Return every setting in force with its source; entries of maps one by one."""
    return tuple(
        Explained(
            key=(name := ".".join(path)),
            value=mask(declaration, value),
            source=loaded.sources.get(name, DEFAULT),
            doc=declaration.doc,
        )
        for path, declaration, value in values_of(loaded.settings)
    )


def explain_key(loaded: LoadedSettings, key: str) -> tuple[Explained, ...]:
    """Return what is in force at a key: one setting, all below a section, or one caller's token.

    Returns:
        Nothing if nobody has set it.

    Raises:
        SettingsError: there is no such setting.
    """
    found = split_key(key)
    if found is None and not is_section(key):
        raise SettingsError(unknown_key(key))
    name = key.removeprefix("a2a.") if found is None else dotted(found[0])
    every = explain(loaded)
    below = tuple(e for e in every if e.key == name or e.key.startswith(f"{name}."))
    if below or found is None:
        return below
    names, known = found
    return tuple(
        attrs.evolve(entry, key=name, value=entry.value[caller])
        for caller in names[len(known.path) :]
        for entry in every
        if entry.key == known.name and isinstance(entry.value, dict) and caller in entry.value
    )


def get_value(path: Path, key: str) -> JsonValue:
    """Return what a settings file says about a key, as it stands there; None if nothing.

    A secret is returned too: mask it before it is shown to anybody but the owner.

    Raises:
        SettingsError: there is no such setting, or the file cannot be used.
    """
    names, _ = _known(key)
    return _value_at(path, names)


def _value_at(path: Path, names: tuple[str, ...]) -> JsonValue:
    found = read_text(path)
    if found is None:
        return None
    node, _ = read_root(path, found.text)
    value: JsonValue = None if node is None else node.value
    for name in ("a2a", *names):
        value = value.get(name) if isinstance(value, dict) else None
    return value


def set_value(path: Path, key: str, value: object) -> None:
    """Set a key in a settings file and keep everything else in it, comments included.

    Args:
        path: the file; it and its folder are made if they do not exist.
        key: dotted, e.g. ``server.port``, ``peers.alice.url`` or ``server.peerTokens.alice``.
        value: JSON, or the text of a command line: ``"9911"`` sets a number where one is due.

    Raises:
        SettingsError: there is no such setting, the value does not fit, or the file cannot be used;
            the file is as it was.
    """
    names, known = _known(key)
    written = _fitting(names, known, key, value)

    def change(text: str) -> str:
        read_root(path, text)
        try:
            after = put(text, ("a2a", *names), written)
            _ = parse(after)
        except JsoncError as error:
            raise SettingsError(f"{path}: {error}") from None
        return after

    rewrite(path, change)


def unset_value(path: Path, key: str) -> bool:
    """Remove a key, or a whole entry such as ``peers.alice``; return whether it was there.

    Raises:
        SettingsError: there is no such setting, or the file cannot be used; the file is as it was.
    """
    found = split_key(key)
    names = split_entry(key) if found is None else found[0]
    if names is None:
        raise SettingsError(unknown_key(key))
    if _value_at(path, names) is None:
        return False

    def change(text: str) -> str:
        try:
            after = remove(text, ("a2a", *names))
            _ = parse(after)
        except JsoncError as error:
            raise SettingsError(f"{path}: {error}") from None
        return after

    rewrite(path, change)
    return True


def _known(key: str) -> tuple[tuple[str, ...], Key]:
    found = split_key(key)
    if found is None:
        raise SettingsError(unknown_key(key))
    return found


def _fitting(names: tuple[str, ...], known: Key, key: str, value: object) -> JsonValue:
    """Check a value and return the JSON to write."""
    told = known.declaration
    entry = names[len(known.path) :]
    try:
        if isinstance(value, str) and not entry and told.kind is not Kind.SKILLS:
            return to_json(from_text(told, value))
        # An entry of peerTokens is one token; a list of skills comes as JSON.
        text = json.dumps(value) if entry or not isinstance(value, str) else value
        written: JsonValue = json.loads(text)
        from_json(told, {entry[0]: written} if entry else written, _unread)
    except BadValueError as error:
        raise SettingsError(error.about(key, shown(told, value))) from None
    except (TypeError, ValueError):
        raise SettingsError(f"{key} must be {told.allowed}") from None
    return written


def _unread(where: str, name: str) -> str:
    """Stand in for a secret that will be looked up when the settings are loaded."""
    return f"{where}-{len(name)}"
