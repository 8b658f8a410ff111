"""The life cycle: the table against a naive model, histories, artifacts, versions, bounds."""

from datetime import UTC, datetime, timedelta

import attrs
import pytest
from hypothesis import given, strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from a2a_trio.errors import InvalidTransitionError
from a2a_trio.rules.folding import fold
from a2a_trio.rules.lifecycle import (
    MAX_UNFOLDED,
    TRANSITIONS,
    Answered,
    ArtifactAdded,
    AuthNeeded,
    Canceled,
    Completed,
    Failed,
    InputNeeded,
    MessageReceived,
    Progressed,
    RecordLimits,
    Rejected,
    Resumed,
    Started,
    TaskEvent,
    TaskRecord,
    TaskTooLargeError,
    apply,
    closes_stream,
)
from a2a_trio.wire.model import (
    Artifact,
    Message,
    Part,
    Role,
    Task,
    TaskArtifactUpdateEvent,
    TaskState,
    TaskStatus,
    TaskStatusUpdateEvent,
)

NOW = datetime(2026, 1, 1, tzinfo=UTC)
LIMITS = RecordLimits()
S = TaskState


def message(text: str, role: Role = Role.AGENT) -> Message:
    return Message(message_id=text, role=role, parts=(Part(text=text),))


def record(state: TaskState = S.SUBMITTED) -> TaskRecord:
    status = TaskStatus(state=state, timestamp=NOW)
    heard = message("hi", Role.USER)
    return TaskRecord(
        task=Task(id="t", context_id="c", status=status, history=(heard,)), owner="me"
    )


def artifact(text: str, key: str = "a") -> Artifact:
    return Artifact(artifact_id=key, parts=(Part(text=text),))


ALL: dict[type[TaskEvent], TaskEvent] = {
    Started: Started(),
    Progressed: Progressed(message("p")),
    ArtifactAdded: ArtifactAdded(artifact("x"), append=True),
    MessageReceived: MessageReceived(message("m", Role.USER)),
    InputNeeded: InputNeeded(message("q")),
    AuthNeeded: AuthNeeded(message("q")),
    Answered: Answered(message("a", Role.USER)),
    Resumed: Resumed(),
    Completed: Completed(),
    Failed: Failed(message("f")),
    Canceled: Canceled(),
    Rejected: Rejected(message("r")),
}

EXPECTED = {
    S.SUBMITTED: {"Started": S.WORKING, "Rejected": S.REJECTED},
    S.WORKING: {
        "Progressed": S.WORKING,
        "ArtifactAdded": S.WORKING,
        "MessageReceived": S.WORKING,
        "InputNeeded": S.INPUT_REQUIRED,
        "AuthNeeded": S.AUTH_REQUIRED,
        "Completed": S.COMPLETED,
        "Rejected": S.REJECTED,
    },
    S.INPUT_REQUIRED: {"Answered": S.WORKING, "Resumed": S.WORKING},
    S.AUTH_REQUIRED: {"Answered": S.WORKING, "Resumed": S.WORKING},
}
"""Besides, whatever has not ended can fail and be cancelled."""


@pytest.mark.parametrize("state", [s for s in TaskState if s is not S.UNSPECIFIED])
@pytest.mark.parametrize("kind", list(ALL))
def test_every_cell_of_the_table(state: TaskState, kind: type[TaskEvent]) -> None:
    expected = EXPECTED.get(state, {}).get(kind.__name__)
    if not state.is_terminal and kind in {Failed, Canceled}:
        expected = S.FAILED if kind is Failed else S.CANCELED
    before = record(state)
    if expected is None:
        with pytest.raises(InvalidTransitionError, match=kind.__name__):
            apply(before, ALL[kind], NOW, LIMITS)
        return
    after, events = apply(before, ALL[kind], NOW, LIMITS)
    assert after.state is expected
    assert after.version == before.version + len(events) == 1


def test_every_event_stands_in_the_table() -> None:
    known = {kind for row in TRANSITIONS.values() for kind in row}
    assert known == set(ALL)


def test_status_message_becomes_history_when_the_next_status_comes() -> None:
    current = record(S.WORKING)
    for event in (Progressed(message("one")), Progressed(message("two")), Completed()):
        current, _ = apply(current, event, NOW, LIMITS)
    assert [m.text for m in current.task.history] == ["hi", "one", "two"]
    assert current.task.status.message is None


def test_question_and_answer_stand_in_the_order_said() -> None:
    current = record(S.WORKING)
    for event in (InputNeeded(message("?")), Answered(message("!", Role.USER))):
        current, _ = apply(current, event, NOW, LIMITS)
    assert [m.text for m in current.task.history] == ["hi", "?", "!"]


def test_time_never_runs_backwards() -> None:
    current, _ = apply(record(S.WORKING), Progressed(message("p")), NOW - timedelta(days=1), LIMITS)
    assert current.task.status.timestamp == NOW


def test_history_keeps_the_newest() -> None:
    current, limits = record(S.WORKING), RecordLimits(max_history=3)
    for number in range(10):
        current, _ = apply(current, Progressed(message(str(number))), NOW, limits)
    assert [m.text for m in current.task.history] == ["6", "7", "8"]


def test_what_history_drops_no_longer_counts() -> None:
    """A long talk with a short memory never becomes too large."""
    limits = RecordLimits(max_history=2, max_bytes=6000)
    current = record(S.WORKING)
    for number in range(50):
        current, _ = apply(current, Progressed(message(f"{number:0500}")), NOW, limits)
    assert current.size < 6000


