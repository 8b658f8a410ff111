"""Readers of whole A2A objects, built once per attrs class for the codec's converters."""

from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias, get_args, get_origin

import attrs
import cattrs

from a2a_trio.wire import agent_card, model, readers, requests
from a2a_trio.wire.model import Role, TaskState
from a2a_trio.wire.readers import Reader, Violations
from a2a_trio.wire.shapes import FREE_OBJECTS, FREE_VALUE, bare, camel, is_enum


def _names(kind: type[attrs.AttrsInstance]) -> tuple[str, ...]:
    return tuple(field.name for field in attrs.fields(kind))


# Classes of which exactly one member is set (proto ``oneof``).
ONEOFS: Final[Mapping[type, tuple[str, ...]]] = {
    model.Part: ("text", "raw", "url", "data"),
    model.StreamResponse: _names(model.StreamResponse),
    requests.SendMessageResponse: _names(requests.SendMessageResponse),
    agent_card.OAuthFlows: _names(agent_card.OAuthFlows),
    agent_card.SecurityScheme: _names(agent_card.SecurityScheme),
}

# What REQUIRED members that are absent from an answer read as, by type. A class that is not
# here has no empty value: a task without a status is a violation everywhere.
_EMPTY_VALUES: Final[Mapping[object, object]] = {
    str: "",
    int: 0,
    tuple: (),
    dict: model.EMPTY,
    Role: Role.UNSPECIFIED,
    TaskState: TaskState.UNSPECIFIED,
    agent_card.AgentCapabilities: agent_card.AgentCapabilities(),
}

# Ranges that the types do not say; checked in requests (A2A sections 3.1.4 and 3.2.4).
_RANGES: Final[Mapping[tuple[type, str], tuple[int, int]]] = {
    (requests.SendMessageConfiguration, "history_length"): (0, 2**31 - 1),
    (requests.GetTaskRequest, "history_length"): (0, 2**31 - 1),
    (requests.ListTasksRequest, "history_length"): (0, 2**31 - 1),
    (requests.ListTasksRequest, "page_size"): (1, 100),
}

_ABSENT: Final = object()

_Row: TypeAlias = tuple[str, Reader, Any, str, bool]
"""Attribute, reader, type, JSON name, and whether null is a value."""
_Required: TypeAlias = tuple[tuple[str, str, object], ...]
"""Attribute, JSON name and empty value of each REQUIRED member."""
_Found: TypeAlias = dict[str, Any]


class NoMember(Violations):
    """A oneof without a member that this version knows."""


def object_reader(
    kind: type[attrs.AttrsInstance], converter: cattrs.Converter, *, strict: bool
) -> Reader:
    """Return the reader of one class.

    Args:
        kind: the attrs class.
        converter: gives the readers of the members.
        strict: REQUIRED members must be there and set.
    """
    read_members = _members_reader(_member_table(kind, converter, strict=strict))
    required = _required(kind)
    check_required = _refuse_unset if strict else _fill_unset
    check_oneof = _oneof_check(kind, strict=strict)

    def read(value: Any, _: Any) -> Any:
        if not isinstance(value, dict):
            raise readers.mismatch("an object", value)
        found, bad = read_members(value)
        if required:
            bad = check_required(found, required, bad)
        if check_oneof is not None:
            bad = check_oneof(found, bad)
        if bad is not None:
            raise bad
        return kind(**found)

    return read


def _members_reader(
    table: dict[str, _Row],
) -> Callable[[dict[str, Any]], tuple[_Found, Violations | None]]:
    """Return the loop over the members that are there; a bad one is found as ``_ABSENT``."""
    lookup = table.get

    def read_members(value: dict[str, Any]) -> tuple[_Found, Violations | None]:
        found: _Found = {}
        bad: Violations | None = None
        for key, member in value.items():
            row = lookup(key)
            if row is None:
                continue  # an unknown member: a newer peer, or a dialect's ornament
            attribute, read_member, kind, json_name, nullable = row
            if member is None and not nullable:
                continue
            if attribute in found and key != json_name:
                continue  # both spellings are there: the JSON name wins
            try:
                found[attribute] = read_member(member, kind)
            except Violations as error:
                bad = bad or Violations()
                bad.add(json_name, error)
                found[attribute] = _ABSENT
        return found, bad

    return read_members


