"""Serving an agent on a socket: the nursery tree, in the order in which it opens and closes.

::

    open_server
    |- journal                    first up, last down: it takes what the others still say
    |- runs nursery               outlives every connection
    `- serve_http                 request tasks start runs and wait for them
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Final, TypeAlias, final

import trio

from a2a_trio._groups import plain_errors
from a2a_trio.agents.contract import Agent
from a2a_trio.config.schema import Settings
from a2a_trio.journal import Journal, open_journal
from a2a_trio.peer import plan
from a2a_trio.peer.assembly import Assembly
from a2a_trio.rules.audit import AuditEntry
from a2a_trio.rules.ports import resolve_bind_host
from a2a_trio.rules.redaction import Redactor
from a2a_trio.server.asgi import AsgiApp
from a2a_trio.server.http import HttpRequest, HttpResponse
from a2a_trio.server.listen import bind, serve_http, tls_context
from a2a_trio.server.run import RunObserver
from a2a_trio.server.runs import RunEngine, Statistics
from a2a_trio.wire.agent_card import AgentCard

__all__ = ["Handler", "Server", "journal_of", "open_server", "watch_journal"]

Handler: TypeAlias = Callable[[HttpRequest], Awaitable[HttpResponse]]
"""What answers requests: ``Endpoint.handle``."""

HTTP_GRACE_SEC: Final = 0.5
"""How long answers that are already made may take to be sent, when the server stops."""

_NO_TOKENS: Final[Mapping[str, str]] = MappingProxyType({})


@final
class Server:
    """A server that is up. ``url``, ``port`` and ``card`` are those really bound."""

    def __init__(
        self,
        assembly: Assembly,
        engine: RunEngine,
        bound: plan.Address,
        warnings: tuple[str, ...],
        journal: Journal | None = None,
    ) -> None:
        self._assembly = assembly
        self._engine = engine
        self._drained = trio.Event()
        self.bound = bound
        """The address of the socket."""
        self.port = bound.port
        self.warnings = warnings
        """What the operator should know, e.g. that another address was bound."""
        self.journal = journal
        """The audit log and the conversations; None without a state folder."""

    @property
    def url(self) -> str:
        """The advertised address of the JSON-RPC endpoint."""
        return self.card.supported_interfaces[0].url

    @property
    def card(self) -> AgentCard:
        """The agent card that an authenticated caller gets."""
        return self._assembly.cards.card

    @property
    def handler(self) -> Handler:
        """Answers requests that come by another way than the socket; see ``server.http``."""
        return self._assembly.endpoint.handle

    @property
    def self_id(self) -> str:
        """The server's name in delegation chains."""
        return self._assembly.self_id

    def statistics(self) -> Statistics:
        """Return how much is going on."""
        return self._engine.statistics()

    @property
    def draining(self) -> bool:
        """True once ``drain`` was called: new work is refused."""
        return self._engine.draining

    async def drain(self, grace: float | None = None) -> None:
        """Stop: refuse new work, end the streams, give runs a grace, then end them.

        ``serve`` returns afterwards; the block of ``open_server`` goes on until its own end.
        Cancelling stops the waiting; runs that are left then end at once when the server closes.

        Args:
            grace: seconds; ``server.drainGraceSec`` if omitted.
        """
        if grace is None:
            grace = self._assembly.settings.server.drain_grace_sec
        try:
            await self._engine.drain(grace)
        finally:
            self._drained.set()

    async def wait_drained(self) -> None:
        """Wait until ``drain`` is done."""
        await self._drained.wait()


def _ignore(_entry: AuditEntry) -> None:
    """Tell nobody."""


