"""The outbound filter: no credential leaves this peer in a message, a result or an error.

What counts as a credential is in ``secret_shapes``, how text is searched in ``secret_stream``. Here
the search is applied to everything of a message or an artifact that can carry text: text parts, data
(keys and values), file names, URLs, text files, names, descriptions and metadata. Values without a
secret are returned unchanged, the same object where that is possible.
"""

import re
from collections.abc import Iterable, Mapping
from typing import Any, Final, TypeVar, final

import attrs

from a2a_trio.rules.secret_shapes import is_sensitive_name
from a2a_trio.rules.secret_stream import MAX_RUN, OwnSecrets, SecretStream
from a2a_trio.wire.json_text import MAX_DEPTH
from a2a_trio.wire.model import UNSET, Artifact, JsonObject, JsonValue, Message, Part

__all__ = ["MAX_OPEN_ARTIFACTS", "Redactor", "TaskRedactor"]


MAX_OPEN_ARTIFACTS: Final = 256
"""Artifacts of one task whose streams are followed at the same time. When more are open, the chunks
of a further one are judged one by one, as if each were complete."""

_SHORTEST: Final = 6
"""The shortest text that can hold anything to redact: ``a@b.cc``."""
_TOO_DEEP: Final = "[redacted-too-deep]"
_CREDENTIAL: Final = "[redacted-credential]"
_SENSITIVE_LENGTH: Final = 4
_ENDS_WITH_MARKER: Final = re.compile(r"\[redacted-[a-z-]{1,20}\]\Z")
_TEXT_TYPES: Final = ("text/", "application/json", "application/xml", "application/yaml",
                      "application/x-yaml", "application/toml", "application/x-sh",
                      "application/javascript", "application/x-ndjson")  # fmt: skip


Value = TypeVar("Value", Part, Message, Artifact)


@final
class Redactor:
    """Removes secrets from complete values.

    Args:
        secrets: secrets of our own settings, removed verbatim wherever they stand.
    """

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        self._own = OwnSecrets.prepare(secrets)

    def stream(self) -> SecretStream:
        """Return a filter for one text that arrives in pieces."""
        return SecretStream(self._own)

    def text(self, text: str) -> str:
        """Return the text with every secret replaced by a marker such as ``[redacted-api-key]``."""
        if len(text) < _SHORTEST:
            return text
        return self.stream().feed([text], final=True)[0]

    def texts(self, texts: list[str]) -> list[str]:
        """Return texts that are read one after another without secrets.

        They are searched as one text, since a secret may be split over them, and then each by
        itself: a word at the end of one must not hide the secret that the next begins with.
        """
        cleaned = self.stream().feed(texts, final=True)
        return cleaned if len(texts) < 2 else [self.text(text) for text in cleaned]  # noqa: PLR2004 - one text was searched by itself

    def message(self, message: Message) -> Message:
        """Return the message without secrets; also one that is split over text parts is found."""
        parts = tuple(_filled(self.parts(message.parts), self.texts(_texts(message.parts))))
        return _changed(message, parts=parts, metadata=self.metadata(message.metadata))

    def artifact(self, artifact: Artifact) -> Artifact:
        """Return a complete artifact without secrets."""
        parts = tuple(_filled(self.parts(artifact.parts), self.texts(_texts(artifact.parts))))
        return _changed(self.described(artifact), parts=parts)

    def value(self, value: JsonValue) -> JsonValue:
        """Return JSON without secrets in its keys and texts, however it is nested.

        A text under a name like ``password`` or ``clientSecret`` is replaced whole.
        """
        return self._value(value, 0)

    # --- for this module ------------------------------------------------------------------

    def described(self, artifact: Artifact) -> Artifact:
        """Return the artifact with clean name, description and metadata; parts are as they were."""
        return _changed(
            artifact,
            name=self.text(artifact.name),
            description=self.text(artifact.description),
            metadata=self.metadata(artifact.metadata),
        )

    def metadata(self, metadata: JsonObject) -> JsonObject:
        """Return metadata without secrets."""
        if not metadata:
            return metadata
        cleaned = self._value(dict(metadata), 0)
        return cleaned if isinstance(cleaned, dict) else {}

    def parts(self, parts: tuple[Part, ...]) -> Iterable[Part]:
        """Yield the parts with everything clean but their text, which needs its neighbours."""
        for part in parts:
            yield _changed(
                part,
                url=None if part.url is None else self.text(part.url),
                data=UNSET if part.data is UNSET else self._value(part.data, 0),
                raw=self._file(part),
                filename=self.text(part.filename),
                metadata=self.metadata(part.metadata),
            )

    def _file(self, part: Part) -> bytes | None:
        """Clean a file that says it is text; other files pass as they are."""
        if part.raw is None or not part.media_type.lower().startswith(_TEXT_TYPES):
            return part.raw
        try:
            text = part.raw.decode("utf-8")
        except UnicodeDecodeError:
            return part.raw
        return self.text(text).encode("utf-8")

    def _value(self, value: JsonValue, depth: int) -> JsonValue:
        if isinstance(value, str):
            return self.text(value)
        if not isinstance(value, (list, Mapping)):
            return value
        if depth >= MAX_DEPTH:  # peers refuse to read what is deeper
            return _TOO_DEEP
        if isinstance(value, list):
            return [self._value(item, depth + 1) for item in value]
        cleaned: dict[str, JsonValue] = {}
        for key, item in value.items():
            name = self.text(key)
            while name in cleaned:
                name += "*"
            if (
                isinstance(item, str)
                and len(item) >= _SENSITIVE_LENGTH
                and is_sensitive_name(key)
                and not item.startswith("[redacted")
            ):
                cleaned[name] = _CREDENTIAL
            else:
                cleaned[name] = self._value(item, depth + 1)
        return cleaned


