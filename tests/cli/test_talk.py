"""``send``: the reply on standard output, the rest on standard error, the state as exit code."""

import json

import pytest

from a2a_trio.cli.exits import ExitCode
from a2a_trio.cli.talk import SendOptions, send
from a2a_trio.errors import PeerTimeoutError, ServerBusyError
from a2a_trio.wire.model import (
    Artifact,
    Part,
    StreamEvent,
    TaskArtifactUpdateEvent,
    TaskState,
    TaskStatus,
    TaskStatusUpdateEvent,
)
from tests.cli.conftest import FakeClient, FakeReply, ScreenMaker, make_task, text_message


def _options(*, stream: bool = False, detach: bool = False, text: str = "hi") -> SendOptions:
    return SendOptions(text=text, peer="http://peer", stream=stream, detach=detach)


def _status(state: TaskState, said: str = "") -> TaskStatusUpdateEvent:
    status = TaskStatus(state=state, message=text_message(said) if said else None)
    return TaskStatusUpdateEvent(task_id="t-1", context_id="c-1", status=status)


def _chunk(
    text: str, *, append: bool = False, last: bool = False, artifact_id: str = "reply"
) -> TaskArtifactUpdateEvent:
    return TaskArtifactUpdateEvent(
        task_id="t-1",
        context_id="c-1",
        artifact=Artifact(artifact_id=artifact_id, parts=(Part(text=text),)),
        append=append,
        last_chunk=last,
    )


WORK: tuple[StreamEvent, ...] = (
    make_task(TaskState.SUBMITTED),
    _status(TaskState.WORKING, "reading"),
    _chunk("one "),
    _chunk("two", append=True, last=True),
    _chunk("three", artifact_id="second", last=True),
    _status(TaskState.COMPLETED),
)


async def test_reply_goes_to_standard_output(screen: ScreenMaker) -> None:
    """A pipeline gets the reply and nothing else."""
    s = screen()
    client = FakeClient(reply=FakeReply(task=make_task(text="hello")))

    code = await send(_options(), s.console, client.connect)

    assert code is ExitCode.OK
    assert s.out.getvalue() == "hello\n"
    assert s.err.getvalue() == "completed · task t-1 · context c-1\n"


async def test_message_without_task_is_shown_too(screen: ScreenMaker) -> None:
    """Some agents answer without making a task."""
    s = screen()
    client = FakeClient(reply=FakeReply(message=text_message("hello")))

    assert await send(_options(), s.console, client.connect) is ExitCode.OK
    assert (s.out.getvalue(), s.err.getvalue()) == ("hello\n", "")


async def test_conversation_and_task_are_passed_on(screen: ScreenMaker) -> None:
    """--context and --task continue what was begun."""
    client = FakeClient(reply=FakeReply(task=make_task()))
    options = SendOptions(text="main", peer="http://peer", context="c-9", task="t-9")

    await send(options, screen().console, client.connect)

    assert client.calls == [("send", "main", "c-9", "t-9")]


@pytest.mark.parametrize("state", [TaskState.FAILED, TaskState.REJECTED, TaskState.CANCELED])
async def test_failed_task_gives_1_and_its_reason(screen: ScreenMaker, state: TaskState) -> None:
    """A script can tell; a person reads why."""
    s = screen()
    client = FakeClient(reply=FakeReply(task=make_task(state, said="because")))

    code = await send(_options(), s.console, client.connect)

    assert code is ExitCode.TASK_FAILED
    assert s.out.getvalue() == "because\n"


async def test_question_says_how_to_answer(screen: ScreenMaker) -> None:
    """A task that waits for its caller is no failure."""
    s = screen()
    asks = make_task(TaskState.INPUT_REQUIRED, said="Which branch?")
    client = FakeClient(reply=FakeReply(task=asks))

    assert await send(_options(), s.console, client.connect) is ExitCode.OK
    assert s.out.getvalue() == "Which branch?\n"
    assert 'a2a-trio send http://peer --task t-1 "..."' in s.err.getvalue()


async def test_json_reply_is_the_protocol_object(screen: ScreenMaker) -> None:
    """Machines read what the protocol calls a SendMessageResponse."""
    s = screen(json=True)
    client = FakeClient(reply=FakeReply(task=make_task(text="hello")))

    await send(_options(), s.console, client.connect)

    shown = json.loads(s.out.getvalue())
    assert shown["task"]["id"] == "t-1"
    assert shown["task"]["artifacts"][0]["parts"] == [{"text": "hello"}]
    assert s.err.getvalue() == ""


