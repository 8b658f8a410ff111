"""The JSON-RPC envelope: what is a request, what is answered, what a caller gets raised."""

import json
from typing import Any

import pytest
from hypothesis import given, strategies as st

from a2a_trio.errors import (
    ERROR_TABLE,
    A2AError,
    ErrorRow,
    FieldViolation,
    InvalidParamsError,
    InvalidRequestError,
    JSONParseError,
    PeerProtocolError,
    ProtocolError,
    RemoteError,
    ServerBusyError,
    TaskNotFoundError,
    error_for_code,
)
from a2a_trio.testing.strategies import json_values, texts
from a2a_trio.wire import jsonrpc
from a2a_trio.wire.json_text import MAX_CONTAINERS
from a2a_trio.wire.jsonrpc import JsonRpcRequest, RpcFailure, parse_request, parse_response
from a2a_trio.wire.model import JsonValue

IDS = st.none() | texts() | st.integers(-(2**63), 2**63 - 1)


def request_or_failure(body: bytes) -> JsonRpcRequest | RpcFailure:
    try:
        return parse_request(body)
    except RpcFailure as failure:
        return failure


def refused(body: bytes) -> RpcFailure:
    with pytest.raises(RpcFailure) as caught:
        parse_request(body)
    return caught.value


# --- requests -------------------------------------------------------------------------------


@given(texts() | st.integers(-(2**63), 2**63 - 1), texts(min_size=1), json_values())
def test_a_request_reads_back(request_id: str | int, method: str, params: JsonValue) -> None:
    """What the client writes, the server reads."""
    body = jsonrpc.request(request_id, method, params)
    assert parse_request(body) == JsonRpcRequest(id=request_id, method=method, params=params)


@given(st.binary() | json_values().map(lambda value: json.dumps(value).encode()))
def test_any_body_is_a_request_or_a_failure(body: bytes) -> None:
    """Nothing but the documented errors, and each of them can be answered."""
    try:
        parse_request(body)
    except RpcFailure as failure:
        answer = json.loads(jsonrpc.failure(failure.id, failure.error))
        assert answer["error"]["code"] in {-32700, -32600, -32602}


@given(
    st.fixed_dictionaries(
        {},
        optional={
            "jsonrpc": st.just("2.0") | json_values(),
            "id": IDS | json_values(),
            "method": texts() | json_values(),
            "params": json_values(),
        },
    )
)
def test_any_envelope_is_a_request_or_a_failure(envelope: dict[str, Any]) -> None:
    """A failure carries the id if, and only if, it was one."""
    request_id = envelope.get("id")
    is_id = request_id is None or type(request_id) in (str, int)
    found = request_or_failure(json.dumps(envelope).encode())
    assert found.id == (request_id if is_id else None)
    if isinstance(found, RpcFailure):
        assert isinstance(found.error, InvalidRequestError)
    else:
        assert is_id
        assert found.notification is ("id" not in envelope)


@pytest.mark.parametrize("bad", [1.5, 1.0, True, False, [], {}, 2**64, -(2**70)])
def test_ids_are_strings_integers_or_null(bad: Any) -> None:
    """Floats and booleans are refused, and so are integers that the parser makes floats."""
    failure = refused(json.dumps({"jsonrpc": "2.0", "id": bad, "method": "m"}).encode())
    assert (failure.id, failure.error.code) == (None, -32600)
    assert [violation.field for violation in failure.error.violations] == ["id"]


@pytest.mark.parametrize("body", [b"[]", b'[{"jsonrpc":"2.0","id":1,"method":"m"}]', b"1", b"null"])
def test_batches_and_scalars_are_invalid_requests(body: bytes) -> None:
    """A2A has no batches."""
    assert type(refused(body).error) is InvalidRequestError


@pytest.mark.parametrize("version", [None, "1.0", 2.0, "2.1"])
def test_the_envelope_version_is_checked(version: Any) -> None:
    """Exactly "2.0"; the id is answered."""
    failure = refused(json.dumps({"jsonrpc": version, "id": "a", "method": "m"}).encode())
    assert (failure.id, type(failure.error)) == ("a", InvalidRequestError)


def test_what_is_no_json_is_a_parse_error_without_id() -> None:
    """There was nothing to read an id from."""
    failure = refused(b'{"jsonrpc":"2.0","id":1')
    assert (failure.id, type(failure.error)) == (None, JSONParseError)


@pytest.mark.parametrize(("depth", "request_id"), [(64, 7), (900, 7), (5000, None)])
def test_depth_is_invalid_params_and_keeps_the_id_if_it_was_read(
    depth: int, request_id: int | None
) -> None:
    """Never a RecursionError."""
    params = b"[" * depth + b"]" * depth
    failure = refused(b'{"jsonrpc":"2.0","id":7,"method":"m","params":' + params + b"}")
    assert (failure.id, type(failure.error)) == (request_id, InvalidParamsError)


def test_containers_are_bounded_but_not_brackets_in_texts() -> None:
    """A body that would stall the server is refused unread; pasted source code is not one."""
    head = b'{"jsonrpc":"2.0","id":7,"method":"m","params":['
    failure = refused(head + b"[]," * MAX_CONTAINERS + b"1]}")
    assert (failure.id, type(failure.error)) == (None, InvalidParamsError)
    text = json.dumps('[{"x"' * MAX_CONTAINERS).encode()
    assert parse_request(head + text + b"]}").id == 7


@pytest.mark.parametrize("tail", [b'\\"' * 1_000_000, b'"' * 1_000_000, b'"\\' * 1_000_000])
def test_counting_containers_is_linear(tail: bytes) -> None:
    """Quotes that never close are passed once, not once each; a slow pattern would not end."""
    failure = refused(b"[" * (MAX_CONTAINERS + 1) + b'"' + tail)
    assert type(failure.error) is InvalidParamsError


