"""The public surface: exactly what the list says, documented, and loaded only when used."""

import ast
import inspect
import json
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

import a2a_trio

HERE: Final = Path(__file__).parent
SURFACE: Final = tuple((HERE / "public_api.txt").read_text(encoding="ascii").split())
HEAVY: Final = frozenset({"trio", "quart", "quart_trio", "httpx", "hypercorn", "structlog"})


def loaded_by(statement: str) -> set[str]:
    """Return the top-level modules that a fresh interpreter has after a statement."""
    script = f"import sys, json\n{statement}\nprint(json.dumps([m for m in sys.modules]))"
    done = subprocess.run(
        [sys.executable, "-c", script], check=True, capture_output=True, text=True, timeout=60
    )
    return {name.split(".")[0] for name in json.loads(done.stdout)}


def names_for_type_checkers() -> dict[str, str]:
    """Return what the ``TYPE_CHECKING`` block of the package imports: name to module."""
    tree = ast.parse(Path(a2a_trio.__file__).read_text(encoding="utf-8"))
    return {
        alias.asname or alias.name: node.module or ""
        for block in tree.body
        if isinstance(block, ast.If)
        for node in block.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }


def test_the_surface_is_the_list() -> None:
    """A name is added or removed on purpose: change ``public_api.txt`` too."""
    assert tuple(sorted(SURFACE)) == SURFACE
    assert tuple(a2a_trio.__all__) == SURFACE
    assert tuple(dir(a2a_trio)) == SURFACE


@pytest.mark.parametrize("name", SURFACE)
def test_every_name_is_there(name: str) -> None:
    """Asked for at run time it is what type checkers see."""
    value = getattr(a2a_trio, name)
    if name != "__version__":
        module = names_for_type_checkers()[name]
        assert value is getattr(sys.modules[module], name)


def test_type_checkers_see_nothing_more() -> None:
    """Both lists in ``a2a_trio/__init__.py`` agree."""
    assert set(names_for_type_checkers()) | {"__version__"} == set(SURFACE)


@pytest.mark.parametrize("name", [n for n in SURFACE if n != "__version__"])
def test_every_class_and_function_says_what_it_does(name: str) -> None:
    """Its own words, not those of a base class."""
    value = getattr(a2a_trio, name)
    if inspect.isclass(value) or inspect.isroutine(value):
        assert (value.__doc__ or "").strip()


def test_an_unknown_name_is_an_attribute_error() -> None:
    """As of any module."""
    missing = "no_such_name"
    with pytest.raises(AttributeError, match=missing):
        getattr(a2a_trio, missing)


def test_importing_the_package_loads_next_to_nothing() -> None:
    """No event loop, no web stack, no models."""
    loaded = loaded_by("import a2a_trio")
    assert loaded & (HEAVY | {"attrs", "attr", "cattrs", "orjson"}) == set()


@pytest.mark.parametrize(
    ("statement", "absent"),
    [
        ("from a2a_trio import Part, Task, AgentCard", HEAVY),
        ("from a2a_trio import TaskNotFoundError, A2AError", HEAVY),
        ("from a2a_trio import Settings", HEAVY),
        ("from a2a_trio import TaskContext", HEAVY - {"trio"}),
        ("from a2a_trio import open_client", {"quart", "quart_trio", "hypercorn"}),
        ("import a2a_trio.cli", {"quart", "quart_trio", "hypercorn", "httpx"}),
    ],
)
def test_a_name_loads_only_what_it_needs(statement: str, absent: set[str]) -> None:
    """Values need no event loop; calling an agent needs no server; a parser needs neither."""
    assert loaded_by(statement) & absent == set()


def test_the_package_is_typed_and_knows_its_version() -> None:
    """The marker is there, and the version is the one that was installed."""
    assert (Path(a2a_trio.__file__).parent / "py.typed").is_file()
    assert a2a_trio.__version__.count(".") == 2
