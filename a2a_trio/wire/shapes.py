"""What the codec's readers and writers both know about the attrs classes."""

from enum import Enum
from typing import Any, Final, get_args

FREE_OBJECTS: Final = frozenset({"metadata", "params", "header"})
"""Attributes that hold any JSON object (google.protobuf.Struct)."""

FREE_VALUE: Final = "data"
"""The attribute that holds any JSON value (google.protobuf.Value); null is a value there."""


def camel(name: str) -> str:
    """Return the JSON name of an attribute: ``context_id`` is ``contextId``."""
    first, *others = name.split("_")
    return first + "".join(word.title() for word in others)


def is_enum(kind: object) -> bool:
    """Return True for enum classes."""
    return isinstance(kind, type) and issubclass(kind, Enum)


def bare(kind: Any) -> Any:
    """Strip ``None`` from an optional type."""
    choices = [choice for choice in get_args(kind) if choice is not type(None)]
    return choices[0] if type(None) in get_args(kind) and len(choices) == 1 else kind
