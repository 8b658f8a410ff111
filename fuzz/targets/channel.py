"""Invariant: every event of a reverse channel is a request, something to answer, or nothing.

A request can be put into HTTP: no part of it holds a line break, and its path does not climb. An answer
is one that the gateway can take.
"""

import json

from a2a_trio.rules.channel import (
    MAX_ANSWER_BYTES,
    ChannelResponse,
    Envelope,
    Refused,
    answer_body,
    read_envelope,
)
from fuzz.harness import Target

SECRET = "s"  # noqa: S105 - opens nothing


def check_request(envelope: Envelope) -> None:
    """It fits into the head of an HTTP request."""
    request = envelope.request
    for text in (request.method, request.path, request.query):
        assert text.isascii()
        assert text.isprintable()
        assert " " not in text
    assert request.path.startswith("/")
    assert ".." not in request.path.split("/")
    for name, value in request.headers:
        assert name == name.lower()
        assert not {"\r", "\n", "\0"} & set(name + value)


def check(data: bytes) -> None:
    """Read the data as an event, and answer it with itself."""
    found = read_envelope(data, SECRET)
    if found is None:
        return
    response = ChannelResponse(status=200, headers=(("x", data.decode("latin-1")),), body=data)
    if isinstance(found, Envelope):
        check_request(found)
    elif isinstance(found, Refused):
        response = found.response
        assert response.status in {400, 413}
    body = answer_body(found.id, found.secret, response)
    assert len(body) <= MAX_ANSWER_BYTES
    told = json.loads(body)
    assert told["id"] == found.id


TARGET = Target(
    name="channel",
    check=check,
    words=(
        b'{"id":0,"method":"POST","path":"/","query":null,"headers":{"a":"b"},"body_b64":"YQ==","chan_secret":"s"}',
        b'"path":"/../x"',
        b'"path":"/%2e%2e/x"',
        b'"query":"a=b"',
        b'"body_b64":"YQ"',
        b'"headers":{"a":"b\\r\\nc: d"}',
        b'"id":18446744073709551616',
        b'"method":"GET\\r\\n"',
    ),
)
