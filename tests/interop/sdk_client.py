"""The official ``a2a-sdk`` client as a program: calls one agent in every way, reports as JSON.

``python sdk_client.py URL [--protocol 0.3] [--token TOKEN]``. The agent must understand the texts of the table in
``sdk_server``. Standard output is one JSON object: a step's name to what the SDK returned
(ProtoJSON as the SDK itself prints it) or to ``{"error": class, "message": text}``. Nothing is
judged here; that is the caller's business.
"""

import argparse
import asyncio
import json
import sys
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable
from functools import partial
from typing import Final, TypeAlias, final

import httpx
from a2a.client import A2ACardResolver, Client, ClientConfig, ClientFactory
from a2a.client.errors import A2AClientError
from a2a.helpers.proto_helpers import new_text_message
from a2a.types import (
    AgentCard,
    CancelTaskRequest,
    GetTaskPushNotificationConfigRequest,
    GetTaskRequest,
    ListTasksRequest,
    ListTasksResponse,
    Message,
    Part,
    Role,
    SendMessageConfiguration,
    SendMessageRequest,
    SendMessageResponse,
    StreamResponse,
    SubscribeToTaskRequest,
    Task,
    TaskPushNotificationConfig,
    TaskState,
)
from a2a.utils.errors import A2AError
from google.protobuf.json_format import (  # type: ignore[import-untyped]  # ships no types
    MessageToDict,
    ParseDict,
    ParseError,
)

Json: TypeAlias = "dict[str, Json] | list[Json] | str | int | float | bool | None"

SdkValue: TypeAlias = (
    AgentCard | Task | StreamResponse | ListTasksResponse | TaskPushNotificationConfig
)

STEP_SECONDS: Final = 15.0
"""No step may take longer: a hang must become a readable report, not a killed process."""


def shown(value: SdkValue) -> Json:
    """Return a message as the SDK's JSON."""
    result: Json = MessageToDict(value)
    return result


def request(text: str, *, task: Task | None = None, detached: bool = False) -> SendMessageRequest:
    """Build a send, in a context of its own or as the next turn of a task."""
    message = new_text_message(
        text,
        role=Role.ROLE_USER,
        context_id=task.context_id if task else str(uuid.uuid4()),
        task_id=task.id if task else None,
    )
    return SendMessageRequest(
        message=message, configuration=SendMessageConfiguration(return_immediately=detached)
    )


@final
class Session:
    """Two SDK clients for one agent (blocking and streaming) and the report they fill."""

    def __init__(self, card: AgentCard, http: httpx.AsyncClient) -> None:
        self.card = card
        self.http = http
        self.blocking = self._client(streaming=False)
        self.streaming = self._client(streaming=True)
        self.report: dict[str, Json] = {}

    def _client(self, *, streaming: bool) -> Client:
        return ClientFactory(ClientConfig(streaming=streaming, httpx_client=self.http)).create(
            self.card
        )

    async def step(self, name: str, call: Callable[[], Awaitable[Json]]) -> None:
        """Run one call and note its result or its error."""
        try:
            async with asyncio.timeout(STEP_SECONDS):
                self.report[name] = await call()
        except (A2AError, A2AClientError, ParseError, httpx.HTTPError, TimeoutError) as error:
            self.report[name] = {"error": type(error).__name__, "message": str(error)}

    async def send(self, text: str, *, task: Task | None = None) -> Task:
        """Send without streaming; the answer must be a task."""
        async for answer in self.blocking.send_message(request(text, task=task)):
            return answer.task
        raise A2AClientError("no answer")

    async def sent(self, text: str) -> Json:
        """Send without streaming; ``{"task": ...}`` or ``{"message": ...}``."""
        return await first_of(self.blocking.send_message(request(text)))

    async def streamed(self, text: str) -> Json:
        """Send with streaming; every event of the stream."""
        return list(await events(self.streaming.send_message(request(text))))

    async def detach(self, text: str) -> Task:
        """Send and do not wait for the end."""
        async for answer in self.blocking.send_message(request(text, detached=True)):
            return answer.task
        raise A2AClientError("no answer")


async def events(stream: AsyncIterator[StreamResponse]) -> list[Json]:
    """Read a stream to its end."""
    return [shown(event) async for event in stream]


async def first_of(stream: AsyncIterator[StreamResponse]) -> Json:
    """Return the only answer of a send without streaming."""
    async for answer in stream:
        return shown(answer)
    raise A2AClientError("no answer")


async def follow_and_cancel(session: Session) -> Json:
    """Subscribe to a running task, cancel it from another call, read the stream to its end."""
    task = await session.detach("slow")
    stream = session.streaming.subscribe(SubscribeToTaskRequest(id=task.id))
    seen: list[Json] = [shown(await anext(stream))]
    canceled = await session.blocking.cancel_task(CancelTaskRequest(id=task.id))
    seen += await events(stream)
    return {"detached": shown(task), "events": seen, "canceled": shown(canceled)}


async def drop_and_resubscribe(session: Session) -> Json:
    """Leave a stream after its first event, find the task still running, follow it again."""
    stream = session.streaming.send_message(request("slow"))
    first = await anext(stream)
    await stream.aclose()  # type: ignore[attr-defined]  # an async generator behind an iterator type
    task_id = first.task.id
    after = await session.blocking.get_task(GetTaskRequest(id=task_id))
    again = session.streaming.subscribe(SubscribeToTaskRequest(id=task_id))
    seen: list[Json] = [shown(await anext(again))]
    await session.blocking.cancel_task(CancelTaskRequest(id=task_id))
    seen += await events(again)
    return {"first": shown(first), "after": shown(after), "events": seen}


async def turns(session: Session) -> Json:
    """Answer the agent's question."""
    asked = await session.send("ask")
    done = await session.send("main", task=asked)
    return {"asked": shown(asked), "done": shown(done)}


