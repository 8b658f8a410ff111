"""Whom a credential goes to, in which form, and what a call does not need to load."""

import subprocess
import sys
from typing import Any, Final

import pytest

from a2a_trio import ServerSettings, Settings, SettingsError
from a2a_trio.client.client import open_client
from a2a_trio.config.schema import FilterSettings, PeerAuth, PeerSettings
from a2a_trio.peer.calling import call_for
from a2a_trio.rules.directory import FoundPeer, Source
from a2a_trio.testing.fake_peer import FakePeer, Result
from a2a_trio.wire.model import Task, TaskState, TaskStatus

OWN: Final = "our-own-token-0123456789"
THEIRS: Final = "their-token-0123456789"
GIVEN: Final = "given-token-0123456789"
LOCAL: Final = "http://127.0.0.1:9999"
REMOTE: Final = "https://agents.example"
DONE: Final = Task(id="t", context_id="c", status=TaskStatus(state=TaskState.COMPLETED))
API_KEY: Final = PeerAuth(type="apiKey", token=THEIRS)


def settings(peers: dict[str, PeerSettings]) -> Settings:
    return Settings(peers=peers, server=ServerSettings(shared_token=OWN, agent_name="me"))


async def authorization(
    peer: str,
    given: Settings,
    token: str | None = None,
    directory: tuple[FoundPeer, ...] = (),
) -> str:
    """Return the header that really leaves."""
    call = call_for(peer, given, token=token, found=directory)
    fake = FakePeer(url=call.url)
    fake.answers("SendMessage", Result(DONE))
    async with open_client(
        call.url, token=call.token, options=call.options, transport=fake.transport
    ) as client:
        await client.send("hello")
    return fake.called("SendMessage")[0].headers.get("authorization", "")


@pytest.mark.parametrize(
    ("entry", "sent"),
    [
        ({"url": LOCAL}, f"Bearer {OWN}"),
        ({"url": "http://localhost:9999"}, f"Bearer {OWN}"),
        ({"url": "http://[::1]:9999"}, f"Bearer {OWN}"),
        ({"url": "http://127.1.2.3:9999"}, f"Bearer {OWN}"),
        ({"url": REMOTE}, ""),
        ({"url": "http://192.168.1.7:9999"}, ""),
        ({"url": "http://localhost.example:9999"}, ""),
        ({"url": "http://127.0.0.1.example:9999"}, ""),
        ({"url": REMOTE, "auth": PeerAuth(token=THEIRS)}, f"Bearer {THEIRS}"),
        ({"url": LOCAL, "auth": PeerAuth(token=THEIRS)}, f"Bearer {THEIRS}"),
        ({"url": REMOTE, "auth": API_KEY}, f"ApiKey {THEIRS}"),
        ({"url": LOCAL, "auth": PeerAuth(type="apiKey")}, ""),
        ({"url": LOCAL, "auth": PeerAuth(type="none")}, ""),
        ({"url": LOCAL, "auth": PeerAuth(type="none", token=THEIRS)}, ""),
        ({"url": LOCAL, "from_project": True}, ""),
        ({"url": LOCAL, "auth": PeerAuth(token=THEIRS), "from_project": True}, ""),
        ({"url": LOCAL, "auth": API_KEY, "from_project": True}, ""),
    ],
)
async def test_who_gets_which_credential(entry: dict[str, Any], sent: str) -> None:
    """By name and by the address of the entry alike."""
    known = settings({"other": PeerSettings(**entry)})
    assert await authorization("other", known) == sent
    assert await authorization(entry["url"], known) == sent


async def test_an_address_that_is_not_configured_gets_nothing() -> None:
    """Not even on this machine: its port may be anybody's."""
    known = settings({"other": PeerSettings(url=LOCAL)})
    assert await authorization("http://127.0.0.1:9998", known) == ""
    assert await authorization("http://localhost:9999", known) == ""


async def test_the_operators_entry_counts_where_a_project_names_the_same_address() -> None:
    """A checked-out repository can neither get a token nor keep it from where it belongs."""
    known = settings(
        {
            "a": PeerSettings(url=LOCAL, from_project=True),
            "b": PeerSettings(url=LOCAL, auth=PeerAuth(token=THEIRS)),
        }
    )
    assert await authorization(LOCAL, known) == f"Bearer {THEIRS}"
    assert await authorization("a", known) == ""


def found(name: str, url: str, source: Source, token: str = "") -> FoundPeer:
    return FoundPeer(name=name, url=url, source=source, token=token)


LAN: Final = "http://192.168.1.7:9999"
FOUND: Final = (
    found("near", LOCAL, Source.LOCAL),
    found("odd", LAN, Source.LOCAL),
    found("lan", LAN, Source.MDNS),
    found("here", LOCAL, Source.MDNS),
    found("gw/lab/far", "http://127.0.0.1:9920/peer/far/", Source.GATEWAY, THEIRS),
)


