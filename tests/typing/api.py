"""The public API as a type checker sees it; checked by mypy, never run.

Every call of a user's program should say what it gives and refuse what it cannot take. An ignored
error below is a refusal: mypy reports the ignore as unused once the refusal is gone.
"""

from collections.abc import AsyncIterator
from typing import assert_type

import trio

import a2a_trio
from a2a_trio import (
    Agent,
    AgentCard,
    Artifact,
    Client,
    ClientOptions,
    InputRequired,
    Message,
    Part,
    Peer,
    Reply,
    Role,
    Server,
    Settings,
    StreamEvent,
    Task,
    TaskArtifactUpdateEvent,
    TaskContext,
    TaskNotFoundError,
    TaskState,
    TaskStatusUpdateEvent,
    create_app,
    echo,
    open_client,
    open_peer,
    serve,
)


async def asking(task: TaskContext) -> str | None:
    """An agent as the documentation writes it."""
    await task.update("reading the repository")
    await task.artifact("report", "first chunk", append=False, last=False)
    await task.artifact("report", [Part(text="more")], append=True, name="Report")
    branch = assert_type(await task.ask("Which branch?"), Message)
    assert_type(task.id, str)
    assert_type(task.text, str)
    assert_type(task.raw_text, str)
    assert_type(task.history, tuple[Message, ...])
    assert_type(task.identity, str)
    assert_type(task.accepted_output_modes, tuple[str, ...])
    assert_type(task.messages, AsyncIterator[Message])
    await task.require_auth("Please log in")
    await task.reject("not mine")
    await task.fail("broken")
    return f"done on {branch.text}"


def blocking(task: TaskContext) -> str:
    """A sync agent."""
    return task.text


async def answering(task: TaskContext) -> Message:
    """An agent that answers without a task."""
    return Message(message_id="m", role=Role.AGENT, parts=(Part(text=task.text),))


async def parking(task: TaskContext) -> InputRequired:
    """An agent that is run again with the answer."""
    return InputRequired(f"What about {task.text}?")


async def counting(task: TaskContext) -> int:
    """No agent: a number says nothing."""
    return len(task.text)


async def main() -> None:
    """Each way in, and what it gives."""
    agents: tuple[Agent, ...] = (asking, blocking, answering, parking, echo)
    wrong: Agent = counting  # type: ignore[assignment]  # an agent answers with words
    settings = Settings()

    async with trio.open_nursery() as nursery:
        server: Server = await nursery.start(serve, agents[0])
        assert_type(server.url, str)
        assert_type(server.port, int)
        assert_type(server.card, AgentCard)
        assert_type(server.warnings, tuple[str, ...])
        await server.drain()

    async with open_peer(wrong, settings) as peer:
        assert_type(peer, Peer)
        assert_type(peer.server, Server)
        async with peer.client("bob") as bob:
            assert_type(bob, Client)

    create_app(asking, settings)
    create_app(settings)  # type: ignore[arg-type]  # the agent comes first


async def call() -> None:
    """The client's calls."""
    options = ClientOptions(send_timeout=1.0)
    async with open_client("http://127.0.0.1:9910", token="t", options=options) as client:
        assert_type(await client.card(), AgentCard)
        reply = await client.send("Find TODOs", context_id="c")
        assert_type(reply, Reply)
        assert_type(reply.text, str)
        assert_type(reply.task, Task | None)
        assert_type(reply.message, Message | None)
        await client.send(Message(message_id="m", role=Role.USER, parts=(Part(data={"a": 1}),)))
        await client.send(b"bytes")  # type: ignore[arg-type]  # raw bytes are a Part(raw=...)
        async with client.stream("Explain") as events:
            async for event in events:
                assert_type(event, StreamEvent)
                consume(event)
        async with client.subscribe("id") as events:
            async for event in events:
                consume(event)
        task = assert_type(await client.send_detached("reindex"), Task)
        task = assert_type(await client.wait(task.id, timeout=300), Task)
        assert_type(task.status.state, TaskState)
        assert_type(task.artifacts, tuple[Artifact, ...])
        try:
            assert_type(await client.cancel(task.id), Task)
            assert_type(await client.get(task.id), Task)
        except TaskNotFoundError as error:
            assert_type(error.code, int)
        assert_type((await client.list()).tasks, tuple[Task, ...])


def consume(event: StreamEvent) -> str:
    """Events are told apart by their class, and these are all."""
    match event:
        case Task():
            return event.status.state
        case TaskStatusUpdateEvent():
            return event.status.state
        case TaskArtifactUpdateEvent():
            return event.artifact.artifact_id
        case Message():
            return event.text


def mistakes(task: Task) -> None:
    """What mypy must refuse."""
    Part("text")  # type: ignore[call-arg]  # by keyword only
    Task(id="a")  # type: ignore[call-arg]  # a task has a status
    task.id = "b"  # type: ignore[misc]  # values are frozen
    _ = a2a_trio.no_such_name  # type: ignore[attr-defined]  # the facade hides no typing errors
