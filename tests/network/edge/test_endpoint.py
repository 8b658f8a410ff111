# ruff: noqa: ARG001 - a test asks for the virtual clock by naming its fixture
"""The endpoint's promises: routes, order of checks, answers, what is written down."""

import json
from typing import Any

import attrs
import pytest
import trio
from structlog.testing import capture_logs

from a2a_trio.errors import ERROR_TABLE, ServerBusyError, TaskNotCancelableError
from a2a_trio.rules.admission import AdmissionPolicy
from a2a_trio.server.http import EventStream, Headers, HttpRequest, HttpResponse
from a2a_trio.server.rpc import BODY_TIMEOUT

MESSAGE = {"messageId": "m-1", "role": "ROLE_USER", "parts": [{"text": "ping hunter2"}]}
SEND = {"message": MESSAGE}
TOKENS = AdmissionPolicy(tokens=(("alice", "a-token"),))


def reply(response: HttpResponse) -> Any:
    assert isinstance(response.body, bytes)
    assert response.header("content-type") == "application/json"
    return json.loads(response.body)


def error(response: HttpResponse) -> tuple[int, int, Any]:
    """Return HTTP status, code and id of an error answer."""
    value = reply(response)
    assert value["jsonrpc"] == "2.0"
    assert value["error"]["data"][0]["domain"] == "a2a-protocol.org"
    return response.status, value["error"]["code"], value["id"]


# --- routes ---------------------------------------------------------------------------------


@pytest.mark.parametrize("path", ["/", "/health", "/health/"])
async def test_health_names_the_agent(edge: Any, path: str) -> None:
    response = await edge.get(path)
    assert (response.status, reply(response)) == (200, {"status": "ok", "agent": "pi"})


async def test_ready_is_503_while_no_work_is_taken(edge: Any) -> None:
    assert (await edge.get("/ready")).status == 200
    edge.is_ready = False
    response = await edge.get("/ready")
    assert error(response) == (503, -32053, None)
    assert response.header("retry-after") == "1"
    assert (await edge.get("/health")).status == 200


async def test_metrics_need_a_token_where_there_are_tokens(make_edge: Any) -> None:
    edge = make_edge(TOKENS)
    assert error(await edge.get("/metrics")) == (401, -32050, None)
    response = await edge.get("/metrics", authorization="Bearer a-token")
    assert response.header("content-type").startswith("text/plain")
    assert b'a2a_requests_total{method="metrics",outcome="unauthorized"} 1.0' in response.body


@pytest.mark.parametrize("rpc_path", ["/", "/a2a", "/a2a/"])
async def test_the_rpc_path_takes_a_trailing_slash_or_none(make_edge: Any, rpc_path: str) -> None:
    edge = make_edge(rpc_path=rpc_path)
    bare = rpc_path.rstrip("/")
    for path in {bare or "/", f"{bare}/"}:
        body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": SEND})
        assert (await edge.post(body.encode(), path=path)).status == 200


@pytest.mark.parametrize("path", ["/x", "//", "/health", "/.well-known/agent-card.json", "/a2a"])
async def test_any_other_post_path_is_404(edge: Any, path: str) -> None:
    assert error(await edge.post(b"{}", path=path)) == (404, -32600, None)


@pytest.mark.parametrize(
    ("verb", "path", "allow"),
    [
        ("PUT", "/", "GET, HEAD, POST, OPTIONS"),
        ("DELETE", "/health", "GET, HEAD, OPTIONS"),
        ("BREW", "/metrics", "GET, HEAD, OPTIONS"),
    ],
)
async def test_a_wrong_verb_is_405_with_allow(edge: Any, verb: str, path: str, allow: str) -> None:
    response = await edge.ask(verb, path)
    assert error(response) == (405, -32600, None)
    assert response.header("allow") == allow


async def test_get_of_an_rpc_path_of_its_own_is_405(make_edge: Any) -> None:
    response = await make_edge(rpc_path="/a2a").get("/a2a")
    assert (response.status, response.header("allow")) == (405, "POST, OPTIONS")


async def test_unknown_paths_are_404_for_every_verb(edge: Any) -> None:
    for verb in ("GET", "HEAD", "PUT", "OPTIONS"):
        assert (await edge.ask(verb, "/nothing")).status == 404


