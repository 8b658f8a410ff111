"""The agent contract: an async function of a ``TaskContext``.

::

    async def agent(task: TaskContext) -> str | None:
        await task.update("reading the repository")
        branch = await task.ask("Which branch?")
        return f"done on {branch.text}"

What an agent returns ends its task: a string becomes the ``reply`` artifact of a COMPLETED task, None
completes it with what was published, ``InputRequired`` leaves it waiting for the caller, a
``Message`` answers without a task where none has been shown yet. An exception fails the task.
Cancellation arrives as ``trio.Cancelled``, as everywhere in Trio; there is nothing to implement.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from pathlib import Path
from typing import Final, Protocol, TypeAlias, final

import attrs
import trio

from a2a_trio.rules.admission import Caller
from a2a_trio.rules.lifecycle import (
    ArtifactAdded,
    AuthNeeded,
    Failed,
    InputNeeded,
    Progressed,
    Rejected,
    TaskEvent,
)
from a2a_trio.wire.model import Artifact, JsonObject, Message, Part, Role, Task

__all__ = [
    "REPLY_ARTIFACT",
    "Agent",
    "AgentResult",
    "Content",
    "InputRequired",
    "RunPort",
    "TaskContext",
]

REPLY_ARTIFACT: Final = "reply"
"""Id and name of the artifact that a returned string becomes."""

Content: TypeAlias = str | Part | Sequence[Part]
"""What an agent may say: a text, a part, or several parts."""


@final
@attrs.frozen
class InputRequired:
    """Returned by an agent: the task waits for its caller, whose next message runs it again.

    The next invocation sees the whole conversation in ``TaskContext.history``.
    """

    question: Content | None = None


AgentResult: TypeAlias = str | Message | InputRequired | None
Agent: TypeAlias = Callable[["TaskContext"], Awaitable[AgentResult] | AgentResult]
"""An async function, or a sync one, which runs in a thread."""


class RequestFacts(Protocol):
    """What an agent may know about the request that brought its message."""

    @property
    def metadata(self) -> JsonObject:
        """The request's metadata."""
        ...

    @property
    def accepted_output_modes(self) -> tuple[str, ...]:
        """Media types that the caller can take."""
        ...


class RunPort(Protocol):
    """What a ``TaskContext`` needs of the server that runs the agent."""

    @property
    def task(self) -> Task:
        """The task as it is now."""
        ...

    @property
    def message(self) -> Message:
        """The message that the agent works on."""
        ...

    @property
    def request(self) -> RequestFacts:
        """What came around the message."""
        ...

    @property
    def caller(self) -> Caller:
        """Who sent it."""
        ...

    def framed(self, text: str, /) -> str:
        """Return a text of the caller, framed as untrusted input."""
        ...

    def new_id(self) -> str:
        """Return a fresh id."""
        ...

    async def say(self, /, *events: TaskEvent) -> None:
        """Publish events in one step."""
        ...

    async def end(self, event: Failed | Rejected, /) -> None:
        """End the task now."""
        ...

    async def ask(self, question: InputNeeded | AuthNeeded, /) -> Message:
        """Wait for the caller's next message."""
        ...

    def inbox(self) -> trio.MemoryReceiveChannel[Message]:
        """Return the channel of messages that come while the agent works."""
        ...


def parts_of(content: Content) -> tuple[Part, ...]:
    """Return content as parts."""
    if isinstance(content, str):
        return (Part(text=content),)
    if isinstance(content, Part):
        return (content,)
    parts = tuple(content)
    if not parts:
        raise ValueError("there must be at least one part")
    return parts


