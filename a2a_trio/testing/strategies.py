"""Hypothesis strategies for every A2A value, for tests of agents, stores and peers.

``values(kind)`` makes any value of a class; ``requests(kind)`` makes what a correct caller sends,
with every REQUIRED member set. The named strategies are the common cases. Numbers stay within what
a double holds exactly, because proto-based peers carry JSON numbers as doubles.

Hypothesis is not a dependency of the package; it comes with the ``test`` extra.
"""

from collections.abc import Mapping
from datetime import UTC, datetime
from enum import Enum
from typing import Any, Final, TypeVar, cast, get_args, get_origin

import attrs
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from a2a_trio.wire import objects
from a2a_trio.wire.agent_card import AgentCard
from a2a_trio.wire.model import (
    Artifact,
    JsonObject,
    JsonValue,
    Message,
    Part,
    StreamEvent,
    Task,
    TaskArtifactUpdateEvent,
    TaskStatus,
    TaskStatusUpdateEvent,
)
from a2a_trio.wire.shapes import FREE_OBJECTS, FREE_VALUE, bare

__all__ = [
    "agent_cards",
    "artifact_updates",
    "artifacts",
    "json_objects",
    "json_values",
    "messages",
    "parts",
    "requests",
    "status_updates",
    "statuses",
    "stream_events",
    "tasks",
    "texts",
    "timestamps",
    "values",
]

T = TypeVar("T")

MAX_ITEMS: Final = 3
"""Items of a generated array or map; enough for first, middle and last."""

_EXACT: Final = 2**53
_INT32: Final = 2**31
_RANGES: Final[Mapping[str, SearchStrategy[int]]] = {
    "page_size": st.integers(1, 100),
    "history_length": st.integers(0, _INT32 - 1),
}
"""What a request may ask for."""


def texts(*, min_size: int = 0) -> SearchStrategy[str]:
    """Make short texts in UTF-8, NUL and line ends among them."""
    return st.text(min_size=min_size, max_size=12)


def timestamps() -> SearchStrategy[datetime]:
    """Make UTC instants over the whole range of years."""
    return st.datetimes(timezones=st.just(UTC))


def json_values() -> SearchStrategy[JsonValue]:
    """Make JSON values that survive every peer."""
    leaves = (
        st.none()
        | st.booleans()
        | st.integers(-_EXACT, _EXACT)
        | st.floats(allow_nan=False, allow_infinity=False)
        | texts()
    )
    return cast(
        "SearchStrategy[JsonValue]",
        st.recursive(
            leaves,
            lambda inner: (
                st.lists(inner, max_size=MAX_ITEMS)
                | st.dictionaries(texts(), inner, max_size=MAX_ITEMS)
            ),
            max_leaves=6,
        ),
    )


def json_objects() -> SearchStrategy[JsonObject]:
    """Make JSON objects, as metadata is."""
    return cast(
        "SearchStrategy[JsonObject]", st.dictionaries(texts(), json_values(), max_size=MAX_ITEMS)
    )


def values(kind: type[T]) -> SearchStrategy[T]:
    """Make values of a class of ``a2a_trio.wire``, also with REQUIRED members that are empty."""
    return _objects(kind, complete=False)


def requests(kind: type[T]) -> SearchStrategy[T]:
    """Make values of a class as ``decode_request`` accepts them."""
    return _objects(kind, complete=True)


def parts() -> SearchStrategy[Part]:
    """Make parts of all four kinds."""
    return requests(Part)


def messages() -> SearchStrategy[Message]:
    """Make complete messages of callers and agents."""
    return requests(Message)


def artifacts() -> SearchStrategy[Artifact]:
    """Make complete artifacts."""
    return requests(Artifact)


def statuses() -> SearchStrategy[TaskStatus]:
    """Make statuses in any state but unspecified."""
    return requests(TaskStatus)


def tasks() -> SearchStrategy[Task]:
    """Make complete tasks."""
    return requests(Task)


def status_updates() -> SearchStrategy[TaskStatusUpdateEvent]:
    """Make complete status updates."""
    return requests(TaskStatusUpdateEvent)


def artifact_updates() -> SearchStrategy[TaskArtifactUpdateEvent]:
    """Make complete artifact updates."""
    return requests(TaskArtifactUpdateEvent)


def stream_events() -> SearchStrategy[StreamEvent]:
    """Make what a stream carries."""
    return st.one_of(tasks(), messages(), status_updates(), artifact_updates())


def agent_cards() -> SearchStrategy[AgentCard]:
    """Make complete agent cards."""
    return requests(AgentCard)


# --- derivation -----------------------------------------------------------------------------


def _objects(kind: type[T], *, complete: bool) -> SearchStrategy[T]:
    """Derive the strategy of an attrs class from its fields."""
    fields = attrs.fields(cast("type[attrs.AttrsInstance]", kind))
    choices = objects.ONEOFS.get(kind, ())
    required: dict[str, SearchStrategy[Any]] = {}
    optional: dict[str, SearchStrategy[Any]] = {}
    alternatives: list[SearchStrategy[dict[str, Any]]] = []
    for field in fields:
        is_required = field.default is attrs.NOTHING
        member = _member(field.name, bare(field.type), complete=complete, required=is_required)
        if field.name in choices:
            alternatives.append(st.fixed_dictionaries({field.name: member}))
        elif is_required:
            required[field.name] = member
        else:
            optional[field.name] = member
    plain = st.fixed_dictionaries(required, optional=optional)
    if not alternatives:
        return plain.map(lambda found: kind(**found))
    return st.tuples(plain, st.one_of(alternatives)).map(lambda both: kind(**both[0], **both[1]))


def _member(name: str, kind: Any, *, complete: bool, required: bool) -> SearchStrategy[Any]:
    if name in FREE_OBJECTS or name == FREE_VALUE:
        return json_values() if name == FREE_VALUE else json_objects()
    if complete and name in _RANGES:
        return _RANGES[name]
    least = 1 if complete and required else 0
    origin = get_origin(kind)
    if origin is tuple:
        items = _item(get_args(kind)[0], complete=complete, least=least)
        return st.lists(items, min_size=least, max_size=MAX_ITEMS).map(tuple)
    if origin is not None:
        members = _item(get_args(kind)[1], complete=complete, least=0)
        return st.dictionaries(texts(), members, min_size=least, max_size=MAX_ITEMS)
    return _item(kind, complete=complete, least=least)


def _item(kind: Any, *, complete: bool, least: int) -> SearchStrategy[Any]:
    if kind is str:
        return texts(min_size=least)
    if isinstance(kind, type) and issubclass(kind, Enum):
        return st.sampled_from(list(kind)[1 if complete else 0 :])
    scalar = _SCALARS.get(kind)
    return scalar if scalar is not None else _objects(kind, complete=complete)


_SCALARS: Final[Mapping[type, SearchStrategy[Any]]] = {
    bool: st.booleans(),
    int: st.integers(-_INT32, _INT32 - 1),
    bytes: st.binary(max_size=12),
    datetime: timestamps(),
}
