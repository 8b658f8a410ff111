"""How long the names in a request may be.

Ids and URIs are kept with every event of a task and shown on every frame of its streams, so one long
id would cost its length a thousand times. Content has its own bounds, in bytes.
"""

from collections.abc import Iterable, Iterator
from typing import Final

from a2a_trio.errors import FieldViolation
from a2a_trio.wire.methods import Params
from a2a_trio.wire.model import Message
from a2a_trio.wire.requests import SendMessageRequest

__all__ = ["MAX_NAME", "MAX_NAMES", "violations"]

MAX_NAME: Final = 512
"""Characters of an id or a URI; a UUID has 36."""
MAX_NAMES: Final = 100
"""Members of a list of ids or URIs."""

_SINGLE: Final = (
    ("tenant", "tenant"),
    ("id", "id"),
    ("task_id", "taskId"),
    ("context_id", "contextId"),
)
"""Attributes that any request may have, with their JSON names."""


def violations(params: Params) -> tuple[FieldViolation, ...]:
    """Return the ids of a request that are too long, and the lists of them that are."""
    return tuple(_all(params))


def _all(params: Params) -> Iterator[FieldViolation]:
    for attribute, field in _SINGLE:
        value: str = getattr(params, attribute, "")
        if len(value) > MAX_NAME:
            yield _too_long(field)
    if isinstance(params, SendMessageRequest):
        yield from _of_message(params.message)


def _of_message(message: Message) -> Iterator[FieldViolation]:
    for field, value in (
        ("messageId", message.message_id),
        ("contextId", message.context_id),
        ("taskId", message.task_id),
    ):
        if len(value) > MAX_NAME:
            yield _too_long(f"message.{field}")
    yield from _of_list("message.extensions", message.extensions)
    yield from _of_list("message.referenceTaskIds", message.reference_task_ids)


def _of_list(field: str, values: tuple[str, ...]) -> Iterable[FieldViolation]:
    if len(values) > MAX_NAMES:
        return (FieldViolation(field=field, description=f"has more than {MAX_NAMES} members"),)
    return (_too_long(f"{field}[{n}]") for n, value in enumerate(values) if len(value) > MAX_NAME)


def _too_long(field: str) -> FieldViolation:
    return FieldViolation(field=field, description=f"is longer than {MAX_NAME} characters")
