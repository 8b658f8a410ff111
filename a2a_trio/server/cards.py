"""The agent card over HTTP: two audiences, two spellings, encoded once (A2A sections 8.2, 8.6).

``/.well-known/agent-card.json`` is strictly v1.0. ``/.well-known/agent.json``, and any card request
with ``A2A-Version: 0.3``, gets the older spelling. ``server.cardCompat`` merges both into one
object, for callers that read older members from the new address.
"""

import hashlib
from datetime import UTC, datetime
from email.utils import format_datetime, parsedate_to_datetime
from typing import Final, final

import attrs

from a2a_trio.server.answers import JSON, service_headers
from a2a_trio.server.http import Header, Headers, HttpResponse
from a2a_trio.wire.agent_card import AgentCard
from a2a_trio.wire.codec import dumps
from a2a_trio.wire.dialects import encode_card
from a2a_trio.wire.methods import Dialect
from a2a_trio.wire.model import JsonValue

__all__ = ["CARD_PATH", "MAX_AGE", "OLD_CARD_PATH", "Cards"]

CARD_PATH: Final = "/.well-known/agent-card.json"
OLD_CARD_PATH: Final = "/.well-known/agent.json"

MAX_AGE: Final = 60
"""Seconds a card may be reused unasked: session metadata changes while people look at it."""


@final
@attrs.frozen
class _Rendered:
    """One card as it is sent."""

    body: bytes
    etag: str
    headers: tuple[Header, ...]


@final
class Cards:
    """The cards of one agent.

    Args:
        public: what an anonymous caller sees.
        full: what an authenticated caller sees; the same object or value where nothing is withheld.
        compat: merge both spellings into every answer.
        modified: when the agent last changed, for ``Last-Modified``.
    """

    def __init__(
        self, public: AgentCard, full: AgentCard, *, compat: bool, modified: datetime
    ) -> None:
        self._compat: Final = compat
        # At most one entry per audience and spelling: four.
        self._rendered: dict[tuple[bool, Dialect], _Rendered] = {}
        self.replace(public, full, modified=modified)

    def replace(self, public: AgentCard, full: AgentCard, *, modified: datetime) -> None:
        """Show other cards from now on; what was encoded is forgotten."""
        self._public = public
        self._full = full
        # HTTP dates have whole seconds.
        self._modified = modified.astimezone(UTC).replace(microsecond=0)
        self._rendered.clear()
        declared = full.capabilities.extensions
        self._extensions = frozenset(e.uri for e in declared)
        self._required = frozenset(e.uri for e in declared if e.required)

    @property
    def card(self) -> AgentCard:
        """The full card."""
        return self._full

    @property
    def extensions(self) -> frozenset[str]:
        """URIs of the extensions that the card declares."""
        return self._extensions

    @property
    def required_extensions(self) -> frozenset[str]:
        """URIs of those that a caller must ask for."""
        return self._required

    def answer(self, headers: Headers, *, dialect: Dialect, anonymous: bool) -> HttpResponse:
        """Return the card, or 304 where the caller already has it."""
        rendered = self._render(dialect, anonymous=anonymous)
        if self._is_current(headers, rendered.etag):
            return HttpResponse(status=304, headers=rendered.headers)
        return HttpResponse(
            status=200,
            headers=(("content-type", JSON), *rendered.headers),
            body=rendered.body,
        )

    def _is_current(self, headers: Headers, etag: str) -> bool:
        """Compare validators as RFC 9110 section 13.2.2 orders them."""
        if "if-none-match" in headers:
            candidates = headers.list_of("if-none-match")
            return "*" in candidates or etag in {c.removeprefix("W/") for c in candidates}
        since = headers.get("if-modified-since")
        if not since:
            return False
        try:
            moment = parsedate_to_datetime(since)
        except ValueError:
            return False
        if moment.tzinfo is None:
            moment = moment.replace(tzinfo=UTC)
        return moment >= self._modified

    def _render(self, dialect: Dialect, *, anonymous: bool) -> _Rendered:
        key = (anonymous, dialect)
        rendered = self._rendered.get(key)
        if rendered is None:
            rendered = self._rendered[key] = self._encode(dialect, anonymous=anonymous)
        return rendered

    def _encode(self, dialect: Dialect, *, anonymous: bool) -> _Rendered:
        card = self._public if anonymous else self._full
        if self._compat:
            value = _merge(encode_card(card, Dialect.V03), encode_card(card, Dialect.V1))
        else:
            value = encode_card(card, dialect)
        body = dumps(value)
        etag = f'"{hashlib.sha256(body).hexdigest()[:32]}"'
        differs = self._public != self._full
        scope = "private" if differs else "public"
        vary = "a2a-version, authorization" if differs else "a2a-version"
        return _Rendered(
            body,
            etag,
            (
                *service_headers(dialect),
                ("etag", etag),
                ("last-modified", format_datetime(self._modified, usegmt=True)),
                ("cache-control", f"{scope}, max-age={MAX_AGE}"),
                ("vary", vary),
            ),
        )


def _merge(old: JsonValue, new: JsonValue) -> JsonValue:
    """Return both values in one: members of either, the new spelling where they disagree."""
    if isinstance(old, dict) and isinstance(new, dict):
        merged = dict(old)
        for name, value in new.items():
            merged[name] = _merge(old[name], value) if name in old else value
        return merged
    if isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        return [_merge(a, b) for a, b in zip(old, new, strict=True)]
    return new
