"""Who may import whom, and what the pure rooms may not touch; found by reading the sources.

Every import counts: at the top, inside a function, and under ``TYPE_CHECKING``.
"""

import ast
from collections.abc import Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Final

import attrs
import pytest

ROOT: Final = Path(__file__).parents[1]
PACKAGE: Final = "a2a_trio"

ROWS: Final = (
    frozenset({"errors", "_version", "_log", "_groups", "_disk", "_threads"}),
    frozenset({"wire"}),
    frozenset({"rules", "config"}),
    frozenset({"server", "client", "discovery", "agents", "journal", "logs"}),
    frozenset({"peer"}),
    frozenset({"cli", "tools"}),
)
"""From the ground up. A room imports itself and the rows below it; never a neighbour."""

TESTING_USES: Final = frozenset(
    {"errors", "wire", "rules", "config", "server", "client", "discovery", "agents", "peer"}
)
"""``testing`` stands beside the house: users import it, the package does not."""

PURE: Final = ("errors", "wire", "rules", "config.schema", "config.sources")
"""Decisions and values only: time, randomness and I/O come in as arguments."""

IMPURE_MODULES: Final = frozenset(
    {"asyncio", "atexit", "concurrent", "contextvars", "ctypes", "fcntl", "getpass", "glob"}
    | {"httpx", "hypercorn", "io", "logging", "multiprocessing", "os", "pathlib", "platform"}
    | {"platformdirs", "prometheus_client", "queue", "quart", "quart_trio", "random", "secrets"}
    | {"select", "selectors", "shutil", "signal", "socket", "socketserver", "sqlite3", "ssl"}
    | {"structlog", "subprocess", "sys", "tempfile", "threading", "time", "trio"}
    | {"trio_websocket", "uuid", "zeroconf"}
)
CLOCK_CALLS: Final = frozenset({"now", "utcnow", "today"})

ONLY_IN: Final[Mapping[str, tuple[str, ...]]] = {
    "quart": ("server.quart_app",),
    "quart_trio": ("server.quart_app",),
    "hypercorn": ("server.connection", "server.listen", "server.quart_app"),
    "h11": ("server.connection", "testing"),
    "httpx": ("client", "discovery", "testing", "cli"),
    "trio_websocket": ("discovery",),
    "zeroconf": ("discovery",),
    "prometheus_client": ("server.metrics",),
    "hypothesis": ("testing.strategies",),
    "cattrs": ("wire", "config"),
    "orjson": ("wire",),
}
"""Foreign libraries and the only modules that know them."""


@attrs.frozen
class Import:
    """One import statement: from where, of what."""

    module: str
    """Dotted name below the package, "" for the package itself."""
    target: str
    """Full dotted name of what is imported."""
    line: int

    def __str__(self) -> str:
        """Show it as a place that an editor can open."""
        return f"{self.module or PACKAGE}:{self.line} imports {self.target}"


def module_name(path: Path) -> str:
    parts = path.relative_to(ROOT / PACKAGE).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imports_of(module: str, tree: ast.AST) -> Iterator[Import]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield Import(module, alias.name, node.lineno)
        elif isinstance(node, ast.ImportFrom):
            source = "." * node.level + (node.module or "")
            if source == PACKAGE:
                for alias in node.names:
                    yield Import(module, f"{PACKAGE}.{alias.name}", node.lineno)
            else:
                yield Import(module, source, node.lineno)


@lru_cache(maxsize=3)
def trees(folder: str) -> tuple[tuple[Path, ast.Module], ...]:
    return tuple(
        (path, ast.parse(path.read_text(encoding="utf-8"), str(path)))
        for path in sorted((ROOT / folder).rglob("*.py"))
    )


def package_imports() -> list[Import]:
    return [found for path, tree in trees(PACKAGE) for found in imports_of(module_name(path), tree)]


def is_within(module: str, *places: str) -> bool:
    return any(module == place or module.startswith(place + ".") for place in places)


def row_of(room: str) -> int:
    return next((n for n, row in enumerate(ROWS) if room in row), -1)


def is_allowed(found: Import) -> bool:
    """Whether an import of something of ours goes down, or stays in its room."""
    room = found.module.split(".")[0]
    target = found.target.removeprefix(PACKAGE).removeprefix(".").split(".")[0]
    if room == "":
        return True  # the facade names everything, lazily
    if room == "__main__":
        return target == "cli"
    if room == "testing":
        return target == "testing" or target in TESTING_USES
    if row_of(target) < 0:
        # A public name, or a new room: the facade is for those at the top only.
        return room in ROWS[-1] and target != "testing"
    return room == target or row_of(target) < row_of(room)