async def test_detached_send_prints_the_id(screen: ScreenMaker) -> None:
    """``id=$(a2a-trio send --detach ...)`` works."""
    s = screen()
    client = FakeClient(task=make_task(TaskState.WORKING))

    assert await send(_options(detach=True), s.console, client.connect) is ExitCode.OK
    assert s.out.getvalue() == "t-1\n"
    assert "a2a-trio status http://peer t-1 --wait 300" in s.err.getvalue()


async def test_detached_send_that_is_already_done_prints_the_id_too(screen: ScreenMaker) -> None:
    """Scripts get the same kind of line, however fast the agent was."""
    s = screen()
    client = FakeClient(task=make_task(text="hello"))

    assert await send(_options(detach=True), s.console, client.connect) is ExitCode.OK
    assert s.out.getvalue() == "t-1\n"
    assert s.err.getvalue().startswith("completed; ")


async def test_stream_shows_chunks_as_one_text(screen: ScreenMaker) -> None:
    """Chunks of one artifact are joined, artifacts are apart, progress is beside it."""
    s = screen()
    client = FakeClient(events=WORK)

    assert await send(_options(stream=True), s.console, client.connect) is ExitCode.OK
    assert s.out.getvalue() == "one two\nthree\n"
    assert s.err.getvalue() == ("submitted\nworking: reading\ncompleted · task t-1 · context c-1\n")


async def test_stream_as_json_is_one_event_per_line(screen: ScreenMaker) -> None:
    """Every event is there, in order, each with its kind."""
    s = screen(json=True)
    client = FakeClient(events=WORK)

    await send(_options(stream=True), s.console, client.connect)

    kinds = [next(iter(json.loads(line))) for line in s.out.getvalue().splitlines()]
    assert kinds == ["task", "statusUpdate", *["artifactUpdate"] * 3, "statusUpdate"]


@pytest.mark.parametrize("as_json", [False, True])
async def test_stream_that_fails_gives_1(screen: ScreenMaker, *, as_json: bool) -> None:
    """The last state decides, in both kinds of output."""
    s = screen(json=as_json)
    client = FakeClient(events=(make_task(TaskState.WORKING), _status(TaskState.FAILED, "no disk")))

    code = await send(_options(stream=True), s.console, client.connect)

    assert code is ExitCode.TASK_FAILED
    assert "no disk" in s.out.getvalue()


async def test_stream_that_asks_shows_the_question(screen: ScreenMaker) -> None:
    """What the agent said before stays; the question follows on its own line."""
    s = screen()
    events = (
        make_task(TaskState.WORKING),
        _chunk("draft"),
        _status(TaskState.INPUT_REQUIRED, "Which branch?"),
    )
    client = FakeClient(events=events)

    assert await send(_options(stream=True), s.console, client.connect) is ExitCode.OK
    assert s.out.getvalue() == "draft\nWhich branch?\n"


async def test_stream_of_a_finished_task_shows_its_result(screen: ScreenMaker) -> None:
    """A first event that is the whole task loses nothing."""
    s = screen()
    client = FakeClient(events=(make_task(text="hello"),))

    await send(_options(stream=True), s.console, client.connect)

    assert s.out.getvalue() == "hello\n"


async def test_stream_of_a_message(screen: ScreenMaker) -> None:
    """An agent without tasks streams one message."""
    s = screen()
    client = FakeClient(events=(text_message("hello"),))

    assert await send(_options(stream=True), s.console, client.connect) is ExitCode.OK
    assert s.out.getvalue() == "hello\n"


async def test_stream_that_is_cut_off_says_where_the_task_is(screen: ScreenMaker) -> None:
    """After a lost connection the reader knows how to go on."""
    s = screen()
    client = FakeClient(
        events=(make_task(TaskState.WORKING), _chunk("half")), broken=PeerTimeoutError("silent")
    )

    with pytest.raises(PeerTimeoutError):
        await send(_options(stream=True), s.console, client.connect)

    assert s.out.getvalue() == "half\n"
    assert "the task goes on: a2a-trio status http://peer t-1" in s.err.getvalue()


async def test_refusal_reaches_the_last_frame(screen: ScreenMaker) -> None:
    """Commands do not handle errors themselves."""
    client = FakeClient(error=ServerBusyError())

    with pytest.raises(ServerBusyError):
        await send(_options(), screen().console, client.connect)
