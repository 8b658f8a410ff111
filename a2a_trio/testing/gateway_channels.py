"""The reverse channels of a fake gateway, and the calls that go through them or directly."""

import base64
import json
import re
import secrets
from collections.abc import Callable, Mapping
from typing import Any, Final, final

import attrs
import h11
import trio

from a2a_trio.testing.gateway_http import (
    Ending,
    Request,
    begin_stream,
    end_stream,
    send_piece,
)
from a2a_trio.testing.gateway_state import (
    OTHER_LIMIT,
    RATE_LIMITED,
    UNAUTHORIZED,
    Answer,
    GatewayState,
    text,
)

__all__ = ["Call", "Channel", "Channels", "frame"]

_NOT_PASSED_ON: Final = frozenset(
    {"connection", "keep-alive", "transfer-encoding", "upgrade", "authorization"}
    | {"x-gateway-token", "x-gateway-caller", "host", "content-length"}
)
_NOT_PASSED_BACK: Final = frozenset(
    {"connection", "keep-alive", "proxy-authenticate", "proxy-authorization", "te", "trailers"}
    | {"transfer-encoding", "upgrade", "content-length", "set-cookie", "www-authenticate"}
)
_BAD_GATEWAY: Final = 502
_HEADER_NAME: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+", re.ASCII)
_HEADER_VALUE: Final = re.compile(r"[\t -~]*", re.ASCII)
_ANSWER: Final = (
    ("id", int), ("status", int), ("headers", dict), ("body_b64", str), ("chan_secret", str),
)  # fmt: skip
"""What an answer must have, and of which type."""


@final
@attrs.define(eq=False)
class Call:
    """A call that waits for a peer's answer through its channel."""

    name: str
    secret: str
    answered: trio.Event = attrs.field(factory=trio.Event)
    answer: Answer | None = None

    def settle(self, answer: Answer) -> None:
        """Give the caller its answer."""
        self.answer = answer
        self.answered.set()


@final
@attrs.define(eq=False)
class Channel:
    """One open stream to a peer."""

    secret: str
    send: trio.MemorySendChannel[bytes]
    events: trio.MemoryReceiveChannel[bytes]
    stream: trio.SocketStream
    scope: trio.CancelScope = attrs.field(factory=trio.CancelScope)
    stalled: bool = False
    resumed: trio.Event = attrs.field(factory=trio.Event)
    ending: Ending = "eof"


