"""Invoking the agent of a run inside the run's scopes, until there is a verdict on it."""

import math
from collections.abc import Awaitable, Callable
from typing import TypeAlias, final

import trio

from a2a_trio._groups import only_failure
from a2a_trio._log import get_logger
from a2a_trio.rules.endings import Asked, Ending, Finished, Replied
from a2a_trio.server.controls import Framer, RunControls
from a2a_trio.server.crashes import crash_text
from a2a_trio.server.engine import Engine
from a2a_trio.server.run import Run

__all__ = ["Invocations", "Runner"]

_log = get_logger("a2a_trio.runs")

Runner: TypeAlias = Callable[[RunControls], Awaitable[Ending]]
"""Invokes the agent on a run and turns what it returns into an ending."""


@final
class Invocations:
    """Invokes agents.

    Args:
        engine: the engine that the runs belong to.
        runner: invokes the agent.
        frame: frames a caller's text as untrusted input.
    """

    def __init__(self, engine: Engine, runner: Runner, frame: Framer) -> None:
        self._engine = engine
        self._runner = runner
        self._frame = frame

    async def work(self, run: Run) -> Finished | Replied:
        """Invoke the agent until it ends, and return the verdict on how it did."""
        ending: Ending | None = None
        crash: str | None = None
        try:
            with run.user:
                ending = await self._invoke(run)
        except BaseException as exc:  # noqa: ASYNC103, BLE001 - what is not the agent's own is raised again by this very call
            crash = crash_text(only_failure(exc, levels=1), stopping=_is_stopping())
            _log.warning("agent failed", task=run.id, exc_info=exc)
        if run.window.cancel_called:
            # Let a cancel that was asked for in this very tick be heard before the window's verdict.
            await trio.lowlevel.cancel_shielded_checkpoint()
        return run.verdict(ending, crash)

    async def _invoke(self, run: Run) -> Ending | None:
        while True:
            ending: Ending | None = None
            run.window = trio.CancelScope()
            self._engine.reset_window(run)
            with run.window:
                ending = await self._isolated(run)
            if not isinstance(ending, Asked) or run.window.cancel_called:
                return ending
            # No window is open while the task waits; the answer opens the next one.
            await self._engine.ask(run, ending.question)

    async def _isolated(self, run: Run) -> Ending | None:
        """Invoke the agent in a task of its own.

        Whatever an agent does to its task (leaked scopes and nurseries, a corrupted stack of them)
        comes out of this nursery as an exception, and not out of the runs nursery.
        """
        ending: Ending | None = None

        async def invoke() -> None:
            nonlocal ending
            ending = await self._runner(RunControls(self._engine, run, self._frame))

        async with trio.open_nursery() as nursery:  # noqa: ASYNC112 - for the task, not for more of them
            nursery.start_soon(invoke, name=f"agent of {run.id}")
        return ending


def _is_stopping() -> bool:
    """Return whether a Cancelled at this level is the runs nursery's, and not a stray one."""
    return trio.current_effective_deadline() == -math.inf
