"""Invariant: a card that was read reads the same from every form that it is written in.

Everything else is refused with a documented error.
"""

from a2a_trio.errors import DecodeError, InvalidParamsError, JSONParseError
from a2a_trio.wire.codec import dumps, loads
from a2a_trio.wire.dialects import decode_card, encode_card
from a2a_trio.wire.methods import Dialect
from fuzz.harness import Target


def check(data: bytes) -> None:
    """Read the bytes as a card."""
    try:
        value = loads(data)
    except (JSONParseError, InvalidParamsError):
        return
    before = dumps(value)
    try:
        card = decode_card(value)
    except DecodeError:
        return
    finally:
        assert dumps(value) == before
    for dialect in (Dialect.V1, Dialect.LEGACY):
        again = decode_card(loads(dumps(encode_card(card, dialect))))
        assert again.name == card.name
        assert again.security_schemes == card.security_schemes
        assert again.skills == card.skills
    older = decode_card(loads(dumps(encode_card(card, Dialect.V03))))
    assert older.name == card.name


TARGET = Target(
    name="card",
    check=check,
    names=(
        "name", "url", "supportedInterfaces", "protocolVersion", "protocolBinding", "preferredTransport",
        "additionalInterfaces", "transport", "capabilities", "extensions", "uri", "params", "metadata",
        "securitySchemes", "type", "in", "location", "flows", "scopes", "security", "securityRequirements",
        "schemes", "list", "skills", "tags", "supportsAuthenticatedExtendedCard", "signatures", "provider",
        "oauth2SecurityScheme", "mtlsSecurityScheme", "authorizationCode", "deviceCode", "iconUrl",
    ),
    words=(
        b'"supportedInterfaces":[', b'"url":"u"', b'"protocolVersion":"0.3.0"', b'"preferredTransport":',
        b'"additionalInterfaces":[', b'"securitySchemes":{', b'"type":"http"', b'"type":"oauth2"',
        b'"flows":{', b'"clientCredentials":{', b'"security":[', b'"capabilities":{', b'"extensions":[',
        b'"metadata":{', b'"skills":[', b'"in":"header"', b'"httpAuthSecurityScheme":{', b'"mtlsSecurityScheme":{}',
        b"null", b"{", b"}", b"[", b"]", b",", b"5", b'""',
    ),
)  # fmt: skip
