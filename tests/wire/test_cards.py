"""Agent cards: v1.0, v0.3 and pi-a2a's, read and written."""

from typing import Any

import attrs
import pytest
from hypothesis import given, settings

from a2a_trio.errors import DecodeError
from a2a_trio.testing.strategies import agent_cards
from a2a_trio.wire import dialects
from a2a_trio.wire.agent_card import (
    AgentCapabilities,
    AgentCard,
    AgentExtension,
    AgentInterface,
    AgentProvider,
    AgentSkill,
    ApiKeySecurityScheme,
    AuthorizationCodeOAuthFlow,
    HttpAuthSecurityScheme,
    MutualTlsSecurityScheme,
    OAuth2SecurityScheme,
    OAuthFlows,
    OpenIdConnectSecurityScheme,
    SecurityRequirement,
    SecurityScheme,
    StringList,
)
from a2a_trio.wire.extensions import SESSION_EXTENSION
from a2a_trio.wire.methods import Dialect
from a2a_trio.wire.model import JsonValue

V1, V03, LEGACY = Dialect.V1, Dialect.V03, Dialect.LEGACY

FLOW = AuthorizationCodeOAuthFlow(
    authorization_url="https://a", token_url="https://t", scopes={"read": "Read"}
)
NEEDS_BEARER = SecurityRequirement(schemes={"bearer": StringList(list=("read",))})
CARD = AgentCard(
    name="n",
    description="d",
    version="1.2.3",
    supported_interfaces=(
        AgentInterface(url="http://h/", protocol_binding="JSONRPC", protocol_version="1.0"),
        AgentInterface(url="http://h/", protocol_binding="JSONRPC", protocol_version="0.3"),
        AgentInterface(url="http://h/rest", protocol_binding="HTTP+JSON", protocol_version="0.3"),
    ),
    capabilities=AgentCapabilities(
        streaming=True,
        push_notifications=False,
        extended_agent_card=True,
        extensions=(AgentExtension(uri=SESSION_EXTENSION, params={"pid": 1, "tools": ["t"]}),),
    ),
    default_input_modes=("text/plain",),
    default_output_modes=("text/plain",),
    skills=(
        AgentSkill(
            id="s", name="s", description="", tags=("a",), security_requirements=(NEEDS_BEARER,)
        ),
    ),
    provider=AgentProvider(url="https://p", organization="o"),
    documentation_url="https://d",
    icon_url="",
    security_schemes={
        "bearer": SecurityScheme(
            http_auth_security_scheme=HttpAuthSecurityScheme(scheme="bearer", bearer_format="JWT")
        ),
        "key": SecurityScheme(
            api_key_security_scheme=ApiKeySecurityScheme(location="header", name="X-Key")
        ),
        "oauth": SecurityScheme(
            oauth2_security_scheme=OAuth2SecurityScheme(flows=OAuthFlows(authorization_code=FLOW))
        ),
        "oidc": SecurityScheme(
            open_id_connect_security_scheme=OpenIdConnectSecurityScheme(
                open_id_connect_url="https://o"
            )
        ),
        "mtls": SecurityScheme(
            mtls_security_scheme=MutualTlsSecurityScheme(description="a certificate")
        ),
    },
    security_requirements=(NEEDS_BEARER,),
)


def test_the_form_of_v03() -> None:
    """One URL, ``type`` in schemes, pi-a2a's session metadata, nothing of v1.0's own."""
    form: Any = dialects.encode_card(CARD, V03)
    assert form == {
        "protocolVersion": "0.3.0",
        "name": "n",
        "description": "d",
        "version": "1.2.3",
        "provider": {"url": "https://p", "organization": "o"},
        "documentationUrl": "https://d",
        "iconUrl": "",
        "defaultInputModes": ["text/plain"],
        "defaultOutputModes": ["text/plain"],
        "url": "http://h/",
        "preferredTransport": "JSONRPC",
        "additionalInterfaces": [{"url": "http://h/rest", "transport": "HTTP+JSON"}],
        "capabilities": {
            "streaming": True,
            "pushNotifications": False,
            "extensions": [{"uri": SESSION_EXTENSION, "params": {"pid": 1, "tools": ["t"]}}],
        },
        "supportsAuthenticatedExtendedCard": True,
        "metadata": {"pid": 1, "tools": ["t"], "extension": SESSION_EXTENSION},
        "skills": [
            {
                "id": "s",
                "name": "s",
                "description": "",
                "tags": ["a"],
                "security": [{"bearer": ["read"]}],
            }
        ],
        "securitySchemes": {
            "bearer": {"type": "http", "scheme": "bearer", "bearerFormat": "JWT"},
            "key": {"type": "apiKey", "in": "header", "name": "X-Key"},
            "oauth": {
                "type": "oauth2",
                "flows": {
                    "authorizationCode": {
                        "authorizationUrl": "https://a",
                        "tokenUrl": "https://t",
                        "scopes": {"read": "Read"},
                    }
                },
            },
            "oidc": {"type": "openIdConnect", "openIdConnectUrl": "https://o"},
            "mtls": {"type": "mutualTLS", "description": "a certificate"},
        },
        "security": [{"bearer": ["read"]}],
    }


def test_a_v03_card_reads_as_v1() -> None:
    """Everything but the interfaces that v0.3 does not name."""
    wanted = attrs.evolve(CARD, supported_interfaces=CARD.supported_interfaces[1:])
    assert dialects.decode_card(dialects.encode_card(CARD, V03)) == wanted


