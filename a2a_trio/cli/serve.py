"""``a2a-trio serve``: serve an agent until a signal, then stop cleanly, or at once on the second.

One signal is enough. Trio cannot abandon a task, so an agent that shields itself for ever would hold
the process; after all the graces it is ended as the second signal ends it.
"""

import argparse
import os
import signal
from collections.abc import AsyncIterator, Callable, Mapping
from pathlib import Path
from typing import Final, final

import attrs
import trio

from a2a_trio._log import get_logger
from a2a_trio.agents.contract import Agent
from a2a_trio.agents.load import load_agent
from a2a_trio.cli.console import Console, Style
from a2a_trio.cli.exits import ExitCode, UsageError
from a2a_trio.cli.outlet import open_outlet
from a2a_trio.cli.settings import load, working_folder
from a2a_trio.cli.tokens import given_token
from a2a_trio.config.schema import Settings
from a2a_trio.logs import configure_logging, request_fields
from a2a_trio.peer.activity import Activity
from a2a_trio.peer.finding import LEAVE_SEC
from a2a_trio.peer.peer import open_peer
from a2a_trio.peer.serving import HTTP_GRACE_SEC, Server
from a2a_trio.rules.audit import AuditEntry
from a2a_trio.rules.redaction import Redactor

AT_ONCE_SEC: Final = 1.0
"""How long the second signal leaves an agent that shields itself, before the process is ended."""
STOP_SLACK_SEC: Final = 2.0
"""What a stop may take on top of the graces of tasks and answers: closing, and the last writes."""

_log: Final = get_logger("a2a_trio.serve")


@final
@attrs.frozen(kw_only=True)
class Serving:
    """What to serve, and what it is called."""

    agent: Agent
    name: str
    settings: Settings
    home: Path
    activity: bool = False
    """Whether the operator is shown what callers do."""


def run(namespace: argparse.Namespace, console: Console) -> ExitCode:
    """Run ``a2a-trio serve``."""
    loaded = load(namespace, console, flags(namespace))
    settings = loaded.settings
    redactor = Redactor(settings.secrets())
    serving = Serving(
        agent=load_agent(namespace.agent, path=working_folder()),
        name=namespace.agent,
        settings=settings,
        home=loaded.home,
        activity=settings.ui.transcript and not (console.quiet or settings.log.json),
    )
    with open_outlet(console.err) as stderr:
        configure_logging(
            settings.log.level, json=settings.log.json, redact=redactor.text, stream=stderr
        )
        return trio.run(serve_until_signal, serving, attrs.evolve(console, err=stderr))


def log_call(entry: AuditEntry) -> None:
    """Log how a call, or a detached task that no call waited for, ended."""
    if entry.phase == "outcome":
        _log.info("call" if entry.method else "task", **request_fields(entry))


def flags(namespace: argparse.Namespace) -> Mapping[str, object]:
    """Return the settings that the command line sets, by key.

    Raises:
        UsageError: the token cannot be used, or the workspace is no folder.
    """
    workspace = namespace.workspace
    if workspace is not None and not Path(workspace).is_dir():
        raise UsageError(f"--workspace {workspace}: not a folder")
    given = {
        "server.host": namespace.host,
        "server.port": namespace.port,
        "server.portFallback": namespace.port_fallback,
        "server.workspace": workspace,
        "server.sharedToken": given_token(namespace.token, namespace.token_file),
        "log.level": namespace.log_level,
        "log.json": namespace.log_json,
    }
    return {key: value for key, value in given.items() if value is not None}


async def serve_until_signal(serving: Serving, console: Console) -> ExitCode:
    """Serve until SIGINT or SIGTERM; drain on the first, end on the second."""
    with trio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
        return await serve_until(signals, serving, console)


async def serve_until(
    signals: AsyncIterator[int],
    serving: Serving,
    console: Console,
    end_process: Callable[[int], object] = os._exit,
) -> ExitCode:
    """Serve until something comes out of ``signals``.

    Args:
        signals: the first item stops the server, the second ends it.
        serving: what to serve.
        console: where to announce it.
        end_process: called with the exit code if an agent does not let go, neither after the second
            signal nor, with no second one, after ``patience``.

    Raises:
        UsageError: there is nothing to listen on.
    """
    course = _Course()
    code = ExitCode.INTERRUPTED
    async with trio.open_nursery() as nursery:

        async def watch() -> None:
            await anext(signals)
            course.stop.set()
            console.note("stopping; once more to stop at once")
            with trio.move_on_after(patience(serving.settings)) as waited:
                await anext(signals)
            if waited.cancelled_caught:
                console.warn(f"{course.what_is_left()}; ending the process")
            nursery.cancel_scope.cancel()
            with trio.CancelScope(shield=True), trio.move_on_after(AT_ONCE_SEC):
                await course.ended.wait()
            if not course.ended.is_set():
                end_process(ExitCode.INTERRUPTED)

        nursery.start_soon(watch)
        try:
            await _serve(serving, console, course)
        finally:
            course.ended.set()
        code = ExitCode.OK
        nursery.cancel_scope.cancel()
    return code


def patience(settings: Settings) -> float:
    """Return the seconds that a stop may take before the process is ended."""
    server = settings.server
    graces = server.drain_grace_sec + server.cancel_grace_sec + HTTP_GRACE_SEC
    return graces + LEAVE_SEC + STOP_SLACK_SEC


@final
@attrs.define
class _Course:
    """How far a server has come, for whoever waits for its end."""

    stop: trio.Event = attrs.field(factory=trio.Event)
    ended: trio.Event = attrs.field(factory=trio.Event)
    server: Server | None = None
    """None until it is up."""

    def what_is_left(self) -> str:
        """Say what holds the process."""
        stuck = 0 if self.server is None else self.server.statistics().live
        if not stuck:
            return "the server does not stop"
        return f"{stuck} task{'s' if stuck > 1 else ''} will not stop"


async def _serve(serving: Serving, console: Console, course: _Course) -> None:
    up = False
    try:
        async with open_peer(
            serving.agent,
            serving.settings,
            home=serving.home,
            audit=log_call,
            observers=_observers(serving, console),
        ) as peer:
            up = True
            course.server = peer.server
            _announce(peer.server, serving, console)
            await course.stop.wait()
    except OSError as error:
        if up:
            raise
        wanted = serving.settings.server
        raise UsageError(f"cannot serve on {wanted.host}:{wanted.port}: {error}") from None


def _observers(serving: Serving, console: Console) -> tuple[Activity, ...]:
    if not serving.activity:
        return ()
    redactor = Redactor(serving.settings.secrets())
    return (Activity(console.note, redactor.text),)


def _announce(server: Server, serving: Serving, console: Console) -> None:
    url = server.url.removesuffix(serving.settings.server.rpc_path)
    console.line(f"serving {serving.name} at {url}", Style.STRONG)
    # After it: standard error is written by a thread, so on a terminal this order is the only sure one.
    for warning in server.warnings:
        console.warn(warning)
    console.note(f"card at {url}/.well-known/agent-card.json; Ctrl-C stops")
