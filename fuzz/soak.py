"""A long day of a server in a few seconds: thousands of callers, random faults, virtual time.

::

    python -m fuzz.soak --callers 5000 --hours 24 --seed 7

Invariant: whatever callers do, slots, parked runs, subscribers and stored tasks stay within their
bounds; every task a caller was told of ends exactly once; a reader that reconnects with the id of
the last event it saw misses none and sees none twice; and when the callers have gone, nothing is
left. One process, one clock, deterministic by its seed.
"""

import argparse
import random
import sys
import uuid
from collections import Counter
from collections.abc import Callable
from typing import Any, cast, final

import attrs
import trio
import trio.testing

from a2a_trio import ServerSettings, Settings
from a2a_trio.errors import A2AError, ServerBusyError, TaskNotFoundError
from a2a_trio.server.calls import EventSource
from a2a_trio.testing.direct import DirectCalls
from a2a_trio.testing.in_process import InProcessServer, open_in_process
from a2a_trio.testing.scripted import scripted
from a2a_trio.wire.model import Task, TaskState, TaskStatusUpdateEvent

HOUR = 3600.0
SLOTS = 8
PARKED = 20
SUBSCRIBERS = 32
ENDED = 400
SERVER = ServerSettings(
    max_concurrent=SLOTS,
    max_parked=PARKED,
    max_subscribers=SUBSCRIBERS,
    max_subscribers_per_task=4,
    subscriber_buffer=32,
    max_tasks=ENDED,
    task_ttl_sec=2 * HOUR,
    reply_timeout_sec=120,
    async_timeout_sec=900,
    input_timeout_sec=600,
    max_pingpong_turns=20,
)
CANCELS = 0.3
"""How many detached callers change their minds."""
SLOW_READERS = 0.1
ANSWERS = 0.5
"""How often a caller that finds a question answers it."""
WORDS = (
    *("sleep:0.1", "sleep:3", "sleep:40", "sleep:200", "hang", "stubborn:2", "stubborn:30"),
    *("tidy:1", "tidy:12", "ask", "ask", "auth", "later", "spam:3", "spam:200"),
    *("say:busy", "raise", "reject"),
)


@final
@attrs.define
class Report:
    """What happened."""

    tasks: Counter[str] = attrs.field(factory=Counter)
    """Ends seen, by state."""
    faults: Counter[str] = attrs.field(factory=Counter)
    checks: int = 0
    events: int = 0

    def lines(self) -> list[str]:
        """Return the report for people."""
        return [
            f"tasks seen to their end: {sum(self.tasks.values())} {dict(sorted(self.tasks.items()))}",
            f"faults injected: {sum(self.faults.values())} {dict(sorted(self.faults.items()))}",
            f"events read: {self.events}",
            f"invariants checked: {self.checks}",
        ]


