"""A whole server in the test's own process: no socket, no thread, any clock.

::

    async with open_in_process(agent) as server:
        async with server.client() as client:
            reply = await client.send("hello")

Everything is real but the network: admission, limits, dialects, runs and streams. Under
``trio.testing.MockClock`` an hour's window passes in no time.
"""

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import TYPE_CHECKING, final

from a2a_trio.agents.contract import Agent
from a2a_trio.config.schema import Settings
from a2a_trio.peer.assembly import Assembly
from a2a_trio.peer.plan import Address
from a2a_trio.rules.audit import AuditEntry
from a2a_trio.server.run import RunObserver
from a2a_trio.server.runs import RunEngine
from a2a_trio.testing.direct import DirectCalls

if TYPE_CHECKING:
    from a2a_trio.client.client import Client
    from a2a_trio.client.options import ClientOptions

__all__ = ["InProcessServer", "open_in_process"]

_PORT = 9910


def _ignore(_entry: AuditEntry) -> None:
    """Keep no audit log."""


@final
class InProcessServer:
    """A running server without a socket; its address is that of ``url``."""

    url = f"http://127.0.0.1:{_PORT}/"

    def __init__(self, assembly: Assembly, engine: RunEngine) -> None:
        self.assembly = assembly
        self.engine = engine

    @property
    def stored(self) -> int:
        """How many tasks are kept."""
        return self.assembly.stored()

    def calls(self, identity: str = "tester", *, context_per_call: bool = True) -> DirectCalls:
        """Return direct calls to the operations, as a caller of this identity."""
        return DirectCalls(self.assembly.operations, identity, context_per_call=context_per_call)

    def client(
        self, *, token: str | None = None, options: "ClientOptions | None" = None
    ) -> "AbstractAsyncContextManager[Client]":
        """Return a client of this server; close it before the server."""
        # Imported here since httpx is slow to load and not every test calls.
        from a2a_trio.client.client import open_client  # noqa: PLC0415
        from a2a_trio.client.options import ClientOptions  # noqa: PLC0415
        from a2a_trio.testing.transport import EndpointTransport  # noqa: PLC0415

        return open_client(
            self.url,
            token=token,
            options=options or ClientOptions(),
            transport=EndpointTransport(self.assembly.endpoint.handle),
        )


@asynccontextmanager
async def open_in_process(
    agent: Agent,
    settings: Settings | None = None,
    *,
    audit: Callable[[AuditEntry], None] = _ignore,
    observers: tuple[RunObserver, ...] = (),
) -> AsyncIterator[InProcessServer]:
    """Serve an agent inside this process for the length of a block.

    Args:
        agent: what to serve.
        settings: all defaults if omitted.
        audit: takes the audit entries.
        observers: told what happens to every run.

    **Resources**: runs that are alive when the block ends are ended, FAILED "server stopped".
    """
    assembly = Assembly(
        agent,
        settings or Settings(),
        Address(host="127.0.0.1", port=_PORT),
        audit=audit,
        observers=observers,
    )
    async with assembly.running() as engine:
        yield InProcessServer(assembly, engine)
