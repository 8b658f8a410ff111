"""Which web pages may call the server, and the headers that tell browsers so (Fetch standard)."""

from collections.abc import Iterable
from typing import Final, final

from a2a_trio.rules.addresses import Origin, parse_origin
from a2a_trio.rules.callers import Pairs
from a2a_trio.wire.extensions import (
    EXTENSIONS_HEADER,
    IDEMPOTENCY_HEADER,
    IDENTITY_HEADER,
    LAST_EVENT_ID_HEADER,
    VERSION_HEADER,
)

# Sent with every answer: a cache must not give one page the answer made for another.
_VARY: Final[Pairs] = (("vary", "Origin"),)

_A2A_HEADERS: Final = f"{EXTENSIONS_HEADER}, {VERSION_HEADER}"
_REQUEST_HEADERS: Final = f"{IDEMPOTENCY_HEADER}, {IDENTITY_HEADER}, {LAST_EVENT_ID_HEADER}"
_PREFLIGHT: Final[Pairs] = (
    ("access-control-allow-methods", "GET, HEAD, POST"),
    (
        "access-control-allow-headers",
        f"authorization, content-type, traceparent, tracestate, {_A2A_HEADERS}, {_REQUEST_HEADERS}",
    ),
    ("access-control-max-age", "600"),
)
_ACTUAL: Final[Pairs] = (
    ("access-control-expose-headers", f"{_A2A_HEADERS}, etag, retry-after, www-authenticate"),
)


@final
class Cors:
    """Decide about the Origin of a request. Loopback pages are always allowed.

    Args:
        allowed: ``server.allowedOrigins``, e.g. ``https://app.example.com``; matched exactly.

    Raises:
        ValueError: one of them is no origin; ``*`` is none.
    """

    def __init__(self, allowed: Iterable[str]) -> None:
        self._allowed = frozenset(_origin(text) for text in allowed)

    def is_allowed(self, origins: tuple[str, ...]) -> bool:
        """True for exactly one Origin header, if it is well formed and allowed; so not ``null``."""
        origin = parse_origin(origins[0]) if len(origins) == 1 else None
        if origin is None:
            return False
        is_local = origin.scheme in {"http", "https"} and origin.host.is_loopback
        return is_local or origin in self._allowed

    def headers(self, origins: tuple[str, ...], *, preflight: bool) -> Pairs:
        """Return the headers of an answer to a request with these Origin headers."""
        if not self.is_allowed(origins):
            return _VARY
        allow = ("access-control-allow-origin", origins[0])
        return (allow, *_VARY, *(_PREFLIGHT if preflight else _ACTUAL))


def _origin(text: str) -> Origin:
    origin = parse_origin(text.strip().removesuffix("/"))
    if origin is None:
        raise ValueError(f"not an origin (scheme://host[:port]): {text!r}")
    return origin
