"""What a send came back with."""

from typing import final

import attrs

from a2a_trio.wire.methods import Result
from a2a_trio.wire.model import Message, Task, TaskState
from a2a_trio.wire.requests import SendMessageResponse

__all__ = ["Reply"]


@final
@attrs.frozen(kw_only=True)
class Reply:
    """A task or a direct message: exactly one of the two (A2A section 3.1.1)."""

    task: Task | None = None
    message: Message | None = None

    @classmethod
    def of(cls, result: Result) -> "Reply":
        """Return the reply in the result of a send."""
        if not isinstance(result, SendMessageResponse):
            raise TypeError(f"the codec answered {type(result).__name__} for a send")
        return cls(task=result.task, message=result.message)

    @property
    def text(self) -> str:
        """The text of the artifacts, else of the status message, or of the direct message."""
        if self.task is not None:
            return self.task.text
        return self.message.text if self.message is not None else ""

    @property
    def state(self) -> TaskState | None:
        """The state of the task; None for a direct message, which has none."""
        return self.task.state if self.task is not None else None

    @property
    def task_id(self) -> str:
        """The id of the task, ``""`` for a direct message."""
        return self.task.id if self.task is not None else ""

    @property
    def context_id(self) -> str:
        """The conversation, to be sent with the next message of it."""
        found = self.task if self.task is not None else self.message
        return found.context_id if found is not None else ""
