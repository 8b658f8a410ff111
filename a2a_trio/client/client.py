"""Opens a client and closes what it used."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Final

import trio

from a2a_trio._groups import plain_errors
from a2a_trio.client.headers import Headers
from a2a_trio.client.operations import Client
from a2a_trio.client.options import ClientOptions
from a2a_trio.client.pool import HttpPool
from a2a_trio.client.urls import base_url

if TYPE_CHECKING:
    import httpx

__all__ = ["Client", "open_client"]

_DEFAULT_OPTIONS: Final = ClientOptions()


@asynccontextmanager
async def open_client(
    url: str,
    *,
    token: str | None = None,
    options: ClientOptions = _DEFAULT_OPTIONS,
    transport: "httpx.AsyncBaseTransport | None" = None,
) -> AsyncIterator["Client"]:
    """Open a client of one peer. Nothing is sent before the first call.

    Args:
        url: the peer's URL, or that of its card.
        token: bearer token; it goes to this URL's origin only, whatever the card says.
        options: limits, timeouts, identity, hooks.
        transport: replaces the network; closed with the client.

    Raises:
        ValueError: the URL, the token or an option is malformed or not allowed.

    Resources: leaving the context closes every connection; streams that are still open end.
    """
    base = base_url(url, options.url_policy)
    headers = Headers(token, options)
    pool = HttpPool(options, transport)
    try:
        # The readers raise nothing, so a group is what the caller's block raised, wrapped.
        with plain_errors():
            async with trio.open_nursery() as readers:
                yield Client(base, pool=pool, headers=headers, options=options, readers=readers)
                readers.cancel_scope.cancel()
    finally:
        await pool.aclose()
