"""Builds the message that leaves: ids, conversation, delegation chain, redaction."""

import uuid
from collections.abc import Callable, Iterable, Mapping
from typing import Final, TypeAlias, TypedDict

import attrs

from a2a_trio.client.options import ClientOptions
from a2a_trio.rules import delegation
from a2a_trio.wire.extensions import DELEGATION_EXTENSION
from a2a_trio.wire.model import (
    EMPTY,
    UNSET,
    JsonObject,
    JsonValue,
    Message,
    Part,
    Role,
)
from a2a_trio.wire.requests import SendMessageConfiguration, SendMessageRequest

__all__ = ["Content", "MessageOptions", "compose", "request_for"]

Content: TypeAlias = str | Message | Part | Iterable[Part]
"""What can be sent: a text, a part or several, or a whole message."""


class MessageOptions(TypedDict, total=False):
    """What may be said about a message besides the conversation it belongs to."""

    history_length: int | None
    accepted_output_modes: Iterable[str]
    metadata: JsonObject | None
    idempotency_key: str | None


_MAX_DEPTH: Final = 200
"""How deep data is searched for secrets; what is deeper the codec does not write either."""


def compose(
    content: Content,
    *,
    context_id: str,
    task_id: str,
    metadata: JsonObject | None,
    options: ClientOptions,
) -> Message:
    """Return the message to send.

    Args:
        content: a ready message keeps its id and what the other arguments leave empty.
        context_id: the conversation to continue, or ``""``.
        task_id: the task to continue, or ``""``.
        metadata: added to the message's own.
        options: the redaction hook, and this peer's id in the delegation chain.

    Raises:
        ValueError: there is nothing to say, or the delegation chain cannot be extended.
    """
    message = content if isinstance(content, Message) else _message(content)
    if not message.parts or (content == "" and isinstance(content, str)):
        raise ValueError("a message needs text or parts")
    redact = options.redact
    all_metadata = {**message.metadata, **(metadata or EMPTY)}
    extensions = message.extensions
    if options.self_id:
        all_metadata = delegation.extend(all_metadata, self_id=options.self_id)
    if DELEGATION_EXTENSION in all_metadata and DELEGATION_EXTENSION not in extensions:
        extensions = (*extensions, DELEGATION_EXTENSION)
    return attrs.evolve(
        message,
        parts=tuple(_redact_part(part, redact) for part in message.parts),
        context_id=context_id or message.context_id,
        task_id=task_id or message.task_id,
        metadata=_redact_metadata(all_metadata, redact),
        extensions=extensions,
    )


def request_for(
    message: Message, options: MessageOptions, *, return_immediately: bool
) -> SendMessageRequest:
    """Return the parameters of a send; a configuration that says nothing is left out."""
    modes = tuple(options.get("accepted_output_modes", ()))
    history_length = options.get("history_length")
    configuration: SendMessageConfiguration | None = None
    if modes or history_length is not None or return_immediately:
        configuration = SendMessageConfiguration(
            accepted_output_modes=modes,
            history_length=history_length,
            return_immediately=return_immediately,
        )
    return SendMessageRequest(message=message, configuration=configuration)


def _message(content: str | Part | Iterable[Part]) -> Message:
    if isinstance(content, str):
        parts: tuple[Part, ...] = (Part(text=content),)
    elif isinstance(content, Part):
        parts = (content,)
    else:
        parts = tuple(content)
    return Message(message_id=str(uuid.uuid4()), role=Role.USER, parts=parts)


def _redact_part(part: Part, redact: Callable[[str], str]) -> Part:
    return attrs.evolve(
        part,
        text=None if part.text is None else redact(part.text),
        url=None if part.url is None else redact(part.url),
        data=UNSET if part.data is UNSET else _redact_value(part.data, redact),
        filename=redact(part.filename) if part.filename else "",
        metadata=_redact_metadata(part.metadata, redact),
    )


def _redact_metadata(metadata: JsonObject, redact: Callable[[str], str]) -> JsonObject:
    """Redact every text but those of the delegation chain, which are names and must match."""
    return {
        key: value if key == DELEGATION_EXTENSION else _redact_value(value, redact)
        for key, value in metadata.items()
    }


def _redact_value(value: JsonValue, redact: Callable[[str], str], depth: int = 0) -> JsonValue:
    if isinstance(value, str):
        return redact(value)
    if depth > _MAX_DEPTH:
        return None
    if isinstance(value, Mapping):
        return {k: _redact_value(v, redact, depth + 1) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [_redact_value(v, redact, depth + 1) for v in value]
    return value
