"""Writers of A2A objects in exact ProtoJSON, built once per attrs class for the codec."""

import binascii
from collections.abc import Callable, Mapping
from datetime import datetime
from enum import Enum
from typing import Any, Final, TypeAlias, get_args, get_origin

import attrs
import cattrs
from cattrs.fns import identity
from cattrs.gen import make_dict_unstructure_fn, override

from a2a_trio.wire.model import JsonValue, timestamp_text
from a2a_trio.wire.shapes import FREE_OBJECTS, FREE_VALUE, bare, camel, is_enum

Writer: TypeAlias = Callable[[Any], Any]


def object_writer(
    kind: type[attrs.AttrsInstance], converter: cattrs.Converter
) -> Callable[[Any], dict[str, Any]]:
    """Return the writer of one class; cattrs generates its code.

    A member with a default is left out when it has it; a REQUIRED one is always written.
    """
    overrides = {
        field.name: override(
            rename=camel(field.name),
            omit_if_default=field.default is not attrs.NOTHING,
            unstruct_hook=_member_writer(field.name, bare(field.type), converter),
        )
        for field in attrs.fields(kind)
    }
    make: Any = make_dict_unstructure_fn  # its type takes ** for its own options
    writer: Callable[[Any], dict[str, Any]] = make(kind, converter, **overrides)
    return writer


def _member_writer(name: str, kind: Any, converter: cattrs.Converter) -> Writer:
    if name in FREE_OBJECTS:
        return write_struct
    if name == FREE_VALUE:
        return identity
    origin = get_origin(kind)
    if origin is tuple:
        return _tuple_writer(_item_writer(get_args(kind)[0], converter))
    if origin is not None:
        return _map_writer(_item_writer(get_args(kind)[1], converter))
    return _item_writer(kind, converter)


def _item_writer(kind: Any, converter: cattrs.Converter) -> Writer:
    scalar = _SCALARS.get(kind)
    if scalar is not None:
        return scalar
    return write_enum if is_enum(kind) else converter.get_unstructure_hook(kind)


def _tuple_writer(write: Writer) -> Writer:
    if write is identity:
        return list

    def write_tuple(value: tuple[Any, ...]) -> list[Any]:
        return [write(item) for item in value]

    return write_tuple


def _map_writer(write: Writer) -> Writer:
    def write_map(value: Mapping[str, Any]) -> dict[str, Any]:
        return {key: write(member) for key, member in value.items()}

    return write_map


def write_struct(value: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
    """Write a free object; not copied if it is a dict already."""
    return value if isinstance(value, dict) else dict(value)


def write_bytes(value: bytes) -> str:
    """Write standard base64 with padding."""
    return binascii.b2a_base64(value, newline=False).decode("ascii")


def write_enum(value: Enum) -> Any:
    """Write the proto name."""
    return value.value


_SCALARS: Final[Mapping[object, Writer]] = {
    str: identity,
    int: identity,
    bool: identity,
    bytes: write_bytes,
    datetime: timestamp_text,
}
