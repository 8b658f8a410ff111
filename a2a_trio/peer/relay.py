"""Answering what a gateway's reverse channel brings: the server's own endpoint, in-process."""

from typing import Final

from a2a_trio.discovery.channel import Dispatch
from a2a_trio.peer.serving import Handler
from a2a_trio.rules.channel import ChannelRequest, ChannelResponse
from a2a_trio.server.http import EventStream, Headers, HttpRequest, body_of

__all__ = ["relay"]

MAX_ANSWER_BYTES: Final = 4 * 1024 * 1024
"""Bytes of an event stream that are collected; the channel carries whole answers, and refuses
long before this. A longer stream is cut: its caller sees no end and can subscribe again."""

_REPLACED: Final = frozenset({"host", "authorization", "content-length", "transfer-encoding"})


def relay(handler: Handler, *, authority: str, token: str, rpc_path: str = "/") -> Dispatch:
    """Return what answers a gateway's requests as if it had connected itself.

    Args:
        handler: the endpoint.
        authority: the ``Host`` that this server answers to.
        token: the credential that names the gateway; what the caller sent for itself is dropped, as
            the gateway does when it connects.
        rpc_path: where calls are answered. Callers through a gateway see no card that would tell, so
            what they post to the root means this.
    """
    own = (("host", authority), ("authorization", f"Bearer {token}"))

    async def dispatch(request: ChannelRequest) -> ChannelResponse:
        kept = (pair for pair in request.headers if pair[0].lower() not in _REPLACED)
        method = request.method.upper()
        called = method == "POST" and request.path == "/"
        response = await handler(
            HttpRequest(
                method=method,
                path=rpc_path if called else request.path,
                query=request.query,
                headers=Headers((*kept, *own)),
                receive_body=body_of(request.body),
            )
        )
        return ChannelResponse(
            status=response.status, headers=response.headers, body=await _whole(response.body)
        )

    return dispatch


async def _whole(body: bytes | EventStream) -> bytes:
    if isinstance(body, bytes):
        return body
    collected = bytearray()
    try:
        async for piece in body:
            collected += piece
            if len(collected) > MAX_ANSWER_BYTES:
                break
    finally:
        body.close()
    return bytes(collected)
