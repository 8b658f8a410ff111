"""The HTTP client that discovery uses: the connections of the client room."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final, final

from a2a_trio.client.options import ClientOptions
from a2a_trio.client.pool import HttpCall, HttpPool, Progress
from a2a_trio.config.schema import Settings
from a2a_trio.discovery.web import Web, WebAnswer

__all__ = ["open_web"]

CONNECTIONS: Final = 80
"""Requests to one gateway at the same time: its channel, a beat, and the answers to callers."""
CONNECT_SEC: Final = 5.0


@asynccontextmanager
async def open_web(settings: Settings) -> AsyncIterator[Web]:
    """Open a client for one gateway, for the length of a block."""
    pool = HttpPool(
        ClientOptions(
            max_connections=CONNECTIONS, connect_timeout=CONNECT_SEC, verify=settings.verify_ssl
        )
    )
    try:
        yield _PoolWeb(pool)
    finally:
        await pool.aclose()


@final
class _PoolWeb:
    def __init__(self, pool: HttpPool) -> None:
        self._pool = pool

    async def open(
        self, method: str, url: str, *, headers: tuple[tuple[str, str], ...], body: bytes = b""
    ) -> WebAnswer:
        call = HttpCall(method=method, url=url, headers=headers, body=body)
        return await self._pool.open(call, Progress())
