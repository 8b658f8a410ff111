"""One place per fact, files and functions of a readable size, no state at module level."""

import ast
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Final, TypeAlias

import pytest

from a2a_trio.errors import ERROR_TABLE
from a2a_trio.wire.methods import METHODS

ROOT: Final = Path(__file__).parents[1]
PACKAGE: Final = ROOT / "a2a_trio"
MAX_FILE_LINES: Final = 400
MAX_FUNCTION_LINES: Final = 70

CODES: Final = frozenset(row.code for row in ERROR_TABLE)
CODE_TEXTS: Final = frozenset(map(str, CODES))
METHOD_NAMES: Final = frozenset(
    name for method in METHODS for name in (method.operation.value, *method.aliases) if name
)

Function: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef

IMMUTABLE_MAKERS: Final = frozenset(
    {"frozenset", "tuple", "str", "int", "float", "bytes", "bool", "len", "max", "min", "sum"}
    | {"MappingProxyType", "compile", "escape", "TypeVar", "TypeVarTuple", "ParamSpec", "NewType"}
    | {"timedelta", "datetime", "Struct", "namedtuple", "object", "join", "Path", "getLogger"}
    | {"get_logger", "cast", "strip", "encode", "format"}
)
"""Calls whose result nobody can change, or that is not ours to change (a logger)."""
MUTABLE_TYPES: Final = frozenset(
    {"list", "dict", "set", "bytearray", "deque", "defaultdict", "Counter", "OrderedDict", "List"}
    | {"Dict", "Set", "MutableMapping", "MutableSequence", "MutableSet", "ChainMap"}
)


@lru_cache(maxsize=2)
def sources(*folders: str) -> tuple[tuple[str, str, ast.Module], ...]:
    return tuple(
        (str(path.relative_to(ROOT)), text, ast.parse(text, str(path)))
        for folder in folders
        for path in sorted((ROOT / folder).rglob("*.py"))
        for text in [path.read_text(encoding="utf-8")]
    )


def docstrings(tree: ast.Module) -> set[ast.Constant]:
    """Strings that stand alone: documentation of a module, class, function or attribute."""
    return {
        node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    }


