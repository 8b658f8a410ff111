"""An endpoint over operations that a test scripts, without sockets."""

import json
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, final

import attrs
import pytest
import trio

from a2a_trio.config.schema import Settings
from a2a_trio.config.server_schema import ServerSettings
from a2a_trio.errors import ProtocolError, TaskNotFoundError
from a2a_trio.rules.admission import Admission, AdmissionPolicy
from a2a_trio.rules.audit import AuditEntry
from a2a_trio.rules.card import CardFacts, build_card
from a2a_trio.rules.rate_limit import RateLimiter
from a2a_trio.server.calls import CallContext, Published
from a2a_trio.server.cards import Cards
from a2a_trio.server.endpoint import Endpoint
from a2a_trio.server.http import Headers, HttpRequest, HttpResponse, body_of
from a2a_trio.server.metrics import Metrics
from a2a_trio.wire.methods import Dialect
from a2a_trio.wire.model import (
    Artifact,
    Message,
    Part,
    Role,
    Task,
    TaskArtifactUpdateEvent,
    TaskState,
    TaskStatus,
    TaskStatusUpdateEvent,
)
from a2a_trio.wire.requests import (
    CancelTaskRequest,
    GetTaskRequest,
    ListTasksRequest,
    ListTasksResponse,
    SendMessageRequest,
    SendMessageResponse,
    SubscribeToTaskRequest,
)

AT = datetime(2026, 1, 2, 3, 4, 5, 678_000, tzinfo=UTC)
TASK = Task(
    id="t-1",
    context_id="c-1",
    status=TaskStatus(state=TaskState.COMPLETED, timestamp=AT),
    artifacts=(Artifact(artifact_id="reply", parts=(Part(text="pong"),)),),
)
WORKING = attrs.evolve(TASK, status=TaskStatus(state=TaskState.WORKING, timestamp=AT), artifacts=())
CHUNK = TaskArtifactUpdateEvent(task_id="t-1", context_id="c-1", artifact=TASK.artifacts[0])
DONE = TaskStatusUpdateEvent(task_id="t-1", context_id="c-1", status=TASK.status)
REPLY = Message(message_id="m-9", role=Role.AGENT, parts=(Part(text="hi"),), context_id="c-1")

Step = Published | ProtocolError | Exception | float
"""One step of a scripted stream: an event, an exception, or seconds of silence."""


@final
class FakeSource:
    """A stream that does what it is told, then ends."""

    def __init__(self, *steps: Step) -> None:
        self._steps = list(steps)
        self.closed = 0

    async def receive(self) -> Published | None:
        await trio.lowlevel.checkpoint()
        while self._steps and isinstance(self._steps[0], float):
            silence = self._steps[0]
            started = trio.current_time()
            try:
                await trio.sleep(silence)
            finally:
                # A cancelled wait goes on where it was, like one for a queue.
                self._steps[0] = silence - (trio.current_time() - started)
            self._steps.pop(0)
        step = self._steps.pop(0) if self._steps else None
        if isinstance(step, Exception):
            raise step
        assert not isinstance(step, float)
        return step

    def close(self) -> None:
        self.closed += 1


