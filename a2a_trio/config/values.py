"""One value from JSON, or from the text of a variable or flag, into the form of the schema."""

import math
import re
from collections.abc import Callable, Mapping
from typing import Final, TypeAlias

from a2a_trio.config.fields import Declaration, Kind
from a2a_trio.wire.agent_card import AgentSkill
from a2a_trio.wire.model import JsonValue

__all__ = ["BadValueError", "SecretReader", "from_json", "from_text", "mask", "shown", "to_json"]

SecretReader: TypeAlias = Callable[[str, str], str]
"""Reads a secret that stands elsewhere: ``("file", path)`` or ``("env", name)``; raises ValueError."""

MASK: Final = "••••"

_TRUE: Final = frozenset({"1", "true", "yes", "on"})
_FALSE: Final = frozenset({"0", "false", "no", "off"})
_INTEGER: Final = re.compile(r"[+-]?[0-9]{1,15}")
_SHOWN: Final = 60
_SKILL_TEXTS: Final = ("id", "name", "description")
_SKILL_LISTS: Final = (
    ("tags", "tags"), ("examples", "examples"),
    ("inputModes", "input_modes"), ("outputModes", "output_modes"),
)  # fmt: skip


class BadValueError(ValueError):
    """A value does not fit; the text says what is wrong or allowed and never quotes a secret."""

    def about(self, key: str, value: str) -> str:
        """Return the text for people, given the key and the value as ``shown``."""
        return f"{key} is {value}; it {self}"


class UnreadableSecretError(BadValueError):
    """A secret stands elsewhere and cannot be read there."""

    def about(self, key: str, value: str) -> str:  # noqa: ARG002 - the value was never known
        """Return the text for people."""
        return f"{key} {self}"


def from_text(declaration: Declaration, text: str) -> object:
    """Read the text of an environment variable or a flag.

    Raises:
        BadValueError: it is nothing that the setting allows.
    """
    text = text.strip()
    value: object = text
    match declaration.kind:
        case Kind.BOOL:
            value = _boolean(text)
        case Kind.INT:
            value = int(text) if _INTEGER.fullmatch(text) else text
        case Kind.NUMBER:
            value = _number(text)
        case Kind.NAMES:
            value = tuple(item for item in (part.strip() for part in text.split(",")) if item)
        case Kind.TOKENS:
            value = _tokens_from_text(text)
        case Kind.SKILLS:
            raise BadValueError("can only be set in a settings file")
        case Kind.TEXT | Kind.SECRET | Kind.SECTION | Kind.SECTIONS:
            pass
    return _checked(declaration, value)


def from_json(declaration: Declaration, value: JsonValue, read_secret: SecretReader) -> object:
    """Read a JSON value.

    Raises:
        BadValueError: the type or the range is wrong, or a secret cannot be read.
    """
    found: object = value
    match declaration.kind:
        case Kind.NAMES if isinstance(value, list):
            found = tuple(value)
        case Kind.SECRET:
            found = _secret(value, read_secret)
        case Kind.TOKENS if isinstance(value, dict):
            found = {name: _tokens(name, held, read_secret) for name, held in value.items()}
        case Kind.SKILLS if isinstance(value, list):
            found = tuple(_skill(index, item) for index, item in enumerate(value))
        case _:
            pass
    return _checked(declaration, found)


def _checked(declaration: Declaration, value: object) -> object:
    problem = declaration.problem(value)
    if problem is not None:
        raise BadValueError(problem)
    return value


def _boolean(text: str) -> bool | str:
    lowered = text.lower()
    if lowered in _TRUE:
        return True
    return False if lowered in _FALSE else text


def _number(text: str) -> float | str:
    if _INTEGER.fullmatch(text):
        return int(text)
    try:
        value = float(text)
    except ValueError:
        return text
    return value if math.isfinite(value) else text


