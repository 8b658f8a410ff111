# ruff: noqa: ARG001 - a test asks for the virtual clock by naming its fixture
"""What leaves in a message, what is audited, and how a conversation goes on."""

from datetime import UTC, datetime
from typing import Any

import attrs
import pytest
import trio
from trio.testing import MockClock

from a2a_trio.client.client import open_client
from a2a_trio.client.options import ClientOptions
from a2a_trio.errors import TaskNotFoundError
from a2a_trio.rules.audit import AuditEntry
from a2a_trio.testing.fake_peer import Failure, FakePeer, Hang, Pause, Result, Stream
from a2a_trio.wire.extensions import DELEGATION_EXTENSION
from a2a_trio.wire.model import Message, Part, Role, TaskState


def hide(text: str) -> str:
    return text.replace("sEcReT", "[redacted]")


async def sent(options: ClientOptions, values: Any, content: Any, **more: Any) -> Any:
    """Send something and return the call as it arrived."""
    peer = FakePeer()
    peer.answers("SendMessage", Result(values.task()))
    async with open_client(peer.url, options=options, transport=peer.transport) as client:
        await client.send(content, **more)
    return peer.calls[-1]


# --- content --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "content",
    [
        "my sEcReT",
        Part(data={"deep": [{"key": "sEcReT"}]}),
        [Part(text="a"), Part(url="http://x/sEcReT", filename="sEcReT.txt")],
        Message(
            message_id="m",
            role=Role.USER,
            parts=(Part(text="sEcReT", metadata={"note": "sEcReT"}),),
            metadata={"note": "sEcReT"},
        ),
    ],
    ids=["text", "data", "file", "message"],
)
async def test_everything_that_leaves_is_redacted(
    content: Any, values: Any, options: ClientOptions
) -> None:
    """No text of a message passes the hook by."""
    call = await sent(attrs.evolve(options, redact=hide), values, content)
    assert "sEcReT" not in call.text
    assert "[redacted]" in call.text


async def test_a_ready_message_keeps_its_id(values: Any, options: ClientOptions) -> None:
    """A whole message is sent as it is; arguments only add to it."""
    message = Message(message_id="mine", role=Role.USER, parts=(Part(text="x"),), context_id="c9")
    call = await sent(options, values, message, task_id="t9", metadata={"a": 1})
    arrived = call.params["message"]
    assert (arrived["messageId"], arrived["contextId"], arrived["taskId"]) == ("mine", "c9", "t9")
    assert arrived["metadata"] == {"a": 1}


async def test_raw_bytes(values: Any, options: ClientOptions) -> None:
    """Bytes are no text and stay as they are."""
    call = await sent(
        attrs.evolve(options, redact=hide), values, Part(raw=b"sEcReT", media_type="a/b")
    )
    assert call.params["message"]["parts"] == [{"raw": "c0VjUmVU", "mediaType": "a/b"}]


async def test_delegation_chain(values: Any, options: ClientOptions) -> None:
    """This peer adds itself to the chain, and says which extension that is."""
    chain: Any = {DELEGATION_EXTENSION: {"hops": 1, "chain": ["first"]}}
    call = await sent(attrs.evolve(options, self_id="me"), values, "hi", metadata=chain)
    message = call.params["message"]
    assert message["metadata"][DELEGATION_EXTENSION] == {"hops": 2, "chain": ["first", "me"]}
    assert message["extensions"] == [DELEGATION_EXTENSION]
    assert DELEGATION_EXTENSION in call.headers["a2a-extensions"]


async def test_wanted_extensions(values: Any, options: ClientOptions) -> None:
    """Extensions that the caller wants are asked for."""
    call = await sent(attrs.evolve(options, extensions=("urn:a", "urn:b")), values, "hi")
    assert call.headers["a2a-extensions"] == "urn:a, urn:b"


# --- audit ----------------------------------------------------------------------------------


async def audited(options: ClientOptions, peer: FakePeer, act: Any) -> list[AuditEntry]:
    entries: list[AuditEntry] = []
    watched = attrs.evolve(options, audit=entries.append, redact=hide)
    async with open_client(peer.url, options=watched, transport=peer.transport) as client:
        await act(client)
    return entries


async def test_audit_of_a_send(
    values: Any, options: ClientOptions, autojump_clock: MockClock
) -> None:
    """One entry when it leaves, one when it has ended, both redacted."""
    peer = FakePeer()
    peer.answers("SendMessage", Result(values.task(text="found sEcReT"), delay=2))

    async def act(client: Any) -> None:
        await client.send("tell me the sEcReT", context_id="c0")

    request, outcome = await audited(options, peer, act)
    assert (request.direction, request.phase, request.method) == (
        "outbound",
        "request",
        "SendMessage",
    )
    assert (request.identity, request.context_id) == (peer.url, "c0")
    assert request.preview == "tell me the [redacted]"
    assert request.duration_ms is None
    assert outcome.phase == "outcome"
    assert (outcome.task_id, outcome.context_id, outcome.state) == ("t1", "c1", "completed")
    assert outcome.preview == "found [redacted]"
    assert outcome.duration_ms == pytest.approx(2_000)
    assert abs((datetime.now(UTC) - outcome.at).total_seconds()) < 60


