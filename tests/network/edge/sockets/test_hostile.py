"""Requests that nobody means well with: each has its answer, and the next request is served."""

import json
import logging
from typing import Any, final

import attrs
import pytest
from structlog.testing import capture_logs

from a2a_trio.rules.admission import AdmissionPolicy
from a2a_trio.server.asgi import AsgiApp

LIMIT = 10_000
"""``server.maxBodyBytes`` of the server under test."""

SEND = {"message": {"messageId": "m", "role": "ROLE_USER", "parts": [{"text": "x"}]}}
CALL = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": SEND}).encode()
HOST = b"Host: 127.0.0.1"
TYPE = b"Content-Type: application/json"


@final
@attrs.frozen
class Case:
    """Bytes to send, the HTTP status expected, and the JSON-RPC code in the body if any."""

    name: str
    data: bytes
    status: int
    code: int | None = None


def head(line: bytes, *headers: bytes) -> bytes:
    return b"\r\n".join((line, *headers, b"", b""))


def raw(name: str, status: int, line: bytes, *headers: bytes, body: bytes = b"") -> Case:
    return Case(name, head(line, *headers) + body, status)


def get(name: str, status: int, path: str, *headers: bytes) -> Case:
    return raw(name, status, b"GET " + path.encode("latin-1") + b" HTTP/1.1", HOST, *headers)


def post(
    name: str,
    status: int,
    code: int | None = None,
    *headers: bytes,
    body: bytes = CALL,
    host: bytes = HOST,
    kind: bytes = TYPE,
    path: bytes = b"/",
) -> Case:
    length = b"Content-Length: %d" % len(body)
    lines = [line for line in (host, kind, length, *headers) if line]
    return Case(name, head(b"POST " + path + b" HTTP/1.1", *lines) + body, status, code)


def chunked(name: str, status: int, code: int | None, body: bytes, *headers: bytes) -> Case:
    lines = (HOST, TYPE, b"Transfer-Encoding: chunked", *headers)
    return Case(name, head(b"POST / HTTP/1.1", *lines) + body, status, code)


def pieces(body: bytes, size: int) -> bytes:
    parts = [body[i : i + size] for i in range(0, len(body), size)]
    return b"".join(b"%x\r\n%b\r\n" % (len(p), p) for p in parts) + b"0\r\n\r\n"


def call(method: str, params: object = None, request_id: object = 1) -> bytes:
    request = {"jsonrpc": "2.0", "id": request_id, "method": method, "params": params}
    return json.dumps(request).encode()


