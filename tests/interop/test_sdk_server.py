"""Our client calls the official SDK's server: in v1.0, and in v0.3 against its compatibility mode."""

import urllib.request
from collections.abc import AsyncIterator

import pytest
import trio

from a2a_trio import (
    Client,
    ClientOptions,
    Message,
    Part,
    Role,
    Task,
    TaskArtifactUpdateEvent,
    TaskState,
    TaskStatusUpdateEvent,
    open_client,
)
from a2a_trio.errors import (
    InternalError,
    TaskNotCancelableError,
    TaskNotFoundError,
    UnsupportedOperationError,
)


@pytest.fixture(params=["1.0", "0.3"])
def sdk_url(request: pytest.FixtureRequest) -> str:
    """A server of either version; its card says which, and the client has to follow it."""
    name = "sdk_server" if request.param == "1.0" else "sdk_server_v03"
    url: str = request.getfixturevalue(name)
    return url


@pytest.fixture
async def client(sdk_url: str) -> AsyncIterator[Client]:
    """A client with its defaults: the version is negotiated."""
    async with open_client(sdk_url) as opened:
        yield opened


async def last_version(url: str) -> str:
    """The A2A-Version of the last POST that the server got."""

    def fetch() -> str:
        with urllib.request.urlopen(f"{url}last-version") as response:  # noqa: S310 - our own URL
            text: bytes = response.read()
            return text.decode()

    return await trio.to_thread.run_sync(fetch)


async def working(client: Client) -> Task:
    """A detached task that waits to be cancelled."""
    return await client.send_detached("slow")


async def test_discovers_the_card(client: Client, sdk_url: str) -> None:
    """The card of either shape is read into the same value."""
    card = await client.card()
    assert card.name == "sdk-echo"
    assert [i.url for i in card.supported_interfaces] == [sdk_url]
    assert card.capabilities.streaming is True
    assert [skill.id for skill in card.skills] == ["echo"]


async def test_sends(client: Client) -> None:
    """A blocking send returns the completed task and its text."""
    reply = await client.send("hello")
    assert reply.state is TaskState.COMPLETED
    assert reply.text == "echo: hello"
    assert reply.task is not None
    assert [a.artifact_id for a in reply.task.artifacts] == ["reply"]


async def test_speaks_the_version_of_the_card(sdk_server: str, sdk_server_v03: str) -> None:
    """Nothing but the card tells the client which version to use."""
    for url, version in ((sdk_server, "1.0"), (sdk_server_v03, "0.3")):
        async with open_client(url) as client:
            await client.send("hello")
        assert await last_version(url) == version


async def test_can_be_told_to_speak_v03(sdk_server_both: str) -> None:
    """``protocol="0.3"`` wins over a card that names only v1.0."""
    async with open_client(sdk_server_both, options=ClientOptions(protocol="0.3")) as client:
        reply = await client.send("hello")
        assert reply.text == "echo: hello"
        async with client.stream("chunks") as events:
            seen = [event async for event in events]
    assert isinstance(seen[-1], TaskStatusUpdateEvent)
    assert await last_version(sdk_server_both) == "0.3"


async def test_sends_every_kind_of_part(client: Client) -> None:
    """Text, bytes, a link and data arrive, and come back in the history."""
    sent = Message(
        message_id="m-parts",
        role=Role.USER,
        parts=(
            Part(text="hello"),
            Part(raw=b"\x00\xff", filename="blob.bin", media_type="application/octet-stream"),
            Part(url="https://example.com/file.txt", media_type="text/plain"),
            Part(data={"n": 1.5, "deep": {"list": [True, None]}}),
        ),
    )
    reply = await client.send(sent)
    assert reply.task is not None
    assert reply.task.history[0].parts == sent.parts


async def test_gets(client: Client) -> None:
    """GetTask returns what the send returned; a history length of 0 leaves the history out."""
    sent = (await client.send("hello")).task
    assert sent is not None
    assert await client.get(sent.id) == sent


async def test_gets_without_history(sdk_server: str) -> None:
    """A history length of 0 leaves the history out (v0.3 cannot say 0)."""
    async with open_client(sdk_server) as client:
        sent = (await client.send("hello")).task
        assert sent is not None
        assert sent.history
        assert (await client.get(sent.id, history_length=0)).history == ()


async def test_streams(client: Client) -> None:
    """Typed events in order; the folded task is the one that the server stored."""
    async with client.stream("chunks") as events:
        seen = [event async for event in events]
        folded = events.task
    assert isinstance(seen[0], Task)
    updates = [e for e in seen if isinstance(e, TaskArtifactUpdateEvent)]
    assert [(u.artifact.text, u.append, u.last_chunk) for u in updates] == [
        ("one ", False, False),
        ("two ", True, False),
        ("three", True, True),
        ("second", False, True),
    ]
    last = seen[-1]
    assert isinstance(last, TaskStatusUpdateEvent)
    assert last.status.state is TaskState.COMPLETED
    assert folded is not None
    stored = await client.get(folded.id)
    assert folded.state is TaskState.COMPLETED
    assert [_joined(folded, i) for i in (0, 1)] == [_joined(stored, i) for i in (0, 1)]
    assert _joined(folded, 0) == "one two three"