@asynccontextmanager
async def open_server(
    agent: Agent,
    settings: Settings | None = None,
    *,
    home: Path | None = None,
    audit: Callable[[AuditEntry], None] = _ignore,
    observers: tuple[RunObserver, ...] = (),
    gateway_tokens: Mapping[str, str] = _NO_TOKENS,
) -> AsyncIterator[Server]:
    """Serve an agent for the length of a block.

    Args:
        agent: an async function of a ``TaskContext``; see ``a2a_trio.agents.contract``.
        settings: all defaults if omitted: loopback, port 9910 or one of the next ten.
        home: the state folder for the audit log and the transcripts; nothing is written if omitted.
        audit: also told of every call and its outcome; must neither block nor raise.
        observers: told what happens to every run; must neither block nor raise.
        gateway_tokens: the tokens that gateways present when they call, by gateway key. Such a
            caller is called ``gw/<key>``.

    Raises:
        OSError: no port could be bound.
        SettingsError: the settings contradict themselves.

    **Resources**: when the block ends the server is drained and everything is closed.
    **Cancellation**: everything is closed at once; runs end FAILED "server stopped".
    """
    settings = Settings() if settings is None else settings
    tls = None
    if settings.server.tls_cert_file:
        tls = tls_context(settings.server.tls_cert_file, settings.server.tls_key_file)
    host, warning = resolve_bind_host(
        settings.server.host, has_tokens=plan.has_tokens(settings), tls=tls is not None
    )
    sock = bind(host, settings.server.port, settings.server.port_fallback)
    port: int = sock.getsockname()[1]
    address = plan.Address(host=host, port=port, scheme="http" if tls is None else "https")
    warnings = (warning,) if warning else ()
    shutdown = trio.Event()
    with plain_errors(levels=2):  # the runs and the listener
        async with AsyncExitStack() as stack:
            stack.callback(sock.close)
            redactor = Redactor((*settings.secrets(), *gateway_tokens.values()))
            journal = (
                None
                if home is None
                else await stack.enter_async_context(journal_of(settings, home, redactor))
            )
            assembly = _assembly(
                agent,
                settings,
                address,
                journal=journal,
                audit=audit,
                observers=observers,
                gateway_tokens=gateway_tokens,
            )
            engine = await stack.enter_async_context(assembly.running())
            web = await stack.enter_async_context(trio.open_nursery())
            await web.start(
                partial(
                    serve_http,
                    AsgiApp(assembly.endpoint),
                    sock,
                    shutdown=shutdown,
                    graceful=HTTP_GRACE_SEC,
                    tls=tls,
                )
            )
            server = Server(assembly, engine, address, warnings, journal)
            yield server
            if not engine.draining:
                await server.drain()
            shutdown.set()


def journal_of(
    settings: Settings, home: Path, redactor: Redactor
) -> AbstractAsyncContextManager[Journal]:
    """Return the journal that the settings ask for."""
    server = settings.server
    return open_journal(
        home,
        max_bytes=server.audit_max_bytes,
        keep=server.audit_keep,
        keep_days=server.child_transcript_retention_days,
        redactor=redactor,
    )


def _assembly(
    agent: Agent,
    settings: Settings,
    address: plan.Address,
    *,
    journal: Journal | None,
    audit: Callable[[AuditEntry], None],
    observers: tuple[RunObserver, ...],
    gateway_tokens: Mapping[str, str],
) -> Assembly:
    together = partial(
        Assembly, agent, settings, address, observers=observers, gateway_tokens=gateway_tokens
    )
    if journal is None:
        return together(audit=audit)

    def record(entry: AuditEntry) -> None:
        journal.record(entry)
        audit(entry)

    assembly = together(
        audit=record,
        healthy=lambda: journal.healthy,
        transcribe=journal.transcribe if settings.server.child_transcripts else None,
    )
    watch_journal(assembly, lambda: journal)
    return assembly


def watch_journal(assembly: Assembly, journal: Callable[[], Journal | None]) -> None:
    """Show in the metrics how the journal is; well and complete while there is none."""

    def of(read: Callable[[Journal], float], otherwise: float) -> Callable[[], float]:
        return lambda: otherwise if (present := journal()) is None else read(present)

    watch = assembly.metrics.watch
    watch("journal_dropped", "Audit entries and lines that were lost", of(lambda j: j.dropped, 0))
    watch("journal_healthy", "1 while the audit log can be written", of(lambda j: j.healthy, 1))
