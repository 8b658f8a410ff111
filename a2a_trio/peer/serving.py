"""Serving an agent on a socket: the nursery tree, in the order in which it opens and closes.

::

    open_server
    |- journal                    first up, last down: it takes what the others still say
    |- runs nursery               outlives every connection
    `- serve_http                 request tasks start runs and wait for them
"""

from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final, final

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
from a2a_trio.server.listen import bind, serve_http, tls_context
from a2a_trio.server.run import RunObserver
from a2a_trio.server.runs import RunEngine, Statistics
from a2a_trio.wire.agent_card import AgentCard

if TYPE_CHECKING:
    from a2a_trio.server.quart_app import AgentQuart

__all__ = ["Server", "create_app", "open_server", "serve"]

HTTP_GRACE_SEC: Final = 0.5
"""How long answers that are already made may take to be sent, when the server stops."""


@final
class Server:
    """A server that is up. ``url``, ``port`` and ``card`` are those really bound."""

    def __init__(
        self,
        assembly: Assembly,
        engine: RunEngine,
        port: int,
        warnings: tuple[str, ...],
        journal: Journal | None = None,
    ) -> None:
        self._assembly = assembly
        self._engine = engine
        self._drained = trio.Event()
        self.port = port
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
    def self_id(self) -> str:
        """The server's name in delegation chains."""
        return self._assembly.self_id

    def statistics(self) -> Statistics:
        """Return how much is going on."""
        return self._engine.statistics()

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
) -> AsyncIterator[Server]:
    """Serve an agent for the length of a block.

    Args:
        agent: an async function of a ``TaskContext``; see ``a2a_trio.agents.contract``.
        settings: all defaults if omitted: loopback, port 9910 or one of the next ten.
        home: the state folder for the audit log and the transcripts; nothing is written if omitted.
        audit: also told of every call and its outcome; must neither block nor raise.
        observers: told what happens to every run; must neither block nor raise.

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
            journal = None if home is None else await _journal(stack, settings, home)
            assembly = _assembly(
                agent, settings, address, journal=journal, audit=audit, observers=observers
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
            server = Server(assembly, engine, port, warnings, journal)
            yield server
            if not engine.draining:
                await server.drain()
            shutdown.set()


async def _journal(stack: AsyncExitStack, settings: Settings, home: Path) -> Journal:
    server = settings.server
    return await stack.enter_async_context(
        open_journal(
            home,
            max_bytes=server.audit_max_bytes,
            keep=server.audit_keep,
            keep_days=server.child_transcript_retention_days,
            redactor=Redactor(settings.secrets()),
        )
    )


def _assembly(
    agent: Agent,
    settings: Settings,
    address: plan.Address,
    *,
    journal: Journal | None,
    audit: Callable[[AuditEntry], None],
    observers: tuple[RunObserver, ...],
) -> Assembly:
    if journal is None:
        return Assembly(agent, settings, address, audit=audit, observers=observers)

    def record(entry: AuditEntry) -> None:
        journal.record(entry)
        audit(entry)

    assembly = Assembly(
        agent,
        settings,
        address,
        audit=record,
        healthy=lambda: journal.healthy,
        observers=observers,
        transcribe=journal.transcribe if settings.server.child_transcripts else None,
    )
    assembly.metrics.watch(
        "journal_dropped", "Audit entries and lines that were lost", lambda: journal.dropped
    )
    assembly.metrics.watch(
        "journal_healthy", "1 while the audit log can be written", lambda: journal.healthy
    )
    return assembly


async def serve(
    agent: Agent,
    settings: Settings | None = None,
    *,
    home: Path | None = None,
    task_status: trio.TaskStatus[Server] = trio.TASK_STATUS_IGNORED,
) -> None:
    """Serve an agent until ``Server.drain`` is called or the call is cancelled.

    ::

        server = await nursery.start(serve, agent)

    Args:
        agent: see ``open_server``.
        settings: see ``open_server``.
        home: see ``open_server``.
        task_status: reports the ``Server`` once it accepts connections.

    Raises:
        OSError: no port could be bound, or the socket failed.
        SettingsError: the settings contradict themselves.
    """
    async with open_server(agent, settings, home=home) as server:
        task_status.started(server)
        await server.wait_drained()


def create_app(
    agent: Agent,
    settings: Settings | None = None,
    *,
    import_name: str = "a2a_trio",
) -> "AgentQuart":
    """Return a quart-trio application that serves an agent, for an ASGI server with Trio.

    The card advertises ``server.publicUrl``, else ``server.host`` and ``server.port``: an
    application does not know where it is bound. Tasks run in the application's lifespan; where it
    is mounted without one, open ``app.agent.services()`` around the server.

    Args:
        agent: see ``open_server``.
        settings: all defaults if omitted.
        import_name: for Quart, where templates and static files are looked for.

    Raises:
        SettingsError: the settings contradict themselves.
    """
    from a2a_trio.server.quart_app import quart_app  # noqa: PLC0415 - Quart takes half a second to import and only this needs it

    settings = Settings() if settings is None else settings
    address = plan.Address(host=settings.server.host, port=settings.server.port)
    assembly = Assembly(agent, settings, address)

    @asynccontextmanager
    async def services() -> AsyncIterator[None]:
        with plain_errors():
            async with assembly.running() as engine:
                yield
                await engine.drain(settings.server.drain_grace_sec)

    return quart_app(AsgiApp(assembly.endpoint, services=services), import_name=import_name)
