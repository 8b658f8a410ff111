"""The JSON-RPC 2.0 envelope of A2A (section 9): requests, answers, errors.

A result may come as bytes that are JSON already; it is then spliced into the envelope, so that one
event is encoded once however many subscribers have it.
"""

import re
from collections.abc import Mapping
from typing import Final, TypeAlias, cast, final

import attrs

from a2a_trio.errors import (
    A2AError,
    FieldViolation,
    InvalidParamsError,
    InvalidRequestError,
    JSONParseError,
    PeerProtocolError,
    ProtocolError,
    RemoteError,
    error_for_code,
    error_row,
)
from a2a_trio.wire import json_text
from a2a_trio.wire.model import JsonValue

ERROR_DOMAIN: Final = "a2a-protocol.org"
"""``domain`` of google.rpc.ErrorInfo (A2A section 9.5)."""

MAX_PEER_TEXT: Final = 500
"""Characters of a peer's error text that are kept."""

MAX_DETAILS: Final = 100
"""Field violations and metadata entries of a peer's error that are kept."""

_TYPE: Final = "@type"
_ERROR_INFO: Final = "type.googleapis.com/google.rpc.ErrorInfo"
_BAD_REQUEST: Final = "type.googleapis.com/google.rpc.BadRequest"
_RETRY_INFO: Final = "type.googleapis.com/google.rpc.RetryInfo"

_UNPRINTABLE: Final = re.compile(
    "[\x00-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ud800-\udfff]+"
)
_SECONDS: Final = re.compile(r"(\d{1,9}(?:\.\d{1,9})?)s", re.ASCII)

RpcId: TypeAlias = str | int | None


@final
@attrs.frozen(kw_only=True)
class JsonRpcRequest:
    """One request. ``params`` is None if absent; what it must be depends on the method."""

    id: RpcId
    method: str
    params: JsonValue
    notification: bool = False
    """No ``id`` member was there, so the caller does not wait for an answer."""


@final
class RpcFailure(A2AError):  # noqa: N818 -- not an error of its own: it carries one and the id to answer
    """A body that is no request; answer ``failure(id, error)``.

    ``id`` is the request's id where that could be read, else None.
    """

    def __init__(self, error: ProtocolError, id: RpcId = None) -> None:  # noqa: A002 -- the member's name in JSON-RPC
        self.error = error
        self.id = id
        super().__init__(str(error))


# --- serving --------------------------------------------------------------------------------


def parse_request(body: bytes) -> JsonRpcRequest:
    """Read one request; batches are refused.

    Raises:
        RpcFailure: with ``JSONParseError`` (-32700), ``InvalidRequestError`` (-32600) or, for
            nesting beyond ``MAX_DEPTH`` and more than ``MAX_CONTAINERS`` arrays and objects,
            ``InvalidParamsError`` (-32602).
    """
    if json_text.has_too_many_containers(body):
        too_many = f"More than {json_text.MAX_CONTAINERS} arrays and objects"
        raise RpcFailure(InvalidParamsError(too_many))
    try:
        value = json_text.parse(body)
    except ProtocolError as error:
        raise RpcFailure(error) from None
    if not isinstance(value, dict):
        text = "Batches are not supported" if isinstance(value, list) else None
        raise RpcFailure(InvalidRequestError(text))
    request_id = value.get("id")
    if not _is_id(request_id):
        raise _invalid(None, "id", "must be a string, an integer or null")
    request_id = cast("RpcId", request_id)
    if value.get("jsonrpc") != "2.0":
        raise _invalid(request_id, "jsonrpc", 'must be "2.0"')
    method = value.get("method")
    if not isinstance(method, str) or not method:
        raise _invalid(request_id, "method", "must be a string and not empty")
    if json_text.may_be_too_deep(body) and json_text.is_too_deep(value):
        raise RpcFailure(json_text.too_deep(), request_id)
    return JsonRpcRequest(
        id=request_id,
        method=method,
        params=value.get("params"),
        notification="id" not in value,
    )


def _is_id(value: JsonValue) -> bool:
    # An exact type: a bool is an int in Python but no id, and floats are refused.
    return value is None or type(value) in (str, int)


def _invalid(request_id: RpcId, field: str, description: str) -> RpcFailure:
    violation = FieldViolation(field=field, description=description)
    return RpcFailure(InvalidRequestError(violations=(violation,)), request_id)


def success(id: RpcId, result: JsonValue | bytes) -> bytes:  # noqa: A002 -- the member's name in JSON-RPC
    """Return a success answer; a ``bytes`` result is taken as JSON and not encoded again."""
    encoded = result if isinstance(result, bytes) else json_text.dumps(result)
    return b"%b%b}" % (success_head(id), encoded)


def success_head(id: RpcId) -> bytes:  # noqa: A002 -- the member's name in JSON-RPC
    """Return the envelope up to the result: ``head + encoded result + b"}"`` is the answer.

    A stream makes its head once and splices each event.
    """
    return b'{"jsonrpc":"2.0","id":%b,"result":' % json_text.dumps(id)


def failure(id: RpcId, error: ProtocolError) -> bytes:  # noqa: A002 -- the member's name in JSON-RPC
    """Return an error answer with its google.rpc details in ``error.data`` (A2A section 9.5)."""
    return json_text.dumps({"jsonrpc": "2.0", "id": id, "error": error_object(error)})