async def streamed_turns(session: Session) -> Json:
    """The same over two streams."""
    first = [e async for e in session.streaming.send_message(request("ask"))]
    task = Task(id=first[0].task.id, context_id=first[0].task.context_id)
    second = await events(session.streaming.send_message(request("main", task=task)))
    return {"asked": [shown(e) for e in first], "done": second}


async def paged(session: Session) -> Json:
    """List one context in pages of one task."""
    first = await session.send("one")
    same = Task(context_id=first.context_id)
    second = await session.send("two", task=same)
    pages: list[Json] = []
    token = ""
    while True:
        page = await session.blocking.list_tasks(
            ListTasksRequest(
                context_id=first.context_id, page_size=1, page_token=token, include_artifacts=True
            )
        )
        pages.append(shown(page))
        token = page.next_page_token
        if not token or len(pages) > 3:  # two are expected
            return {"ids": [first.id, second.id], "pages": pages}


async def basics(session: Session) -> None:
    """Send, stream, get, the ends of a task and the errors."""
    blocking = session.blocking

    async def got() -> Json:
        task = await session.send("hello")
        again = await blocking.get_task(GetTaskRequest(id=task.id))
        short = await blocking.get_task(GetTaskRequest(id=task.id, history_length=0))
        return {"sent": shown(task), "got": shown(again), "short": shown(short)}

    async def parts() -> Json:
        message = Message(
            message_id="m-parts",
            role=Role.ROLE_USER,
            parts=[
                Part(text="hello"),
                Part(raw=b"\x00\xff", filename="blob.bin", media_type="application/octet-stream"),
                Part(url="https://example.com/file.txt", media_type="text/plain"),
            ],
        )
        message.parts.add().data.struct_value.update({"n": 1, "deep": {"list": [True, None]}})
        async for answer in blocking.send_message(SendMessageRequest(message=message)):
            return shown(answer.task)
        return None

    async def again_canceled() -> Json:
        task = await session.detach("slow")
        await blocking.cancel_task(CancelTaskRequest(id=task.id))
        return shown(await blocking.cancel_task(CancelTaskRequest(id=task.id)))

    async def ended() -> Json:
        return shown(await session.send("more", task=await session.send("hello")))

    await session.step("get", got)
    await session.step("parts", parts)
    for text in ("hello", "chunks", "fail", "reject", "raise", "message"):
        await session.step(f"stream {text}", partial(session.streamed, text))
        await session.step(f"send {text}", partial(session.sent, text))
    await session.step("cancel twice", again_canceled)
    await session.step("send to ended task", ended)

    async def unknown() -> Json:
        return shown(await blocking.get_task(GetTaskRequest(id="no-such-task")))

    async def push() -> Json:
        config = GetTaskPushNotificationConfigRequest(task_id="t", id="c")
        return shown(await blocking.get_task_push_notification_config(config))

    await session.step("get unknown", unknown)
    await session.step("push config", push)


async def strict(session: Session) -> Json:
    """Read our JSON without the SDK's leniency: an unknown member is an error.

    The streaming answer is read as text, since the SDK's own transport ignores unknown members.
    """
    card = await session.http.get("/.well-known/agent-card.json")
    ParseDict(card.json(), AgentCard(), ignore_unknown_fields=False)
    url = session.card.supported_interfaces[0].url
    body = {"jsonrpc": "2.0", "id": 1, "params": MessageToDict(request("chunks"))}
    sent = await session.http.post(url, json={**body, "method": "SendMessage"})
    answer = SendMessageResponse()
    ParseDict(sent.json()["result"], answer, ignore_unknown_fields=False)
    streamed = await session.http.post(url, json={**body, "method": "SendStreamingMessage"})
    lines = [x[5:] for x in streamed.text.splitlines() if x.startswith("data:")]
    for line in lines:
        ParseDict(json.loads(line)["result"], StreamResponse(), ignore_unknown_fields=False)
    get = {"jsonrpc": "2.0", "id": 2, "method": "GetTask", "params": {"id": answer.task.id}}
    got = await session.http.post(url, json=get)
    ParseDict(got.json()["result"], Task(), ignore_unknown_fields=False)
    return {"state": TaskState.Name(answer.task.status.state), "frames": len(lines)}


async def run(url: str, protocol: str, token: str) -> dict[str, Json]:
    """Resolve the card and go through every step."""
    headers = {"A2A-Version": protocol}
    if token:
        headers["Authorization"] = f"Bearer {token}"
    async with httpx.AsyncClient(base_url=url, headers=headers) as http:
        card = await A2ACardResolver(http, url).get_agent_card()
        if protocol != "1.0":
            kept = [i for i in card.supported_interfaces if i.protocol_version.startswith(protocol)]
            del card.supported_interfaces[:]
            card.supported_interfaces.extend(kept)
        session = Session(card, http)
        session.report["card"] = shown(card)
        await basics(session)
        for call in (follow_and_cancel, drop_and_resubscribe, turns, streamed_turns):
            await session.step(call.__name__, partial(call, session))
        if protocol == "1.0":
            await session.step("paged", partial(paged, session))
            await session.step("strict", partial(strict, session))
        return session.report


def main() -> None:
    """Parse the command line, run, print."""
    parser = argparse.ArgumentParser(description="Call an agent with the official SDK client")
    parser.add_argument("url")
    parser.add_argument("--protocol", default="1.0", choices=["1.0", "0.3"])
    parser.add_argument("--token", default="", help="bearer token for every request")
    arguments = parser.parse_args()
    report = asyncio.run(run(arguments.url, arguments.protocol, arguments.token))
    sys.stdout.write(json.dumps(report) + "\n")


if __name__ == "__main__":
    main()
