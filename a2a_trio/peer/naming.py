"""What this peer is called where no setting says so."""

import socket

from a2a_trio.config.schema import Settings

__all__ = ["agent_name"]


def agent_name(settings: Settings) -> str:
    """Return the name on the card: the setting, else this machine's short host name."""
    if settings.server.agent_name:
        return settings.server.agent_name
    return socket.gethostname().lower().removesuffix(".local").removesuffix(".lan") or "a2a-trio"
