"""Invariant: any body is a request, or a failure that can be answered with the id that it had.

Any answer is a result or one of this package's exceptions.
"""

import orjson

from a2a_trio.errors import A2AError
from a2a_trio.wire import jsonrpc
from fuzz.harness import Target


def check_failure(failure: jsonrpc.RpcFailure) -> None:
    """A failure is answered with one of three codes and its own id."""
    answer = orjson.loads(jsonrpc.failure(failure.id, failure.error))
    assert answer["error"]["code"] in {-32700, -32600, -32602}
    assert answer["id"] == failure.id


def check_bounded(text: str) -> None:
    """A peer cannot make an error text of any length."""
    assert len(text) <= jsonrpc.MAX_PEER_TEXT


def check(data: bytes) -> None:
    """Read the bytes as a request and as an answer."""
    try:
        request = jsonrpc.parse_request(data)
    except jsonrpc.RpcFailure as failure:
        check_failure(failure)
    else:
        assert request.method
        spliced = jsonrpc.success(request.id, b"{}")
        assert orjson.loads(spliced) == {"jsonrpc": "2.0", "id": request.id, "result": {}}
    try:
        jsonrpc.parse_response(data, 1)
    except A2AError as error:
        check_bounded(str(error))


TARGET = Target(
    name="jsonrpc",
    check=check,
    names=(
        "jsonrpc", "id", "method", "params", "result", "error", "code", "message", "data", "@type",
        "fieldViolations", "field", "description", "retryDelay", "metadata",
    ),
    words=(
        b'"jsonrpc":"2.0"', b'"id":1', b'"id":null', b'"id":1.0', b'"id":true', b'"method":"SendMessage"',
        b'"params":', b'"result":', b'"error":', b'"code":-32001', b'"code":-32602.0', b'"message":"x"',
        b'"data":[', b'"@type":"type.googleapis.com/google.rpc.BadRequest"', b'"fieldViolations":[',
        b'"@type":"type.googleapis.com/google.rpc.RetryInfo"', b'"retryDelay":"1.5s"', b"{", b"}", b"[",
        b"]", b",", b"\\u202e", b"[" * 70, b'{"a":' * 1100,
    ),
)  # fmt: skip
