"""What the audit log records about one exchange, and the preview of its text."""

from collections.abc import Callable
from datetime import datetime
from typing import Final, Literal, final

import attrs

PREVIEW_CHARS: Final = 300
"""Characters of a message kept in the audit log."""

_WINDOW_CHARS: Final = 65_536
"""How much of a long text is redacted for its preview, so that 5 MiB cost no more than this."""
_MARGIN_CHARS: Final = 4_096
"""Redacted text between the preview and the end of the window: a secret that the end of the
window cuts in two, and that redaction may therefore miss, never reaches the preview."""


@final
@attrs.frozen(kw_only=True)
class AuditEntry:
    """One line of the audit log: a request, or the outcome of one."""

    at: datetime
    direction: Literal["inbound", "outbound"]
    phase: Literal["request", "outcome"]
    identity: str
    """Inbound: who owns the call. Outbound: the peer as it is configured."""
    provenance: str = ""
    """How the identity is known: ``token``, ``asserted``, ``address``; "" outbound."""
    address: str = ""
    method: str = ""
    task_id: str = ""
    context_id: str = ""
    state: str = ""
    duration_ms: float | None = None
    preview: str = ""
    """Redacted text, at most ``PREVIEW_CHARS`` characters."""
    error: str = ""


def preview(text: str, redact: Callable[[str], str], limit: int = PREVIEW_CHARS) -> str:
    """Redact a text, then cut it: the other order would let half a secret through.

    Args:
        text: what was said.
        redact: removes secrets from a text.
        limit: characters kept, the closing ellipsis included.
    """
    redacted = redact(text[:_WINDOW_CHARS])
    if len(text) > _WINDOW_CHARS and len(redacted) < limit + _MARGIN_CHARS:
        redacted = redact(text)  # almost all of it was secret: take no chance
    if len(redacted) <= limit:
        return redacted
    return redacted[: limit - 1] + "…" if limit > 0 else ""
