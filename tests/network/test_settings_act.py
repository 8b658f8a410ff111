"""Settings that only a real socket or a real folder can show to act."""

from pathlib import Path
from typing import Final

import pytest
import trio

from a2a_trio import (
    PeerUnreachableError,
    ServerSettings,
    Settings,
    UnauthorizedError,
    echo,
    open_peer,
    open_server,
)
from a2a_trio.client.client import open_client
from a2a_trio.config.schema import PeerAuth, PeerSettings

trustme = pytest.importorskip("trustme", reason="makes the certificates of these tests")

LIMIT: Final = 60.0
"""Seconds after which a test counts as hanging."""
TOKEN: Final = "a-shared-token-1234"


@pytest.fixture
def certificate(tmp_path: Path) -> dict[str, str]:
    """Write a certificate that nobody vouches for and return the settings that use it."""
    issued = trustme.CA().issue_cert("127.0.0.1")
    issued.private_key_pem.write_to_path(str(tmp_path / "key.pem"))
    for pem in issued.cert_chain_pems:
        pem.write_to_path(str(tmp_path / "cert.pem"), append=True)
    return {
        "tls_cert_file": str(tmp_path / "cert.pem"),
        "tls_key_file": str(tmp_path / "key.pem"),
    }


async def test_tls_files_and_verify_ssl(certificate: dict[str, str]) -> None:
    """The files make it https, and only who does not verify believes that certificate."""
    server = ServerSettings(port=0, **certificate)  # type: ignore[arg-type] # two file names
    with trio.fail_after(LIMIT):
        async with open_server(echo, Settings(server=server)) as opened:
            assert opened.url.startswith("https://127.0.0.1:")
            for verify in (True, False):
                calling = Settings(verify_ssl=verify, server=ServerSettings(port=0))
                async with open_peer(echo, calling) as peer, peer.client(opened.url) as client:
                    if verify:
                        with pytest.raises(PeerUnreachableError, match="not trusted"):
                            await client.send("hello")
                    else:
                        assert (await client.send("hello")).text == "hello"


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1"])
async def test_without_a_token_only_loopback_is_bound_whatever_the_host(host: str) -> None:
    """It says so, and the card names the address that was bound."""
    settings = Settings(server=ServerSettings(host=host, port=0))
    with trio.fail_after(LIMIT):
        async with open_server(echo, settings) as server:
            (warning,) = server.warnings
            assert "no token" in warning
            assert host in warning
            assert server.url == f"http://127.0.0.1:{server.port}/"
            async with open_client(server.url) as client:
                assert (await client.send("hello")).text == "hello"


async def test_a_wildcard_with_a_token_is_bound_and_warned_about() -> None:
    """Plain HTTP on every interface is allowed, said, and never advertised."""
    settings = Settings(server=ServerSettings(host="0.0.0.0", port=0, shared_token=TOKEN))
    with trio.fail_after(LIMIT):
        async with open_server(echo, settings) as server:
            (warning,) = server.warnings
            assert "plain HTTP" in warning
            assert "0.0.0.0" not in server.url


async def test_port_and_fallback() -> None:
    """A busy port gives way to the next ones, and without a fallback to any."""
    with trio.fail_after(LIMIT):
        async with open_server(echo, Settings(server=ServerSettings(port=0))) as first:
            busy = first.port
            wanted = ServerSettings(port=busy, port_fallback=5)
            async with open_server(echo, Settings(server=wanted)) as second:
                assert second.port != busy
                assert str(second.port) in second.url


def audit_files(home: Path) -> list[str]:
    return sorted(path.name for path in home.glob("a2a_audit.jsonl*"))


async def test_audit_size_and_number_of_files(tmp_path: Path) -> None:
    """The log is rotated at its size, and so many older files stay."""
    server = ServerSettings(port=0, audit_max_bytes=4096, audit_keep=2)
    with trio.fail_after(LIMIT):
        async with (
            open_server(echo, Settings(server=server), home=tmp_path) as opened,
            open_client(opened.url) as client,
        ):
            for number in range(60):
                await client.send(f"{number}: " + "word " * 60)
    assert audit_files(tmp_path) == ["a2a_audit.jsonl", "a2a_audit.jsonl.1", "a2a_audit.jsonl.2"]


@pytest.mark.parametrize(
    ("auth", "heard"),
    [
        (PeerAuth(token=TOKEN), True),
        (PeerAuth(type="none"), False),
        (PeerAuth(), False),
    ],
)
async def test_token_of_a_configured_peer(auth: PeerAuth, *, heard: bool) -> None:
    """A peer that is called by its name gets the token of its entry."""
    secured = Settings(server=ServerSettings(port=0, shared_token=TOKEN))
    with trio.fail_after(LIMIT):
        async with open_server(echo, secured) as opened:
            entry = PeerSettings(url=opened.url, auth=auth)
            calling = Settings(peers={"other": entry}, server=ServerSettings(port=0))
            async with open_peer(echo, calling) as me, me.client("other") as client:
                if heard:
                    assert (await client.send("hello")).text == "hello"
                else:
                    with pytest.raises(UnauthorizedError):
                        await client.send("hello")
