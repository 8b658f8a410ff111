"""How artifact chunks fold into the artifacts of a task (A2A section 4.2.2), and what they weigh.

Server and client fold with the same functions, so what a stream's reader has put together is what
``GetTask`` answers. Neighbouring plain text parts are joined: a sentence that was streamed in five
chunks is one text part afterwards.
"""

from typing import Final, final

import attrs

from a2a_trio.wire.model import (
    UNSET,
    Artifact,
    JsonObject,
    JsonValue,
    Message,
    Part,
    TaskArtifactUpdateEvent,
)

_ARTIFACT_OVERHEAD: Final = 256
"""What an artifact weighs besides its content: its object, its place in tables."""
_PART_OVERHEAD: Final = 64
"""What a part weighs besides its content: its object, its place in a tuple."""
_NODE_OVERHEAD: Final = 16
"""What one JSON value weighs besides its text."""


def fold(artifacts: tuple[Artifact, ...], *events: TaskArtifactUpdateEvent) -> tuple[Artifact, ...]:
    """Return the artifacts, whose ids are unique, after updates; each text is joined once.

    An ``append`` to an unknown id creates the artifact.
    """
    drafts = {artifact.artifact_id: Draft(artifact) for artifact in artifacts}
    for event in events:
        draft = drafts.get(event.artifact.artifact_id)
        if draft is not None and event.append:
            draft.append(event.artifact)
        else:
            drafts[event.artifact.artifact_id] = Draft(event.artifact)
    return tuple(draft.artifact() for draft in drafts.values())


@final
class Draft:
    """An artifact that grows; its text is joined when somebody looks, so chunks cost linear time."""

    def __init__(self, artifact: Artifact) -> None:
        self._head = artifact
        self._parts = list(artifact.parts)
        self._tail: list[str] = []  # text that belongs at the end of the last part
        self._metadata = artifact.metadata
        self._grown = False

    def append(self, chunk: Artifact) -> None:
        """Add a chunk; where two text parts with the same labels meet, they become one."""
        self._grown = True
        parts = chunk.parts
        if self._parts and parts and _become_one(self._parts[-1], parts[0]):
            self._tail.append(parts[0].text or "")
            parts = parts[1:]
        if parts:
            self._settle()
            self._parts.extend(parts)
        if chunk.metadata:
            self._metadata = {**self._metadata, **chunk.metadata}

    def artifact(self) -> Artifact:
        """Return the artifact as it is now."""
        if not self._grown:
            return self._head
        self._settle()
        return attrs.evolve(self._head, parts=tuple(self._parts), metadata=self._metadata)

    def _settle(self) -> None:
        if self._tail:
            last = self._parts[-1]
            self._parts[-1] = attrs.evolve(last, text="".join((last.text or "", *self._tail)))
            self._tail.clear()


def _become_one(left: Part, right: Part) -> bool:
    """Tell whether two parts that meet are one text."""
    return (
        left.text is not None
        and right.text is not None
        and left.media_type == right.media_type
        and left.filename == right.filename
        and left.metadata == right.metadata
    )


def weight(parts: tuple[Part, ...]) -> int:
    """Return roughly how many bytes the parts keep in memory."""
    return sum(_part_weight(part) for part in parts)


def message_weight(message: Message) -> int:
    """Return roughly how many bytes the message keeps in memory."""
    ids = (message.message_id, *message.extensions, *message.reference_task_ids)
    names = sum(_NODE_OVERHEAD + len(text) for text in ids)
    return names + weight(message.parts) + _metadata_weight(message.metadata)


def chunk_weight(chunk: Artifact) -> int:
    """Return roughly how many bytes a chunk adds to the artifact that it is appended to."""
    return weight(chunk.parts) + _metadata_weight(chunk.metadata)


def artifact_weight(artifact: Artifact) -> int:
    """Return roughly how many bytes the artifact keeps in memory."""
    names = (artifact.artifact_id, artifact.name, artifact.description, *artifact.extensions)
    return _ARTIFACT_OVERHEAD + sum(map(len, names)) + chunk_weight(artifact)


def _part_weight(part: Part) -> int:
    total = _PART_OVERHEAD + len(part.filename) + len(part.media_type)
    if part.text is not None:
        total += len(part.text)
    elif part.raw is not None:
        total += len(part.raw)
    elif part.url is not None:
        total += len(part.url)
    elif part.data is not UNSET:
        total += _json_weight(part.data)
    return total + _metadata_weight(part.metadata)


def _metadata_weight(metadata: JsonObject) -> int:
    return _json_weight(dict(metadata)) if metadata else 0


def _json_weight(value: JsonValue) -> int:
    total = 0
    pending: list[JsonValue] = [value]
    while pending:
        item = pending.pop()
        total += _NODE_OVERHEAD
        if isinstance(item, str):
            total += len(item)
        elif isinstance(item, dict):
            total += sum(map(len, item))
            pending.extend(item.values())
        elif isinstance(item, list):
            pending.extend(item)
    return total
