"""Invoking an agent and turning what it returns into an ending."""

import inspect
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import Final, Protocol, TypeAlias

import attrs
import trio

from a2a_trio.agents.check import why_no_agent
from a2a_trio.agents.contract import (
    REPLY_ARTIFACT,
    Agent,
    AgentResult,
    InputRequired,
    RunPort,
    TaskContext,
    parts_of,
)
from a2a_trio.rules.endings import Asked, Ending, Finished, Replied
from a2a_trio.rules.lifecycle import ArtifactAdded, Completed, InputNeeded, TaskEvent
from a2a_trio.wire.model import Artifact, Message, Part, Role

__all__ = ["EndingPort", "runner_for"]

MAX_AGENT_THREADS: Final = 64
"""Sync agents at work or abandoned; past it a further one waits, under its task's window."""


class EndingPort(RunPort, Protocol):
    """A run's port that also filters the events an agent ends with."""

    def filtered(self, events: tuple[TaskEvent, ...], /) -> tuple[TaskEvent, ...]:
        """Return last events as the caller may see them."""
        ...

    def asked(self, question: InputNeeded, /) -> InputNeeded:
        """Return a question as the caller may see it."""
        ...


_Invoke: TypeAlias = Callable[[TaskContext], Awaitable[AgentResult]]


def runner_for(
    agent: Agent, workspace: Path | None = None
) -> Callable[[EndingPort], Awaitable[Ending]]:
    """Return what the run engine calls to invoke an agent on a run.

    Args:
        agent: an async function, an object with an async ``__call__``, or a sync function.
        workspace: the folder that the agent is told to work in; the current one if omitted.

    Raises:
        TypeError: it cannot be called with a ``TaskContext``; the text says why.
    """
    reason = why_no_agent(agent)
    if reason:
        raise TypeError(reason)
    invoke = _invoker(agent)
    folder = Path.cwd() if workspace is None else workspace

    async def run(port: EndingPort) -> Ending:
        result = await invoke(TaskContext(port, folder))
        return _ending(port, result)

    return run


def _is_async(agent: Agent) -> bool:
    plain = agent
    while isinstance(plain, partial):
        plain = plain.func
    return inspect.iscoroutinefunction(plain) or inspect.iscoroutinefunction(
        getattr(plain, "__call__", None)  # noqa: B004 - looks at the method, does not test for one
    )


def _invoker(agent: Agent) -> _Invoke:
    if _is_async(agent):

        async def call(task: TaskContext) -> AgentResult:
            result = agent(task)
            return await result if inspect.isawaitable(result) else result

        return call
    threads = trio.CapacityLimiter(MAX_AGENT_THREADS)

    async def call_in_thread(task: TaskContext) -> AgentResult:
        # A thread because the function may block. It cannot be interrupted: when the task ends it
        # is abandoned, and whatever it does later on the task is refused.
        result = await trio.to_thread.run_sync(agent, task, abandon_on_cancel=True, limiter=threads)
        # A plain function that hands back a coroutine: run it where coroutines run.
        return await result if inspect.isawaitable(result) else result

    return call_in_thread


def _ending(port: EndingPort, result: AgentResult) -> Ending:
    match result:
        case None | "":
            return Finished((Completed(),))
        case str():
            reply = Artifact(
                artifact_id=REPLY_ARTIFACT, name=REPLY_ARTIFACT, parts=(Part(text=result),)
            )
            return Finished(port.filtered((ArtifactAdded(reply, last=True), Completed())))
        case InputRequired(question):
            asked = None if question is None else _message(port, parts_of(question))
            return Asked(port.asked(InputNeeded(asked)))
        case Message():
            return Replied(_reply(port, result))
        case _:
            raise TypeError(
                f"an agent returns str, None, Message or InputRequired, not {type(result).__name__}"
            )


def _message(port: EndingPort, parts: tuple[Part, ...]) -> Message:
    task = port.task
    return Message(
        message_id=port.new_id(),
        role=Role.AGENT,
        parts=parts,
        context_id=task.context_id,
        task_id=task.id,
    )


def _reply(port: EndingPort, message: Message) -> Message:
    """Return the agent's message, in this conversation and filtered."""
    task = port.task
    placed = attrs.evolve(
        message,
        message_id=message.message_id or port.new_id(),
        role=Role.AGENT,
        parts=parts_of(message.parts),
        context_id=task.context_id,
        task_id=task.id,
    )
    (event,) = port.filtered((Completed(placed),))
    return placed if not isinstance(event, Completed) or event.message is None else event.message
