"""Sockets: bind and listen, serve HTTP on one, stop within a bound."""

import errno
import logging
import socket
import ssl
from typing import TYPE_CHECKING, Final, cast, final

import trio
from hypercorn.app_wrappers import ASGIWrapper
from hypercorn.config import Config
from hypercorn.trio.worker_context import WorkerContext

from a2a_trio._groups import plain_errors
from a2a_trio.rules.ports import port_plan
from a2a_trio.server.connection import Connection

if TYPE_CHECKING:
    from hypercorn.typing import ASGIFramework

    from a2a_trio.server.asgi import AsgiApp

__all__ = ["MAX_CONNECTIONS", "bind", "serve_http", "tls_context"]

MAX_CONNECTIONS: Final = 2_000
"""Connections served at once; further ones are closed unread, so that no flood of connections
can exhaust memory or file descriptors."""

USER_TIMEOUT_MS: Final = 30_000
"""How long a client may leave sent bytes unacknowledged before its connection breaks. Covers
clients that vanished or stopped reading for good; Linux only."""

BACKLOG: Final = 512
_NURSERIES: Final = 4
"""How many nurseries, Trio's own included, a failing socket comes through."""
HEAD_BYTES: Final = 32 * 1024
"""A request's head up to this size is accepted; one that exceeds it by more than two reads of the
socket is answered 431 and in between it depends on how the bytes arrive."""

_log = logging.getLogger("a2a_trio.http")


def bind(host: str, port: int, fallback: int = 0) -> socket.socket:
    """Bind and listen on the first free port of the plan.

    Args:
        host: an address or name, IPv6 without brackets; the first address of a name is taken.
        port: the port wanted, 0 for any.
        fallback: how many following ports to try before any port of the system's choice.

    Returns:
        A listening socket that the caller owns; ``getsockname`` tells the port.

    Raises:
        OSError: no port of the plan is free, or the address cannot be bound.
    """
    infos = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    family, kind, proto, _, address = infos[0]
    taken: OSError | None = None
    for candidate in port_plan(port, fallback):
        sock = socket.socket(family, kind, proto)
        try:
            _set_options(sock)
            sock.bind((address[0], candidate, *address[2:]))
            # Two sockets with SO_REUSEADDR may both bind; only the first can listen.
            sock.listen(BACKLOG)
        except OSError as error:
            sock.close()
            if error.errno != errno.EADDRINUSE:
                raise
            taken = error
        else:
            return sock
    raise taken if taken is not None else OSError(errno.EADDRINUSE, "no port to try")


def _set_options(sock: socket.socket) -> None:
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    if sock.family is socket.AF_UNIX:
        return
    if hasattr(socket, "TCP_USER_TIMEOUT"):
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, USER_TIMEOUT_MS)


def tls_context(cert_file: str, key_file: str) -> ssl.SSLContext:
    """Return a server context that offers HTTP/1.1.

    Raises:
        OSError: a file cannot be read, or does not hold a certificate with its key
            (``ssl.SSLError`` is an OSError).
    """
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.load_cert_chain(cert_file, key_file)
    context.set_alpn_protocols(["http/1.1"])
    return context


async def serve_http(
    app: "AsgiApp | ASGIFramework",
    sock: socket.socket,
    *,
    shutdown: trio.Event,
    graceful: float = 1.0,
    tls: ssl.SSLContext | None = None,
    task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED,
) -> None:
    """Serve an ASGI application on a listening socket until told to stop.

    No lifespan is run: what the application needs is owned by whoever calls this.

    Args:
        app: the application.
        sock: a listening socket, owned by this function from now on.
        shutdown: once set, no connection is accepted, idle ones are closed, and requests have
            ``graceful`` seconds to finish.
        graceful: seconds; what then still runs is cancelled, and clients that do not read what was
            sent to them are cut off.
        tls: from ``tls_context``; None for plain HTTP.
        task_status: reports that connections are accepted.

    Raises:
        OSError: the socket failed.

    Cancellation: every connection is closed at once.
    """
    server = _Server(app, tls)
    listener = trio.SocketListener(trio.socket.from_stdlib_socket(sock))
    with plain_errors(levels=_NURSERIES):
        async with listener, trio.open_nursery() as handlers:
            try:
                handlers.start_soon(server.accept, listener, handlers)
                task_status.started()
                await shutdown.wait()
                server.stop_accepting()
                await listener.aclose()
                await server.drain(graceful)
            finally:
                handlers.cancel_scope.cancel()
                server.abort()


@final
class _Server:
    """The connections of one listener."""

    def __init__(self, app: "AsgiApp | ASGIFramework", tls: ssl.SSLContext | None) -> None:
        # Hypercorn has a type of its own for every ASGI event; ours are plain mappings.
        self._app: Final = ASGIWrapper(cast("ASGIFramework", app))
        self._tls: Final = tls
        self._config: Final = _config()
        self._context: Final = WorkerContext(None)
        self._connections: Final[set[Connection]] = set()
        self._empty = trio.Event()
        self._accepting: Final = trio.CancelScope()

    async def accept(self, listener: trio.SocketListener, handlers: trio.Nursery) -> None:
        """Accept connections; each is a child of ``handlers``."""
        with self._accepting:
            await trio.serve_listeners(self._handle, [listener], handler_nursery=handlers)

    def stop_accepting(self) -> None:
        """Leave further connections to whoever else listens."""
        self._accepting.cancel()

    async def _handle(self, stream: trio.SocketStream) -> None:
        """Serve one connection; an exception of it never reaches the others."""
        if len(self._connections) >= MAX_CONNECTIONS:
            await trio.aclose_forcefully(stream)
            return
        secured = (
            stream
            if self._tls is None
            else trio.SSLStream(stream, self._tls, server_side=True, https_compatible=True)
        )
        connection = Connection(self._app, self._config, self._context, secured)
        self._connections.add(connection)
        try:
            await connection.run()
        except Exception:  # noqa: BLE001 - one connection's defect is logged and ends there
            _log.exception("connection failed")
        finally:
            self._connections.discard(connection)
            if not self._connections:
                self._empty.set()

    async def drain(self, graceful: float) -> None:
        """Close what is idle and wait, at most ``graceful`` seconds, for the rest."""
        await self._context.terminated.set()
        self._empty = trio.Event()
        if not self._connections:
            return
        for connection in tuple(self._connections):
            connection.drain()
        with trio.move_on_after(graceful):
            await self._empty.wait()

    def abort(self) -> None:
        """Cut every connection."""
        for connection in tuple(self._connections):
            connection.abort()


def _config() -> Config:
    config = Config()
    config.accesslog = None  # the audit log has every call
    config.errorlog = _log
    config.include_server_header = False
    config.keep_alive_max_requests = 2**63  # a connection has no reason to end
    config.h11_max_incomplete_size = HEAD_BYTES
    return config