async def test_head_has_the_headers_of_get_and_no_body(edge: Any) -> None:
    get = await edge.get("/health")
    head = await edge.ask("HEAD", "/health")
    assert (head.status, head.body) == (200, b"")
    assert head.header("content-length") == str(len(get.body))
    assert set(get.headers) < set(head.headers)


async def test_a_preflight_names_what_a_script_may_send(make_edge: Any) -> None:
    edge = make_edge(AdmissionPolicy(allowed_origins=("https://app.example",)))
    response = await edge.ask("OPTIONS", "/", origin="https://app.example")
    assert (response.status, response.body) == (204, b"")
    assert response.header("access-control-allow-origin") == "https://app.example"
    assert "a2a-version" in response.header("access-control-allow-headers").lower()
    assert (await edge.ask("OPTIONS", "/", origin="https://evil.example")).status == 403


async def test_answers_to_an_accepted_origin_can_be_read_by_its_script(edge: Any) -> None:
    response = await edge.call("SendMessage", SEND, origin="http://localhost:3000")
    assert response.header("access-control-allow-origin") == "http://localhost:3000"
    assert error(await edge.call("SendMessage", SEND, origin="null"))[0] == 403


# --- calls ----------------------------------------------------------------------------------


async def test_a_send_is_answered_in_v1_without_any_version_header(edge: Any) -> None:
    response = await edge.call("SendMessage", SEND)
    value = reply(response)
    assert response.status == 200
    assert (value["id"], value["result"]["task"]["id"]) == (7, "t-1")
    assert response.header("a2a-version") == "1.0"
    (name, request, context) = edge.operations.calls[0]
    assert (name, request.message.text) == ("send", "ping hunter2")
    assert (context.caller.identity, context.dialect) == ("ip:127.0.0.1", "1.0")


async def test_a_v03_call_is_answered_in_v03(edge: Any) -> None:
    parts = [{"kind": "text", "text": "x"}]
    message = {"kind": "message", "messageId": "m", "role": "user", "parts": parts}
    response = await edge.call("message/send", {"message": message}, a2a_version="0.3")
    assert reply(response)["result"]["kind"] == "task"
    assert response.header("a2a-version") == "0.3"


@pytest.mark.parametrize(
    ("method", "params", "called"),
    [
        ("GetTask", {"id": "t-1"}, "get"),
        ("tasks/get", {"id": "t-1"}, "get"),
        ("ListTasks", None, "list"),
        ("CancelTask", {"id": "t-1"}, "cancel"),
    ],
)
async def test_each_method_reaches_its_operation(
    edge: Any, method: str, params: Any, called: str
) -> None:
    assert "result" in reply(await edge.call(method, params))
    assert [name for name, _, _ in edge.operations.calls] == [called]


async def test_the_version_may_be_a_query_parameter(edge: Any) -> None:
    response = await edge.call("SendMessage", SEND, query="x=1&A2A-Version=9.9")
    assert error(response) == (200, -32009, 7)
    assert reply(await edge.call("SendMessage", SEND, query="A2A-Version=1.0"))["result"]
    # The header is the more exact of the two.
    both = await edge.call("SendMessage", SEND, query="A2A-Version=9.9", a2a_version="1.0")
    assert reply(both)["result"]


async def test_strict_servers_want_the_version(make_edge: Any) -> None:
    edge = make_edge(strict_version=True)
    assert error(await edge.call("SendMessage", SEND)) == (200, -32009, 7)
    assert reply(await edge.call("SendMessage", SEND, a2a_version="1.0"))["result"]


