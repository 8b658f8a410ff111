"""JSON text: limits on the way in, no failure on the way out."""

import json
import time
from datetime import date
from types import MappingProxyType

import orjson
import pytest
from hypothesis import given, strategies as st

from a2a_trio.errors import InvalidParamsError, JSONParseError
from a2a_trio.testing.strategies import json_values
from a2a_trio.wire.json_text import MAX_DEPTH, MAX_WRITE_DEPTH, dumps, loads
from a2a_trio.wire.model import JsonValue


def nested(depth: int, opening: bytes = b"[", closing: bytes = b"]") -> bytes:
    return opening * depth + b"1" + closing * depth


@given(json_values())
def test_what_is_written_reads_back(value: JsonValue) -> None:
    """A JSON value survives the round trip."""
    assert loads(dumps(value)) == value


@given(st.binary())
def test_any_bytes_read_or_raise_the_documented_errors(body: bytes) -> None:
    """Bytes are JSON, or not JSON, or too deep; nothing else."""
    try:
        value = loads(body)
    except (JSONParseError, InvalidParamsError):
        return
    assert loads(dumps(value)) == value


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b" ",
        b"\x00",
        b"{",
        b"[1,]",
        b"NaN",
        b"Infinity",
        b"-Infinity",
        b"1e999",
        b"9" * 5000,
        b'"\xff"',
        b'"\\ud800"',
        b'"\\udc00\\ud800"',
        b"\xff\xfe[\x00]\x00",
        b"{'a':1}",
        b'{"a":1}{"b":2}',
    ],
)
def test_what_is_not_json_is_a_parse_error(body: bytes) -> None:
    """The parser's own exception never gets out."""
    with pytest.raises(JSONParseError):
        loads(body)


@pytest.mark.parametrize(
    ("body", "value"),
    [
        (b"\xef\xbb\xbf{}", {}),
        (b'{"a":1,"a":2}', {"a": 2}),
        (b"18446744073709551616", 2.0**64),
        (b'"\\u0000"', "\0"),
        (b'"\\ud83d\\ude00"', "\U0001f600"),
    ],
)
def test_odd_json_is_read(body: bytes, value: JsonValue) -> None:
    """A byte order mark, equal keys, huge integers and surrogate pairs have one meaning."""
    assert loads(body) == value


@pytest.mark.parametrize(("opening", "closing"), [(b"[", b"]"), (b'{"a":', b"}")])
def test_depth_limit_is_exact(opening: bytes, closing: bytes) -> None:
    """The limit itself is read, one more level is refused."""
    loads(nested(MAX_DEPTH, opening, closing))
    with pytest.raises(InvalidParamsError):
        loads(nested(MAX_DEPTH + 1, opening, closing))


@pytest.mark.parametrize("depth", [1000, 1025, 100_000, 1_000_000])
def test_any_depth_is_refused_alike(depth: int) -> None:
    """Also where the parser itself gives up, the error is the depth and no RecursionError."""
    with pytest.raises(InvalidParamsError):
        loads(nested(depth))
    with pytest.raises(InvalidParamsError):
        loads(b'{"a":' * depth + b"1" + b"}" * depth)


def test_many_brackets_that_are_not_deep_are_read() -> None:
    """Counting brackets only starts the walk; it refuses nothing."""
    assert loads(b"[" + b"[]," * 500 + b'"[[["]') == [*([[]] * 500), "[[["]


def test_a_body_of_many_containers_is_walked_in_linear_time() -> None:
    """Sixteen times the body takes about sixteen times as long, not two hundred and fifty-six."""

    def seconds(count: int) -> float:
        body = b"[" + b"[{}]," * count + b"1]"
        started = time.thread_time()
        loads(body)
        return time.thread_time() - started

    seconds(1000)
    small = min(seconds(5_000) for _ in range(5))
    large = min(seconds(80_000) for _ in range(3))
    assert large < 80 * small


@pytest.mark.parametrize(
    ("value", "written"),
    [
        (float("nan"), b"null"),
        (float("inf"), b"null"),
        ([2**64], b"[1.8446744073709552e+19]"),
        ([10**400], b"[null]"),
        ("a\ud800b", '"a\ufffdb"'.encode()),
        ("\ud83d\ude00\ud83d", '"\U0001f600\ufffd"'.encode()),
        ({"\udfff": 1}, '{"\ufffd":1}'.encode()),
        (MappingProxyType({"a": MappingProxyType({})}), b'{"a":{}}'),
        ((1, 2), b"[1,2]"),
        ([b"x"], b'["<bytes>"]'),
        ([object()], b'["<object>"]'),
        ({1: 2}, b'{"1":2}'),
        ([{1, 2}], b'["<set>"]'),
        ([2**64, True, None, "x", 1.5, (1,), {"k": [1]}], b'[1.8446744073709552e+19,true,null,"x",1.5,[1],{"k":[1]}]'),
    ],
)  # fmt: skip
def test_writing_never_fails(value: JsonValue, written: bytes) -> None:
    """What JSON cannot carry is replaced, whoever put it there."""
    assert dumps(value) == written


def test_writing_a_cycle_ends() -> None:
    """A value that contains itself is cut at the depth limit."""
    cycle: list[JsonValue] = []
    cycle.append(cycle)
    assert dumps(cycle).count(b"[") == MAX_WRITE_DEPTH
    loop: dict[str, JsonValue] = {}
    loop["a"] = loop
    assert json.loads(dumps(loop))


def test_writing_deeper_than_what_was_read_is_exact() -> None:
    """A value at the reading limit fits into any envelope."""
    inner = loads(nested(MAX_DEPTH))
    for _ in range(20):
        inner = {"result": inner}
    assert orjson.loads(dumps(inner)) == inner


def test_foreign_objects_that_orjson_knows_are_written() -> None:
    """Dates in metadata are no reason to fail."""
    value: object = {"at": date(2026, 1, 2)}
    assert dumps(value) == b'{"at":"2026-01-02"}'  # type: ignore[arg-type] # a caller's mistake, on purpose