def error_object(error: ProtocolError) -> dict[str, JsonValue]:
    """Return the ``error`` member: code, message, details."""
    info: dict[str, JsonValue] = {
        _TYPE: _ERROR_INFO,
        "reason": error_row(type(error)).reason,
        "domain": ERROR_DOMAIN,
    }
    if error.metadata:
        info["metadata"] = dict(error.metadata)
    details: list[JsonValue] = [info]
    if error.violations:
        fields: list[JsonValue] = [
            {"field": violation.field, "description": violation.description}
            for violation in error.violations
        ]
        details.append({_TYPE: _BAD_REQUEST, "fieldViolations": fields})
    if error.retry_after is not None:
        details.append({_TYPE: _RETRY_INFO, "retryDelay": f"{max(0.0, error.retry_after):.3f}s"})
    return {"code": error.code, "message": error.message, "data": details}


# --- calling --------------------------------------------------------------------------------


def request(id: str | int, method: str, params: JsonValue) -> bytes:  # noqa: A002 -- the member's name in JSON-RPC
    """Return a request."""
    return json_text.dumps({"jsonrpc": "2.0", "id": id, "method": method, "params": params})


def parse_response(answer: JsonValue | bytes, expected_id: str | int) -> JsonValue:
    """Return the result of an answer, or raise the error that it carries.

    Args:
        answer: the body, or the JSON value in it.
        expected_id: the id of the request. An error may carry null instead.

    Raises:
        ProtocolError: the class of the error's code, with the peer's text made safe to show.
        RemoteError: the code is not in this package's table.
        PeerProtocolError: not JSON, too deep, no JSON-RPC answer, or of another request.
    """
    if isinstance(answer, bytes):
        try:
            answer = json_text.loads(answer)
        except JSONParseError:
            raise PeerProtocolError("the answer is not JSON") from None
        except ProtocolError:
            raise PeerProtocolError("the answer is nested too deeply") from None
    if not isinstance(answer, dict):
        raise PeerProtocolError("the answer is not a JSON-RPC object")
    error = answer.get("error")
    answered_id = answer.get("id")
    if error is not None:
        # A server that could not read the id answers null (JSON-RPC 2.0 section 5).
        if answered_id is not None:
            _check_id(answered_id, expected_id)
        raise _remote(error)
    if "result" not in answer:
        raise PeerProtocolError("the answer has neither result nor error")
    _check_id(answered_id, expected_id)
    return answer["result"]


def _check_id(answered: JsonValue, expected: str | int) -> None:
    if type(answered) is not type(expected) or answered != expected:
        raise PeerProtocolError("the answer belongs to another request")


def _remote(error: JsonValue) -> A2AError:
    """Return the exception of an ``error`` member."""
    if not isinstance(error, dict):
        return PeerProtocolError("the error of the answer is not an object")
    code = error.get("code")
    if isinstance(code, float) and code.is_integer():
        code = int(code)
    if type(code) is not int:
        return PeerProtocolError("the error of the answer has no code")
    raw = error.get("message")
    message = peer_text(raw) if isinstance(raw, str) else ""
    kind = error_for_code(code)
    if kind is None:
        return RemoteError(message or f"error {code}", code=code)
    data = error.get("data")
    details = [d for d in data if isinstance(d, dict)] if isinstance(data, list) else []
    return kind(
        message or None,
        violations=_violations(details),
        metadata=_metadata(details),
        retry_after=_retry_after(details),
    )


def peer_text(text: str) -> str:
    """Return a peer's text on one line, without control characters, of bounded length."""
    return _UNPRINTABLE.sub(" ", text[: 2 * MAX_PEER_TEXT]).strip()[:MAX_PEER_TEXT]


def _member(details: list[dict[str, JsonValue]], kind: str, name: str) -> JsonValue:
    for detail in details:
        if detail.get(_TYPE) == kind:
            return detail.get(name)
    return None


def _violations(details: list[dict[str, JsonValue]]) -> tuple[FieldViolation, ...]:
    found = _member(details, _BAD_REQUEST, "fieldViolations")
    fields = []
    for entry in found[:MAX_DETAILS] if isinstance(found, list) else ():
        if isinstance(entry, dict):
            field, description = entry.get("field"), entry.get("description")
            if isinstance(field, str) and isinstance(description, str):
                fields.append(
                    FieldViolation(field=peer_text(field), description=peer_text(description))
                )
    return tuple(fields)


def _metadata(details: list[dict[str, JsonValue]]) -> Mapping[str, str]:
    found = _member(details, _ERROR_INFO, "metadata")
    if not isinstance(found, dict):
        return {}
    # Some peers put lists here, though it is a string map; only the strings are taken.
    entries = list(found.items())[:MAX_DETAILS]
    return {peer_text(key): peer_text(text) for key, text in entries if isinstance(text, str)}


def _retry_after(details: list[dict[str, JsonValue]]) -> float | None:
    found = _member(details, _RETRY_INFO, "retryDelay")
    match = _SECONDS.fullmatch(found) if isinstance(found, str) else None
    return float(match[1]) if match else None
