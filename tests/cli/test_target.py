"""Whom a command calls, with which token, and for how long."""

import pytest
import trio

from a2a_trio import PeerTimeoutError, Settings
from a2a_trio.cli.exits import UsageError
from a2a_trio.cli.target import check_address, connector, token_for
from a2a_trio.config.schema import PeerAuth, PeerSettings

RESEARCHER = PeerSettings(
    url="http://127.0.0.1:9999", auth=PeerAuth(token="token-of-the-researcher")
)
SETTINGS = Settings(peers={"researcher": RESEARCHER})
VARIABLE = {"A2A_BEARER_TOKEN": "token-of-the-variable"}


def test_given_token_goes_to_whatever_was_typed() -> None:
    """The operator wrote both on one line."""
    assert token_for("researcher", SETTINGS, VARIABLE, "given") == "given"
    assert token_for("http://127.0.0.1:1", SETTINGS, {}, "given") == "given"


def test_variable_goes_to_typed_addresses_only() -> None:
    """A configured peer gets its own token, never that of another one."""
    assert token_for("http://127.0.0.1:1", SETTINGS, VARIABLE, None) == "token-of-the-variable"
    assert token_for("researcher", SETTINGS, VARIABLE, None) is None
    assert token_for("http://127.0.0.1:1", SETTINGS, {}, None) is None


@pytest.mark.parametrize(
    "peer",
    ["researcher", "somebody", "gw/lab/reader", "http://127.0.0.1:9910", "https://example.org/a"],
)
def test_names_and_addresses_are_accepted(peer: str) -> None:
    """A peer is a URL or a name, which is looked up when the command runs."""
    check_address(peer, SETTINGS)


@pytest.mark.parametrize(
    ("peer", "text"),
    [
        ("127.0.0.1:9910", "neither a URL"),
        ("", "neither a URL"),
        ("ftp://127.0.0.1", "http"),
        ("http://", "http://"),
        ("http://127.0.0.1:99999", "99999"),
        ("http://user:secret@127.0.0.1", "user information"),
    ],
)
def test_other_words_are_refused_with_a_hint(peer: str, text: str) -> None:
    """The text says what to write instead."""
    with pytest.raises(UsageError) as caught:
        check_address(peer, SETTINGS)

    assert text in str(caught.value)
    assert "secret" not in str(caught.value)


async def test_limit_ends_the_whole_command(autojump_clock: trio.abc.Clock) -> None:
    """Whatever a command does with its client, it is over after --timeout seconds."""
    del autojump_clock
    connect = connector("http://127.0.0.1:9", SETTINGS, token=None, limit=5)

    with pytest.raises(PeerTimeoutError, match="within 5 s"):
        async with connect():
            await trio.sleep_forever()


async def test_no_limit_waits(autojump_clock: trio.abc.Clock) -> None:
    """0 is no limit."""
    del autojump_clock
    connect = connector("http://127.0.0.1:9", SETTINGS, token=None, limit=0)

    async with connect():
        await trio.sleep(80_000)
