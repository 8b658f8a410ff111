"""Folding a stream: the same result as the server's rules, and bounded."""

from functools import reduce

import pytest
from hypothesis import given, strategies as st

from a2a_trio.client.fold import TaskFold
from a2a_trio.errors import PeerProtocolError
from a2a_trio.rules.folding import fold
from a2a_trio.wire.model import (
    Artifact,
    Part,
    Task,
    TaskArtifactUpdateEvent,
    TaskState,
    TaskStatus,
)

parts = st.one_of(
    st.builds(Part, text=st.text(max_size=3), media_type=st.sampled_from(["", "text/plain"])),
    st.builds(Part, data=st.integers()),
)
artifacts = st.builds(
    Artifact,
    artifact_id=st.sampled_from("ab"),
    parts=st.lists(parts, max_size=3).map(tuple),
    name=st.sampled_from(["", "n"]),
    metadata=st.dictionaries(st.sampled_from("xy"), st.integers(), max_size=2),
)
updates = st.builds(
    TaskArtifactUpdateEvent,
    task_id=st.just("t1"),
    context_id=st.just("c1"),
    artifact=artifacts,
    append=st.booleans(),
)


@given(events=st.lists(updates, max_size=12), looks=st.sets(st.integers(0, 11)))
def test_folds_as_the_server_does(events: list[TaskArtifactUpdateEvent], looks: set[int]) -> None:
    """The reader of a stream and the caller of GetTask see the same artifacts, whenever they look."""
    folded = TaskFold(10**9, "")
    for index, event in enumerate(events):
        folded.apply(event)
        if index in looks:
            assert folded.task is not None
    nothing: tuple[Artifact, ...] = ()
    expected = reduce(fold, events, nothing)
    assert (folded.task.artifacts if folded.task is not None else ()) == expected


def snapshot(text: str) -> Task:
    return Task(
        id="t1",
        status=TaskStatus(state=TaskState.WORKING),
        artifacts=(Artifact(artifact_id="a", parts=(Part(text=text),)),),
    )


def chunk(text: str) -> TaskArtifactUpdateEvent:
    return TaskArtifactUpdateEvent(
        task_id="t1",
        context_id="c1",
        artifact=Artifact(artifact_id="a", parts=(Part(text=text),)),
        append=True,
    )


def test_snapshot_replaces() -> None:
    """A whole task says everything anew."""
    folded = TaskFold(10_000, "")
    for _ in range(1_000):
        folded.apply(snapshot("x" * 1_000))
    assert folded.task == snapshot("x" * 1_000)


def test_bound() -> None:
    """What is kept is bounded, by what is kept now and not by what came."""
    folded = TaskFold(10_000, "")
    for _ in range(9):
        folded.apply(chunk("x" * 1_000))
    with pytest.raises(PeerProtocolError, match="larger than the 10000 bytes"):
        folded.apply(chunk("x" * 1_000))


def test_many_empty_artifacts_are_bounded() -> None:
    """Artifacts without content weigh something, too."""
    folded = TaskFold(10_000, "")

    def fill() -> None:
        for number in range(1_000):
            artifact = Artifact(artifact_id=str(number), parts=())
            folded.apply(TaskArtifactUpdateEvent(task_id="t1", context_id="", artifact=artifact))

    with pytest.raises(PeerProtocolError, match="larger"):
        fill()


def test_metadata_that_grows_is_bounded() -> None:
    """Chunks without parts fold their metadata, which counts as well."""
    folded = TaskFold(10_000, "")

    def fill() -> None:
        for number in range(1_000):
            artifact = Artifact(artifact_id="a", parts=(), metadata={f"key {number}": "x" * 100})
            folded.apply(
                TaskArtifactUpdateEvent(task_id="t1", context_id="", artifact=artifact, append=True)
            )

    with pytest.raises(PeerProtocolError, match="larger"):
        fill()
