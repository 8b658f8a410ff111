"""The reverse channel: answering, through a stream that this peer opened, what a gateway passes on.

::

    run_channel                   one connection after the other, with growing pauses
    `- CONNECTION nursery
       `- per request: dispatch, then post the answer

A gateway never ends a channel on purpose and does not notice at once when one is dead. So silence is
taken for the end, and the register loop asks for a new one when the gateway's directory says that it
has none.
"""

from collections.abc import Awaitable, Callable
from typing import Final, Protocol, TypeAlias, final

import attrs
import trio

from a2a_trio._groups import plain_errors
from a2a_trio._log import get_logger
from a2a_trio.discovery.web import Web, WebAnswer, fetch
from a2a_trio.errors import PeerError, PeerTimeoutError
from a2a_trio.rules.backoff import Backoff, Random
from a2a_trio.rules.channel import (
    BROKEN,
    BUSY,
    MAX_EVENT_BYTES,
    TOO_LARGE,
    TOO_LATE,
    ChannelRequest,
    ChannelResponse,
    Envelope,
    Refused,
    Then,
    after_post,
    answer_body,
    answer_path,
    open_path,
    read_envelope,
)
from a2a_trio.wire.sse import ServerSentEvent, SSEDecoder

__all__ = ["ChannelStatus", "Credential", "Dispatch", "run_channel"]

Dispatch: TypeAlias = Callable[[ChannelRequest], Awaitable[ChannelResponse]]
"""Carries out a request; may raise."""

OPEN_SEC: Final = 10.0
"""How long the gateway may take to begin a stream."""
SILENCE_SEC: Final = 45.0
"""After this long without a byte a stream is dead: gateways ping every 15 s."""
DISPATCH_SEC: Final = 590.0
"""How long a request may take: gateways give up after 600 s."""
POST_SEC: Final = 15.0
"""How long the gateway may take for one answer."""
MAX_IN_FLIGHT: Final = 64
"""Requests that are carried out at the same time; further ones are told that there are too many."""
MAX_REFUSALS: Final = 256
"""Answers to those that wait to be posted; past that a request is dropped, and its caller waits."""
MAX_POSTS: Final = 7
"""Tries to post an answer; with the pauses between them they outlast a rate limit's minute."""
MAX_POST_ANSWER: Final = 65_536
"""Bytes of what a gateway says to an answer."""
BACKOFF: Final = (1.0, 30.0)
"""First and longest pause, in seconds, between two connections, and between two posts."""

_log = get_logger("a2a_trio.discovery")


class Credential(Protocol):
    """Who this peer is at the gateway; read at every request, since it can change."""

    @property
    def name(self) -> str:
        """The registered name."""

    @property
    def token(self) -> str:
        """The token that belongs to it."""


@final
@attrs.define(eq=False)
class ChannelStatus:
    """What the loop that registers and the loop of the channel know of each other."""

    on_unauthorized: Callable[[], None]
    """Called when the gateway does not accept the credential."""
    on_change: Callable[[], None]
    """Called when the channel has been opened or closed."""
    open: bool = False
    _scope: trio.CancelScope | None = None

    def reopen(self) -> None:
        """Give the present stream up, if there is one, and open a new one."""
        if self._scope is not None:
            self._scope.cancel()

    def entered(self, scope: trio.CancelScope | None) -> None:
        """Take note of the scope of the present stream."""
        self._scope = scope

    def set_open(self, now: bool) -> None:  # noqa: FBT001 - the one thing it is about
        """Take note that the channel works, or not any more."""
        if self.open is not now:
            self.open = now
            self.on_change()


async def run_channel(
    web: Web,
    base_url: str,
    credential: Credential,
    dispatch: Dispatch,
    status: ChannelStatus,
    *,
    rng: Random,
) -> None:
    """Keep a channel open until cancelled.

    Args:
        web: the client; one connection is used for the stream, and one for each answer.
        base_url: of the gateway, without a trailing slash.
        credential: whose channel it is.
        dispatch: carries out the requests; a request whose connection is lost is cancelled.
        status: told what happens.
        rng: source of the jitter of the pauses.
    """
    channel = _Channel(
        web=web,
        base_url=base_url,
        credential=credential,
        dispatch=dispatch,
        status=status,
        rng=rng,
    )
    backoff = Backoff(*BACKOFF, rng)
    try:
        while True:
            if await channel.connect():
                backoff.succeeded()
            status.set_open(False)
            await trio.sleep(backoff.failed())
    finally:
        status.set_open(False)


