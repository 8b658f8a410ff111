"""Putting the rooms together: one agent, one set of settings, one endpoint.

The endpoint exists before the runs nursery does, because an ASGI application is an object that a
server opens later. Until then, and after the nursery has closed, calls are refused as busy.
"""

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from types import MappingProxyType
from typing import Final, final
from uuid import uuid4

import trio

from a2a_trio.agents.contract import Agent
from a2a_trio.agents.invoke import runner_for
from a2a_trio.config.schema import Settings
from a2a_trio.errors import ServerBusyError
from a2a_trio.journal import TranscriptLine
from a2a_trio.peer import plan
from a2a_trio.peer.bookkeeping import Bookkeeping, Observers
from a2a_trio.peer.filters import filters_of, framer_of
from a2a_trio.peer.transcripts import Transcriber
from a2a_trio.rules.audit import AuditEntry
from a2a_trio.rules.dedup import Dedup
from a2a_trio.rules.directory import THROUGH_GATEWAY
from a2a_trio.rules.redaction import Redactor
from a2a_trio.server.calls import CallContext, EventSource, Operations
from a2a_trio.server.endpoint import Endpoint
from a2a_trio.server.metrics import Metrics
from a2a_trio.server.operations import TaskOperations
from a2a_trio.server.records import Records
from a2a_trio.server.run import RunObserver
from a2a_trio.server.runs import RunEngine
from a2a_trio.server.sends import Sends
from a2a_trio.server.store import MemoryStore
from a2a_trio.server.subscriptions import Subscriptions
from a2a_trio.wire.methods import Dialect
from a2a_trio.wire.model import Task
from a2a_trio.wire.requests import (
    CancelTaskRequest,
    GetTaskRequest,
    ListTasksRequest,
    ListTasksResponse,
    SendMessageRequest,
    SendMessageResponse,
    SubscribeToTaskRequest,
)

__all__ = ["Assembly", "Clock"]

_NO_TOKENS: Final[Mapping[str, str]] = MappingProxyType({})


@final
class Clock:
    """Monotonic seconds and wall time that go together, so that a virtual clock moves both."""

    def __init__(self) -> None:
        self._origin: tuple[datetime, float] | None = None

    @staticmethod
    def now() -> float:
        """Return Trio's clock in seconds."""
        return trio.current_time()

    def utc(self) -> datetime:
        """Return the present instant; read off Trio's clock after the first call."""
        now = trio.current_time()
        if self._origin is None:
            self._origin = (datetime.now(UTC), now)
        instant, then = self._origin
        return instant + timedelta(seconds=now - then)


def _new_id() -> str:
    return str(uuid4())


@final
class _LateOperations:
    """The operations, as soon as there is a nursery to run tasks in."""

    def __init__(self) -> None:
        self.target: TaskOperations | None = None

    @property
    def _operations(self) -> TaskOperations:
        if self.target is None:
            raise ServerBusyError("The server is not running", retry_after=1)
        return self.target

    async def send_message(
        self, request: SendMessageRequest, context: CallContext
    ) -> SendMessageResponse:
        return await self._operations.send_message(request, context)

    async def send_streaming_message(
        self, request: SendMessageRequest, context: CallContext
    ) -> EventSource:
        return await self._operations.send_streaming_message(request, context)

    async def get_task(self, request: GetTaskRequest, context: CallContext) -> Task:
        return await self._operations.get_task(request, context)

    async def list_tasks(
        self, request: ListTasksRequest, context: CallContext
    ) -> ListTasksResponse:
        return await self._operations.list_tasks(request, context)

    async def cancel_task(self, request: CancelTaskRequest, context: CallContext) -> Task:
        return await self._operations.cancel_task(request, context)

    async def subscribe_to_task(
        self, request: SubscribeToTaskRequest, context: CallContext
    ) -> EventSource:
        return await self._operations.subscribe_to_task(request, context)

    def stored_dialect(self, task_id: str) -> Dialect | None:
        return self._operations.stored_dialect(task_id)


