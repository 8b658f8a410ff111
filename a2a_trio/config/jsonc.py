"""JSON with comments: read with positions, so that one value can be changed and the rest kept.

``//`` and ``/* */`` comments and trailing commas are allowed, everything else is JSON. Errors name
line and column and never quote the text, which may hold secrets.
"""

import json
import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, NoReturn, final

import attrs

from a2a_trio.wire.model import JsonValue

__all__ = ["MAX_DEPTH", "JsoncError", "Member", "Node", "parse", "put", "remove"]

MAX_DEPTH: Final = 32
"""Nesting of a settings file; the schema needs six levels."""

_SPACE: Final = re.compile(r"(?:[ \t\r\n]++|//[^\r\n]*+|/\*(?:[^*]|\*(?!/))*+\*/)*+")
_STRING: Final = re.compile(r'"(?:[^"\\\x00-\x1f]|\\.)*+"')
_NUMBER: Final = re.compile(r"-?(?:0|[1-9][0-9]*+)(?:\.[0-9]++)?(?:[eE][+-]?[0-9]++)?(?![\w.])")
_LINE_END: Final = re.compile(r"\r?\n")
_WORD: Final = re.compile(r"true|false|null")
_WORDS: Final[Mapping[str, JsonValue]] = MappingProxyType(
    {"true": True, "false": False, "null": None}
)
_LONGEST_NUMBER: Final = 40


class JsoncError(ValueError):
    """The text is not JSON; the message says what is wrong and where."""


@final
@attrs.frozen
class Node:
    """A value and where it stands."""

    start: int
    end: int
    value: JsonValue
    members: "tuple[Member, ...]" = ()
    """The members of an object, duplicates included."""

    def member(self, name: str) -> "Member | None":
        """Return the member that counts: the last of that name."""
        return next((m for m in reversed(self.members) if m.name == name), None)


@final
@attrs.frozen
class Member:
    """A name in an object and its value."""

    name: str
    start: int
    """Where the name's quote stands."""
    node: Node


def parse(text: str) -> tuple[Node, tuple[str, ...]]:
    """Read a text; return its value and the names that are given twice (the last one counts).

    Raises:
        JsoncError: it is empty, truncated, too deep or no JSON.
    """
    return _Reader(text).read()


@final
class _Reader:
    def __init__(self, text: str) -> None:
        self._text = text
        self._twice: list[str] = []

    def read(self) -> tuple[Node, tuple[str, ...]]:
        node = self._value(self._skip(0), 0)
        rest = self._skip(node.end)
        if rest < len(self._text):
            self._fail("text after the end of the value", rest)
        return node, tuple(self._twice)

    def _fail(self, what: str, at: int) -> NoReturn:
        line = self._text.count("\n", 0, at) + 1
        column = at - (self._text.rfind("\n", 0, at) + 1) + 1
        raise JsoncError(f"{what} at line {line}, column {column}")

    def _skip(self, at: int) -> int:
        match = _SPACE.match(self._text, at)
        end = at if match is None else match.end()
        if self._text.startswith("/*", end):
            self._fail("a comment without end", end)
        return end

    def _value(self, at: int, depth: int) -> Node:
        if depth > MAX_DEPTH:
            self._fail(f"more than {MAX_DEPTH} levels", at)
        match self._text[at : at + 1]:
            case "":
                self._fail("the end, where a value should be", at)
            case "{":
                node = self._object(at, depth)
            case "[":
                node = self._array(at, depth)
            case '"':
                node = self._string(at)
            case _:
                node = self._scalar(at)
        return node

    def _string(self, at: int) -> Node:
        match = _STRING.match(self._text, at)
        if match is None:
            self._fail("a text without end, or with a control character", at)
        try:
            return Node(at, match.end(), str(json.loads(match.group())))
        except ValueError:
            self._fail("a text with a wrong escape", at)

    def _scalar(self, at: int) -> Node:
        word = _WORD.match(self._text, at)
        if word is not None:
            return Node(at, word.end(), _WORDS[word.group()])
        number = _NUMBER.match(self._text, at)
        if number is None or len(number.group()) > _LONGEST_NUMBER:
            self._fail("something that is not JSON", at)
        digits = number.group()
        whole = all(c not in digits for c in ".eE")
        return Node(at, number.end(), int(digits) if whole else float(digits))

    def _array(self, at: int, depth: int) -> Node:
        items: list[JsonValue] = []
        position = self._skip(at + 1)
        while not self._text.startswith("]", position):
            item = self._value(position, depth + 1)
            items.append(item.value)
            position = self._comma(item.end, "]")
        return Node(at, position + 1, items)

    def _object(self, at: int, depth: int) -> Node:
        members: list[Member] = []
        value: dict[str, JsonValue] = {}
        position = self._skip(at + 1)
        while not self._text.startswith("}", position):
            if not self._text.startswith('"', position):
                self._fail("something that is not a name in quotes", position)
            name = self._string(position)
            colon = self._skip(name.end)
            if not self._text.startswith(":", colon):
                self._fail("no colon after a name", colon)
            node = self._value(self._skip(colon + 1), depth + 1)
            key = str(name.value)
            if key in value:
                self._twice.append(key)
            value[key] = node.value
            members.append(Member(key, position, node))
            position = self._comma(node.end, "}")
        return Node(at, position + 1, value, tuple(members))

    def _comma(self, at: int, closing: str) -> int:
        """Pass the comma, if any; return where the next item or the closing bracket stands."""
        position = self._skip(at)
        if self._text.startswith(",", position):
            return self._skip(position + 1)
        if not self._text.startswith(closing, position):
            self._fail(f"no comma and no {closing}", position)
        return position


