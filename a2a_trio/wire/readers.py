"""Readers of single JSON members: each returns the Python value or raises ``Violations``.

A reader has the form of a cattrs structure hook, ``(value, kind) -> object``. Types are strict: a
number is not a string, ``true`` is not 1. What ProtoJSON allows besides the canonical spelling is
read: integral floats, enum numbers, URL-safe and unpadded base64, time offsets.
"""

import binascii
import re
from collections.abc import Callable, Mapping
from datetime import datetime
from enum import Enum
from typing import Any, Final, TypeAlias

from a2a_trio.errors import FieldViolation
from a2a_trio.wire.model import utc_milliseconds

Reader: TypeAlias = Callable[[Any, Any], Any]

MAX_VIOLATIONS: Final = 100
"""Bad fields that are named; reading stops there, so that answers stay small and refusals cheap."""

MAX_ITEMS: Final = 10_000
"""Items of one array of a request. Reading them is work for the whole server: nobody else runs."""

MAX_KEY_SHOWN: Final = 64
"""Characters of a map key that are shown in a path."""

_INT32: Final = range(-(2**31), 2**31)
_URL_SAFE: Final = str.maketrans("-_", "+/")
_TIMESTAMP: Final = re.compile(
    r"(\d{4}-\d\d-\d\d)[Tt](\d\d:\d\d:\d\d)(?:\.(\d{1,9}))?(?:([Zz])|([+-]\d\d:\d\d))", re.ASCII
)
_ENUM_PREFIX: Final = re.compile("^(TASK_STATE|ROLE)_")
_PLAIN_KEY: Final = re.compile(r"[A-Za-z0-9_-]+", re.ASCII)


class Violations(Exception):  # noqa: N818 -- carries findings to the codec, which raises DecodeError
    """The bad fields found so far, as (path, description); internal to this package's codec."""

    def __init__(self, *found: tuple[str, str]) -> None:
        self.found = list(found)
        super().__init__()

    def add(self, step: str, other: "Violations") -> None:
        """Take over the findings of a member, under its name or ``[index]``."""
        self.found += [(_under(step, path), text) for path, text in other.found]

    @property
    def full(self) -> bool:
        """True if no more should be looked for."""
        return len(self.found) >= MAX_VIOLATIONS

    def as_fields(self) -> tuple[FieldViolation, ...]:
        """Return the findings in their public form."""
        fields = [
            FieldViolation(field=path, description=text)
            for path, text in self.found[:MAX_VIOLATIONS]
        ]
        if self.full:
            fields.append(FieldViolation(field="", description="more fields may be wrong"))
        return tuple(fields)


def _under(step: str, path: str) -> str:
    if not path:
        return step
    return step + path if path.startswith("[") else f"{step}.{path}"


def key_step(key: str) -> str:
    """Return a map key as one step of a path."""
    shown = key if len(key) <= MAX_KEY_SHOWN else key[:MAX_KEY_SHOWN] + "..."
    return shown if _PLAIN_KEY.fullmatch(shown) else f'["{shown}"]'


def mismatch(wanted: str, value: object) -> Violations:
    """Return the violation for a value of the wrong JSON type."""
    return Violations(("", f"must be {wanted}, not {_json_type(value)}"))


def _json_type(value: object) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "a boolean"
        case int() | float():
            return "a number"
        case str():
            return "a string"
        case list():
            return "an array"
        case _:
            return "an object"


def read_string(value: Any, _: Any) -> str:
    """Read a string."""
    if not isinstance(value, str):
        raise mismatch("a string", value)
    return value


def read_bool(value: Any, _: Any) -> bool:
    """Read ``true`` or ``false``."""
    if value is True or value is False:
        return bool(value)
    raise mismatch("a boolean", value)


def read_int32(value: Any, _: Any) -> int:
    """Read an int32; ``5.0`` is 5, as in ProtoJSON."""
    if type(value) is float and value.is_integer():
        value = int(value)
    if type(value) is not int:
        raise mismatch("an integer", value)
    if value not in _INT32:
        raise Violations(("", "is out of the range of a 32-bit integer"))
    return value


def read_bytes(value: Any, _: Any) -> bytes:
    """Read base64, standard or URL-safe, padded or not."""
    if not isinstance(value, str):
        raise mismatch("a base64 string", value)
    if "-" in value or "_" in value:
        value = value.translate(_URL_SAFE)
    digits = value.rstrip("=")
    padding = -len(digits) % 4
    # The strict mode of binascii still takes too much padding.
    if len(value) - len(digits) in (0, padding):
        try:
            return binascii.a2b_base64(digits + "=" * padding, strict_mode=True)
        except ValueError:
            pass  # a foreign character, or a digit too many
    raise Violations(("", "must be base64"))


