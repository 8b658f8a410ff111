"""The agent card of A2A v1.0 as frozen values (A2A section 4.4)."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, final

import attrs

from a2a_trio.wire.model import A_TUPLE, EMPTY, JsonObject, exactly_one

_NO_SCOPES: Final[Mapping[str, str]] = MappingProxyType({})


@final
@attrs.frozen(kw_only=True)
class AgentProvider:
    """Who runs the agent."""

    url: str
    organization: str


@final
@attrs.frozen(kw_only=True)
class AgentExtension:
    """An extension that the agent supports (A2A section 4.6)."""

    uri: str
    description: str = ""
    required: bool = False
    params: JsonObject = EMPTY


@final
@attrs.frozen(kw_only=True)
class AgentCapabilities:
    """What the agent can do; ``None`` is "not declared", which reads as no."""

    streaming: bool | None = None
    push_notifications: bool | None = None
    extensions: tuple[AgentExtension, ...] = attrs.field(default=(), validator=A_TUPLE)
    extended_agent_card: bool | None = None


@final
@attrs.frozen(kw_only=True)
class AgentInterface:
    """One address of the agent and what is spoken there."""

    url: str
    protocol_binding: str
    protocol_version: str
    tenant: str = ""


@final
@attrs.frozen(kw_only=True)
class StringList:
    """A list of scopes inside a security requirement."""

    list: tuple[str, ...] = attrs.field(default=(), validator=A_TUPLE)


_NO_REQUIREMENTS: Final[Mapping[str, StringList]] = MappingProxyType({})


@final
@attrs.frozen(kw_only=True)
class SecurityRequirement:
    """Schemes that are needed together, by name, each with its scopes."""

    schemes: Mapping[str, StringList] = _NO_REQUIREMENTS


@final
@attrs.frozen(kw_only=True)
class AgentSkill:
    """One thing that the agent is good at."""

    id: str
    name: str
    description: str
    tags: tuple[str, ...] = attrs.field(validator=A_TUPLE)
    examples: tuple[str, ...] = attrs.field(default=(), validator=A_TUPLE)
    input_modes: tuple[str, ...] = attrs.field(default=(), validator=A_TUPLE)
    output_modes: tuple[str, ...] = attrs.field(default=(), validator=A_TUPLE)
    security_requirements: tuple[SecurityRequirement, ...] = attrs.field(
        default=(), validator=A_TUPLE
    )


@final
@attrs.frozen(kw_only=True)
class ApiKeySecurityScheme:
    """An API key in a query parameter, header or cookie."""

    location: str
    name: str
    description: str = ""


@final
@attrs.frozen(kw_only=True)
class HttpAuthSecurityScheme:
    """HTTP authentication, e.g. scheme ``Bearer``."""

    scheme: str
    description: str = ""
    bearer_format: str = ""


@final
@attrs.frozen(kw_only=True)
class AuthorizationCodeOAuthFlow:
    """OAuth 2 authorization code."""

    authorization_url: str
    token_url: str
    scopes: Mapping[str, str]
    refresh_url: str = ""
    pkce_required: bool = False


@final
@attrs.frozen(kw_only=True)
class ClientCredentialsOAuthFlow:
    """OAuth 2 client credentials."""

    token_url: str
    scopes: Mapping[str, str]
    refresh_url: str = ""


@final
@attrs.frozen(kw_only=True)
class DeviceCodeOAuthFlow:
    """OAuth 2 device code."""

    device_authorization_url: str
    token_url: str
    scopes: Mapping[str, str]
    refresh_url: str = ""


@final
@attrs.frozen(kw_only=True)
class ImplicitOAuthFlow:
    """OAuth 2 implicit flow; deprecated by the protocol."""

    authorization_url: str = ""
    refresh_url: str = ""
    scopes: Mapping[str, str] = _NO_SCOPES


@final
@attrs.frozen(kw_only=True)
class PasswordOAuthFlow:
    """OAuth 2 password flow; deprecated by the protocol."""

    token_url: str = ""
    refresh_url: str = ""
    scopes: Mapping[str, str] = _NO_SCOPES


@final
@attrs.frozen(kw_only=True)
class OAuthFlows:
    """One OAuth 2 flow: exactly one member."""

    authorization_code: AuthorizationCodeOAuthFlow | None = None
    client_credentials: ClientCredentialsOAuthFlow | None = None
    device_code: DeviceCodeOAuthFlow | None = None
    implicit: ImplicitOAuthFlow | None = None
    password: PasswordOAuthFlow | None = None

    def __attrs_post_init__(self) -> None:
        exactly_one(
            "OAuthFlows",
            self.authorization_code,
            self.client_credentials,
            self.device_code,
            self.implicit,
            self.password,
        )


@final
@attrs.frozen(kw_only=True)
class OAuth2SecurityScheme:
    """OAuth 2."""

    flows: OAuthFlows
    description: str = ""
    oauth2_metadata_url: str = ""


@final
@attrs.frozen(kw_only=True)
class OpenIdConnectSecurityScheme:
    """OpenID Connect."""

    open_id_connect_url: str
    description: str = ""


@final
@attrs.frozen(kw_only=True)
class MutualTlsSecurityScheme:
    """Mutual TLS."""

    description: str = ""


@final
@attrs.frozen(kw_only=True)
class SecurityScheme:
    """One way to authenticate: exactly one member."""

    api_key_security_scheme: ApiKeySecurityScheme | None = None
    http_auth_security_scheme: HttpAuthSecurityScheme | None = None
    oauth2_security_scheme: OAuth2SecurityScheme | None = None
    open_id_connect_security_scheme: OpenIdConnectSecurityScheme | None = None
    mtls_security_scheme: MutualTlsSecurityScheme | None = None

    def __attrs_post_init__(self) -> None:
        exactly_one(
            "SecurityScheme",
            self.api_key_security_scheme,
            self.http_auth_security_scheme,
            self.oauth2_security_scheme,
            self.open_id_connect_security_scheme,
            self.mtls_security_scheme,
        )


_NO_SCHEMES: Final[Mapping[str, SecurityScheme]] = MappingProxyType({})


@final
@attrs.frozen(kw_only=True)
class AgentCardSignature:
    """A JWS over the canonical card (A2A section 8.4)."""

    protected: str
    signature: str
    header: JsonObject = EMPTY


@final
@attrs.frozen(kw_only=True)
class AgentCard:
    """What an agent says about itself (A2A section 4.4.1)."""

    name: str
    description: str
    supported_interfaces: tuple[AgentInterface, ...] = attrs.field(validator=A_TUPLE)
    version: str
    capabilities: AgentCapabilities
    default_input_modes: tuple[str, ...] = attrs.field(validator=A_TUPLE)
    default_output_modes: tuple[str, ...] = attrs.field(validator=A_TUPLE)
    skills: tuple[AgentSkill, ...] = attrs.field(validator=A_TUPLE)
    provider: AgentProvider | None = None
    documentation_url: str | None = None
    security_schemes: Mapping[str, SecurityScheme] = _NO_SCHEMES
    security_requirements: tuple[SecurityRequirement, ...] = attrs.field(
        default=(), validator=A_TUPLE
    )
    signatures: tuple[AgentCardSignature, ...] = attrs.field(default=(), validator=A_TUPLE)
    icon_url: str | None = None