def test_null_id_is_a_request_and_no_id_is_a_notification() -> None:
    """JSON-RPC tells them apart by presence."""
    assert not parse_request(b'{"jsonrpc":"2.0","id":null,"method":"m"}').notification
    assert parse_request(b'{"jsonrpc":"2.0","method":"m"}').notification


# --- answers --------------------------------------------------------------------------------


@given(IDS, json_values())
def test_a_spliced_result_equals_an_encoded_one(
    request_id: str | int | None, result: JsonValue
) -> None:
    """Bytes that are JSON already give the same answer."""
    encoded = json.dumps(result).encode()
    wanted = {"jsonrpc": "2.0", "id": request_id, "result": result}
    assert json.loads(jsonrpc.success(request_id, result)) == wanted
    assert json.loads(jsonrpc.success(request_id, encoded)) == wanted
    assert jsonrpc.success_head(request_id) + encoded + b"}" == jsonrpc.success(request_id, encoded)


@pytest.mark.parametrize("row", ERROR_TABLE, ids=lambda row: row.error.__name__)
def test_every_error_reads_back_as_its_class(row: ErrorRow) -> None:
    """The caller's ``except`` clause reads as the server's ``raise``."""
    sent = row.error(
        violations=(FieldViolation(field="a[0].b", description="c"),),
        metadata={"k": "v"},
        retry_after=1.5,
    )
    body = jsonrpc.failure("x", sent)
    info, bad_request, retry = json.loads(body)["error"]["data"]
    assert info == {
        "@type": "type.googleapis.com/google.rpc.ErrorInfo",
        "reason": row.reason,
        "domain": "a2a-protocol.org",
        "metadata": {"k": "v"},
    }
    assert bad_request["fieldViolations"] == [{"field": "a[0].b", "description": "c"}]
    assert retry["retryDelay"] == "1.500s"
    with pytest.raises(ProtocolError) as caught:
        parse_response(body, "x")
    raised = caught.value
    assert type(raised) is error_for_code(row.code)
    assert (raised.message, raised.violations) == (sent.message, sent.violations)
    assert (raised.metadata, raised.retry_after) == ({"k": "v"}, 1.5)


def test_plain_errors_have_only_their_reason() -> None:
    """No empty details."""
    data = json.loads(jsonrpc.failure(1, TaskNotFoundError()))["error"]["data"]
    assert [sorted(detail) for detail in data] == [["@type", "domain", "reason"]]


def test_foreign_codes_are_remote_errors() -> None:
    """The code is kept."""
    with pytest.raises(RemoteError) as caught:
        parse_response({"jsonrpc": "2.0", "id": 1, "error": {"code": 42, "message": "no"}}, 1)
    assert (caught.value.code, str(caught.value)) == (42, "no")


def test_a_peers_text_is_made_safe_to_show() -> None:
    """One line, no control or bidi characters, bounded."""
    text = "a\x1b[31m\r\nb\u202ec" + "x" * 5000
    with pytest.raises(ServerBusyError) as caught:
        parse_response({"id": 1, "error": {"code": -32053, "message": text}}, 1)
    assert caught.value.message.startswith("a [31m b c")
    assert len(caught.value.message) == jsonrpc.MAX_PEER_TEXT


def test_a_null_id_is_accepted_with_an_error_only() -> None:
    """A server that could not read the id cannot repeat it."""
    with pytest.raises(InvalidRequestError):
        parse_response({"id": None, "error": {"code": -32600, "message": ""}}, 1)
    with pytest.raises(PeerProtocolError):
        parse_response({"id": None, "result": {}}, 1)


@pytest.mark.parametrize(
    "answer",
    [
        b"", b"<html>", b"[" * 5000, b"[" * 100 + b"]" * 100, b"[]", {}, [], None, "x",
        {"id": 1}, {"id": 2, "result": 1}, {"id": "1", "result": 1}, {"id": 1.0, "result": 1},
        {"id": True, "result": 1}, {"result": 1}, {"id": 2, "error": {"code": -32001}},
        {"id": 1, "error": "x"}, {"id": 1, "error": {}}, {"id": 1, "error": {"code": "-32001"}},
        {"id": 1, "error": {"code": True}},
    ],
)  # fmt: skip
def test_what_is_no_answer_is_the_peers_mistake(answer: Any) -> None:
    """Not JSON, no object, another request's answer, an error without a code."""
    with pytest.raises(PeerProtocolError):
        parse_response(answer, 1)


@given(json_values())
def test_any_error_member_raises_one_of_ours(error: JsonValue) -> None:
    """Details of any shape are read as far as they make sense."""
    members: list[JsonValue] = [
        error,
        {"code": -32602, "message": "m", "data": error},
        {"code": -32602, "data": [error]},
    ]
    for member in members:
        if member is not None:
            with pytest.raises(A2AError):
                parse_response({"id": 1, "error": member}, 1)


@pytest.mark.parametrize(
    "detail",
    [
        {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "soon"},
        {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": 5},
        {
            "@type": "type.googleapis.com/google.rpc.BadRequest",
            "fieldViolations": [{"field": 1}, 2],
        },
        {"@type": "type.googleapis.com/google.rpc.ErrorInfo", "metadata": {"errors": [1]}},
    ],
)
def test_details_of_the_wrong_type_are_left_out(detail: JsonValue) -> None:
    """Some peers put lists where google.rpc has strings."""
    with pytest.raises(InvalidParamsError) as caught:
        parse_response({"id": 1, "error": {"code": -32602, "data": [detail]}}, 1)
    raised = caught.value
    assert (raised.violations, raised.metadata, raised.retry_after) == ((), {}, None)