def test_every_module_is_in_a_room() -> None:
    """A new room is put into the picture first."""
    known = {"", "__main__", "testing"}.union(*ROWS)
    strangers = {
        module_name(path).split(".")[0] for path, _ in trees(PACKAGE) if path.name != "py.typed"
    } - known
    assert strangers == set()


def test_imports_only_go_down() -> None:
    """Nothing imports upward, and neighbours do not know each other."""
    ours = [i for i in package_imports() if is_within(i.target, PACKAGE)]
    assert len(ours) > 20
    assert [str(i) for i in ours if not is_allowed(i)] == []


def test_pure_rooms_touch_nothing_outside() -> None:
    """No Trio, sockets, clocks, randomness, files, threads or logging."""
    impure = [
        str(i)
        for i in package_imports()
        if is_within(i.module, *PURE) and i.target.split(".")[0] in IMPURE_MODULES
    ]
    assert impure == []


def test_pure_rooms_do_not_read_the_clock() -> None:
    """Nor through ``datetime``, which they may import as a value."""
    readings = [
        f"{path.relative_to(ROOT)}:{node.lineno}"
        for path, tree in trees(PACKAGE)
        if is_within(module_name(path), *PURE)
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr in CLOCK_CALLS
    ]
    assert readings == []


def test_foreign_libraries_stay_where_they_belong() -> None:
    """Each is known to one room, so it can be replaced there."""
    escaped = [
        str(i)
        for i in package_imports()
        if i.target.split(".")[0] in ONLY_IN
        and not is_within(i.module, *ONLY_IN[i.target.split(".")[0]])
    ]
    assert escaped == []


@pytest.mark.parametrize("folder", [PACKAGE, "tests", "fuzz"])
def test_imports_are_absolute(folder: str) -> None:
    """A file can be moved without rereading it."""
    relative = [
        f"{path.relative_to(ROOT)}:{found.line}"
        for path, tree in trees(folder)
        for found in imports_of("", tree)
        if found.target.startswith(".")
    ]
    assert relative == []


def test_there_is_one_event_loop() -> None:
    """Only the foreign software that we are measured against may use asyncio."""
    foreign = (ROOT / "tests" / "interop", ROOT / "tests" / "bench")
    users = [
        f"{path.relative_to(ROOT)}:{found.line}"
        for folder in (PACKAGE, "tests", "fuzz")
        for path, tree in trees(folder)
        for found in imports_of("", tree)
        if found.target.split(".")[0] in {"asyncio", "anyio"}
        and not any(path.is_relative_to(place) for place in foreign)
    ]
    assert users == []


def test_tests_do_not_use_mocks() -> None:
    """Fakes have behaviour; mocks repeat what the code does."""
    users = [
        f"{path.relative_to(ROOT)}:{found.line}"
        for path, tree in trees("tests")
        for found in imports_of("", tree)
        if is_within(found.target, "unittest.mock", "mock", "unittest")
    ]
    assert users == []


@pytest.mark.parametrize(
    ("module", "target", "allowed"),
    [
        ("server.store", "a2a_trio.rules.slots", True),
        ("server.store", "a2a_trio.server.http", True),
        ("server.store", "a2a_trio.client.call", False),
        ("server.store", "a2a_trio.peer", False),
        ("server.store", "a2a_trio.Task", False),
        ("server.store", "a2a_trio.testing.strategies", False),
        ("rules.card", "a2a_trio.config.schema", False),
        ("wire.codec", "a2a_trio.rules.slots", False),
        ("errors", "a2a_trio.wire.model", False),
        ("cli.main", "a2a_trio.serve", True),
        ("cli.main", "a2a_trio.tools.call", False),
        ("testing.transport", "a2a_trio.server.http", True),
        ("testing.transport", "a2a_trio.cli", False),
        ("__main__", "a2a_trio.cli", True),
        ("__main__", "a2a_trio.peer", False),
    ],
)
def test_the_direction_itself(module: str, target: str, *, allowed: bool) -> None:
    """The check above would notice."""
    assert is_allowed(Import(module, target, 1)) is allowed


def test_hidden_imports_are_found() -> None:
    """In a function, under TYPE_CHECKING, relative, and of a submodule by name."""
    source = (
        "if TYPE_CHECKING:\n    from a2a_trio import peer\n"
        "def f():\n    import trio.lowlevel\n    from . import x\n    from a2a_trio.wire import y\n"
    )
    found = [i.target for i in imports_of("m", ast.parse(source))]
    assert found == ["a2a_trio.peer", "trio.lowlevel", ".", "a2a_trio.wire"]