def _joined(task: Task, index: int) -> str:
    return "".join(part.text or "" for part in task.artifacts[index].parts)


@pytest.mark.parametrize(
    ("text", "state", "said"),
    [("fail", TaskState.FAILED, "it broke"), ("reject", TaskState.REJECTED, "not my job")],
)
async def test_sees_how_a_task_ends(client: Client, text: str, state: TaskState, said: str) -> None:
    """FAILED and REJECTED are results with the agent's words, not exceptions."""
    reply = await client.send(text)
    assert reply.state is state
    assert reply.text == said


async def test_gets_a_direct_message(client: Client) -> None:
    """An agent that answers a Message makes no task, sent or streamed."""
    reply = await client.send("message")
    assert reply.task is None
    assert reply.text == "echo: message"
    async with client.stream("message") as events:
        seen = [event async for event in events]
    assert [type(event) for event in seen] == [Message]


async def test_cancels_a_detached_task(client: Client) -> None:
    """A detached send answers at once, a cancel ends the task, a second one is refused."""
    task = await working(client)
    assert not task.state.is_terminal
    assert (await client.cancel(task.id)).state is TaskState.CANCELED
    with pytest.raises(TaskNotCancelableError):
        await client.cancel(task.id)


async def test_subscribes(client: Client) -> None:
    """A subscriber gets a snapshot, then what happens, then the end."""
    task = await working(client)
    with trio.fail_after(20):
        async with client.subscribe(task.id) as events:
            first = await anext(events)
            assert isinstance(first, Task)
            assert first.id == task.id
            await client.cancel(task.id)
            rest = [event async for event in events]
    assert isinstance(rest[-1], TaskStatusUpdateEvent)
    assert rest[-1].status.state is TaskState.CANCELED


async def test_resubscribes_after_leaving_a_stream(client: Client) -> None:
    """Leaving a stream does not end its task."""
    async with client.stream("slow") as events:
        first = await anext(events)
    assert isinstance(first, Task)
    assert not (await client.get(first.id)).state.is_terminal
    with trio.fail_after(20):
        async with client.subscribe(first.id) as events:
            assert isinstance(await anext(events), Task)
            await client.cancel(first.id)
            rest = [event async for event in events]
    assert isinstance(rest[-1], TaskStatusUpdateEvent)
    assert rest[-1].status.state is TaskState.CANCELED


async def test_waits(client: Client) -> None:
    """``wait`` returns the last state at its time limit, and the end when there is one."""
    task = await working(client)
    assert not (await client.wait(task.id, timeout=0.5, poll=0.1)).state.is_terminal
    async with trio.open_nursery() as nursery:
        nursery.start_soon(client.cancel, task.id)
        ended = await client.wait(task.id, timeout=20, poll=0.1)
    assert ended.state is TaskState.CANCELED


async def test_answers_a_question(client: Client) -> None:
    """INPUT_REQUIRED shows the question; the answer completes the same task."""
    asked = await client.send("ask")
    assert asked.state is TaskState.INPUT_REQUIRED
    assert asked.text == "Which branch?"
    assert asked.task is not None
    done = await client.send("main", task_id=asked.task.id, context_id=asked.context_id)
    assert done.state is TaskState.COMPLETED
    assert done.task is not None
    assert done.task.id == asked.task.id
    assert done.text == "answered: main"


async def test_lists(sdk_server: str) -> None:
    """Two tasks of one context, newest first (v0.3 has no list over JSON-RPC)."""
    async with open_client(sdk_server) as client:
        first = await client.send("one")
        await client.send("two", context_id=first.context_id)
        page = await client.list(context_id=first.context_id, include_artifacts=True)
    assert [task.text for task in page.tasks] == ["echo: two", "echo: one"]
    assert page.total_size == 2


async def test_lists_all_pages(sdk_server: str) -> None:
    """``list_all`` follows the page tokens of the server."""
    async with open_client(sdk_server) as client:
        first = await client.send("one")
        for text in ("two", "three"):
            await client.send(text, context_id=first.context_id)
        tasks = await client.list_all(context_id=first.context_id, include_artifacts=True)
        page = await client.list(context_id=first.context_id, page_size=2)
    assert page.next_page_token
    assert [task.text for task in tasks] == ["echo: three", "echo: two", "echo: one"]


async def test_raises_the_class_of_each_error(client: Client) -> None:
    """The server's error codes come out as our exception classes."""
    with pytest.raises(TaskNotFoundError):
        await client.get("no-such-task")
    ended = (await client.send("hello")).task
    assert ended is not None
    with pytest.raises(UnsupportedOperationError):
        await client.send("more", task_id=ended.id, context_id=ended.context_id)


async def test_reports_a_broken_executor(client: Client) -> None:
    """The server answers an internal error, at once or as the last event of a stream."""
    with pytest.raises(InternalError):
        await client.send("raise")
    with pytest.raises(InternalError):
        async with client.stream("raise") as events:
            assert [type(event) async for event in events]
