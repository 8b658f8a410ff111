"""A gateway for tests, as peers see an a2a-switchboard: registration, directory, proxy, channel.

::

    async with open_fake_gateway() as gateway:
        ...                                  # a peer registers at gateway.url
        gateway.accept("reader-9910")
        answer = await gateway.call("reader-9910", body=b"{}")

It speaks HTTP/1.1 on a loopback socket of its own, because what a peer must survive happens there: a
stream that is cut in the middle, reset, silent, or no longer listened to. Faults can be scripted for
every route. There is no administration, no persistence and no TLS.
"""

import math
import secrets
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Final, final

import attrs
import h11
import trio

from a2a_trio.testing.gateway_channels import Call, Channels, frame
from a2a_trio.testing.gateway_http import (
    CARD_PATHS,
    Ending,
    Fault,
    Request,
    Seen,
    misdirected,
    read_request,
    send_answer,
    unless_gone,
)
from a2a_trio.testing.gateway_state import (
    Admission,
    Answer,
    GatewayState,
    read_registration,
    text,
)

__all__ = ["FakeGateway", "Seen", "open_fake_gateway"]

BODY_LIMIT: Final = 2 * 1024 * 1024
QUEUE: Final = 256
PING_SEC: Final = 15.0
PROXY_SEC: Final = 600.0
FOREVER_SEC: Final = 3_600.0
"""What a caller of a peer waits; the gateway's own limit ends a call long before."""
MAX_SEEN: Final = 10_000
"""Requests that are remembered; further ones are served and forgotten."""