@final
class FakeOperations:
    """Operations that answer fixed values and remember how they were called."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, Any, CallContext]] = []
        self.fail: Exception | None = None
        self.wait = 0.0
        self.handed_out = 0
        self.answer = SendMessageResponse(task=TASK)
        self.source = FakeSource(Published(1, WORKING), Published(2, CHUNK), Published(3, DONE))
        self.dialects: dict[str, Dialect] = {}

    async def _called(self, name: str, request: object, context: CallContext) -> None:
        self.calls.append((name, request, context))
        await trio.sleep(self.wait)
        if self.fail is not None:
            raise self.fail

    async def send_message(
        self, request: SendMessageRequest, context: CallContext, /
    ) -> SendMessageResponse:
        await self._called("send", request, context)
        return self.answer

    async def send_streaming_message(
        self, request: SendMessageRequest, context: CallContext, /
    ) -> FakeSource:
        await self._called("stream", request, context)
        self.handed_out += 1
        return self.source

    async def get_task(self, request: GetTaskRequest, context: CallContext, /) -> Task:
        await self._called("get", request, context)
        if request.id != TASK.id:
            raise TaskNotFoundError
        return TASK

    async def list_tasks(
        self, request: ListTasksRequest, context: CallContext, /
    ) -> ListTasksResponse:
        await self._called("list", request, context)
        return ListTasksResponse(tasks=(WORKING,), next_page_token="", page_size=50, total_size=1)

    async def cancel_task(self, request: CancelTaskRequest, context: CallContext, /) -> Task:
        await self._called("cancel", request, context)
        return TASK

    async def subscribe_to_task(
        self, request: SubscribeToTaskRequest, context: CallContext, /
    ) -> FakeSource:
        await self._called("subscribe", request, context)
        return self.source

    def stored_dialect(self, task_id: str, /) -> Dialect | None:
        return self.dialects.get(task_id)


@final
class Edge:
    """An endpoint and everything around it."""

    def __init__(self, policy: AdmissionPolicy, server: ServerSettings, facts: CardFacts) -> None:
        self.operations = FakeOperations()
        self.audit = list[AuditEntry]()
        self.metrics = Metrics()
        self.is_ready = True
        public = build_card(facts)
        full = build_card(attrs.evolve(facts, authenticated=True))
        self.cards = Cards(public, full, compat=server.card_compat, modified=AT)
        self.endpoint = Endpoint(
            self.operations,
            admission=Admission(
                policy,
                limiter=RateLimiter(server.rate_limit_per_min),
                polling_limiter=RateLimiter(server.rate_limit_per_min * 10),
                flood_limiter=RateLimiter(server.flood_limit_per_min),
            ),
            cards=self.cards,
            settings=Settings(server=server),
            metrics=self.metrics,
            audit=self.audit.append,
            redact=lambda text: text.replace("hunter2", "[redacted]"),
            now=trio.current_time,
            utc=lambda: AT,
            ready=lambda: self.is_ready,
        )

    async def ask(
        self, verb: str, path: str, *, query: str = "", body: bytes = b"", **headers: str
    ) -> HttpResponse:
        """Make a request; header names are written with underscores."""
        named = {"host": "127.0.0.1", **{k.replace("_", "-"): v for k, v in headers.items()}}
        return await self.endpoint.handle(
            HttpRequest(
                method=verb,
                path=path,
                query=query,
                headers=Headers(named.items()),
                client="127.0.0.1",
                receive_body=body_of(body),
            )
        )

    async def get(self, path: str, *, query: str = "", **headers: str) -> HttpResponse:
        return await self.ask("GET", path, query=query, body=b"", **headers)

    async def post(
        self, body: bytes, *, path: str = "/", query: str = "", **headers: str
    ) -> HttpResponse:
        headers.setdefault("content_type", "application/json")
        return await self.ask("POST", path, query=query, body=body, **headers)

    async def call(
        self, method: str, params: Any = None, *, query: str = "", **headers: str
    ) -> HttpResponse:
        """Make a JSON-RPC call with id 7."""
        request = {"jsonrpc": "2.0", "id": 7, "method": method, "params": params}
        return await self.post(json.dumps(request).encode(), query=query, **headers)


MakeEdge = Callable[..., Edge]

FACTS = CardFacts(name="pi", description="An agent.", version="1.2.3", url="http://127.0.0.1:9910/")


@pytest.fixture
def make_edge() -> MakeEdge:
    """Return a maker of endpoints; keywords are server settings."""

    def make(
        policy: AdmissionPolicy = AdmissionPolicy(),  # noqa: B008 - a frozen value
        facts: CardFacts = FACTS,
        **server: Any,
    ) -> Edge:
        return Edge(policy, ServerSettings(**server), facts)

    return make


@pytest.fixture
def edge(make_edge: MakeEdge) -> Edge:
    """Return an endpoint with default settings and no token."""
    return make_edge()
