"""How artifact chunks fold into the artifacts of a task (A2A section 4.2.2), and what they weigh.

Server and client fold with the same functions, so what a stream's reader has put together is what
``GetTask`` answers. Neighbouring plain text parts are joined: a sentence that was streamed in five
chunks is one text part afterwards.
"""

from typing import Final

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


def fold(artifacts: tuple[Artifact, ...], event: TaskArtifactUpdateEvent) -> tuple[Artifact, ...]:
    """Return the artifacts after one update; an ``append`` to an unknown id creates the artifact."""
    for index, known in enumerate(artifacts):
        if known.artifact_id == event.artifact.artifact_id:
            merged = _extend(known, event.artifact) if event.append else event.artifact
            return (*artifacts[:index], merged, *artifacts[index + 1 :])
    return (*artifacts, event.artifact)


def _extend(known: Artifact, chunk: Artifact) -> Artifact:
    return attrs.evolve(
        known,
        parts=join_parts(known.parts, chunk.parts),
        metadata={**known.metadata, **chunk.metadata} if chunk.metadata else known.metadata,
    )


def join_parts(known: tuple[Part, ...], more: tuple[Part, ...]) -> tuple[Part, ...]:
    """Concatenate parts; where two text parts with the same labels meet, they become one."""
    if not known or not more:
        return known or more
    left, right = known[-1], more[0]
    if left.text is None or right.text is None or not _same_labels(left, right):
        return known + more
    joined = attrs.evolve(left, text=left.text + right.text)
    return (*known[:-1], joined, *more[1:])


def _same_labels(left: Part, right: Part) -> bool:
    return (
        left.media_type == right.media_type
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
