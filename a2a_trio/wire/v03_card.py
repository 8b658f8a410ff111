"""Agent cards of A2A v0.3 and before: moved into v1.0's shape and back (A2A section 4.4, v0.3 5.5).

A v0.3 card names one preferred URL where v1.0 has a list of interfaces, marks security schemes with
``type``, and lets one OAuth 2 scheme have several flows, of which v1.0 keeps one.
"""

from collections.abc import Mapping
from typing import Final

from a2a_trio.wire.extensions import LEGACY_PROTOCOL_VERSION, SESSION_EXTENSION
from a2a_trio.wire.model import JsonValue

_Object = dict[str, JsonValue]

_CARD_VERSION: Final = LEGACY_PROTOCOL_VERSION + ".0"
"""v0.3 cards carry a patch number."""
_DEFAULT_TRANSPORT: Final = "JSONRPC"

_SCHEMES: Final[Mapping[str, str]] = {
    "apiKey": "apiKeySecurityScheme",
    "http": "httpAuthSecurityScheme",
    "oauth2": "oauth2SecurityScheme",
    "openIdConnect": "openIdConnectSecurityScheme",
    "mutualTLS": "mtlsSecurityScheme",
}
_SCHEMES_BACK: Final[Mapping[str, str]] = {new: old for old, new in _SCHEMES.items()}

# In the order in which one is chosen where v0.3 gives several.
_FLOWS: Final = ("authorizationCode", "clientCredentials", "deviceCode", "implicit", "password")
_FLOWS_SINCE_V1: Final = frozenset({"deviceCode"})

_SAME: Final = (
    "name",
    "description",
    "version",
    "provider",
    "documentationUrl",
    "iconUrl",
    "defaultInputModes",
    "defaultOutputModes",
)


# --- to v1.0 --------------------------------------------------------------------------------


def card_to_v1(value: JsonValue) -> JsonValue:
    """Move what a card has in the older form; a card of v1.0 comes back as it is."""
    if not isinstance(value, dict):
        return value
    moved = dict(value)
    if not moved.get("supportedInterfaces") and "supported_interfaces" not in moved:
        moved["supportedInterfaces"] = _interfaces_to_v1(value)
    if isinstance(value.get("securitySchemes"), dict):
        moved["securitySchemes"] = _schemes_to_v1(value["securitySchemes"])
    _security_to_v1(moved)
    skills = value.get("skills")
    if isinstance(skills, list):
        moved["skills"] = [_skill_to_v1(skill) for skill in skills]
    moved["capabilities"] = _capabilities_to_v1(value)
    return moved


def _interfaces_to_v1(value: _Object) -> JsonValue:
    version = value.get("protocolVersion")
    short = ".".join(version.split(".")[:2]) if isinstance(version, str) and version else ""
    extra = value.get("additionalInterfaces")
    pairs: list[tuple[JsonValue, JsonValue]] = []
    if value.get("url") is not None:
        pairs.append((value["url"], value.get("preferredTransport") or _DEFAULT_TRANSPORT))
    for entry in extra if isinstance(extra, list) else []:
        if isinstance(entry, dict):
            pair = (entry.get("url"), entry.get("transport"))
            if pair not in pairs:
                pairs.append(pair)
    return [
        {
            "url": url,
            "protocolBinding": transport,
            "protocolVersion": short or LEGACY_PROTOCOL_VERSION,
        }
        for url, transport in pairs
    ]


def _schemes_to_v1(value: JsonValue) -> JsonValue:
    if not isinstance(value, dict):
        return value
    return {name: _scheme_to_v1(scheme) for name, scheme in value.items()}


def _scheme_to_v1(value: JsonValue) -> JsonValue:
    if not isinstance(value, dict) or value.keys() & _SCHEMES_BACK.keys():
        return value
    kind = value.get("type")
    name = _SCHEMES.get(kind) if isinstance(kind, str) else None
    if name is None:
        return value
    body = {("location" if key == "in" else key): member for key, member in value.items()}
    flows = body.get("flows")
    if isinstance(flows, dict):
        chosen = next((flow for flow in _FLOWS if flows.get(flow) is not None), None)
        if chosen is None:
            return {}  # no flow that is known: the reader leaves such a scheme out
        body["flows"] = {chosen: flows[chosen]}
    return {name: body}


def _security_to_v1(owner: _Object) -> None:
    """Move ``security`` of a card or skill, in place."""
    security = owner.get("security")
    if not isinstance(security, list) or "securityRequirements" in owner:
        return
    owner["securityRequirements"] = [
        {"schemes": {name: {"list": scopes} for name, scopes in entry.items()}}
        if isinstance(entry, dict)
        else entry
        for entry in security
    ]


def _skill_to_v1(value: JsonValue) -> JsonValue:
    if not isinstance(value, dict):
        return value
    skill = dict(value)
    _security_to_v1(skill)
    return skill


