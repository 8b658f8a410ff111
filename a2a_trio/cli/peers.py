"""``a2a-trio peers``: who can be called from here."""

import argparse
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final, final

import attrs

from a2a_trio.cli.connect import options_from, run_client, waiting
from a2a_trio.cli.console import Console
from a2a_trio.cli.exits import ExitCode
from a2a_trio.cli.render import aligned
from a2a_trio.cli.settings import load
from a2a_trio.cli.text import label, visible
from a2a_trio.config.schema import Settings
from a2a_trio.peer.looking import Seen, look
from a2a_trio.rules.directory import FoundPeer
from a2a_trio.wire.model import JsonValue

LONGEST_CELL: Final = 40
"""Characters of a folder, a model or a list in the table."""

_NOTHING: Final = "-"


@final
@attrs.frozen(kw_only=True)
class PeersOptions:
    """What is asked for."""

    capability: str
    source: str
    wait: float


def run(namespace: argparse.Namespace, console: Console) -> ExitCode:
    """Run ``a2a-trio peers``."""
    loaded = load(namespace, console)
    options = options_from(PeersOptions, namespace)
    return run_client(list_peers, options, console, loaded.settings, loaded.home)


async def list_peers(
    options: PeersOptions, console: Console, settings: Settings, home: Path
) -> ExitCode:
    """Look around once and show who was found; a source that does not answer is a warning."""
    seen: Seen = await waiting(
        console, "looking for peers", lambda: look(settings, home, browse_sec=options.wait)
    )
    for problem in seen.problems:
        console.warn(visible(problem))
    found = [peer for peer in seen.peers if _is_wanted(peer, options)]
    if console.json:
        for peer in found:
            console.record(_record(peer))
    elif found:
        for line in _table(found):
            console.line(line)
    else:
        console.note("no peers found")
    return ExitCode.OK


def _is_wanted(peer: FoundPeer, options: PeersOptions) -> bool:
    if options.source and peer.source != options.source:
        return False
    wanted = options.capability.casefold()
    return not wanted or wanted in (capability.casefold() for capability in peer.capabilities)


def _record(peer: FoundPeer) -> dict[str, JsonValue]:
    """Return everything but the token."""
    return {
        "name": peer.name,
        "url": peer.url,
        "source": peer.source.value,
        "cwd": peer.cwd,
        "model": peer.model,
        "tools": list(peer.tools),
        "capabilities": list(peer.capabilities),
        "pid": peer.pid,
        "gateway": peer.gateway,
        "healthy": peer.healthy,
    }


def _table(found: Sequence[FoundPeer]) -> Iterator[str]:
    rows = [("NAME", "URL", "SOURCE", "FOLDER", "CAN")]
    rows += [
        (
            label(peer.name),
            label(peer.url),
            peer.source.value,
            label(peer.cwd, LONGEST_CELL) or _NOTHING,
            label(", ".join(peer.capabilities), LONGEST_CELL) or _NOTHING,
        )
        for peer in found
    ]
    yield from aligned(rows)