@final
class Assembly:
    """Everything that serves one agent, except the socket.

    Args:
        agent: the agent.
        settings: the settings.
        address: where the server is, or will be, bound; for the card.
        audit: takes the audit entries; must neither block nor raise.
        healthy: False while something that the server depends on does not work.
        observers: told what happens to runs, besides the metrics and the audit log.
        transcribe: takes the lines of the transcripts; must neither block nor raise. No transcripts
            are kept if omitted.
        gateway_tokens: see ``open_server``.

    Raises:
        SettingsError: the settings contradict themselves.
    """

    def __init__(
        self,
        agent: Agent,
        settings: Settings,
        address: plan.Address,
        *,
        audit: Callable[[AuditEntry], None] = lambda _entry: None,
        healthy: Callable[[], bool] = lambda: True,
        observers: tuple[RunObserver, ...] = (),
        transcribe: Callable[[TranscriptLine], None] | None = None,
        gateway_tokens: Mapping[str, str] = _NO_TOKENS,
    ) -> None:
        self.settings = settings
        self.clock = Clock()
        self.self_id = _new_id()
        """This server's name in delegation chains."""
        self.metrics = Metrics()
        self.engine: RunEngine | None = None
        self.stored: Callable[[], int] = lambda: 0
        """Counts the tasks in the store."""
        self.redactor = Redactor((*settings.secrets(), *gateway_tokens.values()))
        if transcribe is not None:
            observers = (*observers, Transcriber(transcribe, self.clock.utc))
        self._observers = observers
        self._bookkeeping = Bookkeeping(self.metrics, audit, self.redactor.text, self.clock.utc)
        self._runner = runner_for(agent, plan.workspace_of(settings))
        self._operations = _LateOperations()
        self.cards = plan.cards_of(
            settings, address, plan.session_facts(settings, datetime.now(UTC))
        )
        admission = plan.admission_of(settings)
        admission.set_minted(
            (f"{THROUGH_GATEWAY}{key}", token) for key, token in gateway_tokens.items()
        )
        self.endpoint = Endpoint(
            self._operations,
            admission=admission,
            cards=self.cards,
            settings=settings,
            metrics=self.metrics,
            audit=audit,
            redact=self.redactor.text,
            now=self.clock.now,
            utc=self.clock.utc,
            ready=lambda: self.engine is not None and not self.engine.draining and healthy(),
        )

    @property
    def operations(self) -> Operations:
        """The operations; busy while no runs nursery is open."""
        return self._operations

    @asynccontextmanager
    async def running(self) -> AsyncIterator[RunEngine]:
        """Open the runs nursery for the length of a block; may be opened again afterwards.

        When the block ends, runs that are still alive end FAILED "server stopped". Drain the
        engine first to give them time.
        """
        async with trio.open_nursery() as jobs:
            engine = self._engine(jobs)
            try:
                yield engine
            finally:
                self._operations.target = None
                self.engine = None
                jobs.cancel_scope.cancel()

    def _engine(self, jobs: trio.Nursery) -> RunEngine:
        settings = self.settings
        subscriptions = Subscriptions(plan.subscription_limits(settings))
        store = MemoryStore(subscriptions, plan.store_limits(settings), self.clock.now)
        records = Records(
            store,
            utc=self.clock.utc,
            new_id=_new_id,
            limits=plan.record_limits(settings),
            observer=Observers((self._bookkeeping, *self._observers)),
        )
        engine = RunEngine(
            jobs=jobs,
            runner=self._runner,
            records=records,
            subscriptions=subscriptions,
            limits=plan.run_limits(settings),
            filter_for=filters_of(settings, self.redactor),
            frame=framer_of(settings),
        )
        sends = Sends(
            engine=engine,
            store=store,
            subscriptions=subscriptions,
            dedup=Dedup(settings.server.dedup_window_sec),
            guard=plan.guard_of(settings, self.self_id, self.clock.now),
            dedup_message_ids=settings.server.dedup_message_ids,
        )

        def stored_dialect(task_id: str) -> Dialect | None:
            record = store.peek(task_id)
            return None if record is None else record.dialect

        self.engine = engine
        self._operations.target = TaskOperations(
            engine=engine,
            store=store,
            subscriptions=subscriptions,
            sends=sends,
            dialects=stored_dialect,
            cancel_on_disconnect=settings.server.stream_disconnect == "cancel",
        )
        self.stored = store.__len__
        self._watch(engine)
        return engine

    def _watch(self, engine: RunEngine) -> None:
        watch = self.metrics.watch
        watch("slots_used", "Runs that hold a slot", lambda: engine.statistics().slots_in_use)
        watch("runs_live", "Runs that have not left", lambda: engine.statistics().live)
        watch("runs_parked", "Runs that wait for callers", lambda: engine.statistics().parked)
        watch("subscribers", "Open streams of tasks", lambda: engine.statistics().subscribers)
        watch("tasks_stored", "Tasks in the store", self.stored)