@final
class Channels:
    """Every channel of a gateway.

    Args:
        state: the peers.
        queue: envelopes that wait for one peer; past that callers are told that it lags.
        ping: seconds of silence before a ping.
        proxy_timeout: seconds that a call waits for its peer.
        changed: called when a channel has come or gone.
    """

    def __init__(
        self,
        state: GatewayState,
        *,
        queue: int,
        ping: float,
        proxy_timeout: float,
        changed: Callable[[], None],
    ) -> None:
        self._state = state
        self._queue = queue
        self._ping = ping
        self._proxy_timeout = proxy_timeout
        self._changed = changed
        self.by_name: dict[str, Channel] = {}
        """Where calls go."""
        self.calls: dict[int, Call] = {}
        """Calls that wait for their peer."""
        self._all: set[Channel] = set()
        self._next_id = 0

    def restart(self) -> None:
        """Lose every channel and begin counting calls anew."""
        for channel in tuple(self._all):
            channel.ending = "rst"
            channel.scope.cancel()
        self.by_name.clear()
        self._next_id = 0

    async def serve(self, stream: trio.SocketStream, connection: h11.Connection, name: str) -> None:
        """Serve one stream until it ends, by whatever side."""
        send, events = trio.open_memory_channel[bytes](self._queue)
        channel = Channel(secrets.token_hex(32), send, events, stream)
        # As the original does: the old stream stays open, and whichever ends first takes the
        # entry of this name away, even if it is the other's.
        self.by_name[name] = channel
        self._all.add(channel)
        try:
            await begin_stream(stream, connection)
            await send_piece(stream, connection, frame("hello", channel.secret.encode()))
            self._changed()
            async with trio.open_nursery() as nursery:
                nursery.start_soon(_watch_client, stream, nursery.cancel_scope)
                with channel.scope:
                    await self._send_events(stream, connection, channel)
                nursery.cancel_scope.cancel()
            await end_stream(stream, connection, channel.ending)
        finally:
            self._all.discard(channel)
            self.by_name.pop(name, None)
            gone = Answer(status=_BAD_GATEWAY, body=b'{"error":"peer channel closed"}')
            for number, call in tuple(self.calls.items()):
                if call.secret == channel.secret:
                    self.calls.pop(number).settle(gone)
            self._changed()

    async def _send_events(
        self, stream: trio.SocketStream, connection: h11.Connection, channel: Channel
    ) -> None:
        while True:
            with trio.move_on_after(self._ping) as silence:
                piece = await channel.events.receive()
            if silence.cancelled_caught:
                piece = frame("ping", b"keepalive")
            # After the wait, so that an event which came just as the channel stalled is kept.
            while channel.stalled:
                await channel.resumed.wait()
            await send_piece(stream, connection, piece)

    def take_answer(self, request: Request) -> Answer:
        """Take a peer's answer to a call, ``POST /channel/response/{id}``."""
        body = _read_answer(request)
        if isinstance(body, Answer):
            return body
        refused = self._refusal(request)
        if refused is not None:
            return refused
        number = int(request.path.rpartition("/")[2])
        if number != body["id"]:
            return text(422, "id mismatch")
        call = self.calls.get(number)
        if call is None or (call.name, call.secret) != (request.name, body["chan_secret"]):
            return text(404, "unknown, expired, or foreign request id")
        del self.calls[number]
        call.settle(_decoded(body["status"], body["headers"], body["body_b64"]))
        return Answer(status=200)

    def _refusal(self, request: Request) -> Answer | None:
        if self._state.limited(OTHER_LIMIT):
            return RATE_LIMITED
        if not self._state.is_known(request.token):
            return UNAUTHORIZED
        entry = self._state.peers.get(request.name)
        if entry is None or not self._state.may_manage(request.token, entry):
            return text(403, "peer name does not match this token")
        return None

    async def proxy(self, request: Request) -> Answer:
        """Pass a call on to its peer, through its channel if it has one."""
        name, _, rest = request.path.removeprefix("/peer/").partition("/")
        refused = self._state.call_refusal(request.token, name)
        if refused is not None:
            return refused
        headers = {n: v for n, v in request.headers.items() if n not in _NOT_PASSED_ON}
        passed = attrs.evolve(request, path=f"/{rest}", headers=headers)
        channel = self.by_name.get(name)
        if channel is None:
            return await self._direct(name, passed)
        return await self._through(name, channel, passed)

    async def _through(self, name: str, channel: Channel, request: Request) -> Answer:
        number = self._next_id
        self._next_id += 1
        envelope = {
            "id": number,
            "method": request.method,
            "path": request.path,
            "query": request.query or None,
            "headers": request.headers,
            "body_b64": base64.b64encode(request.body).decode(),
            "chan_secret": channel.secret,
        }
        try:
            channel.send.send_nowait(frame("request", json.dumps(envelope).encode()))
        except trio.WouldBlock:
            return Answer(status=503, body=b'{"error":"peer channel lagging"}')
        call = self.calls[number] = Call(name, channel.secret)
        try:
            with trio.move_on_after(self._proxy_timeout):
                await call.answered.wait()
        finally:
            if self.calls.get(number) is call:
                del self.calls[number]
        return call.answer or text(504, "peer channel timeout")

    async def _direct(self, name: str, request: Request) -> Answer:
        import httpx  # noqa: PLC0415 - slow to load, and few tests call directly

        entry = self._state.peers[name]
        headers = dict(request.headers)
        if entry.upstream_token:
            headers["authorization"] = f"Bearer {entry.upstream_token}"
        query = f"?{request.query}" if request.query else ""
        url = f"{entry.url.rstrip('/')}{request.path}{query}"
        try:
            async with httpx.AsyncClient(timeout=self._proxy_timeout, trust_env=False) as client:
                # Sent and read raw: neither headers of the client's own, nor a body unpacked.
                passed = httpx.Request(request.method, url, headers=headers, content=request.body)
                answer = await client.send(passed, stream=True)
                body = b"".join([piece async for piece in answer.aiter_raw()])
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            entry.healthy = False
            return text(_BAD_GATEWAY, f"upstream unreachable: {type(error).__name__}")
        entry.healthy = True
        return _passed_back(answer.status_code, dict(answer.headers), body)


def frame(event: str, data: bytes) -> bytes:
    """Return one event of a stream."""
    return b"event: " + event.encode() + b"\ndata: " + data + b"\n\n"


def _read_answer(request: Request) -> dict[str, Any] | Answer:
    """Return an answer's members, or why they cannot be read."""
    if not request.name or not request.path.rpartition("/")[2].isdecimal():
        return text(400, "Failed to deserialize query string or path")
    if not request.is_json:
        return text(415, "Expected request with `Content-Type: application/json`")
    try:
        body = json.loads(request.body)
    except ValueError:
        return text(400, "Failed to parse the request body as JSON")
    if not isinstance(body, dict) or not _is_answer(body):
        return text(422, "Failed to deserialize the JSON body into the target type")
    return body


def _is_answer(body: Mapping[str, object]) -> bool:
    typed = all(type(body.get(name)) is kind for name, kind in _ANSWER)
    headers = body.get("headers")
    return typed and isinstance(headers, dict) and all(isinstance(v, str) for v in headers.values())


def _decoded(status: int, headers: Mapping[str, str], body: str) -> Answer:
    try:
        content = base64.b64decode(body, validate=True)
    except ValueError:
        return text(413, "channel response too large")
    # From 200 on: an informational status cannot end an exchange.
    return _passed_back(status if status in range(200, 1000) else _BAD_GATEWAY, headers, content)


def _passed_back(status: int, headers: Mapping[str, str], body: bytes) -> Answer:
    kept = tuple(
        (n, v.strip())
        for n, v in headers.items()
        if n.lower() not in _NOT_PASSED_BACK
        and _HEADER_NAME.fullmatch(n)
        and _HEADER_VALUE.fullmatch(v)
    )
    return Answer(status=status, body=body, headers=kept)


async def _watch_client(stream: trio.SocketStream, scope: trio.CancelScope) -> None:
    try:
        while await stream.receive_some():
            pass
    except (trio.BrokenResourceError, trio.ClosedResourceError):
        pass
    scope.cancel()
