"""A Trio structured-concurrency peer for the Agent2Agent (A2A) protocol v1.0.

Names are loaded when they are first used, so importing the package costs next to nothing and a
program that only calls agents never loads a server.
"""

from collections.abc import Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Final

from a2a_trio._version import __version__

if TYPE_CHECKING:
    from a2a_trio.agents.built_in import echo as echo
    from a2a_trio.agents.contract import (
        Agent as Agent,
        InputRequired as InputRequired,
        TaskContext as TaskContext,
    )
    from a2a_trio.client.client import Client as Client, open_client as open_client
    from a2a_trio.client.options import ClientOptions as ClientOptions
    from a2a_trio.client.reply import Reply as Reply
    from a2a_trio.config.schema import Settings as Settings
    from a2a_trio.config.server_schema import ServerSettings as ServerSettings
    from a2a_trio.errors import (
        A2AError as A2AError,
        ContentTypeNotSupportedError as ContentTypeNotSupportedError,
        DecodeError as DecodeError,
        InvalidParamsError as InvalidParamsError,
        InvalidTransitionError as InvalidTransitionError,
        PeerError as PeerError,
        PeerProtocolError as PeerProtocolError,
        PeerTimeoutError as PeerTimeoutError,
        PeerUnreachableError as PeerUnreachableError,
        ProtocolError as ProtocolError,
        RateLimitedError as RateLimitedError,
        RemoteError as RemoteError,
        ServerBusyError as ServerBusyError,
        SettingsError as SettingsError,
        TaskNotCancelableError as TaskNotCancelableError,
        TaskNotFoundError as TaskNotFoundError,
        UnauthorizedError as UnauthorizedError,
        UnsupportedOperationError as UnsupportedOperationError,
        VersionNotSupportedError as VersionNotSupportedError,
    )
    from a2a_trio.peer.app import create_app as create_app
    from a2a_trio.peer.peer import Peer as Peer, open_peer as open_peer, serve as serve
    from a2a_trio.peer.serving import Server as Server, open_server as open_server
    from a2a_trio.wire.agent_card import AgentCard as AgentCard, AgentSkill as AgentSkill
    from a2a_trio.wire.model import (
        Artifact as Artifact,
        Message as Message,
        Part as Part,
        Role as Role,
        StreamEvent as StreamEvent,
        Task as Task,
        TaskArtifactUpdateEvent as TaskArtifactUpdateEvent,
        TaskState as TaskState,
        TaskStatus as TaskStatus,
        TaskStatusUpdateEvent as TaskStatusUpdateEvent,
    )

_MODULES: Final[Mapping[str, tuple[str, ...]]] = {
    "agents.contract": ("Agent", "InputRequired", "TaskContext"),
    "agents.built_in": ("echo",),
    "client.client": ("Client", "open_client"),
    "client.options": ("ClientOptions",),
    "client.reply": ("Reply",),
    "config.schema": ("Settings",),
    "config.server_schema": ("ServerSettings",),
    "errors": (
        "A2AError",
        "ContentTypeNotSupportedError",
        "DecodeError",
        "InvalidParamsError",
        "InvalidTransitionError",
        "PeerError",
        "PeerProtocolError",
        "PeerTimeoutError",
        "PeerUnreachableError",
        "ProtocolError",
        "RateLimitedError",
        "RemoteError",
        "ServerBusyError",
        "SettingsError",
        "TaskNotCancelableError",
        "TaskNotFoundError",
        "UnauthorizedError",
        "UnsupportedOperationError",
        "VersionNotSupportedError",
    ),
    "peer.peer": ("Peer", "open_peer", "serve"),
    "peer.app": ("create_app",),
    "peer.serving": ("Server", "open_server"),
    "wire.agent_card": ("AgentCard", "AgentSkill"),
    "wire.model": (
        "Artifact",
        "Message",
        "Part",
        "Role",
        "StreamEvent",
        "Task",
        "TaskArtifactUpdateEvent",
        "TaskState",
        "TaskStatus",
        "TaskStatusUpdateEvent",
    ),
}
_HOME: Final[Mapping[str, str]] = {
    name: module for module, names in _MODULES.items() for name in names
}

__all__ = [
    "A2AError",
    "Agent",
    "AgentCard",
    "AgentSkill",
    "Artifact",
    "Client",
    "ClientOptions",
    "ContentTypeNotSupportedError",
    "DecodeError",
    "InputRequired",
    "InvalidParamsError",
    "InvalidTransitionError",
    "Message",
    "Part",
    "Peer",
    "PeerError",
    "PeerProtocolError",
    "PeerTimeoutError",
    "PeerUnreachableError",
    "ProtocolError",
    "RateLimitedError",
    "RemoteError",
    "Reply",
    "Role",
    "Server",
    "ServerBusyError",
    "ServerSettings",
    "Settings",
    "SettingsError",
    "StreamEvent",
    "Task",
    "TaskArtifactUpdateEvent",
    "TaskContext",
    "TaskNotCancelableError",
    "TaskNotFoundError",
    "TaskState",
    "TaskStatus",
    "TaskStatusUpdateEvent",
    "UnauthorizedError",
    "UnsupportedOperationError",
    "VersionNotSupportedError",
    "__version__",
    "create_app",
    "echo",
    "open_client",
    "open_peer",
    "open_server",
    "serve",
]


if not TYPE_CHECKING:  # a type checker must see that a misspelt name is one

    def __getattr__(name: str) -> object:
        """Load a public name on first use (PEP 562)."""
        module = _HOME.get(name)
        if module is None:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        value: object = getattr(import_module(f"a2a_trio.{module}"), name)
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    return sorted(__all__)