def _capabilities_to_v1(card: _Object) -> JsonValue:
    value = card.get("capabilities")
    if value is not None and not isinstance(value, dict):
        return value
    capabilities: _Object = dict(value or {})
    extended = card.get("supportsAuthenticatedExtendedCard")
    if extended is not None:
        capabilities.setdefault("extendedAgentCard", extended)
    session = card.get("metadata")
    extensions = capabilities.get("extensions")
    known = extensions if isinstance(extensions, list) else []
    if isinstance(session, dict) and session and not any(_is_session(e) for e in known):
        # pi-a2a's cards describe the session behind them in a member of their own.
        params: _Object = {k: member for k, member in session.items() if k != "extension"}
        capabilities["extensions"] = [*known, {"uri": SESSION_EXTENSION, "params": params}]
    return capabilities


def _is_session(extension: JsonValue) -> bool:
    return isinstance(extension, dict) and extension.get("uri") == SESSION_EXTENSION


# --- from v1.0 ------------------------------------------------------------------------------


def card_from_v1(value: _Object) -> _Object:
    """Write a card as v0.3 does, with pi-a2a's ``metadata`` if the card tells its session.

    Signatures are left out: they sign the v1.0 form.
    """
    card: _Object = {"protocolVersion": _CARD_VERSION}
    card |= {key: value[key] for key in _SAME if key in value}
    card |= _interfaces_from_v1(value["supportedInterfaces"])
    card |= _capabilities_from_v1(value["capabilities"])
    skills = value["skills"]
    if isinstance(skills, list):
        card["skills"] = [_skill_from_v1(skill) for skill in skills]
    schemes = value.get("securitySchemes")
    if isinstance(schemes, dict):
        card["securitySchemes"] = {n: _scheme_from_v1(s) for n, s in schemes.items()}
    if "securityRequirements" in value:
        card["security"] = _security_from_v1(value["securityRequirements"])
    return card


def both_forms(value: _Object) -> _Object:
    """Write a card that readers of v1.0 and of v0.3 both understand."""
    old = card_from_v1(value)
    merged = {**old, **value}
    schemes, old_schemes = value.get("securitySchemes"), old.get("securitySchemes")
    if isinstance(schemes, dict) and isinstance(old_schemes, dict):
        merged["securitySchemes"] = {
            name: {**_as_object(old_schemes.get(name)), **_as_object(scheme)}
            for name, scheme in schemes.items()
        }
    return merged


def _as_object(value: JsonValue) -> _Object:
    return value if isinstance(value, dict) else {}


def _interfaces_from_v1(value: JsonValue) -> _Object:
    interfaces = [i for i in value if isinstance(i, dict)] if isinstance(value, list) else []
    older = [
        i for i in interfaces if str(i["protocolVersion"]).startswith(LEGACY_PROTOCOL_VERSION)
    ] or interfaces
    if not older:
        return {"url": "", "preferredTransport": _DEFAULT_TRANSPORT}
    first, *others = older
    found: _Object = {"url": first["url"], "preferredTransport": first["protocolBinding"]}
    if others:
        found["additionalInterfaces"] = [
            {"url": i["url"], "transport": i["protocolBinding"]} for i in others
        ]
    return found


def _capabilities_from_v1(value: JsonValue) -> _Object:
    """Return ``capabilities`` and what v0.3 keeps beside them."""
    capabilities = dict(_as_object(value))
    found: _Object = {"capabilities": capabilities}
    extended = capabilities.pop("extendedAgentCard", None)
    if extended is not None:
        found["supportsAuthenticatedExtendedCard"] = extended
    extensions = capabilities.get("extensions")
    for extension in extensions if isinstance(extensions, list) else []:
        if isinstance(extension, dict) and _is_session(extension) and "params" in extension:
            found["metadata"] = {
                **_as_object(extension["params"]),
                "extension": SESSION_EXTENSION,
            }
    return found


def _skill_from_v1(value: JsonValue) -> JsonValue:
    skill = dict(_as_object(value))
    if "securityRequirements" in skill:
        skill["security"] = _security_from_v1(skill.pop("securityRequirements"))
    return skill


def _scheme_from_v1(value: JsonValue) -> JsonValue:
    ((name, body),) = _as_object(value).items()
    scheme = {
        ("in" if key == "location" else key): member for key, member in _as_object(body).items()
    }
    flows = scheme.get("flows")
    if isinstance(flows, dict):
        scheme["flows"] = {
            flow: {
                key: member for key, member in _as_object(detail).items() if key != "pkceRequired"
            }
            for flow, detail in flows.items()
            if flow not in _FLOWS_SINCE_V1
        }
    return {"type": _SCHEMES_BACK[name], **scheme}


def _security_from_v1(value: JsonValue) -> JsonValue:
    entries = value if isinstance(value, list) else []
    return [
        {
            name: _as_object(scopes).get("list", [])
            for name, scopes in _as_object(_as_object(entry).get("schemes")).items()
        }
        for entry in entries
    ]
