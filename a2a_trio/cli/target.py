"""From a command line to whom it calls, with which token, for how long."""

import argparse
import math
import os
import re
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, nullcontext
from pathlib import Path
from typing import Final

import attrs
import trio

from a2a_trio.cli.connect import Connect, PeerClient
from a2a_trio.cli.console import Console
from a2a_trio.cli.exits import UsageError
from a2a_trio.cli.settings import load
from a2a_trio.cli.tokens import given_token, variable_token
from a2a_trio.client.urls import base_url
from a2a_trio.config.schema import Settings
from a2a_trio.errors import PeerTimeoutError
from a2a_trio.peer.calling import client_for
from a2a_trio.peer.looking import look_for
from a2a_trio.peer.recording import recording
from a2a_trio.rules.addresses import Policy

_ADDRESS: Final = re.compile(r"[^/]*:[0-9]*(?:/.*)?")
"""A host with a port, which was meant to be a URL."""

SHORTEST_SEC: Final = 0.001
LONGEST_SEC: Final = 31_536_000.0
"""A year: what the settings allow for one answer, and what "for ever" is on the command line."""


def connection(namespace: argparse.Namespace, console: Console) -> Connect:
    """Return what opens the client of a command; everything about it is checked now.

    Raises:
        UsageError: the address or a token cannot be used.
        SettingsError: the settings are wrong.
    """
    loaded = load(namespace, console)
    settings = loaded.settings
    peer: str = namespace.peer
    check_address(peer, settings)
    given = given_token(namespace.token, namespace.token_file)
    return connector(
        peer,
        settings,
        token=token_for(peer, settings, os.environ, given),
        limit=namespace.timeout,
        home=loaded.home,
    )


def connector(
    peer: str,
    settings: Settings,
    *,
    token: str | None,
    limit: float | None = None,
    home: Path | None = None,
) -> Connect:
    """Return what opens the client of one command.

    Args:
        peer: a URL or the name of a peer in the settings.
        settings: timeouts, peers, identity.
        token: the token given for this very call, or None.
        limit: seconds for the whole command, 0 for no limit; None leaves it to the settings.
        home: the state folder, where the calls are recorded when the command ends; nothing is
            recorded if omitted.
    """
    if limit is not None:
        settings = _with_limit(settings, limit or LONGEST_SEC)

    @asynccontextmanager
    async def connect() -> AsyncIterator[PeerClient]:
        record = nullcontext() if home is None else recording(home, settings)
        with record as recorder, trio.move_on_after(limit or math.inf) as scope:
            found = await look_for(peer, settings, home)
            opened = client_for(peer, settings, token=token, found=found, recorder=recorder)
            async with opened as client:
                yield client
        if scope.cancelled_caught:
            raise PeerTimeoutError(f"{peer} did not answer within {limit:g} s", url=peer)

    return connect


def check_address(peer: str, settings: Settings) -> None:
    """Refuse an address that cannot be used; a name is looked up when the command runs.

    Raises:
        UsageError: the text says what to write instead.
    """
    known = settings.peers.get(peer)
    url = peer if known is None else known.url
    if known is None and "://" not in url:
        _check_name(peer)
        return
    try:
        base_url(url, Policy.OPERATOR)
    except ValueError as error:
        # A URL with user information holds a password.
        shown = "the URL" if "@" in url else peer
        raise UsageError(f"{shown}: {error}") from None


def _check_name(name: str) -> None:
    if not name or _ADDRESS.fullmatch(name):
        raise UsageError(
            f"{name!r} is neither a URL such as http://127.0.0.1:9910 nor the name of a peer"
        )


def token_for(
    peer: str, settings: Settings, environ: Mapping[str, str], given: str | None
) -> str | None:
    """Return the token that the operator gives for this very call, if any.

    A token on the command line goes to whatever was typed beside it. The variable goes to a typed
    URL, but not to a peer of the settings: there the settings decide.
    """
    if given is not None:
        return given
    return None if peer in settings.peers else variable_token(environ)


def _with_limit(settings: Settings, seconds: float) -> Settings:
    """Let no limit of the settings end a call before the one of the command line."""
    limit = min(max(seconds, SHORTEST_SEC), LONGEST_SEC)
    peers = {name: attrs.evolve(entry, timeout=limit) for name, entry in settings.peers.items()}
    timeouts = attrs.evolve(settings.timeouts, send=limit * 1000.0)
    return attrs.evolve(settings, timeouts=timeouts, peers=peers)
