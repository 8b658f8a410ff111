"""``Settings()`` is complete, checked, immutable, and knows its secrets and filters."""

import attrs
import pytest

from a2a_trio.config.fields import Kind
from a2a_trio.config.schema import (
    DiscoverySettings,
    FilterChoice,
    FilterSettings,
    GatewaySettings,
    PeerAuth,
    PeerSettings,
    Settings,
    gateway_key,
)
from a2a_trio.config.server_schema import ServerSettings
from a2a_trio.config.table import ANY_NAME, key_at, keys, split_key, values_of
from a2a_trio.errors import SettingsError


def test_every_key_is_documented_and_its_default_is_allowed() -> None:
    """The table has a sentence for every key, and no default breaks its own rule."""
    for key in keys():
        assert key.declaration.doc.endswith("."), key.name
        assert key.declaration.problem(key.default) is None, key.name
        if key.declaration.kind is Kind.NUMBER:
            assert key.declaration.unit, key.name


def test_values_are_checked_when_they_are_made() -> None:
    """Settings that a program builds obey the same table as those of a file."""
    with pytest.raises(SettingsError, match=r"ServerSettings.port must be .* 0 to 65535"):
        ServerSettings(port=70_000)
    with pytest.raises(SettingsError, match="visible ASCII") as caught:
        ServerSettings(shared_token="with space")
    assert "with space" not in str(caught.value)


def test_settings_are_immutable() -> None:
    """Maps too, also when the caller keeps the one he gave."""
    peers = {"a": PeerSettings(url="http://x")}
    settings = Settings(peers=peers)
    peers["b"] = PeerSettings(url="http://y")
    assert list(settings.peers) == ["a"]
    with pytest.raises(attrs.exceptions.FrozenInstanceError):
        settings.retry_attempts = 3  # type: ignore[misc]  # that is the point
    assert hash(settings) == hash(Settings())


def test_secrets_are_all_found_and_short_ones_left_out() -> None:
    """Every secret of the table, each once, longest first."""
    settings = Settings(
        peers={"p": PeerSettings(url="http://x", auth=PeerAuth(token="peer-token"))},
        server=ServerSettings(
            shared_token="shared-token",
            peer_tokens={"a": ("token-a1", "token-a22"), "b": ("short",)},
        ),
        discovery=DiscoverySettings(
            gateway=GatewaySettings(token="gateway-token", upstream_token="upstream"),
            gateways={"lab": GatewaySettings(token="peer-token")},
        ),
    )
    assert settings.secrets() == (
        "gateway-token", "shared-token", "peer-token", "token-a22", "token-a1", "upstream",
    )  # fmt: skip


def test_secrets_are_not_in_the_representation() -> None:
    """A log line or a traceback that shows settings shows no secret."""
    settings = Settings(
        peers={"p": PeerSettings(url="http://x", auth=PeerAuth(token="peer-token"))},
        server=ServerSettings(shared_token="shared-token", peer_tokens={"a": ("token-a1",)}),
    )
    assert not any(secret in repr(settings) for secret in settings.secrets())


@pytest.mark.parametrize(
    ("peer", "choice"),
    [
        (PeerSettings(url="http://x"), FilterChoice(frame=True, redact=True)),
        (PeerSettings(url="http://x", frame_inbound=False), FilterChoice(frame=False, redact=True)),
        (
            PeerSettings(url="http://x", redact_outbound=False),
            FilterChoice(frame=True, redact=False),
        ),
        (
            PeerSettings(url="http://x", frame_inbound=False, from_project=True),
            FilterChoice(frame=True, redact=True),
        ),
    ],
)
def test_filters_of_a_caller(peer: PeerSettings, choice: FilterChoice) -> None:
    """The operator may loosen them for one peer; a project's peer never does."""
    settings = Settings(peers={"bob": peer})
    assert settings.filters_for("bob") == choice
    assert settings.filters_for("ip:127.0.0.1") == FilterChoice(frame=True, redact=True)


def test_filters_can_be_tightened_for_one_caller() -> None:
    """Off for all, on for one."""
    settings = Settings(
        filters=FilterSettings(frame_inbound=False, redact_outbound=False),
        peers={"bob": PeerSettings(url="http://x", frame_inbound=True)},
    )
    assert settings.filters_for("bob") == FilterChoice(frame=True, redact=False)
    assert settings.filters_for("eve") == FilterChoice(frame=False, redact=False)


def test_own_identity_and_token() -> None:
    """The own token of ``peerTokens`` comes first, the shared one else."""
    server = ServerSettings(
        shared_token="shared", agent_name="pi", peer_tokens={"a": ("new", "old")}
    )
    assert Settings(self_identity="a", server=server).own_token == "new"
    assert Settings(self_identity="b", server=server).own_token == "shared"
    assert Settings(server=server).identity == "pi"
    assert Settings(self_identity="a", server=server).identity == "a"


@pytest.mark.parametrize(
    ("url", "key"),
    [
        ("http://127.0.0.1:9920", "127.0.0.1-9920"),
        ("https://gw.example/x", "gw.example-443"),
        ("http://gw.example", "gw.example-80"),
        ("http://[::1]:9", "--1-9"),
        ("http://x:99999", "gateway"),
    ],
)
def test_gateway_key(url: str, key: str) -> None:
    """The name of a gateway that has none."""
    assert gateway_key(url) == key


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("server.port", ("server", "port")),
        ("a2a.server.port", ("server", "port")),
        ("timeouts.async", ("timeouts", "async")),
        ("peers.my.host.auth.token", ("peers", "my.host", "auth", "token")),
        ("server.peerTokens", ("server", "peerTokens")),
        ("server.peerTokens.a.b", ("server", "peerTokens", "a.b")),
        ("discovery.gateways.lab.url", ("discovery", "gateways", "lab", "url")),
        ("discovery.mdnsEnabled", ("discovery", "mdns", "enabled")),
        ("server", None), ("server.", None), ("", None), ("peers.a", None), ("server.port.x", None),
        ("peers.a b.url", None), ("server.PORT", None),
    ],
)  # fmt: skip
def test_dotted_keys(text: str, path: tuple[str, ...] | None) -> None:
    """A dotted key names one setting; names in it may have dots."""
    found = split_key(text)
    assert (found[0] if found else None) == path


def test_table_reaches_every_value() -> None:
    """What ``values_of`` yields can be found under its path, and nothing is left out."""
    settings = Settings(
        peers={"p": PeerSettings(url="http://x")},
        discovery=DiscoverySettings(gateway=GatewaySettings(), gateways={"lab": GatewaySettings()}),
    )
    found = {path for path, _, _ in values_of(settings)}
    for path in found:
        assert key_at(path) is not None
    generic = {key.path for key in keys()}
    assert len(found) == len(generic)
    assert all(ANY_NAME not in path for path in found)