@final
@attrs.define(eq=False, kw_only=True)
class _Channel:
    web: Web
    base_url: str
    credential: Credential
    dispatch: Dispatch
    status: ChannelStatus
    rng: Random
    working: int = 0
    refusing: int = 0

    async def connect(self) -> bool:
        """Serve one connection; return whether it was a good one, however it ended."""
        with trio.CancelScope() as scope:
            self.status.entered(scope)
            try:
                return await self._stream()
            except PeerError as error:
                _log.debug("gateway channel lost", reason=type(error).__name__)
            finally:
                self.status.entered(None)
        return self.status.open

    async def _stream(self) -> bool:
        answer = await self._opened()
        async with answer:
            if answer.status == 200:  # noqa: PLR2004 - HTTP
                return await self._read(answer)
        if answer.status == 401:  # noqa: PLR2004 - HTTP
            self.status.on_unauthorized()
        return False

    async def _opened(self) -> WebAnswer:
        url = self.base_url + open_path(self.credential.name)
        headers = (("accept", "text/event-stream"), *self._authorization())
        with trio.move_on_after(OPEN_SEC):
            return await self.web.open("GET", url, headers=headers)
        raise PeerTimeoutError("the channel was not opened in time", url=self.base_url)

    async def _read(self, answer: WebAnswer) -> bool:
        """Read a stream until it ends or goes silent; return whether it was a good one."""
        decoder = SSEDecoder(MAX_EVENT_BYTES)
        secret = ""
        with plain_errors():
            async with trio.open_nursery() as requests:
                while True:
                    with trio.move_on_after(SILENCE_SEC) as silence:
                        chunk = await answer.next_chunk()
                    if silence.cancelled_caught or chunk is None:
                        break
                    for event in decoder.feed(chunk):
                        if event.event == "hello":
                            secret = event.text
                            self.status.set_open(True)
                        elif event.event == "request":
                            self._take(event, secret, requests)
                # Their callers have been told by the gateway that the channel is gone.
                requests.cancel_scope.cancel()
        return bool(secret)

    def _take(self, event: ServerSentEvent, secret: str, requests: trio.Nursery) -> None:
        """Start whatever answers a request."""
        read = read_envelope(event.data, secret)
        if read is None:
            _log.warning("a request of the gateway cannot be read")
        elif isinstance(read, Envelope) and self.working < MAX_IN_FLIGHT:
            self.working += 1
            requests.start_soon(self._carry_out, read)
        elif self.refusing < MAX_REFUSALS:
            response = read.response if isinstance(read, Refused) else BUSY
            self.refusing += 1
            requests.start_soon(self._refuse, read, response)
        else:
            _log.warning("a request of the gateway is dropped: too many at the same time")

    async def _carry_out(self, envelope: Envelope) -> None:
        try:
            response = TOO_LATE
            with trio.move_on_after(DISPATCH_SEC):
                response = await self._dispatched(envelope.request)
            await self._post(envelope, response)
        finally:
            self.working -= 1

    async def _dispatched(self, request: ChannelRequest) -> ChannelResponse:
        try:
            return await self.dispatch(request)
        except Exception:  # noqa: BLE001 - one request must not end the channel
            _log.exception("a request through the gateway failed")
            return BROKEN

    async def _refuse(self, read: Envelope | Refused, response: ChannelResponse) -> None:
        try:
            await self._post(read, response)
        finally:
            self.refusing -= 1

    async def _post(self, read: Envelope | Refused, response: ChannelResponse) -> None:
        """Post an answer, again and again within reason, since a caller waits for it."""
        backoff = Backoff(*BACKOFF, self.rng)
        body = answer_body(read.id, read.secret, response)
        for _ in range(MAX_POSTS):
            then = after_post(await self._post_once(read.id, body))
            if then is Then.DONE:
                return
            if then is Then.UNAUTHORIZED:
                self.status.on_unauthorized()
                return
            if then is Then.SUBSTITUTE:
                if response is TOO_LARGE:
                    return
                response = TOO_LARGE
                body = answer_body(read.id, read.secret, response)
            else:
                await trio.sleep(backoff.failed())
        _log.warning("an answer was not taken by the gateway")

    async def _post_once(self, number: int, body: bytes) -> int | None:
        url = self.base_url + answer_path(self.credential.name, number)
        headers = (("content-type", "application/json"), *self._authorization())
        try:
            fetched = await fetch(
                self.web, "POST", url,
                headers=headers, body=body, seconds=POST_SEC, limit=MAX_POST_ANSWER,
            )  # fmt: skip
        except PeerError:
            return None
        return fetched.status

    def _authorization(self) -> tuple[tuple[str, str], ...]:
        return (("authorization", f"Bearer {self.credential.token}"),)
