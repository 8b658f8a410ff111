"""The agent that says what it heard: for demos, tests and measuring."""

from typing import Final

from a2a_trio.agents.contract import REPLY_ARTIFACT, TaskContext

__all__ = ["echo"]

CHUNK: Final = 64
"""Characters that are streamed at once."""


async def echo(task: TaskContext) -> None:
    """Stream the caller's text back in chunks, as the ``reply`` artifact; it does nothing else."""
    text = task.raw_text
    chunks = [text[start : start + CHUNK] for start in range(0, len(text), CHUNK)] or [""]
    for index, chunk in enumerate(chunks):
        await task.artifact(REPLY_ARTIFACT, chunk, append=index > 0, last=index == len(chunks) - 1)
