"""What the tests of effects share: a setting that comes in through a real source, and the row that it shows.

Every test loads its settings with ``load_settings`` from a file or from a variable and looks at what
a running server, client or command does. That a setting is read is tested elsewhere.
"""

import json
from collections.abc import Awaitable, Callable, Mapping
from enum import Enum, auto
from pathlib import Path
from typing import Any, Final, TypeAlias

import attrs

from a2a_trio import Settings
from a2a_trio.config.load import LoadedSettings, load_settings

LIMIT: Final = 60.0
"""Seconds after which a test on a real socket counts as hanging."""
SHARED: Final = "shared-token-0123456789"
ALICE: Final = "alice-token-0123456789"
BOB: Final = "bob-token-0123456789"
TOKENS: Final = {"server": {"peerTokens": {"alice": ALICE, "bob": BOB}}}


class Via(Enum):
    """Where the setting comes from."""

    FILE = auto()
    VARIABLE = auto()


Probe: TypeAlias = Callable[[Settings], Awaitable[object]]
"""Runs something with the settings and returns what was seen from outside."""


@attrs.frozen(kw_only=True)
class Effect:
    """One row of pi-a2a's tables with what it does."""

    key: str
    value: Any
    """As it stands in a file."""
    env: str = ""
    text: str = ""
    """As it stands in the variable; the same value as ``value``."""
    base: Mapping[str, Any] = attrs.field(factory=dict)
    """What must be in the file besides, with or without the setting."""
    probe: Probe
    before: object
    """What is seen without the setting."""
    after: object

    def ways(self) -> tuple[Via, ...]:
        """Return the sources that the row can come from."""
        return (Via.FILE, Via.VARIABLE) if self.env else (Via.FILE,)


def nested(key: str, value: object) -> dict[str, Any]:
    """Return an object with one value at a dotted key."""
    head, _, rest = key.partition(".")
    return {head: nested(rest, value) if rest else value}


def merged(one: Mapping[str, Any], other: Mapping[str, Any]) -> dict[str, Any]:
    """Return two nested objects as one; the second counts more."""
    result = dict(one)
    for name, value in other.items():
        known = result.get(name)
        both = isinstance(known, Mapping) and isinstance(value, Mapping)
        result[name] = merged(known, value) if both else value  # type: ignore[arg-type] # both are
    return result


def load(
    home: Path, content: Mapping[str, object], environ: Mapping[str, str] | None = None
) -> LoadedSettings:
    """Write a settings file and load it together with an environment."""
    home.mkdir(mode=0o700, exist_ok=True)
    path = home / "settings.json"
    path.touch(mode=0o600)
    path.write_text(json.dumps({"a2a": content}))
    return load_settings(environ={"A2A_HOME": str(home), **(environ or {})})


def with_effect(home: Path, effect: Effect, via: Via) -> Settings:
    """Return the settings of a row, from one of its sources."""
    if via is Via.FILE:
        return load(home, merged(effect.base, nested(effect.key, effect.value))).settings
    return load(home, effect.base, {effect.env: effect.text}).settings


def without_effect(home: Path, effect: Effect) -> Settings:
    """Return the settings that a row is compared with."""
    return load(home, effect.base).settings


def cases(effects: tuple[Effect, ...]) -> list[tuple[Effect, Via]]:
    """Return every row with every source it can come from."""
    return [(effect, via) for effect in effects for via in effect.ways()]


def case_ids(effects: tuple[Effect, ...]) -> list[str]:
    """Return the names of ``cases``."""
    return [effect.key if via is Via.FILE else effect.env for effect, via in cases(effects)]
