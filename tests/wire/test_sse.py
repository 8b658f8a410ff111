"""Server-sent events: the same events for every split, bounded, never forged."""

from itertools import pairwise

import pytest
from hypothesis import given, strategies as st

from a2a_trio.errors import PeerProtocolError
from a2a_trio.wire.sse import KEEP_ALIVE, ServerSentEvent, SSEDecoder, encode_event

LINES = st.sampled_from(
    [
        b"data: a", b"data:b", b"data:  c", b"data", b"data:", b"event: e", b"event", b"id: 1",
        b"id", b"id: \0", b"retry: 10", b"retry: x", b": comment", b":", b"foo: bar", b"", b"",
        b"\xef\xbb\xbfdata: bom", b"data: \xff", "data: \u2028\x0b\x1c\x85".encode(), b"dat", b" data: x",
    ]
)  # fmt: skip
ENDS = st.sampled_from([b"\n", b"\r", b"\r\n"])
STREAMS = st.lists(st.tuples(LINES, ENDS).map(b"".join), max_size=25).map(b"".join)
ONE_LINE = st.text(st.characters(codec="utf-8", exclude_characters="\r\n\0"))


def decoded(
    chunks: list[bytes], *, limit: int = 1000
) -> tuple[list[ServerSentEvent], str | None, str, int | None]:
    """Feed chunks; return the events, the error, the last id and the retry time."""
    decoder = SSEDecoder(limit)
    events: list[ServerSentEvent] = []
    error = None
    try:
        for chunk in chunks:
            events += decoder.feed(chunk)
        decoder.close()
    except PeerProtocolError as failure:
        error = str(failure)
    return events, error, decoder.last_event_id, decoder.retry_ms


def split(data: bytes, cuts: list[int]) -> list[bytes]:
    points = [0, *sorted(cut % (len(data) + 1) for cut in cuts), len(data)]
    return [data[start:end] for start, end in pairwise(points)]


def feed_in_pieces(decoder: SSEDecoder, stream: bytes) -> None:
    for start in range(0, len(stream), 100):
        decoder.feed(stream[start : start + 100])


@given(STREAMS | st.binary(), st.lists(st.integers(0, 10_000), max_size=10), st.integers(1, 40))
def test_every_split_gives_the_same_events(stream: bytes, cuts: list[int], limit: int) -> None:
    """Whole, in pieces, byte by byte; also where an event breaks the bound."""
    whole = decoded([stream], limit=limit)
    assert decoded(split(stream, cuts), limit=limit) == whole
    assert decoded([bytes([byte]) for byte in stream], limit=limit) == whole


@given(
    st.lists(st.tuples(st.binary(), ONE_LINE, ONE_LINE), max_size=5),
    st.lists(st.integers(0, 10_000), max_size=5),
)
def test_what_is_encoded_is_decoded(written: list[tuple[bytes, str, str]], cuts: list[int]) -> None:
    """Any payload, id and type survive; only line ends inside the payload become LF."""
    expected = []
    last_id = ""
    for data, event_id, event in written:
        last_id = event_id or last_id
        lines = data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        expected.append(ServerSentEvent(data=lines, id=last_id, event=event))
    stream = KEEP_ALIVE.join(encode_event(data, id=i, event=e) for data, i, e in written)
    assert decoded(split(stream, cuts)) == (expected, None, last_id, None)


@pytest.mark.parametrize("payload", [b"x\n\ndata: forged", b"x\r\rid: 9\r\r", b"x\r\n\r\nevent: e"])
def test_a_payload_cannot_forge_an_event(payload: bytes) -> None:
    """Line ends in a payload stay in the payload."""
    events, error, last_id, _ = decoded([encode_event(payload, id="1")])
    assert (len(events), error, last_id) == (1, None, "1")


@pytest.mark.parametrize("field", ["a\nb", "a\rb", "a\0b"])
def test_fields_that_the_format_cannot_carry_are_refused(field: str) -> None:
    """An id or type with a line end would be two lines."""
    with pytest.raises(ValueError, match="SSE field"):
        encode_event(b"x", id=field)
    with pytest.raises(ValueError, match="SSE field"):
        encode_event(b"x", event=field)


@pytest.mark.parametrize(
    ("stream", "events"),
    [
        (b"data: a\n\n", [b"a"]),
        (b"data: a\r\n\r\n", [b"a"]),
        (b"data: a\r\r", [b"a"]),
        (b"\xef\xbb\xbfdata: a\n\n", [b"a"]),
        (b"data: a\ndata: b\n\n", [b"a\nb"]),
        (b"data:a\n\n", [b"a"]),
        (b"data:  a\n\n", [b" a"]),
        (b"data\n\n", [b""]),
        (b"event: e\nid: 1\n\n", []),
        (b": ping\n\n\n\n", []),
        (b"data: a\n", []),
        (b"data: a", []),
        (b"data: a\n\ndata: b\n", [b"a"]),
        (b"unknown: x\nDATA: y\n\n", []),
        (b"data: a: b\n\n", [b"a: b"]),
        ("data: \u2028\x0b\x85\n\n".encode(), ["\u2028\x0b\x85".encode()]),
    ],
)
def test_the_rules_of_the_standard(stream: bytes, events: list[bytes]) -> None:
    """Line ends, comments, the one space, unfinished events (WHATWG HTML 9.2.6)."""
    assert [event.data for event in decoded([stream])[0]] == events


def test_ids_last_and_types_do_not() -> None:
    """An id holds until the next one; the type is of one event only."""
    events, _, last_id, retry = decoded(
        [b"id: 1\nevent: e\nretry: 2500\ndata: a\n\ndata: b\n\nid\ndata: c\n\nid: 7\n\n"]
    )
    assert [(event.id, event.event) for event in events] == [("1", "e"), ("1", ""), ("", "")]
    assert (last_id, retry) == ("7", 2500)


def test_invalid_utf8_is_replaced_in_text() -> None:
    """The bytes stay as they came; the text can always be shown."""
    (event,) = decoded([b"event: \xff\ndata: \xff\n\n"])[0]
    assert (event.data, event.text, event.event) == (b"\xff", "\ufffd", "\ufffd")


def test_events_before_an_oversized_one_are_given_first() -> None:
    """The bound costs the large event, not the ones that were complete."""
    decoder = SSEDecoder(10)
    assert [e.data for e in decoder.feed(b"data: ok\n\ndata: " + b"x" * 20 + b"\n\n")] == [b"ok"]
    for call in (lambda: decoder.feed(b""), lambda: decoder.feed(b"data: y\n\n"), decoder.close):
        with pytest.raises(PeerProtocolError, match="10 bytes"):
            call()


@pytest.mark.parametrize(
    "stream",
    [b"data: " + b"x" * 10_000, b":" + b"x" * 10_000, b"data\n" * 10_000, b"data: xxxx\n" * 3000],
)
def test_memory_is_bounded(stream: bytes) -> None:
    """A line without an end, an endless comment and an event without an end are all cut."""
    decoder = SSEDecoder(1000)
    with pytest.raises(PeerProtocolError):
        feed_in_pieces(decoder, stream)
    assert len(decoder._line) + len(decoder._data) <= 2200


def test_an_event_at_the_bound_is_read() -> None:
    """The bound is on the line as it was sent, its name included."""
    line = b"data: " + b"x" * 94
    assert decoded([line + b"\n\n"], limit=100)[1] is None
    assert decoded([line + b"x\n\n"], limit=100)[1] is not None