def _member_table(
    kind: type[attrs.AttrsInstance], converter: cattrs.Converter, *, strict: bool
) -> dict[str, _Row]:
    """Return what to do with each member, under both spellings of its name."""
    table: dict[str, _Row] = {}
    for field in attrs.fields(kind):
        kind_of_member = bare(field.type)
        reader = _member_reader(field.name, kind_of_member, converter, strict=strict)
        if strict and (kind, field.name) in _RANGES:
            reader = readers.in_range(reader, *_RANGES[kind, field.name])
        row = (field.name, reader, kind_of_member, camel(field.name), field.name == FREE_VALUE)
        table[field.name] = row
        table[camel(field.name)] = row
    return table


def _member_reader(name: str, kind: Any, converter: cattrs.Converter, *, strict: bool) -> Reader:
    if name in FREE_OBJECTS:
        return readers.read_struct
    if name == FREE_VALUE:
        return readers.read_any
    origin = get_origin(kind)
    if origin is tuple:
        item = get_args(kind)[0]
        read_item = _item_reader(item, converter, strict=strict)
        return readers.list_reader(read_item, item, strict=strict)
    if origin is not None:
        member = get_args(kind)[1]
        # An answer may hold oneofs that a newer version added, e.g. a kind of security scheme.
        skip = () if strict else (NoMember,)
        return readers.map_reader(_item_reader(member, converter, strict=strict), member, skip=skip)
    return _item_reader(kind, converter, strict=strict)


def _item_reader(kind: Any, converter: cattrs.Converter, *, strict: bool) -> Reader:
    scalar = readers.SCALARS.get(kind)
    if scalar is not None:
        return scalar
    if is_enum(kind):
        return readers.enum_reader(kind, strict=strict)
    return converter.get_structure_hook(kind)


def _required(kind: type[attrs.AttrsInstance]) -> _Required:
    """Return (attribute, JSON name, empty value) of the members without a default."""
    rows = []
    for field in attrs.fields(kind):
        if field.default is attrs.NOTHING:
            origin = get_origin(field.type)
            wanted = tuple if origin is tuple else dict if origin is not None else field.type
            rows.append((field.name, camel(field.name), _EMPTY_VALUES.get(wanted, _ABSENT)))
    return tuple(rows)


def _refuse_unset(found: _Found, required: _Required, bad: Violations | None) -> Violations | None:
    for attribute, json_name, empty in required:
        value = found.get(attribute, empty)
        if attribute not in found or (value is not _ABSENT and value == empty):
            bad = bad or Violations()
            bad.add(json_name, Violations(("", "is required")))
    return bad


def _fill_unset(found: _Found, required: _Required, bad: Violations | None) -> Violations | None:
    for attribute, json_name, empty in required:
        if attribute in found:
            continue
        if empty is _ABSENT:
            bad = bad or Violations()
            bad.add(json_name, Violations(("", "is required")))
        else:
            found[attribute] = empty
    return bad


def _oneof_check(
    kind: type[attrs.AttrsInstance], *, strict: bool
) -> Callable[[_Found, Violations | None], Violations | None] | None:
    members = ONEOFS.get(kind)
    if members is None:
        return None
    names = ", ".join(camel(member) for member in members)

    def check(found: _Found, bad: Violations | None) -> Violations | None:
        present = [member for member in members if member in found]
        if len(present) == 1:
            return bad
        if present:
            both = " and ".join(camel(member) for member in present)
            bad = bad or Violations()
            bad.add("", Violations(("", f"has {both}; exactly one is allowed")))
            return bad
        if kind is model.Part and not strict:
            # A kind of content that this version does not know reads as an empty text.
            found["text"] = ""
            return bad
        return bad or NoMember(("", f"needs one of {names}"))

    return check