def _texts(parts: tuple[Part, ...]) -> list[str]:
    return [part.text for part in parts if part.text is not None]


def _filled(parts: Iterable[Part], texts: list[str]) -> Iterable[Part]:
    """Put the cleaned texts back into the parts that had them."""
    waiting = iter(texts)
    for part in parts:
        yield part if part.text is None else _changed(part, text=next(waiting))


def _changed(value: Value, **members: Any) -> Value:
    """Return the value with these members; the same object if it has them already."""
    if all(getattr(value, name) == member for name, member in members.items()):
        return value
    return attrs.evolve(value, **members)


@attrs.define
class _OpenArtifact:
    """What is remembered of an artifact between its chunks."""

    stream: SecretStream
    head: Artifact | None
    """The first chunk's name, description, metadata and extensions, until something is published."""
    media_type: str = ""
    """Of the text part whose end is held."""


@final
class TaskRedactor:
    """Removes secrets from what one task publishes, also those split over chunks.

    Per artifact the end of the text that might be the beginning of a secret, usually the last word
    and at most ``MAX_RUN`` characters or the longest own secret, is held back and published with the
    next chunk, with the last one, or by ``pending``. So a secret never passes, however it is split;
    a run of characters longer than the bound is published or removed window by window.

    Status messages cannot wait. A message that completes a secret which the one before began loses
    its part of it, but what was already sent cannot be called back.
    """

    def __init__(self, redactor: Redactor) -> None:
        self._redactor = redactor
        self._open: dict[str, _OpenArtifact] = {}
        self._said = ""

    def message(self, message: Message) -> Message:
        """Return a status message without secrets."""
        redactor = self._redactor
        texts = _texts(message.parts)
        said = self._unfinished()
        if said:
            before, *cleaned = redactor.texts([said, *texts])
            completed = _ENDS_WITH_MARKER.search(before)
            if completed is not None and cleaned:
                cleaned[0] = completed.group() + cleaned[0]
        else:
            cleaned = redactor.texts(texts)
        self._said = (self._said + "".join(texts))[-MAX_RUN:]
        parts = tuple(_filled(redactor.parts(message.parts), cleaned))
        return _changed(message, parts=parts, metadata=redactor.metadata(message.metadata))

    def _unfinished(self) -> str:
        """Return what was said before, unless it ended with a whole secret.

        A status that ends with an address and one that begins with a word are not one word.
        """
        ended = _ENDS_WITH_MARKER.search(self._redactor.text(self._said))
        return self._said if ended is None else ""

    def artifact(self, artifact: Artifact, *, append: bool, last: bool) -> Artifact:
        """Return what may be published of a chunk.

        The result without parts means "publish nothing yet", unless ``last`` is true. Name,
        description, metadata and extensions of a first chunk of which nothing was published come
        with the first chunk of which something is.

        Args:
            artifact: the chunk, or the whole artifact.
            append: false begins the artifact anew; what was held of it is dropped.
            last: nothing of the artifact follows, so nothing is held.
        """
        held = self._open.pop(artifact.artifact_id, None)
        if held is None or not append:
            held = _OpenArtifact(self._redactor.stream(), None)
        last_now = last or len(self._open) >= MAX_OPEN_ARTIFACTS
        chunk = self._with_head(held, self._redactor.described(artifact))
        was_held = held.stream.held
        texts = _texts(artifact.parts)
        cleaned = held.stream.feed(texts, final=last_now)
        parts = _published(self._redactor.parts(artifact.parts), texts, cleaned)
        if last_now and not texts and was_held:
            parts += (Part(text="".join(cleaned), media_type=held.media_type),)
        for part in artifact.parts:
            if part.text is not None:
                held.media_type = part.media_type
        if not last_now:
            held.head = None if parts else attrs.evolve(chunk, parts=())
            self._open[artifact.artifact_id] = held
        return _changed(chunk, parts=parts)

    def pending(self) -> tuple[Artifact, ...]:
        """Return what is still held of every artifact, to be published as append chunks; once."""
        chunks = []
        for artifact_id, held in self._open.items():
            chunk = held.head or Artifact(artifact_id=artifact_id, parts=())
            if held.stream.held:
                text = "".join(held.stream.feed([], final=True))
                chunk = attrs.evolve(chunk, parts=(Part(text=text, media_type=held.media_type),))
            if chunk.parts:
                chunks.append(chunk)
        self._open.clear()
        return tuple(chunks)

    @staticmethod
    def _with_head(held: _OpenArtifact, chunk: Artifact) -> Artifact:
        head = held.head
        if head is None:
            return chunk
        return attrs.evolve(
            chunk,
            name=chunk.name or head.name,
            description=chunk.description or head.description,
            metadata={**head.metadata, **chunk.metadata},
            extensions=tuple(dict.fromkeys((*head.extensions, *chunk.extensions))),
        )


def _published(parts: Iterable[Part], before: list[str], after: list[str]) -> tuple[Part, ...]:
    """Return the parts with their cleaned texts, without those of which all text is held."""
    held = {index for index, text in enumerate(before) if text and not after[index]}
    published = []
    index = -1
    for part in _filled(parts, after):
        index += part.text is not None
        if part.text is None or index not in held:
            published.append(part)
    return tuple(published)
