"""How an agent's invocation can end, as the run engine sees it.

An agent room turns what an agent returned into one of these; the run engine decides what becomes of
it, because a cancel, an expired window or a stop may have come first.
"""

from typing import TypeAlias, final

import attrs

from a2a_trio.rules.lifecycle import InputNeeded, TaskEvent
from a2a_trio.wire.model import Message


@final
@attrs.frozen
class Finished:
    """The agent is done: its last events, the final one a terminal event."""

    events: tuple[TaskEvent, ...]


@final
@attrs.frozen
class Replied:
    """The agent answered with a message instead of a task (A2A section 3.1.1)."""

    message: Message


@final
@attrs.frozen
class Asked:
    """The agent ended with a question; the caller's next message starts it again."""

    question: InputNeeded


Ending: TypeAlias = Finished | Replied | Asked
