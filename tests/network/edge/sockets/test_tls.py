"""HTTPS: the certificate of the settings, and clients that do not finish the handshake."""

import ssl
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import pytest
import trio

from a2a_trio.server import connection
from a2a_trio.server.asgi import AsgiApp
from a2a_trio.server.listen import bind, serve_http, tls_context

trustme = pytest.importorskip("trustme", reason="makes the certificates of these tests")


@pytest.fixture
def authority(tmp_path: Path) -> Any:
    """Write a certificate for localhost and return who signed it."""
    authority = trustme.CA()
    certificate = authority.issue_cert("localhost")
    certificate.private_key_pem.write_to_path(str(tmp_path / "key.pem"))
    for pem in certificate.cert_chain_pems:
        pem.write_to_path(str(tmp_path / "cert.pem"), append=True)
    return authority


async def test_calls_over_tls(
    edge: Any, authority: Any, tmp_path: Path, nursery: trio.Nursery
) -> None:
    tls = tls_context(str(tmp_path / "cert.pem"), str(tmp_path / "key.pem"))
    sock = bind("127.0.0.1", 0)
    url = f"https://localhost:{sock.getsockname()[1]}"
    shutdown = trio.Event()
    await nursery.start(
        partial(serve_http, AsgiApp(edge.endpoint), sock, shutdown=shutdown, tls=tls)
    )
    trusting = ssl.create_default_context()
    authority.configure_trust(trusting)
    async with httpx.AsyncClient(verify=trusting, base_url=url) as client:
        for _ in range(3):
            assert (await client.get("/health")).json()["status"] == "ok"
        answer = await client.post("/", content=b"x" * 100, headers={"content-type": "text/plain"})
        assert answer.status_code == 415
        params = {"message": {"messageId": "m", "role": "ROLE_USER", "parts": [{"text": "x"}]}}
        call = {"jsonrpc": "2.0", "id": 1, "method": "SendStreamingMessage", "params": params}
        async with client.stream("POST", "/", json=call) as stream:
            text = "".join([piece async for piece in stream.aiter_text()])
        assert text.count("data: ") == 3
        started = trio.current_time()
        shutdown.set()
    assert trio.current_time() - started < 2


async def test_a_handshake_that_stalls_ends(
    edge: Any,
    authority: Any,  # noqa: ARG001 - its files are used
    tmp_path: Path,
    nursery: trio.Nursery,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(connection, "HEAD_TIMEOUT", 0.1)
    tls = tls_context(str(tmp_path / "cert.pem"), str(tmp_path / "key.pem"))
    sock = bind("127.0.0.1", 0)
    port = sock.getsockname()[1]
    shutdown = trio.Event()
    await nursery.start(
        partial(serve_http, AsgiApp(edge.endpoint), sock, shutdown=shutdown, tls=tls)
    )
    for start in (b"", b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"):
        stream = await trio.open_tcp_stream("127.0.0.1", port)
        async with stream:
            if start:
                await stream.send_all(start)
            with trio.fail_after(5):
                assert b"HTTP" not in await stream.receive_some()
    shutdown.set()


def test_files_that_are_no_certificate_are_an_oserror(tmp_path: Path) -> None:
    (tmp_path / "x.pem").write_text("nothing")
    with pytest.raises(OSError, match=r"."):
        tls_context(str(tmp_path / "x.pem"), str(tmp_path / "x.pem"))
    with pytest.raises(FileNotFoundError):
        tls_context(str(tmp_path / "none.pem"), str(tmp_path / "none.pem"))