@final
class Soak:
    """One run.

    Args:
        seed: everything that is random follows from it.
        callers: how many there are in all.
        hours: over how much virtual time they come.
    """

    def __init__(self, seed: int, callers: int, hours: float) -> None:
        self.random = random.Random(seed)
        self.callers = callers
        self.span = hours * HOUR
        self.report = Report()

    async def run(self) -> Report:
        """Let every caller come and go, then look whether anything is left."""
        settings = Settings(server=SERVER)
        async with open_in_process(scripted, settings) as server:
            async with trio.open_nursery() as nursery:
                for number in range(self.callers):
                    at = self.random.uniform(0, self.span)
                    nursery.start_soon(self._caller, server, number, at)
            # The longest that anything may live when nobody looks at it any more.
            await trio.sleep(SERVER.async_timeout_sec + SERVER.input_timeout_sec + HOUR)
            self._check_empty(server)
        return self.report

    async def _caller(self, server: InProcessServer, number: int, at: float) -> None:
        await trio.sleep(at)
        calls = server.calls(f"caller-{number % 50}")
        script = " ".join(self.random.choices(WORDS, k=self.random.randint(1, 4)))
        manner = self.random.choice([self._detached, self._blocking, self._streaming])
        try:
            await manner(calls, script)
        except ServerBusyError:
            self.report.faults["busy"] += 1
        self._check_bounds(server)

    # --- manners --------------------------------------------------------------------------------

    async def _blocking(self, calls: DirectCalls, script: str) -> None:
        with trio.move_on_after(self.random.choice([0.01, 5, 60, 3600])) as patience:
            task = await calls.send_for_task(script)
        if patience.cancelled_caught:
            self.report.faults["blocking caller left"] += 1
            return
        await self._follow(calls, task)

    async def _detached(self, calls: DirectCalls, script: str) -> None:
        task = await calls.send_for_task(script, detached=True)
        await trio.sleep(self.random.uniform(0, 90))
        if self.random.random() < CANCELS:
            self.report.faults["cancel"] += 1
            try:
                task = await calls.cancel(task.id)
            except A2AError:
                task = await calls.get(task.id)
            self._check(task.state.is_terminal, "a cancel leaves a task that has ended")
        await self._follow(calls, task)

    async def _streaming(self, calls: DirectCalls, script: str) -> None:
        async with calls.stream(script) as source:
            first = await source.receive()
            if first is None or not isinstance(first.event, Task):
                raise AssertionError("a stream begins with its task")
            task = first.event
            versions = [first.version]
            await self._read(source, versions)
        for _ in range(self.random.randint(0, 3)):
            self.report.faults["reconnect"] += 1
            await trio.sleep(self.random.uniform(0, 20))
            try:
                async with calls.subscribe(task.id, last_event_id=versions[-1]) as source:
                    await self._read(source, versions)
            except (ServerBusyError, TaskNotFoundError):
                break
        contiguous = versions == list(range(versions[0], versions[0] + len(versions)))
        self._check(contiguous, f"a reader that reconnects sees every event once: {versions}")
        await self._follow(calls, task)

    async def _read(self, source: EventSource, versions: list[int]) -> None:
        """Read until the end, a lost connection, or being cut for reading too slowly."""
        slow = self.random.random() < SLOW_READERS
        with trio.move_on_after(self.random.choice([1, 30, 1000])) as connection:
            try:
                while (item := await source.receive()) is not None:
                    if isinstance(item.event, Task):
                        # A snapshot stands for all that led to it.
                        versions[:] = [item.version]
                    else:
                        versions.append(item.version)
                    self.report.events += 1
                    self._note(item.event)
                    if slow:
                        await trio.sleep(0.5)
            except ServerBusyError:
                self.report.faults["slow reader cut"] += 1
        if connection.cancelled_caught:
            self.report.faults["stream dropped"] += 1

    def _note(self, event: object) -> None:
        if isinstance(event, TaskStatusUpdateEvent) and event.status.state.is_terminal:
            self.report.tasks[event.status.state.short] += 1

    async def _follow(self, calls: DirectCalls, task: Task) -> None:
        """Answer questions and poll until the task ends or is forgotten; it must end."""
        deadline = trio.current_time() + 4 * HOUR
        while trio.current_time() < deadline:
            try:
                task = await calls.get(task.id)
                if task.state.is_terminal:
                    self.report.tasks[task.state.short] += 1
                    return
                if task.state is TaskState.INPUT_REQUIRED and self.random.random() < ANSWERS:
                    await calls.send("say:answered", task_id=task.id, detached=True)
            except TaskNotFoundError:
                self.report.faults["forgotten"] += 1
                return
            except A2AError:
                self.report.faults["answer refused"] += 1
            await trio.sleep(self.random.uniform(1, 120))
        raise AssertionError(f"task {task.id} never ended: {task.state}")

    # --- invariants -----------------------------------------------------------------------------

    def _check(self, holds: bool, what: str) -> None:  # noqa: FBT001 - the condition is what is checked
        self.report.checks += 1
        if not holds:
            raise AssertionError(what)

    def _check_bounds(self, server: InProcessServer) -> None:
        now = server.engine.statistics()
        self._check(now.slots_in_use <= SLOTS, "slots stay within their bound")
        self._check(now.parked <= PARKED, "parked runs stay within their bound")
        self._check(now.subscribers <= SUBSCRIBERS, "subscribers stay within their bound")
        self._check(now.slots_waiting <= PARKED, "the line is as long as there were parked runs")
        self._check(server.stored <= ENDED + now.live, "stored tasks stay within their bound")

    def _check_empty(self, server: InProcessServer) -> None:
        now = server.engine.statistics()
        left = (now.live, now.parked, now.slots_in_use, now.slots_waiting, now.subscribers)
        self._check(left == (0, 0, 0, 0, 0), f"nothing is left when the callers have gone: {now}")


def soak(seed: int, callers: int, hours: float) -> Report:
    """Run one soak; the same arguments give the same report.

    Raises:
        AssertionError: an invariant does not hold.
    """
    run = Soak(seed, callers, hours)
    # Trio shuffles the tasks of a tick with a generator of its own, which it lets tests seed.
    internals = cast("Any", trio._core._run)  # noqa: SLF001 - there is no public name for it
    internals._ALLOW_DETERMINISTIC_SCHEDULING = True  # noqa: SLF001 - as above
    internals._r.seed(seed)  # noqa: SLF001 - as above
    clock = trio.testing.MockClock(autojump_threshold=0)
    return trio.run(run.run, clock=clock)


def main(argv: list[str] | None = None, *, show: Callable[[str], None] = print) -> int:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--seed", type=int, default=uuid.uuid4().int % 10**6)
    parser.add_argument("--callers", type=int, default=5000)
    parser.add_argument("--hours", type=float, default=24.0, help="virtual hours")
    arguments = parser.parse_args(argv)
    show(f"seed {arguments.seed}: {arguments.callers} callers over {arguments.hours:g} hours")
    report = soak(arguments.seed, arguments.callers, arguments.hours)
    for line in report.lines():
        show(line)
    return 0


if __name__ == "__main__":
    sys.exit(main())