def literal_codes(tree: ast.Module) -> Iterator[int]:
    """Lines with an error code as a number, or as a text of its own."""
    spoken = docstrings(tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
            value = node.operand.value if isinstance(node.operand, ast.Constant) else None
            if isinstance(value, int) and -value in CODES:
                yield node.lineno
        elif isinstance(node, ast.Constant) and node not in spoken and node.value in CODE_TEXTS:
            yield node.lineno


def literal_methods(tree: ast.Module) -> Iterator[int]:
    """Lines with a method's name in any dialect as a text of its own."""
    spoken = docstrings(tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and node not in spoken and node.value in METHOD_NAMES:
            yield node.lineno


def test_error_codes_stand_in_one_place() -> None:
    """Everybody else says which class."""
    places = [
        f"{name}:{line}"
        for name, _, tree in sources("a2a_trio")
        if name != "a2a_trio/errors.py"
        for line in literal_codes(tree)
    ]
    assert places == []


def test_method_names_stand_in_one_place() -> None:
    """Everybody else says which operation."""
    places = [
        f"{name}:{line}"
        for name, _, tree in sources("a2a_trio")
        if name != "a2a_trio/wire/methods.py"
        for line in literal_methods(tree)
    ]
    assert places == []


def test_files_are_of_a_readable_size() -> None:
    """One job each; a file that grows past this has two."""
    sizes = {name: text.count("\n") for name, text, _ in sources("a2a_trio", "fuzz")}
    assert {name: lines for name, lines in sizes.items() if lines > MAX_FILE_LINES} == {}


def length(function: Function) -> int:
    """Lines of a function without its documentation."""
    lines = (function.end_lineno or function.lineno) - function.lineno + 1
    first = function.body[0]
    if ast.get_docstring(function, clean=False) is not None:
        lines -= (first.end_lineno or first.lineno) - first.lineno + 1
    return lines


def test_functions_are_of_a_readable_size() -> None:
    """Documentation does not count, so nobody saves on it."""
    long = {
        f"{name}:{node.lineno} {node.name}": length(node)
        for name, _, tree in sources("a2a_trio", "fuzz")
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and length(node) > MAX_FUNCTION_LINES
    }
    assert long == {}


# -- state at module level ---------------------------------------------------------------------
#
# A module-level name may be bound to something that nobody can change. mypy sees to it that a
# Final name is not bound again and that a Mapping is not written to; this check sees to it that
# what is not declared so is not a list, a dict, a set, or an object made by a call.


def name_of(node: ast.expr) -> str:
    """Return the last name of ``a.b.C``, ``C`` or ``C[x]``; "" for anything else."""
    if isinstance(node, ast.Subscript):
        return name_of(node.value)
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""


def promise(annotation: ast.expr | None) -> str:
    """Return ``"mutable"``, ``"read-only"`` (a Final of a type without setters) or ``"none"``."""
    if annotation is None or name_of(annotation) not in {"Final", "ClassVar"}:
        return "none"
    if not isinstance(annotation, ast.Subscript):
        return "none"
    inner = annotation.slice
    if name_of(inner) == "Final":
        return promise(inner)
    return "mutable" if name_of(inner) in MUTABLE_TYPES else "read-only"


def is_container(value: ast.expr) -> bool:
    """Whether a value is a list, a dict, a set or one of their kind, made here."""
    displays = ast.List | ast.Dict | ast.Set | ast.ListComp | ast.DictComp | ast.SetComp
    return isinstance(value, displays | ast.GeneratorExp) or (
        isinstance(value, ast.Call) and name_of(value.func) in MUTABLE_TYPES
    )


def is_mutable(value: ast.expr, declared: str, *, is_final: bool) -> bool:
    """Whether a value bound at module level can be changed by whoever gets hold of it."""
    if is_container(value):
        return declared != "read-only"
    match value:
        case ast.Call(func=maker):
            is_made = not is_final and name_of(maker) not in IMMUTABLE_MAKERS
            return is_made or declared == "mutable"
        case ast.Tuple(elts=parts):
            # A tuple of lists is no better than a list.
            return any(is_mutable(part, declared, is_final=is_final) for part in parts)
        case ast.IfExp(body=one, orelse=other):
            return any(is_mutable(part, declared, is_final=is_final) for part in (one, other))
    return declared == "mutable"


def statements(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """Give the statements that run at import: also those in ``if``, ``try``, ``with``, loops."""
    for node in body:
        yield node
        if isinstance(node, Function | ast.ClassDef):
            continue
        for field in ("body", "orelse", "finalbody"):
            yield from statements(getattr(node, field, []))
        for handler in getattr(node, "handlers", []):
            yield from statements(handler.body)


def module_state(tree: ast.Module) -> Iterator[int]:
    """Lines that make, or could change, state that outlives a call and belongs to nobody."""
    for node in statements(tree.body):
        if isinstance(node, ast.Assign):
            names = [name_of(target) for target in node.targets]
            if names != ["__all__"] and is_mutable(node.value, "none", is_final=False):
                yield node.lineno
        elif isinstance(node, ast.AnnAssign) and node.value is not None:
            is_final = name_of(node.annotation) == "Final"
            if is_mutable(node.value, promise(node.annotation), is_final=is_final):
                yield node.lineno
        elif isinstance(node, ast.AugAssign | ast.For | ast.While | ast.Delete):
            yield node.lineno
    for inner in ast.walk(tree):
        if isinstance(inner, ast.Global) or (
            isinstance(inner, Function) and is_unbounded_cache(inner)
        ):
            yield inner.lineno
        elif isinstance(inner, ast.ClassDef):
            yield from class_state(inner)


def class_state(node: ast.ClassDef) -> Iterator[int]:
    """A display in a class body is shared by all instances."""
    for statement in node.body:
        if isinstance(statement, ast.Assign | ast.AnnAssign) and isinstance(
            statement.value, ast.List | ast.Dict | ast.Set
        ):
            annotation = statement.annotation if isinstance(statement, ast.AnnAssign) else None
            if promise(annotation) != "read-only":
                yield statement.lineno


def is_unbounded_cache(node: Function) -> bool:
    """``cache``, or ``lru_cache`` without a bound that is written down."""
    for decorator in node.decorator_list:
        call = decorator if isinstance(decorator, ast.Call) else None
        name = name_of(call.func if call else decorator)
        if name == "cache" or (name == "lru_cache" and (call is None or not has_bound(call))):
            return True
    return False


def has_bound(call: ast.Call) -> bool:
    bounds = [*call.args[:1], *(k.value for k in call.keywords if k.arg == "maxsize")]
    return any(not (isinstance(b, ast.Constant) and b.value is None) for b in bounds)


def test_modules_have_no_state() -> None:
    """What a program does with one server cannot show in another."""
    places = [
        f"{name}:{line}" for name, _, tree in sources("a2a_trio") for line in module_state(tree)
    ]
    assert places == []


# -- the checks themselves ----------------------------------------------------------------------


@pytest.mark.parametrize(
    "line",
    [
        "x = []",
        "x: dict[str, int] = {}",
        "x: Final = {}",
        "x: Final[dict[str, int]] = {1: 2}",
        "x: Final[set[int]] = make()",
        "x = {a for a in b}",
        "x = deque(maxlen=3)",
        "x: Final = collections.deque()",
        "x = Registry()",
        "x = ([], 1)",
        "x: Final = ([],)",
        "x = {} if y else None",
        "if a:\n    x = []",
        "try:\n    x = 1\nexcept E:\n    x = []",
        "x = 1\nx += 1",
        "for i in y:\n    x = i",
        "def f():\n    global x",
        "@cache\ndef f(): ...",
        "@functools.lru_cache\ndef f(): ...",
        "@lru_cache(maxsize=None)\ndef f(): ...",
        "class C:\n    seen = []",
        "class C:\n    seen: ClassVar[dict[str, int]] = {}",
    ],
)
def test_state_is_found(line: str) -> None:
    """Each of these is something that outlives a call and can be changed."""
    assert list(module_state(ast.parse(line))) != []


@pytest.mark.parametrize(
    "line",
    [
        "__all__ = ['a']",
        "x = 1",
        "x: Final = (1, 'a', None)",
        "x: Final[Mapping[str, int]] = {'a': 1}",
        "x: Final[Mapping[str, int]] = {a: 1 for a in b}",
        "x: Final[tuple[Row, ...]] = (Row(1), Row(2))",
        "x: Final = re.compile('a')",
        "x = TypeVar('x')",
        "x: Final = frozenset({1})",
        "x: Final[Converter] = make()",
        "X: TypeAlias = dict[str, int] | None",
        "x = lambda: []",
        "def f():\n    x = []",
        "@lru_cache(maxsize=8)\ndef f(): ...",
        "class C:\n    a: int = attrs.field(factory=list)",
        "class C:\n    a: ClassVar[Mapping[str, int]] = {}",
    ],
)
def test_what_cannot_change_is_no_state(line: str) -> None:
    """Constants, types, tables, and what lives in a call."""
    assert list(module_state(ast.parse(line))) == []


def test_literal_facts_are_found() -> None:
    """In code, not in documentation."""
    tree = ast.parse('"""-32001 SendMessage"""\nx = -32001\ny = "SendMessage"\nz = "-32700"')
    assert list(literal_codes(tree)) == [2, 4]
    assert list(literal_methods(tree)) == [3]


def test_documentation_does_not_count_as_length() -> None:
    """A function is as long as what it does."""
    (node,) = ast.parse('def f():\n    """One\n    two.\n    """\n    return 1\n').body
    assert isinstance(node, ast.FunctionDef)
    assert length(node) == 2
