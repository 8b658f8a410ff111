"""An entry of the file registry: what a peer tells the other programs of its user about itself.

The form is shared with other implementations, which write more members than are read here. A file
may have been written by any program of the user, so nothing in it is taken as it is.
"""

from typing import Final, final

import attrs

from a2a_trio.errors import ProtocolError
from a2a_trio.rules.directory import FoundPeer, Source, is_callable, shown, shown_items, skill_names
from a2a_trio.wire.json_text import dumps, loads
from a2a_trio.wire.model import JsonValue

__all__ = ["RegistryEntry", "read_entry", "write_entry"]

MAX_PID: Final = 2**31 - 1


@final
@attrs.frozen(kw_only=True)
class RegistryEntry:
    """What a peer says about itself."""

    pid: int
    url: str
    """Where this machine reaches it."""
    port: int
    host: str
    cwd: str
    model: str = ""
    agent_name: str = ""
    session_name: str = ""
    self_identity: str = ""
    tools: tuple[str, ...] = ()
    skills: tuple[str, ...] = ()
    started_at: str = ""
    """ISO 8601 in UTC."""


def write_entry(entry: RegistryEntry, *, at_ms: int) -> bytes:
    """Return the content of the entry's file.

    Args:
        entry: the entry.
        at_ms: milliseconds since the epoch; readers go by the file's own time.
    """
    return dumps(
        {
            "pid": entry.pid,
            "url": entry.url,
            "port": entry.port,
            "host": entry.host,
            "cwd": entry.cwd,
            "model": entry.model or None,
            "agentName": entry.agent_name,
            "sessionName": entry.session_name,
            "selfIdentity": entry.self_identity,
            "tools": list(entry.tools),
            "skills": list(entry.skills),
            "startedAt": entry.started_at,
            "mtime": at_ms,
        }
    )


def read_entry(content: bytes) -> FoundPeer | None:
    """Return the peer of a file, its texts cleaned; None if it tells of nobody who can be called."""
    try:
        value = loads(content)
    except ProtocolError:
        return None
    if not isinstance(value, dict):
        return None
    pid, url = value.get("pid"), value.get("url")
    if not isinstance(pid, int) or isinstance(pid, bool) or not 0 < pid <= MAX_PID:
        return None
    if not isinstance(url, str) or not is_callable(url):
        return None
    return FoundPeer(
        name=shown(value.get("agentName")) or shown(value.get("sessionName")) or f"pid:{pid}",
        url=url,
        source=Source.LOCAL,
        cwd=shown(value.get("cwd")),
        model=_model(value.get("model")),
        tools=shown_items(value.get("tools")),
        capabilities=skill_names(value.get("skills")),
        pid=pid,
    )


def _model(value: JsonValue) -> str:
    """Return a model that is a text, or an object with a provider and an id."""
    if not isinstance(value, dict):
        return shown(value)
    return "/".join(filter(None, (shown(value.get("provider")), shown(value.get("id")))))
