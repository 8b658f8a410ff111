"""Finding an agent by name: ``echo``, or ``module:attribute``."""

import importlib
import sys
from operator import attrgetter
from pathlib import Path
from typing import Final, cast

from a2a_trio.agents.built_in import echo
from a2a_trio.agents.contract import Agent
from a2a_trio.errors import SettingsError

__all__ = ["load_agent"]

BUILT_IN: Final = "echo"
"""The agent that needs no module."""


def load_agent(name: str, *, path: Path | None = None) -> Agent:
    """Return the agent of a name.

    Args:
        name: ``echo``, or ``module:attribute`` with dots in either part.
        path: a folder to look for the module in first, e.g. the working directory.

    Raises:
        SettingsError: there is no such agent, or importing it failed; the text says which.
    """
    if name == BUILT_IN:
        return echo
    module_name, separator, attribute = name.partition(":")
    if not separator or not module_name or not attribute:
        raise SettingsError(f"agent {name!r}: expected {BUILT_IN!r} or 'module:attribute'")
    if path is not None and str(path) not in sys.path:
        sys.path.insert(0, str(path))
    try:
        agent = attrgetter(attribute)(importlib.import_module(module_name))
    except ModuleNotFoundError as exc:
        raise SettingsError(f"agent {name!r}: no module named {exc.name!r}") from exc
    except AttributeError as exc:
        raise SettingsError(f"agent {name!r}: {exc}") from exc
    except Exception as exc:
        raise SettingsError(f"agent {name!r}: importing {module_name!r} failed: {exc}") from exc
    if not callable(agent):
        raise SettingsError(f"agent {name!r}: {type(agent).__name__} cannot be called")
    return cast("Agent", agent)
