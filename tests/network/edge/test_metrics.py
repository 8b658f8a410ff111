"""Figures: bounded labels, watched values, the text format."""

from prometheus_client.parser import text_string_to_metric_families

from a2a_trio.errors import ERROR_TABLE
from a2a_trio.server.metrics import OK, Metrics, outcome_of
from a2a_trio.wire.model import TaskState


def samples(metrics: Metrics) -> dict[tuple[str, frozenset[tuple[str, str]]], float]:
    text = metrics.render()[0].decode()
    return {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def test_two_servers_have_their_own_figures() -> None:
    one, two = Metrics(), Metrics()
    one.request("SendMessage", OK, 0.1)
    key = ("a2a_requests_total", frozenset({("method", "SendMessage"), ("outcome", OK)}))
    assert samples(one)[key] == 1
    assert key not in samples(two)


def test_no_caller_can_grow_the_registry() -> None:
    metrics = Metrics()
    metrics.request("first", "first", 0.1)
    before = len(samples(metrics))
    for n in range(500):
        metrics.request(f"method-{n}", f"outcome-{n}", 0.1)
    assert len(samples(metrics)) == before
    assert len(metrics._request_children) == 1


def test_every_error_has_an_outcome_of_its_own() -> None:
    outcomes = {outcome_of(row.error()) for row in ERROR_TABLE}
    metrics = Metrics()
    for outcome in outcomes:
        metrics.request("SendMessage", outcome, 0.0)
    assert len(metrics._request_children) == len(outcomes)


def test_values_of_other_rooms_are_read_when_asked() -> None:
    metrics = Metrics()
    slots = [1]
    metrics.watch("slots_used", "Slots in use.", lambda: slots[0])
    assert samples(metrics)["a2a_slots_used", frozenset()] == 1
    slots[0] = 3
    assert samples(metrics)["a2a_slots_used", frozenset()] == 3


def test_tasks_are_counted_by_state() -> None:
    metrics = Metrics()
    for state in TaskState:
        metrics.task_entered(state)
    key = ("a2a_tasks_total", frozenset({("state", "input-required")}))
    assert samples(metrics)[key] == 1


def test_the_text_names_its_format() -> None:
    body, content_type = Metrics().render()
    assert content_type.startswith("text/plain; version=")
    assert body.endswith(b"\n")