REQUEST_LINES = (
    Case("garbage", b"\x00\x01\x02\x03\r\n\r\n", 400),
    Case("tls hello on a plain port", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n", 400),
    Case("ssh", b"SSH-2.0-OpenSSH_9.0\r\n\r\n", 400),
    Case("smtp", b"EHLO me\r\n\r\n", 400),
    Case("redis", b"*1\r\n$4\r\nPING\r\n\r\n", 400),
    Case("http/0.9", b"GET /\r\n\r\n", 400),
    Case("h2 preface", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 505),
    raw("h2 preface with host", 505, b"PRI * HTTP/2.0", HOST),
    raw("version 9.9", 505, b"GET / HTTP/9.9", HOST),
    raw("version 1.2", 505, b"GET / HTTP/1.2", HOST),
    raw("version without number", 400, b"GET / HTTP/x", HOST),
    raw("version in lower case", 400, b"GET / http/1.1", HOST),
    raw("no target", 400, b"GET HTTP/1.1", HOST),
    raw("two spaces", 400, b"GET  / HTTP/1.1", HOST),
    raw("tab for space", 400, b"GET\t/ HTTP/1.1", HOST),
    raw("space in target", 400, b"GET /a b HTTP/1.1", HOST),
    raw("nul in target", 400, b"GET /\x00 HTTP/1.1", HOST),
    raw("bare cr in target", 400, b"GET /\rx HTTP/1.1", HOST),
    raw("bytes above ascii in target", 400, b"GET /\xff HTTP/1.1", HOST),
    raw("method with colon", 400, b"GE:T / HTTP/1.1", HOST),
    raw("empty method", 400, b" / HTTP/1.1", HOST),
    raw("verb in lower case", 200, b"get /health HTTP/1.1", HOST),
    raw("unknown verb", 405, b"BREW / HTTP/1.1", HOST),
    raw("put", 405, b"PUT / HTTP/1.1", HOST),
    raw("patch", 405, b"PATCH / HTTP/1.1", HOST),
    raw("delete a card", 405, b"DELETE /.well-known/agent-card.json HTTP/1.1", HOST),
    raw("trace", 405, b"TRACE / HTTP/1.1", HOST),
    raw("connect", 404, b"CONNECT example.com:443 HTTP/1.1", HOST),
    raw("options of everything", 404, b"OPTIONS * HTTP/1.1", HOST),
    raw("absolute form", 200, b"GET http://127.0.0.1/health HTTP/1.1", HOST),
    raw("absolute form of the root", 200, b"GET http://127.0.0.1 HTTP/1.1", HOST),
    raw("absolute form of another host", 403, b"GET http://evil.example/health HTTP/1.1", HOST),
    raw("target of 20 KB", 404, b"GET /" + b"a" * 20_000 + b" HTTP/1.1", HOST),
    raw("target of 200 KB", 431, b"GET /" + b"a" * 200_000 + b" HTTP/1.1", HOST),
    raw("two empty lines before", 400, b"\r\n\r\nGET /health HTTP/1.1", HOST),
    Case("lf only", b"GET /health HTTP/1.1\nHost: 127.0.0.1\n\n", 200),
)

PATHS = (
    get("parent folders", 404, "/../../etc/passwd"),
    get("encoded parent folders", 404, "/%2e%2e/%2e%2e/etc/passwd"),
    get("encoded slash", 404, "/.well-known%2fagent-card.json/x"),
    get("double slash", 404, "//"),
    get("nul encoded", 404, "/%00"),
    get("bad percent", 404, "/%zz"),
    get("encoded line end", 404, "/%0d%0aX-Injected:%20yes"),
    get("utf-8 encoded", 404, "/%F0%9F%92%A9"),
    get("invalid utf-8 encoded", 404, "/%ff%fe"),
    get("case matters", 404, "/HEALTH"),
    get("dot file", 404, "/.env"),
    get("backslash", 404, "/..\\..\\x"),
    get("wordpress", 404, "/wp-login.php"),
    get("query soup", 200, "/health?&&==&A2A-Version&a=%ff&%00"),
    get("endless query", 200, "/health?" + "a=b&" * 5_000),
    get("fragment", 404, "/health#x"),
    get("two trailing slashes", 404, "/health//"),
    post("post elsewhere", 404, -32600, path=b"/rpc"),
    post("post to health", 404, -32600, path=b"/health"),
    post("post to the card", 404, -32600, path=b"/.well-known/agent-card.json"),
)

HOSTS = (
    raw("no host", 400, b"GET /health HTTP/1.1"),
    raw("no host in 1.0", 403, b"GET /health HTTP/1.0"),
    raw("two hosts", 400, b"GET /health HTTP/1.1", HOST, HOST),
    *(
        raw(f"host {host!r}", status, b"GET /health HTTP/1.1", b"Host: " + host)
        for host, status in (
            (b"", 403),
            (b"evil.example", 403),
            (b"127.0.0.1.evil.example", 403),
            (b"localhost.evil.example", 403),
            (b"evil.example:9910", 403),
            (b"0.0.0.0", 403),
            (b"10.0.0.1", 403),
            (b"169.254.169.254", 403),
            (b"[::]", 403),
            (b"[::1", 403),
            (b"::1]", 403),
            (b"[::1]x", 403),
            (b"[::1]:x", 403),
            (b"127.0.0.1:", 200),
            (b"127.0.0.1:x", 403),
            (b"127.0.0.1:99999", 403),
            (b"127.0.0.1:-1", 403),
            (b"127.0.0.1 evil", 403),
            (b"127.0.0.1,evil", 403),
            (b"user@127.0.0.1", 403),
            (b"127.0.0.1/", 403),
            (b"http://127.0.0.1", 403),
            (b"\xff\xfe", 403),
            (b"a" * 10_000, 403),
            (b"localhost", 200),
            (b"LOCALHOST:80", 200),
            (b"localhost.", 200),
            (b"127.0.0.1:9910", 200),
            (b"[::1]", 200),
            (b"[::1]:9910", 200),
            (b"[::ffff:127.0.0.1]", 200),
        )
    ),
)

ORIGINS = (
    post("two origins", 403, -32052, b"Origin: http://localhost", b"Origin: http://localhost"),
    *(
        post(
            f"origin {origin!r}",
            403 if bad else 200,
            -32052 if bad else None,
            b"Origin: " + origin,
        )
        for origin, bad in (
            (b"null", True),
            (b"", True),
            (b"https://evil.example", True),
            (b"http://localhost.evil.example", True),
            (b"http://127.0.0.1@evil.example", True),
            (b"file://", True),
            (b"javascript:alert(1)", True),
            (b"http://localhost:3000/path", True),
            (b"http://localhost:99999", True),
            (b"\xff", True),
            (b"http://localhost:3000", False),
            (b"http://127.0.0.1", False),
            (b"http://[::1]:8080", False),
        )
    ),
)

CONTENT_TYPES = (
    post("no content type", 415, -32005, kind=b""),
    post("two content types", 415, -32005, TYPE),
    *(
        post(
            f"type {kind!r}",
            415 if bad else 200,
            -32005 if bad else None,
            kind=b"Content-Type: " + kind,
        )
        for kind, bad in (
            (b"", True),
            (b"text/plain", True),
            (b"text/jsonish", True),
            (b"application/jsonx", True),
            (b"application/x-www-form-urlencoded", True),
            (b"multipart/form-data; boundary=json", True),
            (b"text/plain; application/json", True),
            (b"application/json, text/plain", True),
            (b"application/json/x", True),
            (b"json", True),
            (b"\xff/json", True),
            (b"application/" + b"j" * 5_000, True),
            (b"application/json", False),
            (b"Application/JSON", False),
            (b"application/json; charset=utf-8", False),
            (b"application/json;charset=UTF-8", False),
        )
    ),
)

FRAMING = (
    *(
        Case(
            f"length {value!r}",
            head(b"POST / HTTP/1.1", HOST, TYPE, b"Content-Length: " + value) + CALL,
            status,
        )
        for value, status in (
            (b"-1", 400),
            (b"+5", 400),
            (b"0x10", 400),
            (b"5.0", 400),
            (b"five", 400),
            (b"", 400),
            (b"5 5", 400),
            (b"5, 6", 400),
            (b"9" * 30, 400),
            (b"9" * 19, 413),
            (b"%d, %d" % (len(CALL), len(CALL)), 200),
            (b"0", 200),
        )
    ),
    post("two lengths that differ", 400, None, b"Content-Length: 3"),
    post("two lengths that agree", 200, None, b"Content-Length: %d" % len(CALL)),
    post("length and chunked", 400, None, b"Transfer-Encoding: chunked", body=pieces(CALL, 50)),
    chunked("chunks", 200, None, pieces(CALL, 7)),
    chunked("chunk extensions", 200, None, b"%x;a=b\r\n%b\r\n0\r\n\r\n" % (len(CALL), CALL)),
    chunked("trailers", 200, None, b"%x\r\n%b\r\n0\r\nX: y\r\n\r\n" % (len(CALL), CALL)),
    chunked("no chunk", 200, -32700, b"0\r\n\r\n"),
    chunked("chunk size is no number", 400, None, b"zz\r\n{}\r\n0\r\n\r\n"),
    chunked("negative chunk", 400, None, b"-1\r\n{}\r\n0\r\n\r\n"),
    chunked("chunk size with 0x", 400, None, b"0x2\r\n{}\r\n0\r\n\r\n"),
    chunked("endless chunk size", 400, None, b"f" * 200 + b"\r\n"),
    chunked("chunk without line end", 400, None, b"2\r\n{}0\r\n\r\n"),
    chunked("two transfer encodings", 501, None, b"0\r\n\r\n", b"Transfer-Encoding: chunked"),
    raw("gzip", 501, b"POST / HTTP/1.1", HOST, TYPE, b"Transfer-Encoding: gzip"),
    raw("gzip, chunked", 501, b"POST / HTTP/1.1", HOST, TYPE, b"Transfer-Encoding: gzip, chunked"),
    raw("identity", 501, b"POST / HTTP/1.1", HOST, TYPE, b"Transfer-Encoding: identity"),
    raw("header without colon", 400, b"GET /health HTTP/1.1", HOST, b"nonsense"),
    raw("header without name", 400, b"GET /health HTTP/1.1", HOST, b": x"),
    raw("space before colon", 400, b"GET /health HTTP/1.1", HOST, b"X : y"),
    raw("folded header", 200, b"GET /health HTTP/1.1", HOST, b"X: a", b" b"),
    raw("folded first header", 400, b"GET /health HTTP/1.1", b" X: a", HOST),
    raw("nul in a header", 400, b"GET /health HTTP/1.1", HOST, b"X: \x00"),
    raw("cr in a header", 400, b"GET /health HTTP/1.1", HOST, b"X: a\rb"),
    raw("bytes above ascii in a name", 400, b"GET /health HTTP/1.1", HOST, b"X\xff: y"),
    raw("bytes above ascii in a value", 200, b"GET /health HTTP/1.1", HOST, b"X: \xff\xfe"),
    raw("a header of 30 KB", 200, b"GET /health HTTP/1.1", HOST, b"X: " + b"a" * 30_000),
    raw("headers of 200 KB", 431, b"GET /health HTTP/1.1", HOST, b"X: " + b"a" * 200_000),
    raw("20 000 headers", 431, b"GET /health HTTP/1.1", HOST, *([b"A: b"] * 20_000)),
    raw("get with a body", 200, b"GET /health HTTP/1.1", HOST, b"Content-Length: 2", body=b"{}"),
    raw(
        "upgrade to h2c",
        200,
        b"GET /health HTTP/1.1",
        HOST,
        b"Connection: Upgrade, HTTP2-Settings",
        b"Upgrade: h2c",
        b"HTTP2-Settings: AAMAAABk",
    ),
    raw(
        "upgrade to websocket",
        200,
        b"GET / HTTP/1.1",
        HOST,
        b"Connection: Upgrade",
        b"Upgrade: websocket",
        b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
        b"Sec-WebSocket-Version: 13",
    ),
    raw(
        "websocket that is none",
        200,
        b"GET / HTTP/1.1",
        HOST,
        b"Connection: Upgrade",
        b"Upgrade: websocket",
        b"Sec-WebSocket-Version: E13",
    ),
    post("expectation", 200, None, b"Expect: 100-continue"),
    post("unknown expectation", 200, None, b"Expect: miracles"),
)

BODIES = (
    post("empty body", 200, -32700, body=b""),
    post("not json", 200, -32700, body=b"hello"),
    post("truncated", 200, -32700, body=CALL[:-1]),
    post("trailing garbage", 200, -32700, body=CALL + b"x"),
    post("two values", 200, -32700, body=CALL + CALL),
    post("utf-16", 200, -32700, body=CALL.decode().encode("utf-16")),
    post("latin-1", 200, -32700, body=b'{"a":"\xe4"}'),
    post("nul", 200, -32700, body=b"\x00" * 20),
    post("single quotes", 200, -32700, body=b"{'a':1}"),
    post("comment", 200, -32700, body=b"{} // x"),
    post("null", 200, -32600, body=b"null"),
    post("number", 200, -32600, body=b"1"),
    post("string", 200, -32600, body=b'"x"'),
    post("empty batch", 200, -32600, body=b"[]"),
    post("batch", 200, -32600, body=b"[" + CALL + b"]"),
    post("empty object", 200, -32600, body=b"{}"),
    post("old jsonrpc", 200, -32600, body=CALL.replace(b'"2.0"', b'"1.0"')),
    post("jsonrpc is a number", 200, -32600, body=CALL.replace(b'"2.0"', b"2.0")),
    post("id is a float", 200, -32600, body=call("GetTask", {}, 1.5)),
    post("id is a bool", 200, -32600, body=call("GetTask", {}, request_id=True)),
    post("id is an object", 200, -32600, body=call("GetTask", {}, {})),
    post("method is null", 200, -32600, body=CALL.replace(b'"SendMessage"', b"null")),
    post("method is empty", 200, -32600, body=call("")),
    post("unknown method", 200, -32601, body=call("Nope")),
    post("method in lower case", 200, -32601, body=call("sendmessage")),
    post("method with a line end", 200, -32601, body=call("Send\r\nMessage")),
    post("method of 9 KB", 200, -32601, body=call("x" * 9_000)),
    post("params are a list", 200, -32602, body=call("SendMessage", [])),
    post("params are text", 200, -32602, body=call("SendMessage", "x")),
    post("no message", 200, -32602, body=call("SendMessage", {})),
    post("message is text", 200, -32602, body=call("SendMessage", {"message": "x"})),
    post("no task id", 200, -32602, body=call("GetTask", {})),
    post("task id is a number", 200, -32602, body=call("GetTask", {"id": 1})),
    post("task id of a path", 200, -32001, body=call("GetTask", {"id": "../../etc/passwd"})),
    post("lone surrogate", 200, -32700, body=call("GetTask", {"id": "\ud800"})),
    post("deep lists", 200, -32602, body=b"[" * 5_000),
    post("deep objects", 200, -32602, body=b'{"a":' * 1_900),
    post(
        "deep in params", 200, -32602, body=call("GetTask").replace(b"null", b"[" * 99 + b"]" * 99)
    ),
    post(
        "number above 32 bits",
        200,
        -32602,
        body=call("GetTask", {"id": "x", "historyLength": 2**40}),
    ),
    post(
        "number of 9 000 digits",
        200,
        -32700,
        body=b'{"jsonrpc":"2.0","id":1,"method":"GetTask","params":{"id":"x","historyLength":'
        + b"9" * 9_000
        + b"}}",
    ),
    post("body at the limit", 200, -32700, body=b" " * LIMIT),
    post("body above the limit", 413, -32600, body=b" " * (LIMIT + 1)),
    post("body far above the limit", 413, -32600, body=b" " * (LIMIT * 100)),
    chunked("chunks above the limit", 413, -32600, pieces(b" " * (LIMIT + 1), 1_000)),
    chunked("chunks far above the limit", 413, -32600, pieces(b" " * (LIMIT * 50), 1_000)),
    chunked("tiny chunks above the limit", 413, -32600, pieces(b" " * (LIMIT + 1), 3)),
    post("version from the future", 200, -32009, b"A2A-Version: 2.0"),
    post("version is text", 200, -32009, b"A2A-Version: latest"),
    post("version with a patch number", 200, None, b"A2A-Version: 1.0.3"),
    post("version of 9 KB", 200, -32009, b"A2A-Version: " + b"1" * 9_000),
    post("4 000 extensions", 200, None, b"A2A-Extensions: " + b"urn:a," * 4_000),
    post("key of 9 KB", 200, -32602, b"Idempotency-Key: " + b"k" * 9_000),
    post("identity with a line of its own", 200, None, b"X-A2A-Identity: \xff\x1b[31m"[:-6]),
    post("forged address", 200, None, b"X-Forwarded-For: 10.0.0.1"),
)

CASES = (
    *REQUEST_LINES,
    *PATHS,
    *HOSTS,
    *ORIGINS,
    *CONTENT_TYPES,
    *FRAMING,
    *BODIES,
)

AUTHORIZATIONS = (
    (b"", 401),
    (b"a-token", 401),
    (b"Bearer", 401),
    (b"Bearer ", 401),
    (b"Bearer wrong", 401),
    (b"Bearer a-toke", 401),
    (b"Bearer a-tokenx", 401),
    (b"Bearer A-TOKEN", 401),
    (b"Bearer a-token b", 401),
    (b"Bearer a-token, Bearer a-token", 401),
    (b'Bearer "a-token"', 401),
    (b"Basic YTphLXRva2Vu", 401),
    (b"Bearer \xff\xfe", 401),
    (b"Bearer " + b"a" * 20_000, 401),
    (b"Bearer a-token", 200),
    (b"bearer a-token", 200),
    (b"BEARER   a-token", 200),
)


@pytest.fixture
def quiet(caplog: pytest.LogCaptureFixture) -> Any:
    """Fail if anything is logged as an error."""
    with capture_logs() as logs:
        yield
    assert not [entry for entry in logs if entry["log_level"] in {"error", "critical"}]
    assert not [record for record in caplog.records if record.levelno >= logging.ERROR]


def test_the_corpus_is_large_and_its_names_tell_cases_apart() -> None:
    names = [case.name for case in CASES]
    assert len(set(names)) == len(names) >= 150


@pytest.mark.usefixtures("quiet")
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
async def test_a_hostile_request_has_its_answer(make_edge: Any, serve_app: Any, case: Case) -> None:
    edge = make_edge(max_body_bytes=LIMIT)
    served = await serve_app(AsgiApp(edge.endpoint))
    answer = await served.ask(case.data)
    assert answer.status == case.status
    if case.code is not None:
        value = json.loads(answer.body)
        assert value["error"]["code"] == case.code
    elif case.status == 200 and answer.headers["content-type"] == "application/json":
        assert "error" not in json.loads(answer.body) or case.name == "length b'0'"
    good = post("good", 200)
    assert (await served.ask(good.data)).status == 200


@pytest.mark.usefixtures("quiet")
@pytest.mark.parametrize(("value", "status"), AUTHORIZATIONS, ids=repr)
async def test_credentials(make_edge: Any, serve_app: Any, value: bytes, status: int) -> None:
    edge = make_edge(AdmissionPolicy(tokens=(("alice", "a-token"),)))
    served = await serve_app(AsgiApp(edge.endpoint))
    answer = await served.ask(post("x", 0, None, b"Authorization: " + value).data)
    assert answer.status == status
    assert ("www-authenticate" in answer.headers) == (status == 401)
    twice = post("x", 0, None, b"Authorization: Bearer a-token", b"Authorization: Bearer a-token")
    assert (await served.ask(twice.data)).status == 401
