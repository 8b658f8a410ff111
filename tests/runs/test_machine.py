"""A whole server against a naive model, under a virtual clock, whatever its callers do.

Trio runs in a thread of its own; rules hand it coroutines and wait until every task is blocked. Time
stands still but for the rule that lets it pass. Rules act at whole seconds and agents at halves, so
that nothing the model predicts is a race; the races have tests of their own.
"""

import contextlib
import math
import threading
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import attrs
import outcome
import trio
from hypothesis import settings as hypothesis_settings, strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from a2a_trio import ServerSettings, Settings
from a2a_trio.errors import (
    A2AError,
    ServerBusyError,
    TaskNotCancelableError,
    UnsupportedOperationError,
)
from a2a_trio.server.calls import EventSource
from a2a_trio.testing.in_process import InProcessServer, open_in_process
from a2a_trio.testing.scripted import scripted
from a2a_trio.wire.model import Task, TaskState, TaskStatusUpdateEvent
from a2a_trio.wire.requests import SendMessageRequest, SubscribeToTaskRequest

SLOTS = 2
PARKED = 3
REPLY_WINDOW = 20.0
ASYNC_WINDOW = 60.0
INPUT_WINDOW = 40.0
GRACE = 5.0
BUFFER = 64

WORDS = (
    *("sleep:0.5", "sleep:2.5", "sleep:15.5", "hang", "stubborn:4.7"),
    *("ask", "auth", "later", "spam:5", "spam:100", "say:hello", "raise", "reject"),
)

T = TypeVar("T")

SETTINGS = Settings(
    server=ServerSettings(
        max_concurrent=SLOTS,
        max_parked=PARKED,
        reply_timeout_sec=REPLY_WINDOW,
        async_timeout_sec=ASYNC_WINDOW,
        input_timeout_sec=INPUT_WINDOW,
        cancel_grace_sec=GRACE,
        subscriber_buffer=BUFFER,
        max_subscribers_per_task=4,
        max_pingpong_turns=20,
    )
)


class Host:
    """A Trio run in a thread, with a clock that only moves when told."""

    def __init__(self) -> None:
        self.clock = trio.testing.MockClock()
        self._ready = threading.Event()
        self._thread = threading.Thread(target=self._run, name="trio host")
        self._thread.start()
        self._ready.wait()

    def _run(self) -> None:
        trio.run(self._main, clock=self.clock)

    async def _main(self) -> None:
        self.token = trio.lowlevel.current_trio_token()
        self._stop = trio.Event()
        async with open_in_process(scripted, SETTINGS) as server, trio.open_nursery() as nursery:
            self.server: InProcessServer = server
            self.nursery = nursery
            self._ready.set()
            await self._stop.wait()
            nursery.cancel_scope.cancel()

    def do(self, work: Callable[..., Awaitable[T]], *args: object) -> T:
        async def settled() -> T:
            result = await outcome.acapture(work, *args)
            await trio.testing.wait_all_tasks_blocked()
            return result.unwrap()

        return trio.from_thread.run(settled, trio_token=self.token)

    def pass_time(self, seconds: float) -> None:
        async def pass_it() -> None:
            self.clock.autojump_threshold = 0
            await trio.sleep(seconds)
            self.clock.autojump_threshold = math.inf

        self.do(pass_it)

    def close(self) -> None:
        trio.from_thread.run_sync(self._stop.set, trio_token=self.token)
        self._thread.join()


@attrs.define
class Listener:
    """A subscriber and what it saw."""

    source: EventSource
    seen: list[Any] = attrs.field(factory=list)
    versions: list[int] = attrs.field(factory=list)
    ended: bool = False

    async def read(self) -> None:
        while (item := await self.source.receive()) is not None:
            self.versions.append(item.version)
            self.seen.append(item.event)
        self.ended = True


@attrs.define
class Sender:
    """A blocking send and what came of it."""

    scope: trio.CancelScope
    answer: Task | None = None


@attrs.define
class Model:
    """What one task should be doing, worked out from its script."""

    script: list[str]
    window: float
    state: TaskState = TaskState.WORKING
    holds: bool = True
    """Holds a slot."""
    wake: float = math.inf
    """When the present word of the script is done."""
    expires: float = math.inf
    """When the window fires."""
    gives_up: float = math.inf
    """When the question has waited too long."""
    in_line: bool = False
    """Answered, and waits for a slot."""
    leaves: float = math.inf
    """When a cancelled agent has cleaned up."""
    forced: float = math.inf
    """When the grace is over."""
    verdict: TaskState = TaskState.CANCELED
    """What is written when it leaves."""
    settled_at: float = math.inf
    """From when on nobody can change the verdict."""

    @property
    def next_event(self) -> float:
        return min(self.wake, self.expires, self.gives_up, self.leaves, self.forced)