@final
class FakeGateway:
    """A gateway that is up; made by ``open_fake_gateway``."""

    def __init__(
        self,
        state: GatewayState,
        *,
        port: int,
        queue: int,
        ping: float,
        proxy_timeout: float,
        body_limit: int,
    ) -> None:
        self.state = state
        self.url = f"http://127.0.0.1:{port}"
        self.seen: list[Seen] = []
        """Requests in order of their answers; a channel counts when it opens, and who went before
        the answer has status 0."""
        self._body_limit = body_limit
        self._channels = Channels(
            state,
            queue=queue,
            ping=ping,
            proxy_timeout=proxy_timeout,
            changed=self._tell,
        )
        self._faults: list[Fault] = []
        self._changed = trio.Event()

    # --- what a test reads ----------------------------------------------------------------------

    @property
    def gateway_token(self) -> str:
        """The token of peers that wait to be accepted."""
        return self.state.gateway_token

    @property
    def bootstrap_token(self) -> str:
        """The token of peers that are accepted at once."""
        return self.state.bootstrap_token

    def has_channel(self, name: str) -> bool:
        """Return whether calls of a peer go through a channel."""
        return name in self._channels.by_name

    def requests(self, method: str, path: str) -> list[Seen]:
        """Return the requests of a method whose path begins like this."""
        return [s for s in self.seen if s.method == method and s.path.startswith(path)]

    async def until(self, condition: Callable[[], bool]) -> None:
        """Wait until something holds; it is looked at whenever a request was answered."""
        while not condition():
            await self._changed.wait()

    # --- what a test does -----------------------------------------------------------------------

    def accept(self, name: str) -> None:
        """Accept a peer that waits or was revoked."""
        self.state.peers[name].state = Admission.ACCEPTED

    def revoke(self, name: str) -> None:
        """Take a peer's acceptance back; its channel stays open and gets nothing."""
        self.state.peers[name].state = Admission.REVOKED

    def delete(self, name: str) -> None:
        """Forget a peer and its token; its channel stays open."""
        del self.state.peers[name]

    def reject(self, name: str) -> None:
        """Forget a peer that waits, and its token; one that does not wait is left as it is."""
        if self.state.peers[name].state is Admission.PENDING:
            del self.state.peers[name]

    def set_health(self, name: str, healthy: bool | None) -> None:  # noqa: FBT001 - the one thing it is about
        """Set what the directory says about a peer's health."""
        self.state.peers[name].healthy = healthy

    def drop_channel(self, name: str, how: Ending = "eof") -> None:
        """End a peer's stream: whole, by a reset, or in the middle of a frame."""
        channel = self._channels.by_name[name]
        channel.ending = how
        channel.scope.cancel()

    def stall_channel(self, name: str) -> None:
        """Send a peer nothing more, not even pings, and leave its stream open."""
        self._channels.by_name[name].stalled = True

    def resume_channel(self, name: str) -> None:
        """Send a stalled peer everything that has piled up."""
        channel = self._channels.by_name[name]
        channel.stalled = False
        channel.resumed.set()
        channel.resumed = trio.Event()

    def zombie_channel(self, name: str) -> None:
        """Forget a peer's channel, which goes on pinging and gets no more requests."""
        del self._channels.by_name[name]

    def push(self, name: str, data: bytes, event: str = "request") -> None:
        """Send a peer an event of the test's own making.

        Raises:
            trio.WouldBlock: its queue is full.
        """
        self._channels.by_name[name].send.send_nowait(frame(event, data))

    def expect(self, name: str, request_id: int) -> Callable[[], Answer | None]:
        """Wait for the answer to a pushed request; return what tells it once it has come."""
        call = self._channels.calls[request_id] = Call(name, self.secret(name))
        return lambda: call.answer

    def secret(self, name: str) -> str:
        """Return the secret of a peer's present channel."""
        return self._channels.by_name[name].secret

    def fault(
        self,
        method: str,
        prefix: str,
        *,
        status: int = 500,
        body: bytes = b"",
        content_type: str = "text/plain",
        headers: tuple[tuple[str, str], ...] = (),
        times: int = 1,
        delay: float = 0.0,
        hang: bool = False,
        reset: bool = False,
    ) -> None:
        """Answer the next requests of a method and a path in another way.

        Args:
            method: the verb.
            prefix: how the path begins.
            status: of the answer.
            body: of the answer.
            content_type: of the answer.
            headers: more of the answer.
            times: how many requests.
            delay: seconds before the answer.
            hang: never answer.
            reset: reset the connection instead.
        """
        answer = Answer(status=status, body=body, content_type=content_type, headers=headers)
        wait = math.inf if hang else delay
        self._faults.append(
            Fault(method=method, prefix=prefix, answer=answer, times=times, delay=wait, reset=reset)
        )

    def clear_faults(self) -> None:
        """Answer everything as usual again."""
        self._faults.clear()

    def restart(self) -> None:
        """Lose what a restart loses: channels and calls; peers and tokens stay."""
        self._channels.restart()

    async def call(
        self,
        name: str,
        *,
        method: str = "POST",
        path: str = "/",
        headers: Mapping[str, str] | None = None,
        body: bytes = b"",
        token: str | None = None,
    ) -> Answer:
        """Call a peer through the gateway, as another peer does.

        Args:
            name: the peer.
            method: the verb.
            path: below the peer; begins with a slash.
            headers: of the request.
            body: of the request.
            token: the caller's credential; the shared one if None.
        """
        import httpx  # noqa: PLC0415 - slow to load, and not every test calls

        sent = {"authorization": f"Bearer {token or self.gateway_token}", **(headers or {})}
        async with httpx.AsyncClient(timeout=FOREVER_SEC, trust_env=False) as client:
            answer = await client.request(
                method, f"{self.url}/peer/{name}{path}", headers=sent, content=body
            )
        return Answer(
            status=answer.status_code,
            body=answer.content,
            content_type=answer.headers.get("content-type", ""),
            headers=tuple(answer.headers.items()),
        )

    # --- serving --------------------------------------------------------------------------------

    async def serve_connection(self, stream: trio.SocketStream) -> None:
        """Serve one connection until it ends."""
        connection = h11.Connection(h11.SERVER)
        try:
            async with stream:
                while await self._serve_request(stream, connection):
                    connection.start_next_cycle()
        except (trio.BrokenResourceError, trio.ClosedResourceError, h11.RemoteProtocolError):
            pass  # the client has gone, or never spoke HTTP

    async def _serve_request(self, stream: trio.SocketStream, connection: h11.Connection) -> bool:
        """Answer one request; return whether another may follow."""
        request = await read_request(stream, connection, self._body_limit)
        if request is None:
            return False
        fault = self._take_fault(request)
        if fault is not None and not await fault.is_survived(stream):
            return False
        if (
            fault is None
            and request.path == "/channel"
            and request.method == "GET"
            and request.name
        ):
            refused = self.state.channel_refusal(request.token, request.name)
            if refused is None:
                self._remember(request, 200)
                await self._channels.serve(stream, connection, request.name)
                return False
            answer = refused
        else:
            told = fault.answer if fault else await self._answered(stream, connection, request)
            if told is None:
                self._remember(request, 0)
                return False
            answer = told
        self._remember(request, answer.status)
        if request.method == "HEAD":
            answer = attrs.evolve(answer, body=b"")
        await send_answer(stream, connection, answer)
        return connection.our_state is h11.DONE and connection.their_state is h11.DONE

    def _take_fault(self, request: Request) -> Fault | None:
        for fault in self._faults:
            if fault.method == request.method and request.path.startswith(fault.prefix):
                fault.times -= 1
                if fault.times <= 0:
                    self._faults.remove(fault)
                return fault
        return None

    def _remember(self, request: Request, status: int) -> None:
        if len(self.seen) < MAX_SEEN:
            self.seen.append(
                Seen(
                    method=request.method,
                    path=request.path,
                    query=request.query,
                    headers=request.headers,
                    body=request.body,
                    status=status,
                )
            )
        self._tell()

    def _tell(self) -> None:
        self._changed.set()
        self._changed = trio.Event()

    async def _answered(
        self, stream: trio.SocketStream, connection: h11.Connection, request: Request
    ) -> Answer | None:
        return await unless_gone(stream, connection, lambda: self._route(request))

    async def _route(self, request: Request) -> Answer:
        refused = misdirected(request, self._body_limit, patch=self.state.patch)
        if refused is not None:
            return refused
        if request.path == "/register":
            return self._register(request)
        if request.path in CARD_PATHS:
            return self.state.directory(request.token, self.has_channel)
        if request.path.startswith("/channel/response/"):
            return self._channels.take_answer(request)
        if request.path.startswith("/peer/"):
            return await self._channels.proxy(request)
        return Answer(status=303, headers=(("location", "/login"),))

    def _register(self, request: Request) -> Answer:
        if request.method == "DELETE":
            return self.state.deregister(request.token, request.name)
        if not request.is_json:
            return text(415, "Expected request with `Content-Type: application/json`")
        required = ("name", "url") if request.method == "POST" else ("name",)
        body = read_registration(request.body, required)
        if isinstance(body, Answer):
            return body
        change = self.state.register if request.method == "POST" else self.state.update
        return change(request.token, body)