@final
class TaskContext:
    """One task as its agent sees it; made by the server and good until the agent returns.

    Every async method is a checkpoint. One that raises ``trio.Cancelled`` did nothing. When the task
    has ended, canceled over the head of an agent that would not stop, say, they raise
    ``InvalidTransitionError``.
    """

    def __init__(self, port: RunPort, workspace: Path) -> None:
        self._port = port
        self._workspace = workspace

    # --- what is known --------------------------------------------------------------------------

    @property
    def id(self) -> str:
        """The task's id."""
        return self._port.task.id

    @property
    def workspace(self) -> Path:
        """The folder to work in: ``server.workspace``, else the one the server was started in.

        It is told, not enforced: the process itself stays where it is.
        """
        return self._workspace

    @property
    def context_id(self) -> str:
        """The conversation's id."""
        return self._port.task.context_id

    @property
    def message(self) -> Message:
        """The caller's message, as it came."""
        return self._port.message

    @property
    def raw_text(self) -> str:
        """The text of the message, as it came. Not for a model: see ``text``."""
        return self._port.message.text

    @property
    def text(self) -> str:
        """The text of the message, filtered and framed as untrusted input from a named peer."""
        return self._port.framed(self._port.message.text)

    @property
    def history(self) -> tuple[Message, ...]:
        """The conversation of this task so far, this message included."""
        return self._port.task.history

    @property
    def identity(self) -> str:
        """The caller's identity, as admission established it."""
        return self._port.caller.identity

    @property
    def caller(self) -> Caller:
        """The caller's identity with how it is known and what to call it."""
        return self._port.caller

    @property
    def metadata(self) -> JsonObject:
        """The metadata of the request, with that of the message over it."""
        return {**self._port.request.metadata, **self._port.message.metadata}

    @property
    def accepted_output_modes(self) -> tuple[str, ...]:
        """Media types that the caller can take; empty if it did not say."""
        return self._port.request.accepted_output_modes

    # --- what can be said -----------------------------------------------------------------------

    async def update(self, status: Content) -> None:
        """Tell the caller what the agent is doing; the task stays WORKING."""
        await self._port.say(Progressed(self._message(status)))

    async def artifact(
        self,
        artifact_id: str,
        content: Content,
        *,
        name: str | None = None,
        description: str = "",
        append: bool = False,
        last: bool = False,
        metadata: JsonObject | None = None,
    ) -> None:
        """Publish an artifact, or a chunk of one (A2A section 4.2.2).

        Args:
            artifact_id: unique within the task.
            content: the text or the parts.
            name: what people call it; the id if omitted.
            description: what it is.
            append: adds to the artifact of this id, which is created if there is none; otherwise
                replaces it.
            last: nothing will be appended any more.
            metadata: merged into the artifact's.

        Raises:
            InvalidTransitionError: the task has ended, or a chunk follows the last one.
            TaskTooLargeError: the task would keep too much; it fails.
        """
        artifact = Artifact(
            artifact_id=artifact_id,
            name=artifact_id if name is None else name,
            description=description,
            parts=parts_of(content),
            metadata=metadata or {},
        )
        await self._port.say(ArtifactAdded(artifact, append, last))

    async def ask(self, question: Content) -> Message:
        """Ask the caller and return its next message; meanwhile the task is INPUT_REQUIRED.

        The slot is free meanwhile and the task's window stands still. A scope of the agent's own
        may bound the wait; the task is then WORKING again, without an answer.

        Raises:
            InvalidTransitionError: the task has ended or already waits, or too many tasks wait.
        """
        return await self._port.ask(InputNeeded(self._message(question)))

    async def require_auth(self, explanation: Content) -> Message:
        """Like ``ask`` in AUTH_REQUIRED: credentials come out of band (A2A section 7.6.1)."""
        return await self._port.ask(AuthNeeded(self._message(explanation)))

    async def fail(self, reason: Content) -> None:
        """End the task as FAILED; what the agent returns afterwards is ignored."""
        await self._port.end(Failed(self._message(reason)))

    async def reject(self, reason: Content) -> None:
        """End the task as REJECTED; what the agent returns afterwards is ignored."""
        await self._port.end(Rejected(self._message(reason)))

    @property
    def messages(self) -> AsyncIterator[Message]:
        """Messages that the caller sends while the agent works.

        Reading this once lets them in; until then they are refused. The iterator ends with the
        task.
        """
        return self._port.inbox()

    def _message(self, content: Content) -> Message:
        return Message(
            message_id=self._port.new_id(),
            role=Role.AGENT,
            parts=parts_of(content),
            context_id=self.context_id,
            task_id=self.id,
        )