def _tokens_from_text(text: str) -> Mapping[str, tuple[str, ...]]:
    """Read ``name:token,name:token``; a token may contain colons, a name that comes twice has two."""
    found: dict[str, tuple[str, ...]] = {}
    for number, entry in enumerate((e.strip() for e in text.split(",")), start=1):
        if not entry:
            continue
        name, _, token = (piece.strip() for piece in entry.partition(":"))
        if not name or not token:
            raise BadValueError(f"must be name:token,name:token, but entry {number} is not")
        found[name] = (*found.get(name, ()), token)
    return found


def _secret(value: JsonValue, read_secret: SecretReader) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, dict) and len(value) == 1:
        (where, name) = next(iter(value.items()))
        if where in {"file", "env"} and isinstance(name, str) and name:
            try:
                return read_secret(where, name)
            except ValueError as error:
                raise UnreadableSecretError(f"cannot be read: {error}") from None
    raise BadValueError('must be text, {"file": path} or {"env": name}')


def _tokens(name: str, held: JsonValue, read_secret: SecretReader) -> tuple[str, ...]:
    items = held if isinstance(held, list) else [held]
    try:
        return tuple(_secret(item, read_secret) for item in items)
    except BadValueError as error:
        raise BadValueError(f'has a wrong token for "{name:.64}": {error}') from None


def _skill(index: int, value: JsonValue) -> AgentSkill:
    if not isinstance(value, dict):
        raise BadValueError(f"must be a list of objects, but item {index} is not one")
    texts = {}
    for name in _SKILL_TEXTS:
        text = value.get(name, "")
        if not isinstance(text, str) or (not text and name != "description"):
            raise BadValueError(f'needs a text "{name}" in item {index}')
        texts[name] = text
    lists: dict[str, tuple[str, ...]] = {}
    for name, attribute in _SKILL_LISTS:
        items = value.get(name, [])
        if not isinstance(items, list):
            raise BadValueError(f'needs a list of texts "{name}" in item {index}')
        found = tuple(item for item in items if isinstance(item, str))
        if len(found) != len(items):
            raise BadValueError(f'needs a list of texts "{name}" in item {index}')
        lists[attribute] = found
    return AgentSkill(
        id=texts["id"],
        name=texts["name"],
        description=texts["description"],
        tags=lists["tags"],
        examples=lists["examples"],
        input_modes=lists["input_modes"],
        output_modes=lists["output_modes"],
    )


# --- for people -----------------------------------------------------------------------------


def to_json(value: object) -> JsonValue:
    """Return a value of the schema as JSON; secrets as they are."""
    match value:
        case None | bool() | int() | float() | str():
            return value
        case Mapping():
            return {str(name): _single(tuple(held)) for name, held in value.items()}
        case tuple():
            return [_skill_json(v) if isinstance(v, AgentSkill) else to_json(v) for v in value]
        case _:
            raise AssertionError(f"{type(value).__name__} is no value of the schema")


def _single(held: tuple[str, ...]) -> JsonValue:
    return held[0] if len(held) == 1 else list(held)


def _skill_json(skill: AgentSkill) -> JsonValue:
    found: dict[str, JsonValue] = {name: getattr(skill, name) for name in _SKILL_TEXTS}
    for name, attribute in _SKILL_LISTS:
        if getattr(skill, attribute) or name == "tags":
            found[name] = list(getattr(skill, attribute))
    return found


def mask(declaration: Declaration, value: object) -> JsonValue:
    """Return a value of the schema as JSON for display: secrets become ``••••``, names stay."""
    match value:
        case Mapping() if declaration.kind is Kind.TOKENS:
            return dict.fromkeys(map(str, value), MASK)
        case str() if declaration.kind is Kind.SECRET:
            return MASK if value else ""
        case _:
            return to_json(value)


def shown(declaration: Declaration | None, value: object) -> str:
    """Return a wrong value for an error text: short, and masked if it is a secret."""
    if declaration is None or declaration.secret:
        return MASK
    text = f'"{value}"' if isinstance(value, str) else str(value)
    if isinstance(value, bool) or value is None:
        text = {True: "true", False: "false", None: "null"}[value]
    text = "".join(c if c.isprintable() else "?" for c in text)
    return text if len(text) <= _SHOWN else text[: _SHOWN - 1] + "…"
