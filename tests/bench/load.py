"""Load generator: SendMessage over keep-alive connections on raw sockets, in a process of its own.

It does as little as it can per request (one write, one or two reads, a search for two byte
strings), because on a small machine it competes with the server for the processors. Prints one
JSON line: requests, seconds, requests per second, latency percentiles in milliseconds.
"""

import argparse
import itertools
import json
import sys
from collections.abc import Iterator
from typing import Final, final
from urllib.parse import urlsplit

import attrs
import trio

_READ: Final = 65536


class LoadError(Exception):
    """The server answered something that would make the figures meaningless."""


@final
@attrs.define
class Tally:
    """What one round measured; latencies in seconds."""

    latencies: list[float] = attrs.field(factory=list)
    connects: int = 0


@final
@attrs.frozen(kw_only=True)
class Load:
    """What to send, and how much of it."""

    url: str
    text: str = "hello there"
    connections: int = 16
    seconds: float = 5.0


def request_bytes(host: str, path: str, text: str, number: int) -> bytes:
    """Build one SendMessage with its own message id, so that nothing can be deduplicated."""
    body = (
        b'{"jsonrpc":"2.0","id":%d,"method":"SendMessage","params":{"message":{'
        b'"messageId":"bench-%d","role":"ROLE_USER","parts":[{"text":%s}]}}}'
        % (number, number, json.dumps(text).encode())
    )
    head = (
        f"POST {path} HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json\r\n"
        f"A2A-Version: 1.0\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body


async def read_response(stream: trio.abc.Stream) -> tuple[bytes, bytes]:
    """Read one response; returns its head (lower case) and body.

    Raises:
        LoadError: the connection ended inside the response, or it is not framed by its length.
    """
    data = bytearray()
    while (end := data.find(b"\r\n\r\n")) < 0:
        data += await _some(stream)
    head = bytes(data[:end]).lower()
    start = head.find(b"content-length:")
    if start < 0:
        raise LoadError(f"no Content-Length in {head!r}")
    length = int(head[start + 15 :].split(b"\r\n", 1)[0])
    while len(data) < end + 4 + length:
        data += await _some(stream)
    return head, bytes(data[end + 4 :])


async def _some(stream: trio.abc.Stream) -> bytes:
    chunk = await stream.receive_some(_READ)
    if not chunk:
        raise LoadError("the server closed the connection inside a response")
    return bytes(chunk)


def check(head: bytes, body: bytes) -> None:
    """Refuse anything but a completed task or a message: errors are fast and would flatter."""
    if not head.startswith(b"http/1.1 200"):
        raise LoadError(f"{head!r} {body!r}")
    if b'"result"' not in body or b'"error"' in body:
        raise LoadError(body.decode(errors="replace"))
    if b'"task"' in body and b"TASK_STATE_COMPLETED" not in body:
        raise LoadError(body.decode(errors="replace"))


async def connection(load: Load, numbers: Iterator[int], deadline: float, tally: Tally) -> None:
    """Send one request after the other until the deadline; reconnect when the server closes."""
    parts = urlsplit(load.url)
    host, port = parts.hostname or "127.0.0.1", parts.port or 80
    stream: trio.SocketStream | None = None
    while trio.current_time() < deadline:
        if stream is None:
            stream = await trio.open_tcp_stream(host, port)
            tally.connects += 1
        request = request_bytes(f"{host}:{port}", parts.path or "/", load.text, next(numbers))
        begin = trio.current_time()
        await stream.send_all(request)
        head, body = await read_response(stream)
        tally.latencies.append(trio.current_time() - begin)
        check(head, body)
        if b"connection: close" in head:
            await stream.aclose()
            stream = None
    if stream is not None:
        await stream.aclose()


async def measure(load: Load) -> Tally:
    """Run one round."""
    tally = Tally()
    numbers = itertools.count()
    deadline = trio.current_time() + load.seconds
    async with trio.open_nursery() as nursery:
        for _ in range(load.connections):
            nursery.start_soon(connection, load, numbers, deadline, tally)
    return tally


def summary(tally: Tally, seconds: float) -> dict[str, float]:
    """Reduce a round to the figures that are printed."""
    ordered = sorted(tally.latencies)
    if not ordered:
        raise LoadError("not one request was answered")
    return {
        "requests": len(ordered),
        "per_second": round(len(ordered) / seconds, 1),
        "p50_ms": round(ordered[len(ordered) // 2] * 1000, 2),
        "p99_ms": round(ordered[len(ordered) * 99 // 100] * 1000, 2),
        "connects": tally.connects,
    }


def main() -> None:
    """Parse the command line and run one round."""
    parser = argparse.ArgumentParser(description="SendMessage load on raw sockets")
    parser.add_argument("url")
    parser.add_argument("--text", default="hello there")
    parser.add_argument("--connections", type=int, default=16)
    parser.add_argument("--seconds", type=float, default=5.0)
    load = Load(**vars(parser.parse_args()))
    sys.stdout.write(json.dumps(summary(trio.run(measure, load), load.seconds)) + "\n")


if __name__ == "__main__":
    main()
