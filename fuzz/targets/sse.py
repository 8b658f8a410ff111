"""Invariant: a stream gives the same events whole, byte by byte and in pieces.

Memory is bounded, and what is encoded from the events decodes to them.
"""

from a2a_trio.errors import PeerProtocolError
from a2a_trio.wire.sse import ServerSentEvent, SSEDecoder, encode_event
from fuzz.harness import Target

LIMIT = 300


def decode(chunks: list[bytes]) -> tuple[list[ServerSentEvent], bool, str, int | None]:
    """Return the events, whether the bound was broken, the last id, the retry time."""
    decoder = SSEDecoder(LIMIT)
    events: list[ServerSentEvent] = []
    failed = False
    try:
        for chunk in chunks:
            events += decoder.feed(chunk)
        decoder.close()
    except PeerProtocolError:
        failed = True
    return events, failed, decoder.last_event_id, decoder.retry_ms


def check(data: bytes) -> None:
    """Decode in three ways, then encode and decode again."""
    whole = decode([data])
    assert decode([bytes([byte]) for byte in data]) == whole
    step = 1 + len(data) % 7
    assert decode([data[at : at + step] for at in range(0, len(data), step)]) == whole
    for event in whole[0]:
        assert len(event.data) <= LIMIT
        if "\0" in event.event:
            continue  # decoded as the standard says, but never encoded
        again = SSEDecoder().feed(encode_event(event.data, id=event.id, event=event.event))
        assert again == [event]


TARGET = Target(
    name="sse",
    check=check,
    words=(
        b"data: ", b"data", b"event: e", b"id: 1", b"id", b"id: \0", b"retry: 10", b": c", b"\n", b"\r",
        b"\r\n", b"\n\n", b"\r\r", b"\r\n\r\n", b"\xef\xbb\xbf", "\u2028".encode(), b"x" * 200,
    ),
)  # fmt: skip
