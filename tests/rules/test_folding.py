"""Folding chunks into artifacts."""

import attrs
from hypothesis import given, strategies as st

from a2a_trio.rules.folding import (
    artifact_weight,
    chunk_weight,
    fold,
    message_weight,
    weight,
)
from a2a_trio.wire.model import Artifact, Message, Part, Role, TaskArtifactUpdateEvent


def update(
    text: str, *, key: str = "a", append: bool = True, name: str = ""
) -> TaskArtifactUpdateEvent:
    artifact = Artifact(artifact_id=key, name=name, parts=(Part(text=text),))
    return TaskArtifactUpdateEvent(task_id="t", context_id="c", artifact=artifact, append=append)


@given(st.lists(st.text(max_size=5), min_size=1, max_size=20))
def test_streamed_text_is_one_part_afterwards(chunks: list[str]) -> None:
    artifacts: tuple[Artifact, ...] = ()
    for chunk in chunks:
        artifacts = fold(artifacts, update(chunk))
    assert [p.text for p in artifacts[0].parts] == ["".join(chunks)]


def test_an_append_keeps_the_name_and_place_of_its_artifact() -> None:
    artifacts = fold((), update("1", name="first", append=False))
    artifacts = fold(artifacts, update("2", key="b"))
    artifacts = fold(artifacts, update("3"))
    assert [(a.artifact_id, a.name, a.text) for a in artifacts] == [
        ("a", "first", "13"),
        ("b", "", "2"),
    ]


def test_without_append_the_artifact_is_replaced() -> None:
    artifacts = fold(fold((), update("old")), update("new", append=False))
    assert [a.text for a in artifacts] == ["new"]


def test_parts_with_different_labels_stay_apart() -> None:
    plain, code = Part(text="a"), Part(text="b", media_type="text/x-python")
    data = Part(data={"k": 1})

    def joined(known: tuple[Part, ...], more: tuple[Part, ...]) -> tuple[Part, ...]:
        first, second = (
            TaskArtifactUpdateEvent(
                task_id="t",
                context_id="c",
                artifact=Artifact(artifact_id="a", parts=parts),
                append=True,
            )
            for parts in (known, more)
        )
        return fold(fold((), first), second)[0].parts

    assert joined((plain,), (code,)) == (plain, code)
    assert joined((code,), (code,)) == (Part(text="bb", media_type="text/x-python"),)
    assert joined((plain,), (data, plain)) == (plain, data, plain)
    assert joined((), (plain,)) == joined((plain,), ()) == (plain,)


PARTS = st.lists(
    st.sampled_from(
        [
            Part(text="a"),
            Part(text=""),
            Part(text="b", media_type="text/x-python"),
            Part(data={"k": 1}),
            Part(text="c", metadata={"k": 2}),
        ]
    ),
    max_size=3,
).map(tuple)
UPDATES = st.lists(
    st.builds(
        lambda key, parts, metadata, append: TaskArtifactUpdateEvent(
            task_id="t",
            context_id="c",
            artifact=Artifact(artifact_id=key, parts=parts, metadata=metadata),
            append=append,
        ),
        st.sampled_from("abc"),
        PARTS,
        st.sampled_from([{}, {"x": 1}, {"x": 2, "y": 3}]),
        st.sampled_from([True, True, True, False]),
    ),
    max_size=12,
)


def fold_one(
    artifacts: tuple[Artifact, ...], event: TaskArtifactUpdateEvent
) -> tuple[Artifact, ...]:
    """Fold one update in the plainest way."""
    chunk = event.artifact
    for index, known in enumerate(artifacts):
        if known.artifact_id == chunk.artifact_id:
            merged = chunk
            if event.append:
                parts = known.parts + chunk.parts
                if known.parts and chunk.parts:
                    left, right = known.parts[-1], chunk.parts[0]
                    if (
                        left.text is not None
                        and right.text is not None
                        and attrs.evolve(left, text="") == attrs.evolve(right, text="")
                    ):
                        joined = attrs.evolve(left, text=left.text + right.text)
                        parts = (*known.parts[:-1], joined, *chunk.parts[1:])
                metadata = {**known.metadata, **chunk.metadata}
                merged = attrs.evolve(known, parts=parts, metadata=metadata)
            return (*artifacts[:index], merged, *artifacts[index + 1 :])
    return (*artifacts, chunk)


@given(UPDATES, st.integers(0, 12))
def test_folding_at_once_or_one_after_another_is_the_same(
    updates: list[TaskArtifactUpdateEvent], cut: int
) -> None:
    artifacts: tuple[Artifact, ...] = ()
    for event in updates:
        artifacts = fold_one(artifacts, event)
    assert fold((), *updates) == artifacts
    assert fold(fold((), *updates[:cut]), *updates[cut:]) == artifacts


def test_weight_grows_with_content() -> None:
    assert weight((Part(text="x" * 1000),)) >= 1000
    assert weight((Part(raw=b"x" * 1000),)) >= 1000
    assert weight((Part(data={"k" * 500: ["v" * 500]}),)) >= 1000
    assert weight((Part(url="http://x", metadata={"k": "v" * 1000}),)) >= 1000


def test_whatever_a_peer_may_fill_weighs_something() -> None:
    """A bound in bytes counts every member that can be made large, not the parts alone."""
    long, many = "x" * 1000, tuple("x" * 10 for _ in range(100))
    empty = Message(message_id="m", role=Role.USER, parts=())
    for filled in (
        attrs.evolve(empty, message_id=long),
        attrs.evolve(empty, extensions=many),
        attrs.evolve(empty, reference_task_ids=many),
        attrs.evolve(empty, metadata={"k": long}),
    ):
        assert message_weight(filled) >= message_weight(empty) + 900
    bare = Artifact(artifact_id="a", parts=())
    for grown in (
        attrs.evolve(bare, artifact_id=long),
        attrs.evolve(bare, name=long),
        attrs.evolve(bare, description=long),
        attrs.evolve(bare, extensions=many),
        attrs.evolve(bare, metadata={"k": long}),
    ):
        assert artifact_weight(grown) >= artifact_weight(bare) + 900
    assert chunk_weight(attrs.evolve(bare, metadata={"k": long})) >= 1000
