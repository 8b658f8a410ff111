"""What the parts of the run engine need of the whole: its limits, and a few of its powers."""

from typing import Protocol, final

import attrs
import trio

from a2a_trio.rules.lifecycle import AuthNeeded, InputNeeded, TaskEvent
from a2a_trio.server.run import Run
from a2a_trio.wire.model import Message

__all__ = ["Engine", "RunLimits"]


@final
@attrs.frozen(kw_only=True)
class RunLimits:
    """The limits of the engine; seconds of 0 mean "none"."""

    max_concurrent: int = 3
    reply_timeout: float = 300.0
    async_timeout: float = 86_400.0
    input_timeout: float = 86_400.0
    cancel_grace: float = 5.0
    max_parked: int = 100
    """Tasks that wait for their caller; past it a task that asks fails."""
    max_inbox: int = 16
    """Messages that wait for an agent that reads ``messages``; past it they are refused."""


class Engine(Protocol):
    """The powers of ``RunEngine`` that its parts use on a run."""

    def kill(self, run: Run, verdict: TaskEvent, /) -> None:
        """Decide that a run ends with this event, unless its end is already decided."""
        ...

    def reset_window(self, run: Run, /) -> None:
        """Start the window of the present turn now."""
        ...

    def open_inbox(self, run: Run, /) -> trio.MemoryReceiveChannel[Message]:
        """Let the run's agent read messages that come while it works."""
        ...

    def new_id(self) -> str:
        """Return a fresh id."""
        ...

    async def say(self, run: Run, /, *events: TaskEvent) -> None:
        """Publish what the agent says."""
        ...

    async def ask(self, run: Run, question: InputNeeded | AuthNeeded, /) -> Message:
        """Park a run until its caller's next message."""
        ...