def test_size_is_bounded_and_the_end_still_fits() -> None:
    limits = RecordLimits(max_bytes=1500)
    current = record(S.WORKING)
    current, _ = apply(current, ArtifactAdded(artifact("x" * 800)), NOW, limits)
    with pytest.raises(TaskTooLargeError, match="1500 bytes"):
        apply(current, ArtifactAdded(artifact("x" * 800), append=True), NOW, limits)
    replaced, _ = apply(current, ArtifactAdded(artifact("y" * 800)), NOW, limits)
    assert replaced.task.artifacts[0].text == "y" * 800
    failed, _ = apply(current, Failed(message("z" * 500)), NOW, limits)
    assert failed.state is S.FAILED


def test_chunks_join_and_the_last_one_seals() -> None:
    current = record(S.WORKING)
    for text, last in (("Hello ", False), ("wor", False), ("ld", True)):
        current, _ = apply(
            current, ArtifactAdded(artifact(text), append=True, last=last), NOW, LIMITS
        )
    assert [p.text for p in current.task.artifacts[0].parts] == ["Hello world"]
    with pytest.raises(InvalidTransitionError, match="last chunk"):
        apply(current, ArtifactAdded(artifact("!"), append=True), NOW, LIMITS)
    again, _ = apply(current, ArtifactAdded(artifact("anew")), NOW, LIMITS)
    assert again.task.artifacts[0].text == "anew"


def test_which_events_close_a_stream() -> None:
    def status(state: TaskState) -> TaskStatusUpdateEvent:
        return TaskStatusUpdateEvent(task_id="t", context_id="c", status=TaskStatus(state=state))

    closing = {s for s in TaskState if closes_stream(status(s))}
    assert closing == {S.COMPLETED, S.FAILED, S.CANCELED, S.REJECTED, S.INPUT_REQUIRED}
    assert closes_stream(record(S.COMPLETED).task)
    assert not closes_stream(record(S.AUTH_REQUIRED).task)
    assert closes_stream(message("only answer"))


events_of_agents = st.one_of(
    st.sampled_from([e for k, e in ALL.items() if k is not ArtifactAdded]),
    st.builds(
        ArtifactAdded,
        st.builds(artifact, st.text(max_size=5), st.sampled_from("ab")),
        append=st.booleans(),
        last=st.booleans(),
    ),
)


def test_a_long_stream_is_folded_when_somebody_looks() -> None:
    """Chunks wait, boundedly, and no look at a task changes what it becomes."""
    current = record(S.WORKING)
    for number in range(2 * MAX_UNFOLDED + 2):
        before = current
        chunk = ArtifactAdded(artifact("x"), append=number > 0)
        current, _ = apply(current, chunk, NOW, LIMITS)
        assert len(current.unfolded) <= MAX_UNFOLDED
        assert current.has_artifact("a")
        assert not current.has_artifact("b")
        if number % 100 == 0:
            assert len(before.task.text) == number
            assert len(current.task.text) == number + 1
    assert current.task.text == "x" * (2 * MAX_UNFOLDED + 2)
    progressed, _ = apply(current, Progressed(message("p")), NOW, LIMITS)
    assert progressed.unfolded == current.unfolded
    ended, _ = apply(progressed, Completed(), NOW, LIMITS)
    assert ended.unfolded == ()
    assert ended.task.artifacts == current.task.artifacts


def test_records_are_equal_however_much_of_them_is_folded() -> None:
    current, _ = apply(record(S.WORKING), ArtifactAdded(artifact("x")), NOW, LIMITS)
    assert current.unfolded
    assert attrs.evolve(current, task=current.task, unfolded=()) == current
    assert attrs.evolve(current, version=7) != current


@given(st.lists(events_of_agents, max_size=30))
def test_stream_events_replay_to_the_same_task(history: list[TaskEvent]) -> None:
    """Whoever folds the events that were published has the task that is stored."""
    current, task = record(), record().task
    for event in history:
        try:
            after, published = apply(current, event, NOW, LIMITS)
        except InvalidTransitionError:
            continue
        for item in published:
            if isinstance(item, TaskArtifactUpdateEvent):
                task = attrs.evolve(task, artifacts=fold(task.artifacts, item))
            elif isinstance(item, TaskStatusUpdateEvent):
                task = attrs.evolve(task, status=item.status)
        current = after
    assert attrs.evolve(current.task, history=()) == attrs.evolve(task, history=())


class LifecycleMachine(RuleBasedStateMachine):
    """Terminal absorbs, there is one terminal event, and refused events change nothing."""

    def __init__(self) -> None:
        super().__init__()
        self.record = record()
        self.model = S.SUBMITTED
        self.terminal_events = 0
        self.count = 0

    @rule(event=st.sampled_from(list(ALL.values())))
    def happens(self, event: TaskEvent) -> None:
        before = self.record
        name = type(event).__name__
        expected = EXPECTED.get(self.model, {}).get(name)
        if not self.model.is_terminal and name in {"Failed", "Canceled"}:
            expected = S.FAILED if name == "Failed" else S.CANCELED
        try:
            self.record, published = apply(before, event, NOW, LIMITS)
        except InvalidTransitionError:
            assert expected is None
            return
        assert expected is not None
        self.model = expected
        self.count += len(published)
        self.terminal_events += sum(
            isinstance(e, TaskStatusUpdateEvent) and e.status.state.is_terminal for e in published
        )

    @invariant()
    def agrees(self) -> None:
        assert self.record.state is self.model
        assert self.record.version == self.count
        assert self.terminal_events == (1 if self.model.is_terminal else 0)


TestLifecycleMachine = LifecycleMachine.TestCase
