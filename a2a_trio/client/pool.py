"""The HTTP connections to one peer: how many there are, and what a broken one means.

HTTP/1.1 only: with HTTP/2, httpx does not tell the peer that a stream was abandoned. A limiter
smaller than httpx's own pool stands in front of it, since a request that is cancelled while it
connects can leave its place in that pool taken for ever. Should the pool still report that it is
full, it is replaced.

Only the connect limit is given to httpx, which makes a Trio scope around the connect alone of it;
every other limit is a scope of the caller.
"""

import math
from http.cookiejar import CookieJar, DefaultCookiePolicy
from typing import TYPE_CHECKING, Final, final

import attrs
import trio

from a2a_trio.client.connect import Target, pin, why_unreachable
from a2a_trio.client.exchange import Exchange, lost_connection, transport_errors
from a2a_trio.client.options import ClientOptions
from a2a_trio.errors import PeerUnreachableError

if TYPE_CHECKING:
    import httpx

__all__ = ["HttpCall", "HttpPool", "Progress"]

_POOL_RESERVE: Final = 32
"""Places in httpx's pool beyond the limiter's, for those that a cancelled connect leaves behind."""
_POOL_TIMEOUT: Final = 5.0
"""Seconds to wait for a place in httpx's pool. The limiter makes sure that there is one, so having
to wait this long means that the pool is wedged."""
_KEEPALIVE_EXPIRY: Final = 3.0
"""Seconds that an idle connection is kept: less than the 5 s after which common servers close it,
or a send could meet a connection that is just being closed."""
_CLOSE_GRACE: Final = 1.0
"""Seconds for closing the connections of a client."""


@final
@attrs.frozen(kw_only=True)
class HttpCall:
    """One request as it leaves."""

    method: str
    url: str
    headers: tuple[tuple[str, str], ...] = attrs.field(repr=False)
    body: bytes = attrs.field(default=b"", repr=False)


@final
@attrs.define
class Progress:
    """How far a request got, for whoever finds that it timed out."""

    began: bool = False
    """Whether any of it may have reached the peer."""


@final
class _Generation:
    """One httpx client and how many exchanges still use it."""

    def __init__(self, client: "httpx.AsyncClient") -> None:
        self.client = client
        self.users = 0


@final
class _Lease:
    """A place in front of the pool and a share in one httpx client, for one exchange."""

    def __init__(self, limiter: trio.CapacityLimiter) -> None:
        self._limiter = limiter
        self._generation: _Generation | None = None
        self._held = False

    async def acquire(self) -> None:
        """Wait for a place."""
        await self._limiter.acquire_on_behalf_of(self)
        self._held = True

    def use(self, generation: _Generation) -> None:
        """Take a share in a client, which is then not closed before ``release``."""
        self._generation = generation
        generation.users += 1

    def release(self) -> None:
        """Give everything back; may be called again."""
        if self._generation is not None:
            self._generation.users -= 1
            self._generation = None
        if self._held:
            self._held = False
            self._limiter.release_on_behalf_of(self)


@final
class HttpPool:
    """Opens exchanges with one peer.

    Args:
        options: limits and certificates.
        transport: replaces the network, for tests and in-process peers; closed with the pool.
    """

    def __init__(
        self, options: ClientOptions, transport: "httpx.AsyncBaseTransport | None" = None
    ) -> None:
        self._options = options
        self._transport = transport
        self._limiter = trio.CapacityLimiter(options.max_connections)
        self._live: dict[str, _Generation] = {}  # at most one for http and one for https
        self._retired: list[_Generation] = []  # the next call closes those that are not in use
        self._closed = False

    async def open(self, call: HttpCall, progress: Progress) -> Exchange:
        """Send a request and return the exchange once the response's head is there.

        Raises:
            PeerUnreachableError: no connection was made.
            TransientPeerError: the connection broke.
            RuntimeError: the pool is closed.

        Cancellation: the request is abandoned and its connection closed.
        """
        lease = _Lease(self._limiter)
        exchange: Exchange | None = None
        try:
            await lease.acquire()
            if self._closed:
                raise RuntimeError("the client is closed")
            await self._close_retired()
            target = Target(url=call.url)
            if self._transport is None:
                target = await pin(call.url, self._options.url_policy)
            generation = self._generation(call.url)
            lease.use(generation)
            progress.began = True
            exchange = Exchange(await self._send(generation, call, target), call.url, lease.release)
        finally:
            if exchange is None:
                lease.release()
        return exchange

    async def aclose(self) -> None:
        """Close every connection; calls and streams that are still open fail.

        Cancellation: everything is closed all the same, within a second.
        """
        self._closed = True
        generations = [*self._live.values(), *self._retired]
        self._live.clear()
        self._retired.clear()
        for generation in generations:
            await _close(generation)

    async def _send(
        self, generation: _Generation, call: HttpCall, target: Target
    ) -> "httpx.Response":
        import httpx  # noqa: PLC0415 - costs a tenth of a second, which only callers should pay

        from a2a_trio.client.body import RequestBody  # noqa: PLC0415 - it imports httpx

        request = generation.client.build_request(
            call.method,
            target.url,
            headers=[*call.headers, *target.headers],
            content=call.body or None,
            extensions=dict(target.extensions),
        )
        request.stream = RequestBody(call.body)
        try:
            return await generation.client.send(request, stream=True)
        except httpx.PoolTimeout as exc:
            self._retire(generation)
            raise PeerUnreachableError("no connection was free", url=call.url) from exc
        except (httpx.ConnectError, httpx.ConnectTimeout, httpx.ProxyError) as exc:
            raise PeerUnreachableError(why_unreachable(exc), url=call.url) from exc
        except transport_errors() as exc:
            raise lost_connection(call.url) from exc

    def _generation(self, url: str) -> _Generation:
        scheme = url.partition(":")[0].lower()
        generation = self._live.get(scheme)
        if generation is None:
            generation = self._live[scheme] = _Generation(self._new_client(scheme))
        return generation

    def _new_client(self, scheme: str) -> "httpx.AsyncClient":
        import httpx  # noqa: PLC0415 - as above

        options = self._options
        # Reading the certificate store takes 40 ms, which plain HTTP need not pay.
        verify = options.verify if scheme == "https" else False
        connect = None if math.isinf(options.connect_timeout) else options.connect_timeout
        places = options.max_connections + _POOL_RESERVE
        return httpx.AsyncClient(
            transport=self._transport,
            verify=verify,
            http2=False,
            follow_redirects=False,
            trust_env=options.trust_env,
            # No cookies: a jar would grow with what peers send, and nothing here needs one.
            cookies=CookieJar(policy=DefaultCookiePolicy(allowed_domains=())),
            timeout=httpx.Timeout(None, connect=connect, pool=_POOL_TIMEOUT),
            limits=httpx.Limits(max_connections=places, keepalive_expiry=_KEEPALIVE_EXPIRY),
        )

    def _retire(self, generation: _Generation) -> None:
        """Let later calls use a new client; a given transport cannot be replaced."""
        if self._transport is not None:
            return
        for scheme, live in tuple(self._live.items()):
            if live is generation:
                del self._live[scheme]
                self._retired.append(generation)

    async def _close_retired(self) -> None:
        idle = [g for g in self._retired if not g.users]
        self._retired = [g for g in self._retired if g.users]
        for generation in idle:
            await _close(generation)


async def _close(generation: _Generation) -> None:
    with trio.CancelScope(shield=True, deadline=trio.current_time() + _CLOSE_GRACE):
        await generation.client.aclose()
