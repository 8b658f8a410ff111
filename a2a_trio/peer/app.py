"""Serving an agent as an ASGI application, for a server that opens and closes it."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, final

from a2a_trio._groups import plain_errors
from a2a_trio.agents.contract import Agent
from a2a_trio.config.schema import Settings
from a2a_trio.journal import Journal, TranscriptLine
from a2a_trio.peer import plan
from a2a_trio.peer.assembly import Assembly
from a2a_trio.peer.serving import journal_of, watch_journal
from a2a_trio.rules.audit import AuditEntry
from a2a_trio.server.asgi import AsgiApp

if TYPE_CHECKING:
    from a2a_trio.server.quart_app import AgentQuart

__all__ = ["create_app"]


def create_app(
    agent: Agent,
    settings: Settings | None = None,
    *,
    home: Path | None = None,
    import_name: str = "a2a_trio",
) -> "AgentQuart":
    """Return a quart-trio application that serves an agent, for an ASGI server with Trio.

    The card advertises ``server.publicUrl``, else ``server.host`` and ``server.port``: an
    application does not know where it is bound, so it is not announced to anybody either. Tasks run
    in the application's lifespan; where it is mounted without one, open ``app.agent.services()``
    around the server.

    Args:
        agent: see ``open_server``.
        settings: all defaults if omitted.
        home: the state folder for the audit log and the transcripts; nothing is written if omitted.
            Several processes may share one.
        import_name: for Quart, where templates and static files are looked for.

    Raises:
        SettingsError: the settings contradict themselves.
    """
    from a2a_trio.server.quart_app import quart_app  # noqa: PLC0415 - Quart takes half a second to import and only this needs it

    settings = Settings() if settings is None else settings
    address = plan.Address(host=settings.server.host, port=settings.server.port)
    late = _LateJournal()
    assembly = Assembly(
        agent,
        settings,
        address,
        audit=late.record,
        healthy=late.is_healthy,
        transcribe=late.transcribe if home and settings.server.child_transcripts else None,
    )
    watch_journal(assembly, lambda: late.journal)

    @asynccontextmanager
    async def services() -> AsyncIterator[None]:
        with plain_errors():
            async with AsyncExitStack() as stack:
                if home is not None:
                    stack.callback(late.forget)
                    late.journal = await stack.enter_async_context(
                        journal_of(settings, home, assembly.redactor)
                    )
                engine = await stack.enter_async_context(assembly.running())
                yield
                await engine.drain(settings.server.drain_grace_sec)

    return quart_app(AsgiApp(assembly.endpoint, services=services), import_name=import_name)


@final
class _LateJournal:
    """The journal, while the application's services are open."""

    def __init__(self) -> None:
        self.journal: Journal | None = None

    def forget(self) -> None:
        self.journal = None

    def record(self, entry: AuditEntry) -> None:
        if self.journal is not None:
            self.journal.record(entry)

    def transcribe(self, line: TranscriptLine) -> None:
        if self.journal is not None:
            self.journal.transcribe(line)

    def is_healthy(self) -> bool:
        return self.journal is None or self.journal.healthy
