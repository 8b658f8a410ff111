"""Folding chunks into artifacts."""

import attrs
from hypothesis import given, strategies as st

from a2a_trio.rules.folding import (
    artifact_weight,
    chunk_weight,
    fold,
    join_parts,
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
    assert join_parts((plain,), (code,)) == (plain, code)
    assert join_parts((code,), (code,)) == (Part(text="bb", media_type="text/x-python"),)
    data = Part(data={"k": 1})
    assert join_parts((plain,), (data, plain)) == (plain, data, plain)


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
