"""The v1.0 codec: JSON values to the frozen values of this package and back (A2A section 5.5).

Reading is strict about types and tolerant about everything that ProtoJSON or a newer peer may
write: unknown members are ignored, null is absent (but not for ``data``), snake_case names and
enum numbers are understood. Every bad field is named with its JSON path.

Two readers exist. ``decode`` is for answers: a REQUIRED string or array that is absent reads as
empty, because ProtoJSON peers leave empty members out. ``decode_request`` is for parameters: a
REQUIRED member that is absent or empty is a violation (A2A section 5.7).

The readers and writers are built once per class, by cattrs hook factories; a call reflects nothing.
"""

from functools import lru_cache
from typing import TypeVar, cast

import attrs
import cattrs

from a2a_trio.errors import DecodeError
from a2a_trio.wire import objects, readers, writers
from a2a_trio.wire.json_text import MAX_DEPTH, dumps, loads
from a2a_trio.wire.model import JsonValue

__all__ = ["MAX_DEPTH", "decode", "decode_request", "dumps", "encode", "loads"]

T = TypeVar("T")


def decode(value: JsonValue, kind: type[T]) -> T:
    """Read an A2A object from a peer's answer, a card or a file.

    Args:
        value: the JSON value.
        kind: a class of ``model``, ``requests`` or ``agent_card``.

    Raises:
        DecodeError: with every bad field.
    """
    return _decode(value, kind, _converter(strict=False))


def decode_request(value: JsonValue, kind: type[T]) -> T:
    """Read the parameters of a request: as ``decode``, and REQUIRED members must be there and set.

    Raises:
        DecodeError: with every bad field.
    """
    return _decode(value, kind, _converter(strict=True))


def encode(value: attrs.AttrsInstance) -> dict[str, JsonValue]:
    """Return the exact ProtoJSON form: camelCase names, defaults left out.

    REQUIRED members and optionals that were set are always there. Objects under ``metadata`` and
    ``data`` are not copied.
    """
    return cast("dict[str, JsonValue]", _converter(strict=False).unstructure(value))


def _decode(value: JsonValue, kind: type[T], converter: cattrs.Converter) -> T:
    try:
        return converter.structure(value, kind)
    except readers.Violations as error:
        raise DecodeError(error.as_fields()) from None


# --- building the converters ----------------------------------------------------------------


@lru_cache(maxsize=2)
def _converter(*, strict: bool) -> cattrs.Converter:
    """Build one of the two converters; each is built once and never changed afterwards."""
    converter = cattrs.Converter(detailed_validation=False)
    converter.register_structure_hook_factory(
        attrs.has, lambda kind: objects.object_reader(kind, converter, strict=strict)
    )
    converter.register_unstructure_hook_factory(
        attrs.has, lambda kind: writers.object_writer(kind, converter)
    )
    return converter