class ServerMachine(RuleBasedStateMachine):
    """The rules; each acts on the server and on the model alike."""

    def __init__(self) -> None:
        super().__init__()
        self.host = Host()
        self.calls = self.host.server.calls()
        self.now = 0.0
        self.tasks: dict[str, Model] = {}
        self.line: list[str] = []
        self.senders: dict[str, list[Sender]] = {}
        self.listeners: list[tuple[str, Listener]] = []
        self.events: dict[tuple[str, int], object] = {}

    # --- the model ------------------------------------------------------------------------------

    def used(self) -> int:
        return sum(model.holds for model in self.tasks.values())

    def parked(self) -> int:
        waiting = (TaskState.INPUT_REQUIRED, TaskState.AUTH_REQUIRED)
        return sum(m.state in waiting or m.in_line for m in self.tasks.values())

    def step(self, task_id: str, at: float) -> None:
        """Go on with a task's script until it takes time."""
        model = self.tasks[task_id]
        model.wake = math.inf
        while model.script:
            verb, _, argument = model.script.pop(0).partition(":")
            if verb in {"sleep", "stubborn"}:
                model.wake = at + float(argument)
                model.script.insert(0, f"after-{verb}")
                return
            if verb.startswith("after-") or verb in {"spam", "say"}:
                continue
            if verb == "hang":
                return
            if verb in {"ask", "auth", "later"}:
                self.park(model, verb, at)
                return
            self.end(task_id, TaskState.REJECTED if verb == "reject" else TaskState.FAILED, at)
            return
        self.end(task_id, TaskState.COMPLETED, at)

    def park(self, model: Model, verb: str, at: float) -> None:
        if self.parked() >= PARKED:
            model.script = []
            self.end_model(model, TaskState.FAILED, at)
            return
        model.state = TaskState.AUTH_REQUIRED if verb == "auth" else TaskState.INPUT_REQUIRED
        model.holds = False
        model.expires = math.inf
        model.gives_up = at + INPUT_WINDOW
        if verb == "later":
            model.script = ["later-answer"]
        self.grant(at)

    def end(self, task_id: str, state: TaskState, at: float) -> None:
        self.end_model(self.tasks[task_id], state, at)
        if task_id in self.line:
            self.line.remove(task_id)

    def end_model(self, model: Model, state: TaskState, at: float) -> None:
        if not model.state.is_terminal:
            model.state = state
        model.holds = model.in_line = False
        model.wake = model.expires = model.gives_up = model.leaves = model.forced = math.inf
        self.grant(at)

    def grant(self, at: float) -> None:
        while self.line and self.used() < SLOTS:
            task_id = self.line.pop(0)
            model = self.tasks[task_id]
            model.in_line, model.holds = False, True
            model.expires = at + model.window
            self.step(task_id, at)

    def advance(self, until: float) -> None:
        while True:
            due = min(self.tasks, key=lambda t: self.tasks[t].next_event, default=None)
            if due is None or self.tasks[due].next_event > until:
                break
            self.happen(due)
        self.now = until

    def leave_when_heard(self, model: Model) -> None:
        """It hears its cancellation after the last of the words that shut it out in a row."""
        model.leaves, model.wake, model.expires = model.wake, math.inf, math.inf
        for word in model.script[1:]:
            verb, _, argument = word.partition(":")
            if verb != "stubborn":
                break
            model.leaves += float(argument)
        model.script = []

    def happen(self, task_id: str) -> None:
        model, at = self.tasks[task_id], self.tasks[task_id].next_event
        if model.leaves == at:
            self.end(task_id, model.verdict, at)
        elif model.forced == at:
            model.state, model.forced = TaskState.CANCELED, math.inf
        elif model.wake == at:
            self.step(task_id, at)
        elif model.expires == at and model.script[:1] == ["after-stubborn"]:
            # It does not hear that its window is over; from the grace on, whoever looks settles it.
            self.leave_when_heard(model)
            model.verdict, model.settled_at = TaskState.FAILED, at + GRACE
        else:
            self.end(task_id, TaskState.FAILED, at)

    # --- the rules ------------------------------------------------------------------------------

    # Two stubborn words in a row outlast the grace after a cancel; three would outlast the one
    # after a window too, and then it would matter who looks when.
    scripts = st.lists(st.sampled_from(WORDS), min_size=1, max_size=4).filter(
        lambda script: " ".join(script).count("stubborn:4.7 stubborn:4.7 stubborn:4.7") == 0
    )

    def begin(self, task_id: str, script: list[str], *, detached: bool) -> None:
        window = ASYNC_WINDOW if detached else REPLY_WINDOW
        self.tasks[task_id] = Model(list(script), window, expires=self.now + window)
        self.step(task_id, self.now)

    @rule(script=scripts)
    def send_detached(self, script: list[str]) -> None:
        room = self.used() < SLOTS and not self.line
        try:
            task = self.host.do(self._send_detached, " ".join(script))
        except ServerBusyError:
            assert not room
            return
        assert room
        self.begin(task.id, script, detached=True)

    async def _send_detached(self, text: str) -> Task:
        return await self.calls.send_for_task(text, detached=True)

    @rule(script=scripts)
    def send_blocking(self, script: list[str]) -> None:
        room = self.used() < SLOTS and not self.line
        known = set(self.tasks)
        sender, failure = self.host.do(self._send_blocking, " ".join(script), "")
        if not room:
            assert isinstance(failure[0], ServerBusyError)
            return
        (task_id,) = self.host.do(self._ids) - known
        self.begin(task_id, script, detached=False)
        self.senders.setdefault(task_id, []).append(sender)

    async def _ids(self) -> set[str]:
        return {task.id for task in (await self.calls.list()).tasks}

    async def _send_blocking(self, text: str, task_id: str) -> tuple[Sender, list[Exception]]:
        sender, failure = Sender(trio.CancelScope()), list[Exception]()

        async def send() -> None:
            with sender.scope:
                try:
                    sender.answer = await self.calls.send_for_task(text, task_id=task_id)
                except A2AError as exc:
                    failure.append(exc)

        self.host.nursery.start_soon(send)
        await trio.testing.wait_all_tasks_blocked()
        return sender, failure

    @rule(script=scripts)
    def send_stream(self, script: list[str]) -> None:
        room = self.used() < SLOTS and not self.line
        try:
            listener = self.host.do(self._send_stream, " ".join(script))
        except ServerBusyError:
            assert not room
            return
        assert room
        first = listener.seen[0]
        assert isinstance(first, Task)
        self.listeners.append((first.id, listener))
        self.begin(first.id, script, detached=False)

    async def _send_stream(self, text: str) -> Listener:
        source = await self.calls.operations.send_streaming_message(
            SendMessageRequest(message=self.calls.message(text)), self.calls.context()
        )
        return self._listen(source)

    def _listen(self, source: EventSource) -> Listener:
        listener = Listener(source)
        self.host.nursery.start_soon(listener.read)
        return listener

    @precondition(lambda self: self.tasks)
    @rule(data=st.data())
    def subscribe(self, data: st.DataObject) -> None:
        task_id = data.draw(st.sampled_from(list(self.tasks)))
        listening = sum(t == task_id and not x.ended for t, x in self.listeners)
        try:
            listener = self.host.do(self._subscribe, task_id)
        except UnsupportedOperationError:
            assert self.tasks[task_id].state.is_terminal
            return
        except ServerBusyError:
            assert sum(t == task_id for t, _ in self.listeners) >= 4 or listening >= 4
            return
        assert isinstance(listener.seen[0], Task)
        assert listener.seen[0].state is self.tasks[task_id].state
        self.listeners.append((task_id, listener))

    async def _subscribe(self, task_id: str) -> Listener:
        source = await self.calls.operations.subscribe_to_task(
            SubscribeToTaskRequest(id=task_id), self.calls.context()
        )
        return self._listen(source)

    @precondition(lambda self: self.listeners)
    @rule(data=st.data())
    def drop_listener(self, data: st.DataObject) -> None:
        index = data.draw(st.integers(0, len(self.listeners) - 1))
        _, listener = self.listeners.pop(index)
        self.host.do(self._close, listener.source)

    async def _close(self, source: EventSource) -> None:
        source.close()

    @precondition(lambda self: any(self.senders.values()))
    @rule(data=st.data())
    def drop_sender(self, data: st.DataObject) -> None:
        task_id = data.draw(st.sampled_from([t for t, s in self.senders.items() if s]))
        sender = self.senders[task_id].pop()
        self.host.do(self._cancel_scope, sender.scope)

    async def _cancel_scope(self, scope: trio.CancelScope) -> None:
        scope.cancel()

    @precondition(lambda self: self.tasks)
    @rule(data=st.data())
    def cancel(self, data: st.DataObject) -> None:
        task_id = data.draw(st.sampled_from(list(self.tasks)))
        self.host.do(self._cancel, task_id)
        model = self.tasks[task_id]
        if model.state.is_terminal or self.now >= model.settled_at:
            return
        if model.leaves < math.inf:
            model.verdict = TaskState.CANCELED
            model.forced = min(model.forced, self.now + GRACE)
            return
        if model.script[:1] == ["after-stubborn"]:
            self.leave_when_heard(model)
            model.forced = self.now + GRACE
        else:
            self.end(task_id, TaskState.CANCELED, self.now)

    async def _cancel(self, task_id: str) -> None:
        async def cancel() -> None:
            with contextlib.suppress(TaskNotCancelableError):
                await self.calls.cancel(task_id)

        self.host.nursery.start_soon(cancel)

    @precondition(lambda self: self.tasks)
    @rule(data=st.data())
    def answer(self, data: st.DataObject) -> None:
        task_id = data.draw(st.sampled_from(list(self.tasks)))
        model = self.tasks[task_id]
        try:
            self.host.do(self._answer, task_id)
        except UnsupportedOperationError:
            assert not model.state.is_interrupted
            return
        assert model.state.is_interrupted
        if model.script == ["later-answer"]:
            model.script = []
        model.state, model.window, model.gives_up = TaskState.WORKING, ASYNC_WINDOW, math.inf
        model.in_line = True
        self.line.append(task_id)
        self.grant(self.now)

    async def _answer(self, task_id: str) -> None:
        # An empty script, should the answer start the agent again.
        await self.calls.send_for_task(" ", task_id=task_id, detached=True)

    @rule(seconds=st.sampled_from([1, 3, 8, 21, 61]))
    def pass_time(self, seconds: int) -> None:
        self.host.pass_time(seconds)
        self.advance(self.now + seconds)

    # --- the invariants -------------------------------------------------------------------------

    @invariant()
    def states_agree(self) -> None:
        for task_id, model in self.tasks.items():
            task = self.host.do(self.calls.get, task_id)
            assert task.state is model.state, (task_id, model)

    @invariant()
    def slots_agree(self) -> None:
        statistics = self.host.server.engine.statistics()
        assert statistics.slots_in_use == self.used() <= SLOTS
        assert statistics.slots_waiting == len(self.line)
        assert statistics.parked == self.parked() <= PARKED
        assert statistics.subscribers == len(self.listeners)

    @invariant()
    def listeners_saw_one_sequence(self) -> None:
        for task_id, listener in self.listeners:
            start = listener.versions[0]
            assert listener.versions == list(range(start, start + len(listener.versions)))
            for version, event in zip(listener.versions[1:], listener.seen[1:], strict=True):
                assert self.events.setdefault((task_id, version), event) is event
            ends = [
                n
                for n, e in enumerate(listener.seen)
                if isinstance(e, TaskStatusUpdateEvent) and e.status.state.is_terminal
            ]
            assert ends in ([], [len(listener.seen) - 1])
            state = self.tasks[task_id].state
            if state.is_terminal:
                assert listener.ended
            if isinstance(listener.seen[-1], Task | TaskStatusUpdateEvent) and not listener.ended:
                assert listener.seen[-1].status.state is state

    @invariant()
    def senders_got_their_answer(self) -> None:
        for task_id, senders in self.senders.items():
            for sender in senders:
                if self.tasks[task_id].state.is_terminal:
                    assert sender.answer is not None
                if sender.answer is not None:
                    state = sender.answer.state
                    assert state.is_terminal or state.is_interrupted

    def teardown(self) -> None:
        for _, listener in self.listeners:
            self.host.do(self._close, listener.source)
        self.host.pass_time(10 * INPUT_WINDOW)
        try:
            statistics = self.host.server.engine.statistics()
            assert statistics.live == statistics.parked == statistics.slots_in_use == 0
            assert statistics.subscribers == 0
            ids = self.host.do(self._ids)
            for task_id in ids:
                assert self.host.do(self.calls.get, task_id).state.is_terminal
        finally:
            self.host.close()


TestServerMachine = ServerMachine.TestCase
TestServerMachine.settings = hypothesis_settings(
    max_examples=max(
        200, hypothesis_settings.default.max_examples if hypothesis_settings.default else 0
    ),
    stateful_step_count=25,
    deadline=None,
)
