"""Sockets: ports, hand-over, keep-alive, half-close, stopping."""

import errno
import socket
from collections.abc import Awaitable, Callable
from typing import Any, cast

import pytest
import trio
from hypercorn.typing import ASGIFramework

from a2a_trio.server import listen
from a2a_trio.server.listen import bind, serve_http

Event = dict[str, Any]
Receive = Callable[[], Awaitable[Event]]
Send = Callable[[Event], Awaitable[None]]
Plain = Callable[[dict[str, Any], Receive, Send], Awaitable[None]]

GET = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n"


def app(plain: Plain) -> ASGIFramework:
    return cast("ASGIFramework", plain)


@app
async def hello(scope: dict[str, Any], receive: Receive, send: Send) -> None:
    while (await receive())["more_body"]:
        pass
    body = scope["http_version"].encode()
    length = str(len(body)).encode()
    await send(
        {"type": "http.response.start", "status": 200, "headers": [(b"content-length", length)]}
    )
    await send({"type": "http.response.body", "body": body})


# --- binding --------------------------------------------------------------------------------


def test_a_busy_port_gives_way_to_the_next_then_to_any() -> None:
    with bind("127.0.0.1", 0) as first:
        port = first.getsockname()[1]
        with bind("127.0.0.1", port, 1) as second, bind("127.0.0.1", port, 0) as third:
            taken = {port, second.getsockname()[1], third.getsockname()[1]}
            assert len(taken) == 3
            assert second.getsockname()[1] == port + 1 or second.getsockname()[1] != port


def test_an_address_that_is_not_ours_is_a_plain_oserror() -> None:
    with pytest.raises(OSError, match=r".") as caught:
        bind("192.0.2.1", 0)
    assert caught.value.errno == errno.EADDRNOTAVAIL


@pytest.mark.skipif(not socket.has_ipv6, reason="needs IPv6")
def test_ipv6_loopback_can_be_bound() -> None:
    with bind("::1", 0) as sock:
        assert sock.family is socket.AF_INET6
        assert sock.getsockname()[0] == "::1"


@pytest.mark.skipif(not hasattr(socket, "TCP_USER_TIMEOUT"), reason="needs Linux")
def test_vanished_clients_are_bounded_by_the_kernel() -> None:
    with bind("127.0.0.1", 0) as sock:
        timeout = sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT)
        assert timeout == listen.USER_TIMEOUT_MS


async def test_a_socket_that_fails_while_serving_is_a_plain_oserror(
    nursery: trio.Nursery,
) -> None:
    sock = bind("127.0.0.1", 0)
    twin = sock.dup()
    started = trio.Event()

    async def fail_soon() -> None:
        await started.wait()
        twin.shutdown(socket.SHUT_RDWR)  # the listener no longer accepts
        twin.close()

    class Started(trio.TaskStatus[None]):
        def started(self, value: None = None) -> None:
            assert value is None
            started.set()

    nursery.start_soon(fail_soon)
    with trio.fail_after(5), pytest.raises(OSError, match="Invalid argument"):
        await serve_http(hello, sock, shutdown=trio.Event(), task_status=Started())