@pytest.mark.parametrize(
    ("body", "code", "request_id"),
    [
        (b"", -32700, None),
        (b"{", -32700, None),
        (b"\xff\xfe", -32700, None),
        (b"[]", -32600, None),
        (b'"x"', -32600, None),
        (b'{"jsonrpc":"1.0","id":3,"method":"GetTask"}', -32600, 3),
        (b'{"jsonrpc":"2.0","id":1.5,"method":"GetTask"}', -32600, None),
        (b'{"jsonrpc":"2.0","id":3}', -32600, 3),
        (b'{"jsonrpc":"2.0","id":"q","method":"Nope"}', -32601, "q"),
        (b'{"jsonrpc":"2.0","id":4,"method":"SendMessage"}', -32602, 4),
        (b'{"jsonrpc":"2.0","id":4,"method":"SendMessage","params":[]}', -32602, 4),
        (b'{"jsonrpc":"2.0","id":5,"method":"GetTask","params":{"id":"?"}}', -32001, 5),
        (b'{"jsonrpc":"2.0","id":6,"method":"GetExtendedAgentCard"}', -32004, 6),
        (b"[" * 100_000, -32602, None),
    ],
)
async def test_bad_bodies_have_their_codes(
    edge: Any, body: bytes, code: int, request_id: Any
) -> None:
    assert error(await edge.post(body)) == (200, code, request_id)


@pytest.mark.parametrize("operation", ["Create", "Get", "List", "Delete"])
async def test_push_is_not_supported(edge: Any, operation: str) -> None:
    plural = "s" if operation == "List" else ""
    params = {"taskId": "t-1", "id": "p-1", "url": "https://example.com/hook"}
    response = await edge.call(f"{operation}TaskPushNotificationConfig{plural}", params)
    assert error(response) == (200, -32003, 7)


async def test_every_bad_field_is_named(edge: Any) -> None:
    params = {"message": {"messageId": 1, "role": "ROLE_USER", "parts": [{"text": 2}]}}
    value = reply(await edge.call("SendMessage", params))
    fields = {v["field"] for v in value["error"]["data"][1]["fieldViolations"]}
    assert fields == {"message.messageId", "message.parts[0].text"}


@pytest.mark.parametrize("row", ERROR_TABLE, ids=lambda row: row.error.__name__)
async def test_every_error_of_the_table_keeps_its_code_and_status(edge: Any, row: Any) -> None:
    edge.operations.fail = row.error(retry_after=1.2)
    response = await edge.call("SendMessage", SEND)
    assert error(response) == (row.rpc_status, row.code, 7)
    assert response.header("retry-after") == "2"
    assert ("www-authenticate" in dict(response.headers)) == (row.rpc_status == 401)


async def test_a_defect_is_logged_once_and_tells_the_peer_nothing(edge: Any) -> None:
    edge.operations.fail = RuntimeError("secret path /etc")
    with capture_logs() as logs:
        response = await edge.call("SendMessage", SEND)
    assert error(response) == (200, -32603, 7)
    assert b"secret" not in response.body
    assert [entry["log_level"] for entry in logs] == ["error"]
    assert edge.audit[-1].error == "Internal error"


async def test_a_group_of_defects_is_a_defect(edge: Any) -> None:
    edge.operations.fail = ExceptionGroup("several", [ValueError(), KeyError()])
    with capture_logs() as logs:
        assert error(await edge.call("SendMessage", SEND)) == (200, -32603, 7)
    assert len(logs) == 1


