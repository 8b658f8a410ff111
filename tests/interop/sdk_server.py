"""An echo agent built with the official ``a2a-sdk`` on uvicorn: the foreign side of the tests.

Run as a program. It binds an ephemeral loopback port, prints one JSON line ``{"url": ...}`` on
standard output once it listens, and serves until standard input reaches its end, so that it can
never outlive the process that started it.

What the agent does depends on the text it gets:

=============  ==============================================================================
``slow``       reports WORKING and waits until it is cancelled
``ask``        asks a question (INPUT_REQUIRED); the answer completes the task
``fail``       FAILED with a message
``reject``     REJECTED with a message
``chunks``     one artifact in three chunks, and a second artifact
``message``    answers a bare Message, no task
``raise``      the executor raises
anything else  one artifact ``echo: <text>``, COMPLETED
=============  ==============================================================================
"""

import argparse
import asyncio
import json
import logging
import socket
import sys
from typing import Final, final

import uvicorn
from a2a.helpers.proto_helpers import (
    new_task_from_user_message,
    new_text_message,
    new_text_part,
)
from a2a.server.agent_execution import AgentExecutor, RequestContext
from a2a.server.events import EventQueue
from a2a.server.request_handlers import DefaultRequestHandler
from a2a.server.routes import create_agent_card_routes, create_jsonrpc_routes
from a2a.server.tasks import InMemoryTaskStore, TaskUpdater
from a2a.types import AgentCapabilities, AgentCard, AgentInterface, AgentSkill, Message
from starlette.applications import Starlette
from starlette.datastructures import Headers
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send

_FOREVER: Final = 3600.0
"""Seconds that ``slow`` waits for its cancellation; longer than any test runs."""


@final
class ScriptedExecutor(AgentExecutor):
    """Does what the text says; see the module's table."""

    async def execute(self, context: RequestContext, event_queue: EventQueue) -> None:
        if context.message is None:
            raise ValueError("a request without a message")
        text = context.get_user_input()
        if text == "message":
            await event_queue.enqueue_event(new_text_message(f"echo: {text}"))
            return
        task = context.current_task
        if task is None:
            task = new_task_from_user_message(context.message)
            await event_queue.enqueue_event(task)
            answered = False
        else:
            answered = True
        updater = TaskUpdater(event_queue, task.id, task.context_id)
        if answered:
            await self._artifact(updater, f"answered: {text}")
            await updater.complete()
        else:
            await self._run(text, updater)

    async def _run(self, text: str, updater: TaskUpdater) -> None:
        match text:
            case "slow":
                await updater.start_work(self._say(updater, "working on it"))
                await asyncio.sleep(_FOREVER)
            case "ask":
                await updater.requires_input(self._say(updater, "Which branch?"))
            case "fail":
                await updater.failed(self._say(updater, "it broke"))
            case "reject":
                await updater.reject(self._say(updater, "not my job"))
            case "raise":
                raise RuntimeError("the executor broke")
            case "chunks":
                await self._chunks(updater)
                await updater.complete(self._say(updater, "all written"))
            case _:
                await self._artifact(updater, f"echo: {text}")
                await updater.complete()

    async def _chunks(self, updater: TaskUpdater) -> None:
        for number, text in enumerate(("one ", "two ", "three")):
            await updater.add_artifact(
                [new_text_part(text)],
                artifact_id="report",
                name="Report",
                append=number > 0,
                last_chunk=number == 2,
            )
        await updater.add_artifact([new_text_part("second")], artifact_id="extra", last_chunk=True)

    @staticmethod
    async def _artifact(updater: TaskUpdater, text: str) -> None:
        await updater.add_artifact([new_text_part(text)], artifact_id="reply", last_chunk=True)

    @staticmethod
    def _say(updater: TaskUpdater, text: str) -> Message:
        return updater.new_agent_message([new_text_part(text)])

    async def cancel(self, context: RequestContext, event_queue: EventQueue) -> None:
        if context.task_id is None or context.context_id is None:
            raise ValueError("cancel without a task")
        await TaskUpdater(event_queue, context.task_id, context.context_id).cancel()


@final
class LastVersion:
    """ASGI middleware: ``GET /last-version`` tells the A2A-Version header of the last POST."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self._last = ""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope["path"] == "/last-version":
            await PlainTextResponse(self._last)(scope, receive, send)
            return
        if scope["type"] == "http" and scope["method"] == "POST":
            self._last = Headers(scope=scope).get("a2a-version", "")
        await self._app(scope, receive, send)


def build_card(url: str, version: str) -> AgentCard:
    """Describe the agent, with one interface of the given protocol version."""
    return AgentCard(
        name="sdk-echo",
        description="Echo agent of the official SDK",
        version="1.2.3",
        supported_interfaces=[
            AgentInterface(url=url, protocol_binding="JSONRPC", protocol_version=version)
        ],
        capabilities=AgentCapabilities(streaming=True),
        default_input_modes=["text/plain"],
        default_output_modes=["text/plain"],
        skills=[AgentSkill(id="echo", name="Echo", description="Repeats the text", tags=["echo"])],
    )


def build_app(url: str, version: str, *, compat: bool) -> ASGIApp:
    """Build the ASGI application as the SDK's own examples do."""
    card = build_card(url, version)
    handler = DefaultRequestHandler(ScriptedExecutor(), InMemoryTaskStore(), card)
    routes = create_agent_card_routes(card)
    routes += create_jsonrpc_routes(handler, "/", enable_v0_3_compat=compat)
    return LastVersion(Starlette(routes=routes))


async def serve(version: str, *, compat: bool) -> None:
    """Serve until standard input ends."""
    # asyncio sets TCP_NODELAY only where the protocol is named; without it every answer waits for a
    # delayed acknowledgement (40 ms), which uvicorn bound by host and port does not suffer.
    sock = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    sock.bind(("127.0.0.1", 0))
    sock.listen(128)
    url = f"http://127.0.0.1:{sock.getsockname()[1]}/"
    config = uvicorn.Config(
        build_app(url, version, compat=compat),
        log_level="error",
        access_log=False,
        timeout_graceful_shutdown=1,
        ws="none",
    )
    server = uvicorn.Server(config)
    serving = asyncio.create_task(server.serve(sockets=[sock]))
    sys.stdout.write(json.dumps({"url": url}) + "\n")
    sys.stdout.flush()
    await asyncio.to_thread(sys.stdin.read)
    server.should_exit = True
    await serving


def main() -> None:
    """Parse the command line and serve."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--compat", action="store_true", help="understand v0.3 as well")
    parser.add_argument("--declare", default="1.0", help="the protocol version in the card")
    arguments = parser.parse_args()
    logging.disable(logging.ERROR)  # ``raise`` is on purpose; its traceback is not news
    asyncio.run(serve(arguments.declare, compat=arguments.compat))


if __name__ == "__main__":
    main()
