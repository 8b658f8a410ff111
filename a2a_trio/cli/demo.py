"""``a2a-trio demo``: one agent, called in every way, over a real loopback socket."""

import argparse
from typing import Final, final

import trio

from a2a_trio import (
    Client,
    ServerSettings,
    Settings,
    TaskArtifactUpdateEvent,
    TaskContext,
    TaskState,
    TaskStatusUpdateEvent,
    echo,
    open_client,
    open_server,
)
from a2a_trio.cli import render
from a2a_trio.cli.connect import run_client
from a2a_trio.cli.console import Console, Style
from a2a_trio.cli.exits import ExitCode
from a2a_trio.logs import configure_logging
from a2a_trio.wire.model import JsonValue

SLOW: Final = "count the stars"
"""What the demo's agent works on until somebody cancels it."""

WAIT_SEC: Final = 60.0
"""How long a detached echo is waited for; it takes milliseconds."""


def run(_namespace: argparse.Namespace, console: Console) -> ExitCode:
    """Run ``a2a-trio demo``."""
    # Without this, a log line would go to standard output, among the results.
    configure_logging("warning", json=console.json, redact=str, stream=console.err)
    return run_client(demo, console)


async def agent(task: TaskContext) -> None:
    """Echo, except for one message that takes for ever."""
    if task.raw_text == SLOW:
        await task.update("counting")
        await trio.sleep_forever()
    await echo(task)


async def demo(console: Console) -> ExitCode:
    """Serve the agent on a free port, call it, and print what happened.

    Only this machine is involved: no settings are read and nothing is written to disk.
    """
    # Its agent touches no files, so the working directory may even have been deleted.
    settings = Settings(server=ServerSettings(port=0, agent_name="demo", workspace="/"))
    async with open_server(agent, settings) as server:
        report = _Report(console)
        report.step("serve", "an echo agent listens on loopback", url=server.url)
        async with open_client(server.url) as client:
            await _discover(client, report)
            await _send(client, report)
            await _stream(client, report)
            await _detach(client, report)
            await _cancel(client, report)
        await server.drain()
        report.step("stop", "the server is drained: no task is left")
    return ExitCode.OK


@final
class _Report:
    """Prints steps for people or as JSON lines."""

    def __init__(self, console: Console) -> None:
        self._console = console

    def step(self, name: str, text: str, /, **facts: JsonValue) -> None:
        """Tell of one step that was done."""
        if self._console.json:
            self._console.record({"step": name, **facts})
            return
        shown = "".join(f"  {value}" for value in facts.values())
        self._console.line(f"{name:<10}{text}{shown}", Style.PLAIN)


async def _discover(client: Client, report: _Report) -> None:
    card = await client.card()
    versions = [interface.protocol_version for interface in card.supported_interfaces]
    report.step("discover", "its card says who it is", name=card.name, versions=", ".join(versions))


async def _send(client: Client, report: _Report) -> None:
    reply = await client.send("hello")
    _expect(reply.state, TaskState.COMPLETED)
    report.step("send", "one message, one reply:", reply=reply.text)


async def _stream(client: Client, report: _Report) -> None:
    seen: list[str] = []
    async with client.stream("hello again") as events:
        async for event in events:
            match event:
                case TaskArtifactUpdateEvent():
                    seen.append(f"{render.parts_text(event.artifact.parts)!r}")
                case TaskStatusUpdateEvent():
                    seen.append(event.status.state.short)
                case _:
                    seen.append("task")
    _expect(events.state, TaskState.COMPLETED)
    report.step("stream", "events as they come:", events=", ".join(seen))


async def _detach(client: Client, report: _Report) -> None:
    task = await client.send_detached("no hurry")
    report.step("detach", "an id at once:", task=task.id, state=task.state.short)
    task = await client.wait(task.id, timeout=WAIT_SEC)
    _expect(task.state, TaskState.COMPLETED)
    report.step("poll", "later the result:", reply=task.text)


async def _cancel(client: Client, report: _Report) -> None:
    task = await client.send_detached(SLOW)
    _expect(task.state, TaskState.WORKING)
    report.step("detach", "a task that takes for ever:", task=task.id, state=task.state.short)
    task = await client.cancel(task.id)
    _expect(task.state, TaskState.CANCELED)
    report.step("cancel", "it is gone, its slot is free:", state=task.state.short)


def _expect(state: TaskState | None, wanted: TaskState) -> None:
    if state is not wanted:
        raise AssertionError(f"the task is {state}, not {wanted}")
