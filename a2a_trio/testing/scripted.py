"""An agent that does what the message tells it: the other end of tests of the run engine.

The text is a script: words ``verb:argument``, done one after the other. At the end the agent returns
``done``.

=================  ==========================================================================
``sleep:S``        works for S seconds
``hang``           works for ever
``stubborn:S``     works for S seconds and ignores cancellation meanwhile
``tidy:S``         works for ever and needs S seconds to clean up when it is cancelled
``ask``            asks its caller and waits for the answer
``auth``           the same in AUTH_REQUIRED
``later``          ends with a question (``InputRequired``); the answer is the next script
``spam:N``         publishes N artifact chunks
``say:WORD``       publishes a status message
``raise``          fails with an exception
``reject``         rejects the task and returns
=================  ==========================================================================
"""

import math
from typing import final

import trio

from a2a_trio.agents.contract import InputRequired, TaskContext

__all__ = ["ScriptError", "scripted"]


@final
class ScriptError(Exception):
    """What ``raise`` raises."""


async def scripted(task: TaskContext) -> str | InputRequired | None:
    """Do what the message says; see the module's table."""
    for word in task.raw_text.split():
        verb, _, argument = word.partition(":")
        if verb == "later":
            return InputRequired("what next?")
        await _do(task, verb, argument)
        if verb == "reject":
            return None
    return "done"


async def _do(task: TaskContext, verb: str, argument: str) -> None:
    match verb:
        case "sleep" | "hang" | "stubborn" | "tidy":
            await _spend(verb, math.inf if verb == "hang" else float(argument))
        case "ask":
            await task.ask("go on?")
        case "auth":
            await task.require_auth("who are you?")
        case "spam":
            for number in range(int(argument)):
                await task.artifact("spam", f"chunk {number} ", append=number > 0)
        case "say":
            await task.update(argument)
        case "reject":
            await task.reject("as told")
        case "raise":
            raise ScriptError("as told")
        case _:
            raise ScriptError(f"unknown word {verb!r}")


async def _spend(verb: str, seconds: float) -> None:
    """Spend time, with the manners that the verb names."""
    if verb == "stubborn":
        with trio.CancelScope(shield=True):
            await trio.sleep(seconds)
    elif verb == "tidy":
        try:
            await trio.sleep_forever()
        finally:
            with trio.CancelScope(shield=True):
                await trio.sleep(seconds)
    else:
        await trio.sleep(seconds)