async def test_a_defect_on_the_way_out_is_logged_and_the_cancellation_passes(
    edge: Any, autojump_clock: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A nursery pairs the two; nobody must take the pair for a crash of the server."""

    async def fail_when_cancelled(*_: object) -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(trio.sleep_forever)
            try:
                await trio.sleep_forever()
            finally:
                raise ValueError("defect")

    monkeypatch.setattr(edge.operations, "send_message", fail_when_cancelled)
    with capture_logs() as logs, trio.move_on_after(1) as scope:
        await edge.call("SendMessage", SEND)
    assert scope.cancelled_caught
    assert [entry["log_level"] for entry in logs] == ["error"]


async def test_a_result_that_is_no_answer_is_a_defect(edge: Any) -> None:
    edge.operations.answer = attrs.evolve(edge.operations.answer, task=object())
    with capture_logs() as logs:
        assert error(await edge.call("SendMessage", SEND)) == (200, -32603, 7)
    assert len(logs) == 1


# --- admission and limits -------------------------------------------------------------------


async def test_admission_comes_before_the_body_is_read(make_edge: Any) -> None:
    edge = make_edge(TOKENS)

    async def unread(_limit: int) -> bytes:
        raise AssertionError("the body of a stranger was read")

    for headers, status in (
        ({"content-type": "application/json"}, 401),
        ({"content-type": "text/plain", "authorization": "Bearer a-token"}, 415),
    ):
        request = HttpRequest(
            method="POST",
            path="/",
            headers=Headers({"host": "h", **headers}.items()),
            client="10.0.0.1",
            receive_body=unread,
        )
        response = await edge.endpoint.handle(request)
        assert error(response)[0] == status
        assert error(response)[2] is None


async def test_401_carries_a_challenge(make_edge: Any) -> None:
    response = await make_edge(TOKENS).call("SendMessage", SEND)
    assert response.header("www-authenticate").startswith("Bearer")


async def test_a_body_above_the_limit_is_413(make_edge: Any) -> None:
    edge = make_edge(max_body_bytes=100)
    assert error(await edge.post(b"{" + b" " * 100)) == (413, -32600, None)


async def test_a_body_that_does_not_come_is_408(edge: Any, autojump_clock: Any) -> None:
    async def never(_limit: int) -> bytes:
        await trio.sleep_forever()
        raise AssertionError

    request = HttpRequest(
        method="POST",
        path="/",
        headers=Headers([("host", "localhost"), ("content-type", "application/json")]),
        client="127.0.0.1",
        receive_body=never,
    )
    started = trio.current_time()
    assert error(await edge.endpoint.handle(request)) == (408, -32600, None)
    assert trio.current_time() - started == pytest.approx(BODY_TIMEOUT)


async def test_calls_beyond_the_rate_are_429_with_the_exact_wait(
    make_edge: Any, autojump_clock: Any
) -> None:
    edge = make_edge(rate_limit_per_min=2)
    assert (await edge.call("SendMessage", SEND)).status == 200
    await trio.sleep(10)
    assert (await edge.post(b"not json")).status == 200  # charged as well
    response = await edge.call("SendMessage", SEND)
    assert error(response) == (429, -32051, 7)
    assert response.header("retry-after") == "50"
    assert (await edge.call("GetTask", {"id": "t-1"})).status == 200  # a bucket of its own
    await trio.sleep(50)
    assert (await edge.call("SendMessage", SEND)).status == 200


async def test_the_rate_is_charged_before_parameters_are_looked_at(make_edge: Any) -> None:
    edge = make_edge(rate_limit_per_min=1)
    assert error(await edge.call("SendMessage", {}))[1] == -32602
    assert error(await edge.call("SendMessage", {}))[0] == 429
    assert error(await edge.call("Nope", {}))[0] == 429


# --- headers of a call ----------------------------------------------------------------------


async def test_declared_extensions_are_activated_and_echoed(edge: Any) -> None:
    uri = "urn:a2a-trio:extension:event-replay:v1"
    response = await edge.call("SendMessage", SEND, a2a_extensions=f"urn:unknown, {uri},{uri}")
    assert response.header("a2a-extensions") == uri
    assert edge.operations.calls[0][2].extensions == (uri,)
    assert (await edge.call("SendMessage", SEND)).header("a2a-extensions") == ""


async def test_an_idempotency_key_comes_with_a_digest_of_the_parameters(edge: Any) -> None:
    for text in ("a", "a", "b"):
        message = {**MESSAGE, "parts": [{"text": text}]}
        await edge.call("SendMessage", {"message": message}, idempotency_key="k-1")
    await edge.call("SendMessage", SEND)
    contexts = [context for _, _, context in edge.operations.calls]
    digests = [context.payload_digest for context in contexts]
    assert [context.idempotency_key for context in contexts] == ["k-1", "k-1", "k-1", ""]
    assert digests[0] == digests[1] != digests[2]
    assert (len(digests[0]), digests[3]) == (32, b"")


async def test_an_endless_idempotency_key_is_refused(edge: Any) -> None:
    response = await edge.call("SendMessage", SEND, idempotency_key="k" * 256)
    assert error(response) == (200, -32602, 7)
    assert not edge.operations.calls


@pytest.mark.parametrize(
    ("text", "version"),
    [("12", 12), ("0", 0), ("", None), ("-1", None), ("x", None), ("٣", None), ("9" * 16, None)],
)
async def test_last_event_id_is_a_task_version_or_nothing(
    edge: Any, text: str, version: int | None
) -> None:
    response = await edge.call("SubscribeToTask", {"id": "t-1"}, last_event_id=text)
    assert isinstance(response.body, EventStream)
    response.body.close()
    assert edge.operations.calls[0][2].last_event_id == version


# --- streams --------------------------------------------------------------------------------


async def test_a_stream_is_sent_as_frames_with_versions(edge: Any) -> None:
    response = await edge.call("SendStreamingMessage", SEND, a2a_version="1.0")
    assert (response.status, response.header("content-type")) == (200, "text/event-stream")
    assert response.header("cache-control").startswith("no-cache")
    assert response.header("x-accel-buffering") == "no"
    assert response.header("a2a-version") == "1.0"
    pieces = [piece async for piece in response.body]
    response.body.close()
    assert [piece.split(b"\n")[0] for piece in pieces] == [b"id: 1", b"id: 2", b"id: 3"]
    first = json.loads(pieces[0].split(b"data: ")[1])
    assert (first["id"], first["result"]["task"]["id"]) == (7, "t-1")
    assert edge.operations.source.closed == 1


async def test_an_error_before_the_first_event_is_plain_json(edge: Any) -> None:
    edge.operations.fail = ServerBusyError(retry_after=3.0)
    response = await edge.call("SendStreamingMessage", SEND)
    assert error(response) == (503, -32053, 7)
    assert response.header("retry-after") == "3"


# --- what is written down -------------------------------------------------------------------


async def test_a_call_is_audited_twice_and_counted_once(edge: Any, autojump_clock: Any) -> None:
    edge.operations.wait = 2.0
    await edge.call("SendMessage", SEND, x_a2a_identity="alice")
    request, outcome = edge.audit
    assert (request.phase, request.preview) == ("request", "ping [redacted]")
    assert (request.method, request.identity) == ("SendMessage", "ip:127.0.0.1")
    assert (outcome.phase, outcome.state, outcome.error) == ("outcome", "completed", "")
    assert (outcome.task_id, outcome.context_id) == ("t-1", "c-1")
    assert outcome.duration_ms == pytest.approx(2000.0)
    text = edge.metrics.render()[0].decode()
    assert 'a2a_requests_total{method="SendMessage",outcome="ok"} 1.0' in text


async def test_a_stream_is_counted_until_it_ends(edge: Any) -> None:
    response = await edge.call("SendStreamingMessage", SEND)
    assert b"a2a_streams_open 1.0" in edge.metrics.render()[0]
    async for _ in response.body:
        pass
    response.body.close()
    response.body.close()
    text = edge.metrics.render()[0].decode()
    assert "a2a_streams_open 0.0" in text
    assert "a2a_stream_events_total 3.0" in text
    assert edge.audit[-1].state == "completed"
    assert len(edge.audit) == 2


async def test_a_caller_that_leaves_is_written_down(edge: Any, autojump_clock: Any) -> None:
    edge.operations.wait = 100.0
    with trio.move_on_after(1):
        await edge.call("SendMessage", SEND)
    assert (edge.audit[-1].phase, edge.audit[-1].error) == ("outcome", "disconnected")
    assert b'outcome="disconnected"} 1.0' in edge.metrics.render()[0]


async def test_an_error_is_written_down_with_its_text(edge: Any) -> None:
    edge.operations.fail = TaskNotCancelableError()
    await edge.call("CancelTask", {"id": "t-1"})
    assert edge.audit[-1].error == TaskNotCancelableError().message
    assert b'outcome="task_not_cancelable"} 1.0' in edge.metrics.render()[0]


async def test_requests_without_a_route_are_counted(edge: Any) -> None:
    await edge.get("/nothing")
    await edge.ask("PUT", "/")
    text = edge.metrics.render()[0].decode()
    assert 'a2a_requests_total{method="other",outcome="invalid_request"} 2.0' in text


async def test_unknown_methods_share_one_label(edge: Any) -> None:
    for n in range(20):
        await edge.call(f"Nope{n}")
    text = edge.metrics.render()[0].decode()
    assert text.count('a2a_requests_total{method="other",outcome="method_not_found"} 20.0') == 1
