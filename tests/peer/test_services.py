"""A service of ours that crashes ends the server with its own error, plain."""

from pathlib import Path

import pytest
import trio

from a2a_trio import ServerSettings, Settings, echo, open_client, open_server
from a2a_trio.journal.service import Journal

SETTINGS = Settings(server=ServerSettings(port=0))


class BoomError(Exception):
    """What the broken service raises."""


async def serve_and_call(home: Path | None) -> None:
    async with open_server(echo, SETTINGS, home=home) as server:
        async with open_client(server.url) as client:
            await client.send("hello")
        await trio.sleep_forever()


async def test_a_crash_of_the_journal_ends_the_server_plainly(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def broken(_journal: Journal, *_arguments: object) -> None:
        raise BoomError("the writer is broken")

    monkeypatch.setattr(Journal, "_write", broken)
    with trio.fail_after(20), pytest.raises(BoomError, match="the writer is broken"):
        await serve_and_call(tmp_path)


async def test_a_crash_of_the_listener_ends_the_server_plainly(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def broken(*_arguments: object, **_options: object) -> None:
        await trio.lowlevel.checkpoint()
        raise OSError("the socket is gone")

    monkeypatch.setattr(trio, "serve_listeners", broken)
    with trio.fail_after(20), pytest.raises(OSError, match="the socket is gone"):
        async with open_server(echo, SETTINGS):
            await trio.sleep_forever()


async def test_what_the_block_raises_comes_out_as_it_is() -> None:
    with pytest.raises(KeyError, match="mine"):
        async with open_server(echo, SETTINGS):
            raise KeyError("mine")