@pytest.mark.parametrize(
    ("peer", "sent"),
    [
        ("near", f"Bearer {OWN}"),
        ("odd", ""),
        ("lan", ""),
        ("here", ""),
        ("gw/lab/far", f"Bearer {THEIRS}"),
        (LOCAL, f"Bearer {OWN}"),
        (LAN, ""),
        ("http://127.0.0.1:9920/peer/far/", ""),
        ("http://localhost:9999", ""),
        ("http://127.0.0.1:9998", ""),
    ],
)
async def test_which_credential_a_found_peer_gets(peer: str, sent: str) -> None:
    """This peer's own for the registry of this machine, the gateway's behind one; else none."""
    assert await authorization(peer, settings({}), directory=FOUND) == sent
    assert await authorization(peer, settings({}), GIVEN, directory=FOUND) == f"Bearer {GIVEN}"


async def test_peer_of_a_project_gets_nothing_although_it_was_found() -> None:
    """A repository that names this machine's peers is still a repository."""
    known = settings({"mine": PeerSettings(url=LOCAL, from_project=True)})
    assert await authorization("mine", known, directory=FOUND) == ""
    assert await authorization(LOCAL, known, directory=FOUND) == ""


async def test_settings_come_before_what_was_found() -> None:
    """By name and by address."""
    entry = PeerSettings(url=REMOTE, auth=PeerAuth(token=THEIRS))
    known = settings({"near": entry})
    assert call_for("near", known, found=FOUND).url == REMOTE
    assert await authorization("near", known, directory=FOUND) == f"Bearer {THEIRS}"


def test_name_that_several_have_is_refused() -> None:
    """With their addresses; a name that nobody has tells who there is, up to a number."""
    twins = (found("twin", LOCAL, Source.MDNS), found("twin", LAN, Source.MDNS))
    with pytest.raises(SettingsError, match=f"{LOCAL}, {LAN}"):
        call_for("twin", settings({}), found=twins)
    many = [found(f"peer-{n:03}", f"http://h:{n}/", Source.MDNS) for n in range(1, 100)]
    with pytest.raises(SettingsError, match=r"known: peer-001, .*peer-020 and 79 more\)"):
        call_for("nobody", settings({}), found=many)


def test_card_of_a_peer_behind_a_gateway_is_not_asked() -> None:
    """The address in it would lead past the gateway."""
    assert not call_for("gw/lab/far", settings({}), found=FOUND).options.use_card
    assert call_for("near", settings({}), found=FOUND).options.use_card


@pytest.mark.parametrize(
    ("auth", "sent"),
    [
        (PeerAuth(), f"Bearer {GIVEN}"),
        (PeerAuth(type="none"), f"Bearer {GIVEN}"),
        (API_KEY, f"ApiKey {GIVEN}"),
    ],
)
async def test_a_token_for_this_very_call_comes_first(auth: PeerAuth, sent: str) -> None:
    """In the way that the peer expects."""
    known = settings({"other": PeerSettings(url=REMOTE, auth=auth)})
    assert await authorization("other", known, GIVEN) == sent


async def test_an_api_key_does_not_follow_the_card_to_another_origin() -> None:
    """As a bearer token does not: it is for the configured origin."""
    known = settings({"other": PeerSettings(url=LOCAL, auth=API_KEY)})
    call = call_for("other", known)
    assert call.token is None
    assert dict(call.options.headers) == {"Authorization": f"ApiKey {THEIRS}"}


@pytest.mark.parametrize(
    ("filters", "entry", "redacted"),
    [
        (True, {}, True),
        (False, {}, False),
        (True, {"redact_outbound": False}, False),
        (False, {"redact_outbound": True}, True),
        (True, {"redact_outbound": False, "from_project": True}, True),
    ],
)
def test_whose_messages_are_redacted(
    *, filters: bool, entry: dict[str, Any], redacted: bool
) -> None:
    """The entry counts more than the setting, unless a project file wrote it."""
    known = Settings(
        peers={"other": PeerSettings(url=LOCAL, **entry)},
        filters=FilterSettings(redact_outbound=filters),
    )
    secret = "ghp_" + "a1B2" * 9
    assert (secret not in call_for("other", known).options.redact(secret)) is redacted


def test_an_unknown_name_is_refused_with_those_that_are_known() -> None:
    """So that a typing error is seen."""
    known = settings({"other": PeerSettings(url=LOCAL)})
    with pytest.raises(SettingsError, match="known: other"):
        call_for("othr", known)


HEAVY: Final = ("hypercorn", "quart", "quart_trio", "a2a_trio.server", "prometheus_client")


@pytest.mark.parametrize(
    "code",
    [
        "import a2a_trio.peer.calling",
        "import a2a_trio.cli.talk, a2a_trio.cli.tasks, a2a_trio.cli.cards",
        "import a2a_trio.cli.entry as e\ntry: e.main(['send', '--help'])\nexcept SystemExit: pass",
    ],
    ids=["calling", "commands", "help"],
)
def test_calling_loads_no_server(code: str) -> None:
    """Half a second of imports that a command which only calls has no use for."""
    listing = f"{code}\nimport sys\nprint('LOADED', *sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", listing], capture_output=True, text=True, timeout=120, check=True
    )
    loaded = done.stdout.rpartition("LOADED ")[2].split()
    assert "a2a_trio.cli.entry" in loaded or "a2a_trio.peer.calling" in loaded
    assert [name for name in loaded if name.startswith(HEAVY)] == []
