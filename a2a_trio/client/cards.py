"""The card of one peer: fetched once for everybody who asks, kept as long as HTTP allows."""

import re
from collections.abc import Callable
from datetime import datetime
from typing import Final, final

import attrs
import trio

from a2a_trio.client.answers import head_of, read_card
from a2a_trio.client.headers import Headers
from a2a_trio.client.options import ClientOptions
from a2a_trio.client.pool import HttpCall, HttpPool, Progress
from a2a_trio.client.routes import Route, choose_route
from a2a_trio.client.urls import card_urls
from a2a_trio.errors import A2AError, PeerProtocolError, PeerUnreachableError
from a2a_trio.wire.agent_card import AgentCard

__all__ = ["CardCache", "Routes"]

_MAX_CARD_BYTES: Final = 4 * 1024 * 1024
_DEFAULT_AGE: Final = 300.0
"""Seconds that a card without caching headers is good (RFC 9111 4.2.2 leaves it to the client)."""
_MAX_AGE: Final = 86_400.0
_ROUTE_AGE: Final = 60.0
"""Seconds that a route is used at least: a peer that forbids caching, or has no card, must not
cost a second request for every call."""
_NOT_MODIFIED: Final = 304
_NOT_FOUND: Final = 404
_OK: Final = 200
_MAX_AGE_DIRECTIVE: Final = re.compile(r"(?:^|,)\s*max-age\s*=\s*\"?(\d{1,9})", re.IGNORECASE)
_NO_REUSE: Final = re.compile(r"(?:^|,)\s*no-(?:store|cache)\s*(?:,|$)", re.IGNORECASE)


@final
@attrs.frozen(kw_only=True)
class _Kept:
    """A card and how long it may be used without asking again."""

    card: AgentCard
    url: str
    etag: str
    fresh_until: float


@final
class CardCache:
    """Fetches and keeps the card of one peer.

    Args:
        pool: where requests go.
        base: the peer's configured URL.
        headers: what to send; credentials may go to this origin.
        options: limits.
        utc: wall clock, for dates in headers.
    """

    def __init__(
        self,
        pool: HttpPool,
        base: str,
        headers: Headers,
        options: ClientOptions,
        utc: Callable[[], datetime],
    ) -> None:
        self._pool = pool
        self._base = base
        self._headers = headers
        self._options = options
        self._utc = utc
        self._kept: _Kept | None = None
        # A lock, since fetching awaits: callers that meet here want the same one fetch. ``_fetches``
        # and ``_outcome`` let those who waited share its result, a failure too.
        self._lock = trio.Lock()
        self._fetches = 0
        self._outcome: A2AError | None = None

    @property
    def last(self) -> AgentCard | None:
        """The newest card that was fetched, perhaps out of date."""
        return self._kept.card if self._kept is not None else None

    @property
    def fresh_until(self) -> float:
        """Trio time until which the newest card is good."""
        return self._kept.fresh_until if self._kept is not None else -1.0

    def expire(self) -> None:
        """Ask the peer again at the next use."""
        if self._kept is not None:
            self._kept = attrs.evolve(self._kept, fresh_until=-1.0)

    async def get(self) -> AgentCard:
        """Return the card, fetched or revalidated where it is out of date (A2A section 8.6).

        Raises:
            PeerUnreachableError: no connection was made.
            PeerProtocolError: there is no card, or what is there is none.
            ProtocolError: the peer refused, e.g. ``UnauthorizedError``.

        Cancellation: another caller that waits for the same card fetches it instead.
        """
        if self._kept is not None and trio.current_time() < self._kept.fresh_until:
            await trio.lowlevel.checkpoint()
            return self._kept.card
        seen = self._fetches
        async with self._lock:
            if self._fetches == seen:
                await self._fetch()
        if self._outcome is not None:
            raise self._outcome.with_traceback(None)
        if self._kept is None:
            raise AssertionError("a fetch leaves a card or an error")
        return self._kept.card

    async def _fetch(self) -> None:
        try:
            kept = await self._first_found()
        except A2AError as exc:
            self._outcome = exc
        else:
            self._kept = kept
            self._outcome = None
        self._fetches += 1

    async def _first_found(self) -> _Kept:
        for url in card_urls(self._base):
            kept = await self._try(url)
            if kept is not None:
                return kept
        raise PeerProtocolError("the peer has no agent card", url=self._base)

    async def _try(self, url: str) -> _Kept | None:
        """Return the card at a URL, or None if there is nothing."""
        known = self._kept if self._kept is not None and self._kept.url == url else None
        headers = self._headers.for_card(known.etag if known is not None else "")
        call = HttpCall(method="GET", url=url, headers=headers)
        async with await self._pool.open(call, Progress()) as exchange:
            head = head_of(exchange, url, self._utc())
            fresh_until = trio.current_time() + _lifetime(
                exchange.header("cache-control"), exchange.header("age")
            )
            if head.status == _NOT_MODIFIED and known is not None:
                return attrs.evolve(known, fresh_until=fresh_until)
            if head.status == _NOT_FOUND:
                return None
            limit = min(_MAX_CARD_BYTES, self._options.max_response_bytes)
            card = read_card(head, await exchange.read_all(limit))
            return _Kept(card=card, url=url, etag=exchange.header("etag"), fresh_until=fresh_until)


def _lifetime(cache_control: str, age: str) -> float:
    """Return for how many seconds an answer is fresh (RFC 9111 4.2)."""
    if _NO_REUSE.search(cache_control):
        return 0.0
    found = _MAX_AGE_DIRECTIVE.search(cache_control)
    if found is None:
        return _DEFAULT_AGE
    spent = float(age) if age.isascii() and age.isdigit() else 0.0
    return max(0.0, min(float(found[1]), _MAX_AGE) - spent)


@final
class Routes:
    """Decides how the peer is called: by its card, and by what it turned out not to speak.

    Args:
        cards: the peer's card.
        base: its configured URL.
        options: which protocol to speak, and whether to use a card at all.
    """

    def __init__(self, cards: CardCache, base: str, options: ClientOptions) -> None:
        self._cards = cards
        self._base = base
        self._options = options
        self._route: Route | None = None
        self._good_until = -1.0
        self._speaks_older: bool | None = None

    async def current(self) -> Route:
        """Return the route for the next call.

        A peer whose card is missing or broken is called at its configured URL.

        Raises:
            PeerUnreachableError: no connection was made.
            PeerProtocolError: the card names no interface that may be called.
        """
        if self._route is None or trio.current_time() >= self._good_until:
            card = await self._card()
            self._route = choose_route(
                card, self._base, self._options.protocol, self._options.url_policy
            )
            self._good_until = max(self._cards.fresh_until, trio.current_time() + _ROUTE_AGE)
        else:
            await trio.lowlevel.checkpoint()
        route = self._route
        return route.older if self._speaks_older and route.older is not None else route

    def older_than(self, route: Route) -> Route | None:
        """Return the v0.3 route to try after the peer refused v1.0, or None."""
        return None if self._speaks_older is False else route.older

    def settle(self, *, older: bool) -> None:
        """Remember whether the peer speaks v0.3 where it refused v1.0; asked once."""
        self._speaks_older = older

    def forget(self) -> None:
        """Look at the card again before the next call."""
        self._cards.expire()
        self._good_until = -1.0

    async def _card(self) -> AgentCard | None:
        if not self._options.use_card:
            return None
        with trio.move_on_after(self._options.call_timeout):
            try:
                return await self._cards.get()
            except PeerUnreachableError:
                if self._cards.last is None:
                    raise
            except A2AError:
                pass
        return self._cards.last
