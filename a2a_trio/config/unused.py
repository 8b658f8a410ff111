"""Settings that are read and checked but that nothing in this version acts on."""

import re
from collections.abc import Iterator
from typing import Final

from a2a_trio.config.load import LoadedSettings
from a2a_trio.config.sources import DEFAULT

__all__ = ["has_no_effect", "unused"]

_WITHOUT_EFFECT: Final = re.compile(r"push\.allowPrivate")
"""Keys whose feature is still to come. A key leaves this list together with the test that shows its
effect."""


def has_no_effect(key: str) -> bool:
    """Return True if nothing in this version acts on a setting, given its dotted key."""
    return _WITHOUT_EFFECT.fullmatch(key) is not None


def unused(loaded: LoadedSettings) -> Iterator[str]:
    """Yield a warning for every setting that somebody has set without effect."""
    for key, source in loaded.sources.items():
        if source != DEFAULT and has_no_effect(key):
            yield f"{source}: {key} has no effect in this version"