# --- changing one value ---------------------------------------------------------------------


def put(text: str, path: tuple[str, ...], value: JsonValue) -> str:
    """Return the text with the value at a path of names set; objects on the way are made.

    Everything else, comments included, stays as it is.

    Raises:
        JsoncError: the text is no JSON, or something on the way is not an object.
    """
    node, _ = parse(text)
    for depth, name in enumerate(path):
        if not isinstance(node.value, dict):
            raise JsoncError(f'"{".".join(path[:depth])}" is not an object')
        member = node.member(name)
        if member is None:
            return _insert(text, node, depth, path[depth:], value)
        node = member.node
    return text[: node.start] + _dumps(value, len(path)) + text[node.end :]


def remove(text: str, path: tuple[str, ...]) -> str:
    """Return the text without the member at a path of names; unchanged if there is none.

    Raises:
        JsoncError: the text is no JSON.
    """
    changed = text
    while True:
        node, _ = parse(changed)
        for name in path[:-1]:
            member = node.member(name)
            if member is None:
                return changed
            node = member.node
        found = node.member(path[-1])
        if found is None:
            return changed
        # Duplicates go too: else an older one would count again.
        changed = _without(changed, node, found)


def _dumps(value: JsonValue, depth: int) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False).replace("\n", "\n" + "  " * depth)


def _insert(text: str, node: Node, depth: int, path: tuple[str, ...], value: JsonValue) -> str:
    """Add a member as the last of an object."""
    for name in reversed(path[1:]):
        value = {name: value}
    indent = "\n" + "  " * depth
    added = f"{indent}  {json.dumps(path[0], ensure_ascii=False)}: {_dumps(value, depth + 1)}"
    begin = node.members[-1].node.end if node.members else node.start + 1
    closing = node.end - 1
    between = text[begin:closing]
    space = _SPACE.match(between)
    has_comma = space is not None and between.startswith(",", space.end())
    comma = "," if node.members and not has_comma else ""
    return f"{text[:begin]}{comma}{between.rstrip()}{added}{indent}{text[closing:]}"


def _without(text: str, node: Node, found: Member) -> str:
    index = node.members.index(found)
    after = _SPACE.match(text, found.node.end)
    end = found.node.end if after is None else after.end()
    if text.startswith(",", end):
        return _cut(text, found.start, end + 1)
    if index > 0:
        # The last one: the comma before it goes, so that strict readers can read the rest.
        before = node.members[index - 1].node.end
        comma = _SPACE.match(text, before)
        at = before if comma is None else comma.end()
        return _cut(text[:at] + text[at + 1 :], found.start - 1, found.node.end - 1)
    return _cut(text, found.start, found.node.end)


def _cut(text: str, start: int, end: int) -> str:
    """Take out a stretch, and the line it stood on if nothing else is there."""
    head, tail = text[:start].rstrip(" \t"), text[end:].lstrip(" \t")
    line_end = _LINE_END.match(tail)
    if head.endswith("\n") and line_end is not None:
        return head + tail[line_end.end() :]
    return (head if tail.startswith("}") else text[:start]) + tail