def test_a_card_for_both_kinds_of_reader() -> None:
    """The v1.0 members win, and each security scheme has both forms."""
    form: Any = dialects.encode_card(CARD, LEGACY)
    assert form["url"] == "http://h/"
    assert form["supportedInterfaces"][0]["protocolVersion"] == "1.0"
    assert form["securitySchemes"]["bearer"] == {
        "type": "http",
        "scheme": "bearer",
        "bearerFormat": "JWT",
        "httpAuthSecurityScheme": {"scheme": "bearer", "bearerFormat": "JWT"},
    }
    assert dialects.decode_card(form) == CARD


def test_the_form_of_v1_has_nothing_extra() -> None:
    """No ``url``, no ``metadata``, no ``type``."""
    form: Any = dialects.encode_card(CARD, V1)
    names = {field.name.replace("_", "") for field in attrs.fields(AgentCard)}
    assert {name.lower() for name in form} <= names
    assert dialects.decode_card(form) == CARD


def test_the_seeds_card_is_read() -> None:
    """v1.0 interfaces beside v0.3 security and a metadata map of its own."""
    card = dialects.decode_card(
        {
            "name": "host",
            "description": "d",
            "url": "http://h:9910/",
            "version": "1.0.0",
            "supportedInterfaces": [
                {"url": "http://h:9910/", "protocolBinding": "JSONRPC", "protocolVersion": "1.0"}
            ],
            "capabilities": {"streaming": True, "stateTransitionHistory": False},
            "defaultInputModes": ["text/plain"],
            "defaultOutputModes": ["text/plain"],
            "skills": [{"id": "coding", "name": "coding", "description": "Read, edit, run"}],
            "securitySchemes": {"bearer": {"type": "http", "scheme": "bearer"}},
            "security": [{"bearer": []}],
            "metadata": {"pid": 7, "model": None, "extension": "https://x"},
        }
    )
    assert [i.protocol_version for i in card.supported_interfaces] == ["1.0"]
    assert card.skills[0].tags == ()
    assert card.security_requirements == (SecurityRequirement(schemes={"bearer": StringList()}),)
    scheme = card.security_schemes["bearer"].http_auth_security_scheme
    assert scheme == HttpAuthSecurityScheme(scheme="bearer")
    (session,) = card.capabilities.extensions
    assert (session.uri, session.params) == (SESSION_EXTENSION, {"pid": 7, "model": None})


@pytest.mark.parametrize(
    ("card", "interfaces"),
    [
        ({"url": "u"}, [("u", "JSONRPC", "0.3")]),
        ({"url": "u", "protocolVersion": "0.2.6"}, [("u", "JSONRPC", "0.2")]),
        ({"url": "u", "preferredTransport": "GRPC", "supportedInterfaces": []}, [("u", "GRPC", "0.3")]),
        (
            {"url": "u", "additionalInterfaces": [{"url": "u", "transport": "JSONRPC"}, {"url": "v", "transport": "GRPC"}, 5]},
            [("u", "JSONRPC", "0.3"), ("v", "GRPC", "0.3")],
        ),
        ({"supported_interfaces": [{"url": "u"}]}, [("u", "", "")]),
        ({}, []),
    ],
)  # fmt: skip
def test_interfaces_of_older_cards(card: Any, interfaces: list[tuple[str, str, str]]) -> None:
    """The preferred URL first, the others once each."""
    found = dialects.decode_card(card).supported_interfaces
    assert [(i.url, i.protocol_binding, i.protocol_version) for i in found] == interfaces


def test_one_of_several_oauth_flows_is_kept() -> None:
    """v1.0 has one flow per scheme; a scheme of a type or flow that nobody knows is left out."""
    card = dialects.decode_card(
        {
            "securitySchemes": {
                "oauth": {
                    "type": "oauth2",
                    "flows": {
                        "password": {"tokenUrl": "p"},
                        "clientCredentials": {"tokenUrl": "c", "scopes": {}},
                    },
                },
                "new": {"type": "quantum"},
                "empty": {"type": "oauth2", "flows": {}},
            }
        }
    )
    scheme = card.security_schemes["oauth"].oauth2_security_scheme
    assert scheme is not None
    assert scheme.flows.client_credentials is not None
    assert list(card.security_schemes) == ["oauth"]


@pytest.mark.parametrize("value", [None, [], "card", 5])
def test_what_is_no_card_is_refused(value: JsonValue) -> None:
    """An object is the least."""
    with pytest.raises(DecodeError):
        dialects.decode_card(value)


def test_bad_members_are_named() -> None:
    """With their paths in the v1.0 form."""
    with pytest.raises(DecodeError) as caught:
        dialects.decode_card({"name": 5, "url": 6, "skills": [{"tags": "x"}]})
    assert {violation.field for violation in caught.value.violations} == {
        "name",
        "supportedInterfaces[0].url",
        "skills[0].tags",
    }


@settings(max_examples=40)
@given(agent_cards())
def test_cards_survive(card: AgentCard) -> None:
    """v1.0 exactly; the form for both kinds of reader reads as v1.0 as well; v0.3 reads."""
    assert dialects.decode_card(dialects.encode_card(card, V1)) == card
    assert dialects.decode_card(dialects.encode_card(card, LEGACY)) == card
    older = dialects.decode_card(dialects.encode_card(card, V03))
    assert (older.name, older.version, older.provider) == (card.name, card.version, card.provider)
    assert older.security_requirements == card.security_requirements
