"""Counters and gauges in the Prometheus text format, on a registry of their own.

Label values come from closed sets only (operation names, outcomes, task states), so that no caller
can grow the registry.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Final, final

from a2a_trio.errors import ERROR_TABLE, ProtocolError, error_row
from a2a_trio.wire.methods import METHODS
from a2a_trio.wire.model import TaskState

if TYPE_CHECKING:
    from collections.abc import Iterable

    from prometheus_client.metrics_core import Metric

__all__ = ["DISCONNECTED", "OK", "Metrics", "outcome_of"]

OK: Final = "ok"
DISCONNECTED: Final = "disconnected"
_OTHER: Final = "other"

# From what the edge alone costs to the longest reply windows that operators set, in seconds.
_BUCKETS: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.5, 1.0, 5.0, 30.0, 120.0, 600.0)

_ROUTES: Final = ("card", "health", "ready", "metrics", "preflight", "rpc")
_LABELS: Final = frozenset({m.operation.value for m in METHODS} | set(_ROUTES))
_OUTCOMES: Final = frozenset({r.reason.lower() for r in ERROR_TABLE} | {OK, DISCONNECTED})


def outcome_of(error: ProtocolError) -> str:
    """Return the outcome label of an error."""
    return error_row(type(error)).reason.lower()


@final
class Metrics:
    """The figures of one server; importing prometheus_client is left until one is made.

    Every method is synchronous and cheap; ``render`` may be called at any time.
    """

    def __init__(self) -> None:
        from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram  # noqa: PLC0415

        self._registry: Final = CollectorRegistry(auto_describe=False)
        registry = self._registry
        self._requests: Final = Counter(
            "a2a_requests",
            "Requests answered, by operation or route and outcome.",
            ["method", "outcome"],
            registry=registry,
        )
        self._seconds: Final = Histogram(
            "a2a_request_seconds",
            "Seconds from admission to the answer; for streams, to the end of the stream.",
            ["method"],
            buckets=_BUCKETS,
            registry=registry,
        )
        self._streams: Final = Gauge("a2a_streams_open", "Event streams open.", registry=registry)
        self._events: Final = Counter(
            "a2a_stream_events", "Events written to streams.", registry=registry
        )
        self._tasks: Final = Counter(
            "a2a_tasks", "Tasks that entered a state.", ["state"], registry=registry
        )
        self._gauges: Final[dict[str, tuple[str, Callable[[], float]]]] = {}
        registry.register(_Watched(self._gauges))
        # Looking a child up by label costs more than counting; the maps are bounded by the closed
        # label sets above.
        self._request_children: Final[dict[tuple[str, str], Counter]] = {}
        self._second_children: Final[dict[str, Histogram]] = {}
        self._task_children: Final[dict[TaskState, Counter]] = {}

    def request(self, method: str, outcome: str, seconds: float) -> None:
        """Count one request that was answered, or whose caller left."""
        method = method if method in _LABELS else _OTHER
        outcome = outcome if outcome in _OUTCOMES else _OTHER
        counter = self._request_children.get((method, outcome))
        if counter is None:
            counter = self._requests.labels(method, outcome)
            self._request_children[method, outcome] = counter
        counter.inc()
        histogram = self._second_children.get(method)
        if histogram is None:
            histogram = self._second_children[method] = self._seconds.labels(method)
        histogram.observe(seconds)

    def stream_opened(self) -> None:
        """Count a stream that was opened."""
        self._streams.inc()

    def stream_closed(self, events: int) -> None:
        """Count a stream that ended, and the events that it carried."""
        self._streams.dec()
        self._events.inc(events)

    def task_entered(self, state: TaskState) -> None:
        """Count a task that entered a state."""
        counter = self._task_children.get(state)
        if counter is None:
            counter = self._task_children[state] = self._tasks.labels(state.short)
        counter.inc()

    def watch(self, name: str, help_text: str, read: Callable[[], float]) -> None:
        """Show a value that another room owns, read whenever the figures are rendered.

        Args:
            name: metric name without prefix, e.g. ``slots_used``; a later call replaces it.
            help_text: one sentence.
            read: returns the present value; must not raise.
        """
        self._gauges[f"a2a_{name}"] = (help_text, read)

    def render(self) -> tuple[bytes, str]:
        """Return the figures as text and its content type."""
        from prometheus_client import CONTENT_TYPE_LATEST, generate_latest  # noqa: PLC0415

        return generate_latest(self._registry), CONTENT_TYPE_LATEST


@final
class _Watched:
    """The gauges of other rooms, as a prometheus_client collector."""

    def __init__(self, gauges: "dict[str, tuple[str, Callable[[], float]]]") -> None:
        self._gauges = gauges

    def collect(self) -> "Iterable[Metric]":
        """Read every watched value."""
        from prometheus_client.metrics_core import GaugeMetricFamily  # noqa: PLC0415

        for name, (help_text, read) in self._gauges.items():
            yield GaugeMetricFamily(name, help_text, value=read())

    def describe(self) -> "Iterable[Metric]":
        """Declare nothing: the names are added while the server starts."""
        return ()
