"""Import every module of the installed package: nothing may need the test dependencies."""
# ruff: noqa: INP001 - a script, run by its path

import importlib
import pkgutil
import sys
import sysconfig
from pathlib import Path

import a2a_trio

# Hypothesis comes with the `test` extra; only these may need it.
NEEDS_EXTRA = {"a2a_trio.testing.strategies"}


def main() -> int:
    """Print what cannot be imported; 0 if everything can."""
    home = Path(a2a_trio.__path__[0]).resolve()
    if not home.is_relative_to(Path(sysconfig.get_path("purelib")).resolve()):
        sys.stderr.write(f"the package imported is not the installed one: {home}\n")
        return 1
    if not (home / "py.typed").is_file():
        sys.stderr.write("py.typed is missing\n")
        return 1
    count = 0
    for module in pkgutil.walk_packages(a2a_trio.__path__, "a2a_trio."):
        if module.name in NEEDS_EXTRA or module.name.endswith("__main__"):
            continue
        importlib.import_module(module.name)
        count += 1
    names = [name for name in dir(a2a_trio) if not name.startswith("_")]
    for name in names:
        getattr(a2a_trio, name)
    sys.stdout.write(f"{count} modules and {len(names)} public names import\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
