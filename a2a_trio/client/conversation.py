"""A conversation with one peer: what it needs to know to continue with the next message."""

from typing import TYPE_CHECKING, Unpack, final

from a2a_trio.client.compose import Content, MessageOptions
from a2a_trio.client.fold import TaskFold
from a2a_trio.client.reply import Reply
from a2a_trio.client.stream import EventStream
from a2a_trio.errors import TaskNotFoundError
from a2a_trio.wire.model import TaskState

if TYPE_CHECKING:
    from a2a_trio.client.operations import Client

__all__ = ["Conversation"]


@final
class Conversation:
    """Sends messages that belong together (A2A section 3.4).

    Every message carries the context that the peer named, and the task for as long as it has not
    ended: the answer to a question continues the task that asked, the next request begins a new
    one. One message at a time: they build on each other.

    Args:
        client: where messages go; must outlive the conversation.
        context_id: a conversation to continue, or ``""`` for a new one.
        task_id: a task of it that is waiting for a message, or ``""``.
    """

    def __init__(self, client: "Client", context_id: str = "", task_id: str = "") -> None:
        self._client = client
        self._context_id = context_id
        self._task_id = task_id

    @property
    def context_id(self) -> str:
        """The conversation's id, ``""`` until the peer has named it."""
        return self._context_id

    @property
    def task_id(self) -> str:
        """The task that the next message continues, ``""`` if it begins a new one."""
        return self._task_id

    async def send(self, content: Content, **options: Unpack[MessageOptions]) -> Reply:
        """Send the next message and wait for the reply; as ``Client.send``.

        Raises:
            TaskNotFoundError: the peer no longer knows the task; the next message begins a new one.
        """
        try:
            reply = await self._client.send(
                content, context_id=self._context_id, task_id=self._task_id, **options
            )
        except TaskNotFoundError:
            self._task_id = ""
            raise
        self._continue(reply.context_id, reply.task_id, reply.state)
        return reply

    def stream(self, content: Content, **options: Unpack[MessageOptions]) -> EventStream:
        """Send the next message and stream the answer; as ``Client.stream``."""
        return self._client.stream_observed(
            content,
            self._observe,
            context_id=self._context_id,
            task_id=self._task_id,
            **options,
        )

    def _observe(self, fold: TaskFold) -> None:
        self._continue(fold.context_id, fold.task_id, fold.state)

    def _continue(self, context_id: str, task_id: str, state: TaskState | None) -> None:
        self._context_id = context_id or self._context_id
        self._task_id = task_id if state is not None and not state.is_terminal else ""