async def test_audit_of_a_failure(options: ClientOptions) -> None:
    """An error is an outcome."""
    peer = FakePeer()
    peer.answers("GetTask", Failure(TaskNotFoundError("gone")))

    async def act(client: Any) -> None:
        with pytest.raises(TaskNotFoundError):
            await client.get("t9")

    _, outcome = await audited(options, peer, act)
    assert (outcome.task_id, outcome.error) == ("t9", "TaskNotFoundError: gone")


async def test_audit_of_a_cancelled_call(options: ClientOptions, autojump_clock: MockClock) -> None:
    """A caller that left is an outcome, too."""
    peer = FakePeer()
    peer.answers("SendMessage", Hang())

    async def act(client: Any) -> None:
        with trio.move_on_after(1):
            await client.send("hi")

    _, outcome = await audited(options, peer, act)
    assert outcome.error == "Cancelled"


async def test_audit_of_a_stream(
    values: Any, options: ClientOptions, autojump_clock: MockClock
) -> None:
    """A stream is one exchange: it begins when it is entered and ends when it is left."""
    peer = FakePeer()
    peer.answers(
        "SendStreamingMessage",
        Stream(
            values.task(TaskState.WORKING, ""),
            values.chunk("Hi"),
            Pause(3),
            values.status(TaskState.COMPLETED),
        ),
    )

    async def act(client: Any) -> None:
        async with client.stream("hello") as events:
            async for _ in events:
                pass

    request, outcome = await audited(options, peer, act)
    assert (request.method, request.preview) == ("SendStreamingMessage", "hello")
    assert (outcome.state, outcome.preview, outcome.error) == ("completed", "Hi", "")
    assert outcome.duration_ms is not None
    assert outcome.duration_ms >= 3_000


# --- conversations --------------------------------------------------------------------------


async def test_conversation(values: Any, options: ClientOptions) -> None:
    """The context is carried on; the task as long as it waits."""
    peer = FakePeer()
    asks = values.task(TaskState.INPUT_REQUIRED, "", task_id="t1")
    peer.answers(
        "SendMessage", Result(asks), Result(values.task()), Result(values.task(task_id="t2"))
    )
    async with open_client(peer.url, options=options, transport=peer.transport) as client:
        talk = client.conversation()
        await talk.send("begin")
        assert (talk.context_id, talk.task_id) == ("c1", "t1")
        await talk.send("answer", history_length=3)
        assert (talk.context_id, talk.task_id) == ("c1", "")
        await talk.send("next")
    sent_ids = []
    for call in peer.called("SendMessage"):
        assert isinstance(call.params, dict)
        message = call.params["message"]
        assert isinstance(message, dict)
        sent_ids.append((message.get("contextId"), message.get("taskId")))
    assert sent_ids == [(None, None), ("c1", "t1"), ("c1", None)]


async def test_conversation_by_stream(values: Any, options: ClientOptions) -> None:
    """A stream tells the conversation the same."""
    peer = FakePeer()
    peer.answers(
        "SendStreamingMessage",
        Stream(values.task(TaskState.WORKING, ""), values.status(TaskState.INPUT_REQUIRED)),
    )
    async with open_client(peer.url, options=options, transport=peer.transport) as client:
        talk = client.conversation()
        async with talk.stream("begin") as events:
            async for _ in events:
                pass
        assert (talk.context_id, talk.task_id) == ("c1", "t1")


async def test_conversation_with_a_message_agent(values: Any, options: ClientOptions) -> None:
    """An agent without tasks has a context all the same."""
    peer = FakePeer()
    peer.answers("SendMessage", Result(values.message(context_id="c7")))
    async with open_client(peer.url, options=options, transport=peer.transport) as client:
        talk = client.conversation()
        await talk.send("begin")
        assert (talk.context_id, talk.task_id) == ("c7", "")


async def test_conversation_whose_task_is_gone(values: Any, options: ClientOptions) -> None:
    """A task that the peer forgot is not sent again."""
    peer = FakePeer()
    peer.answers("SendMessage", Failure(TaskNotFoundError()), Result(values.task()))
    async with open_client(peer.url, options=options, transport=peer.transport) as client:
        talk = client.conversation("c1", "t0")
        with pytest.raises(TaskNotFoundError):
            await talk.send("answer")
        await talk.send("again")
    last = peer.calls[-1].params
    assert isinstance(last, dict)
    assert isinstance(last["message"], dict)
    assert "taskId" not in last["message"]
