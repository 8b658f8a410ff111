"""The observer that tells the operator what others have this peer do, in one line per event."""

from collections.abc import Callable
from typing import Final, final

from a2a_trio.rules.audit import preview
from a2a_trio.rules.framing import clean_label
from a2a_trio.server.run import Run
from a2a_trio.wire.model import Message, StreamEvent, TaskState, TaskStatusUpdateEvent

__all__ = ["Activity", "dispatch_label"]

MAX_PREVIEW: Final = 120
"""Characters shown of what was said."""
MAX_PEER: Final = 80
"""Characters shown of a caller's name."""

_PREFIX: Final = "[A2A inbound]"
_DIGITS: Final = 3
# Redacted text that the preview is made of: white space is folded after it.
_WINDOW: Final = MAX_PREVIEW * 8
_BAD: Final = frozenset({TaskState.FAILED, TaskState.REJECTED})


def dispatch_label(task_id: str) -> str:
    """Return what a task is called where people read: ``a2a-`` and its first three hex digits."""
    digits = [char for char in task_id.lower() if char in "0123456789abcdef"]
    return "a2a-" + "".join(digits[:_DIGITS])


@final
class Activity:
    """Says who sends what, what the agent reports, and how it ends.

    Args:
        say: takes one line of text; must neither block nor raise.
        redact: removes secrets from a text.
    """

    def __init__(self, say: Callable[[str], None], redact: Callable[[str], str]) -> None:
        self._say = say
        self._redact = redact

    def began(self, run: Run) -> None:
        """Tell of a dispatch."""
        label = dispatch_label(run.id)
        text = self._preview(run.request.message.text) or "(no text)"
        self._say(f"{_PREFIX} dispatch from {_peer(run)} ({label}): {text}")

    def heard(self, run: Run, message: Message) -> None:
        """Tell of a further message to a live dispatch."""
        text = self._preview(message.text) or "(no text)"
        self._say(f"{_PREFIX} {dispatch_label(run.id)} message from {_peer(run)}: {text}")

    def said(self, run: Run, events: tuple[StreamEvent, ...]) -> None:
        """Tell of progress, and of questions to the caller; the end has a line of its own."""
        for event in events:
            if not isinstance(event, TaskStatusUpdateEvent) or event.status.state.is_terminal:
                continue
            message, state = event.status.message, event.status.state
            text = "" if message is None else self._preview(message.text)
            if state.is_interrupted:
                text = f"{state.short}: {text}" if text else state.short
            if text:
                self._say(f"{_PREFIX} {dispatch_label(run.id)} {text}")

    def ended(self, run: Run, seconds: float) -> None:
        """Tell how a dispatch ended, and after how long."""
        task = run.record.task
        text = self._preview(task.text if run.reply is None else run.reply.text)
        what = f"{_PREFIX} A2A dispatch {dispatch_label(run.id)}"
        took = f"({seconds:.1f}s)"
        if run.failure is not None:
            self._say(f"{what} failed {took}: the task could not be stored")
        elif task.state in _BAD:
            self._say(f"{what} {task.state.short} {took}: {text or '(no reason)'}")
        elif run.reply is not None or task.state is TaskState.COMPLETED:
            self._say(f"{what} completed {took} — {text or '(no reply)'}")
        else:
            self._say(f"{what} {task.state.short} {took}")

    def _preview(self, text: str) -> str:
        return clean_label(preview(text, self._redact, _WINDOW), MAX_PREVIEW)


def _peer(run: Run) -> str:
    return clean_label(run.request.caller.display, MAX_PEER)