def read_timestamp(value: Any, _: Any) -> datetime:
    """Read an RFC 3339 timestamp with 0 to 9 fraction digits and any offset."""
    if not isinstance(value, str):
        raise mismatch("a timestamp string", value)
    match = _TIMESTAMP.fullmatch(value)
    if match is not None:
        date, time, fraction, _zulu, offset = match.groups()
        text = f"{date}T{time}.{(fraction or '').ljust(6, '0')[:6]}{offset or '+00:00'}"
        try:
            return utc_milliseconds(datetime.fromisoformat(text))
        except (ValueError, OverflowError):
            pass  # the 30th of February, or before the year 1 in UTC
    raise Violations(("", "must be a timestamp such as 2026-01-31T12:00:00.000Z"))


def read_struct(value: Any, _: Any) -> dict[str, Any]:
    """Read a JSON object whose members are free (google.protobuf.Struct)."""
    if not isinstance(value, dict):
        raise mismatch("an object", value)
    return value


def read_any(value: Any, _: Any) -> Any:
    """Read any JSON value, null too (google.protobuf.Value)."""
    return value


SCALARS: Final[Mapping[object, Reader]] = {
    str: read_string,
    bool: read_bool,
    int: read_int32,
    bytes: read_bytes,
    datetime: read_timestamp,
}
"""The readers by type; exact types only, so that a StrEnum is not taken for a string."""


def enum_reader(kind: type[Enum], *, strict: bool) -> Reader:
    """Return a reader of enum names and numbers.

    A name that is not known is a violation in a request, and "unspecified" (the first member) in
    an answer, which a newer peer may have written. Answers may also use v0.3's spellings.
    """
    members = list(kind)
    by_spelling: dict[object, Enum] = {member.value: member for member in members}
    if not strict:
        for member in members:
            short = _ENUM_PREFIX.sub("", member.value).lower()
            by_spelling |= {short: member, short.replace("_", "-"): member}
    names = ", ".join(str(member.value) for member in members[1:])

    def read(value: Any, _: Any) -> Enum:
        if isinstance(value, str):
            found = by_spelling.get(value)
        elif type(value) in (int, float) and value == value // 1:
            found = members[int(value)] if 0 <= value < len(members) else None
        else:
            raise mismatch("an enum name", value)
        if found is not None:
            return found
        if strict:
            raise Violations(("", f"must be one of {names}"))
        return members[0]

    return read


def in_range(read: Reader, least: int, most: int) -> Reader:
    """Return a reader that also refuses numbers outside a range."""

    def read_in_range(value: Any, kind: Any) -> int:
        number: int = read(value, kind)
        if not least <= number <= most:
            raise Violations(("", f"must be from {least} to {most}"))
        return number

    return read_in_range


def list_reader(read_item: Reader, kind: object, *, strict: bool) -> Reader:
    """Return a reader of arrays, which become tuples."""

    def read(value: Any, _: Any) -> tuple[Any, ...]:
        if not isinstance(value, list):
            raise mismatch("an array", value)
        if strict and len(value) > MAX_ITEMS:
            raise Violations(("", f"has more than {MAX_ITEMS} items"))
        try:
            return tuple([read_item(item, kind) for item in value])
        except Violations:
            raise _all_bad_items(value) from None

    def _all_bad_items(value: list[Any]) -> Violations:
        bad = Violations()
        for index, item in enumerate(value):
            try:
                read_item(item, kind)
            except Violations as error:
                bad.add(f"[{index}]", error)
                if bad.full:
                    break
        return bad

    return read


def map_reader(
    read_member: Reader, kind: object, *, skip: tuple[type[Violations], ...] = ()
) -> Reader:
    """Return a reader of objects with free keys and members of one type.

    Members refused with one of the ``skip`` classes are left out.
    """

    def read(value: Any, _: Any) -> dict[str, Any]:
        if not isinstance(value, dict):
            raise mismatch("an object", value)
        members: dict[str, Any] = {}
        bad = Violations()
        for key, member in value.items():
            try:
                members[key] = read_member(member, kind)
            except skip:
                continue
            except Violations as error:
                bad.add(key_step(key), error)
                if bad.full:
                    break
        if bad.found:
            raise bad
        return members

    return read
