"""``a2a-trio discover`` and ``card``: what a peer, or this one, says about itself."""

import argparse

import attrs

from a2a_trio.cli import render
from a2a_trio.cli.connect import Connect, run_client
from a2a_trio.cli.console import Console
from a2a_trio.cli.exits import ExitCode
from a2a_trio.cli.settings import load
from a2a_trio.cli.target import connection
from a2a_trio.config.schema import Settings
from a2a_trio.rules.ports import resolve_bind_host
from a2a_trio.wire import codec
from a2a_trio.wire.agent_card import AgentCard


def run_discover(namespace: argparse.Namespace, console: Console) -> ExitCode:
    """Run ``a2a-trio discover``."""
    return run_client(discover, console, connection(namespace, console))


def run_card(namespace: argparse.Namespace, console: Console) -> ExitCode:
    """Run ``a2a-trio card``."""
    settings = load(namespace, console).settings
    if namespace.url is not None:
        server = attrs.evolve(settings.server, public_url=namespace.url)
        settings = attrs.evolve(settings, server=server)
    show_card(own_card(settings), console)
    return ExitCode.OK


async def discover(console: Console, connect: Connect) -> ExitCode:
    """Fetch a peer's card and show it."""
    async with connect() as client:
        card = await client.card()
    show_card(card, console)
    return ExitCode.OK


def own_card(settings: Settings) -> AgentCard:
    """Return the card that callers with a token get from a server with these settings.

    The port is the configured one: no server is started, so a busy one cannot be known.

    Raises:
        SettingsError: the settings lead to no card.
    """
    # Imported here: it knows the server, which a command that only calls does not load.
    from a2a_trio.peer import plan  # noqa: PLC0415 - reason above

    host, _ = resolve_bind_host(
        settings.server.host,
        has_tokens=plan.has_tokens(settings),
        tls=bool(settings.server.tls_cert_file),
    )
    scheme = "https" if settings.server.tls_cert_file else "http"
    address = plan.Address(host=host, port=settings.server.port, scheme=scheme)
    return plan.cards_of(settings, address, None).card


def show_card(card: AgentCard, console: Console) -> None:
    """Write a card for people or for machines."""
    if console.json:
        console.record(codec.encode(card))
        return
    for line in render.card_lines(card):
        console.line(line)