@asynccontextmanager
async def open_fake_gateway(
    *,
    patch: bool = True,
    mint: bool = True,
    limits: bool = False,
    queue: int = QUEUE,
    ping: float = PING_SEC,
    proxy_timeout: float = PROXY_SEC,
    body_limit: int = BODY_LIMIT,
) -> AsyncIterator[FakeGateway]:
    """Run a fake gateway on a free loopback port for the length of a block.

    Args:
        patch: False for a gateway that is too old to know ``PATCH /register``.
        mint: False for one that is too old to give out a token for each peer.
        limits: apply the rate limits.
        queue: envelopes that wait for one peer.
        ping: seconds of silence on a channel before a ping.
        proxy_timeout: seconds that a call waits for its peer.
        body_limit: bytes of a request body.

    **Resources**: connections and calls are cut when the block ends.
    """
    listeners = await trio.open_tcp_listeners(0, host="127.0.0.1")
    state = GatewayState(
        gateway_token="agw_" + secrets.token_hex(32),
        bootstrap_token="agw_" + secrets.token_hex(32),
        patch=patch,
        mint=mint,
        limits=limits,
        now=trio.current_time,
    )
    gateway = FakeGateway(
        state,
        port=listeners[0].socket.getsockname()[1],
        queue=queue,
        ping=ping,
        proxy_timeout=proxy_timeout,
        body_limit=body_limit,
    )
    async with trio.open_nursery() as nursery:
        await nursery.start(trio.serve_listeners, gateway.serve_connection, listeners)
        yield gateway
        nursery.cancel_scope.cancel()
