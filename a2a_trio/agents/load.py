"""Finding an agent by name: ``echo``, or ``module:attribute``."""

import importlib
import sys
import traceback
from operator import attrgetter
from pathlib import Path
from typing import Final, cast

from a2a_trio.agents.built_in import echo
from a2a_trio.agents.check import why_no_agent
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
        where = "" if _is_asked_for(exc.name, module_name) else _place_of(exc)
        raise SettingsError(f"agent {name!r}: no module named {exc.name!r}{where}") from exc
    except AttributeError as exc:
        raise SettingsError(f"agent {name!r}: {exc}") from exc
    except Exception as exc:
        text = f"importing {module_name!r} failed: {type(exc).__name__}: {exc}{_place_of(exc)}"
        raise SettingsError(f"agent {name!r}: {text}") from exc
    reason = why_no_agent(agent)
    if reason:
        raise SettingsError(f"agent {name!r}: {reason}")
    return cast("Agent", agent)


def _is_asked_for(missing: str | None, module_name: str) -> bool:
    """Return whether the missing module is the one on the command line, or a package of it."""
    return missing is not None and f"{module_name}.".startswith(f"{missing}.")


def _place_of(error: BaseException) -> str:
    """Return where an import failed, for people: a text of Python's own says only what failed."""
    frames = [f for f in traceback.extract_tb(error.__traceback__) if "importlib" not in f.filename]
    if isinstance(error, SyntaxError) or len(frames) < 2:  # noqa: PLR2004 - the first is ours
        return ""
    return f" ({frames[-1].filename}:{frames[-1].lineno})"
