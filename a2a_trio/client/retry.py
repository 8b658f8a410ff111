"""Repeats a request where that is safe."""

import random
from collections.abc import Awaitable, Callable
from typing import TypeAlias, TypeVar, final

import attrs
import trio

from a2a_trio.client.failures import Repeat, repeat_class, retry_after_of
from a2a_trio.client.options import ClientOptions
from a2a_trio.client.pool import Progress
from a2a_trio.errors import A2AError, PeerTimeoutError, PeerUnreachableError
from a2a_trio.rules.backoff import Backoff

__all__ = ["Retries", "Try"]

T = TypeVar("T")

Try: TypeAlias = Callable[[Progress], Awaitable[T]]
"""Makes one try, and notes when it begins to send."""


@final
@attrs.frozen(kw_only=True)
class Retries:
    """Runs one try after another.

    Args:
        options: how many tries there are, and how long the waits between them are.
        rng: spreads the waits of many clients.
        url: the peer as configured, for errors.
    """

    options: ClientOptions
    rng: random.Random
    url: str

    async def run(
        self, once: Try[T], *, repeatable: Callable[[], bool], limit: float, what: str
    ) -> T:
        """Call ``once`` until it succeeds or its failure is final.

        Args:
            once: makes one try.
            repeatable: asked after a failure: may the request be sent again although it may have
                been carried out?
            limit: seconds for everything, the waits included.
            what: the operation, for the text of a timeout.

        Raises:
            PeerTimeoutError: the limit passed with a request on its way.
            PeerUnreachableError: it passed before anything was sent; or no connection was made.
            A2AError: whatever the last try raised.
        """
        progress = Progress()
        deadline = trio.current_time() + limit
        with trio.CancelScope(deadline=deadline):
            return await self._repeat(once, progress, repeatable, deadline)
        if not progress.began:
            raise PeerUnreachableError(
                f"{what} was not sent within {limit:g} s: no connection was free", url=self.url
            )
        raise PeerTimeoutError(
            f"no answer to {what} within {limit:g} s; whether it was carried out is unknown",
            url=self.url,
        )

    async def _repeat(
        self, once: Try[T], progress: Progress, repeatable: Callable[[], bool], deadline: float
    ) -> T:
        backoff = Backoff(self.options.retry_base, self.options.retry_cap, self.rng)
        left = self.options.retry_attempts
        while True:
            try:
                return await once(progress)
            except A2AError as exc:
                delay = self._delay(exc, backoff, repeatable) if left else None
                # A wait beyond the limit would only replace this error by a vaguer one.
                if delay is None or trio.current_time() + delay >= deadline:
                    raise
                if repeat_class(exc) is Repeat.ALWAYS:
                    progress.began = False
            left -= 1
            await trio.sleep(delay)

    def _delay(
        self, error: A2AError, backoff: Backoff, repeatable: Callable[[], bool]
    ) -> float | None:
        """Return how long to wait before the next try, or None if there is to be none."""
        kind = repeat_class(error)
        if kind is Repeat.NEVER or (kind is Repeat.IF_SAFE and not repeatable()):
            return None
        return backoff.failed(retry_after_of(error))
