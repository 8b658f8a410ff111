"""Names of this package's own protocol extensions, of headers and well-known paths, each once.

An extension only adds metadata under its URI and is never required (A2A section 4.6).
"""

from typing import Final

SESSION_EXTENSION: Final = "urn:a2a-trio:extension:session:v1"
"""On a card: ``params`` describe the session behind it (pid, cwd, model, tools)."""

IDEMPOTENCY_EXTENSION: Final = "urn:a2a-trio:extension:idempotency-key:v1"
"""On a card: a send repeated with the same ``Idempotency-Key`` header runs once."""

DELEGATION_EXTENSION: Final = "urn:a2a-trio:extension:delegation:v1"
"""In message metadata: the chain of peers that this work was handed through."""

REPLAY_EXTENSION: Final = "urn:a2a-trio:extension:event-replay:v1"
"""On a card: SSE ids are task versions and ``Last-Event-ID`` replays what came after."""

IDEMPOTENCY_HEADER: Final = "idempotency-key"
IDENTITY_HEADER: Final = "x-a2a-identity"
VERSION_HEADER: Final = "a2a-version"
EXTENSIONS_HEADER: Final = "a2a-extensions"
OLD_EXTENSIONS_HEADER: Final = f"x-{EXTENSIONS_HEADER}"
"""Its name in A2A v0.3."""
LAST_EVENT_ID_HEADER: Final = "last-event-id"

CARD_PATH: Final = "/.well-known/agent-card.json"
"""Where an agent's card is (A2A section 8.2)."""
OLD_CARD_PATH: Final = "/.well-known/agent.json"
"""Where it was in A2A v0.2."""

PROTOCOL_VERSION: Final = "1.0"
LEGACY_PROTOCOL_VERSION: Final = "0.3"
