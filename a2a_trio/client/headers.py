"""The headers of every request, and which of them may leave for which origin."""

from typing import Final, TypeAlias, final

from a2a_trio.client.options import ClientOptions
from a2a_trio.client.routes import Route
from a2a_trio.wire.extensions import (
    EXTENSIONS_HEADER,
    IDEMPOTENCY_EXTENSION,
    IDEMPOTENCY_HEADER,
    IDENTITY_HEADER,
    LAST_EVENT_ID_HEADER,
    LEGACY_PROTOCOL_VERSION,
    OLD_EXTENSIONS_HEADER,
    PROTOCOL_VERSION,
    REPLAY_EXTENSION,
    VERSION_HEADER,
)
from a2a_trio.wire.methods import Dialect

__all__ = ["HeaderList", "Headers"]

HeaderList: TypeAlias = tuple[tuple[str, str], ...]

_JSON: Final = "application/json"
_EVENTS: Final = "text/event-stream"


def _checked(name: str, value: str) -> str:
    """Return a header value, refused if it could end the header or is not plain text."""
    if not value.isascii() or not value.isprintable():
        raise ValueError(f"{name} must be printable ASCII")
    return value


@final
class Headers:
    """Builds header lists.

    Args:
        token: bearer token, or None.
        options: identity, extensions and more headers.

    Raises:
        ValueError: a value cannot stand in a header; the text does not repeat it.
    """

    def __init__(self, token: str | None, options: ClientOptions) -> None:
        private: list[tuple[str, str]] = []
        if token:
            private.append(("authorization", "Bearer " + _checked("the token", token)))
        # A display name may be in any script; only what a header can carry is sent of it.
        identity = "".join(c for c in options.identity if " " <= c <= "~").strip()
        if identity:
            private.append((IDENTITY_HEADER, identity))
        private.extend(
            (name.lower(), _checked(f"header {name!r}", value))
            for name, value in options.headers.items()
        )
        self._private: HeaderList = tuple(private)
        self._extensions = tuple(_checked("an extension", uri) for uri in options.extensions)
        self._card_version = (
            LEGACY_PROTOCOL_VERSION if options.protocol == "0.3" else PROTOCOL_VERSION
        )

    def for_card(self, etag: str) -> HeaderList:
        """Return the headers of a card fetch from the configured origin."""
        headers = [
            ("accept", _JSON),
            # A compressed answer could expand to any size while it is counted.
            ("accept-encoding", "identity"),
            (VERSION_HEADER, self._card_version),
            *self._private,
        ]
        if etag:
            headers.append(("if-none-match", etag))
        return tuple(headers)

    def for_call(
        self,
        route: Route,
        *,
        streaming: bool,
        idempotency_key: str = "",
        last_event_id: str = "",
        extensions: tuple[str, ...] = (),
    ) -> HeaderList:
        """Return the headers of one call.

        Args:
            route: where it goes; credentials are left out unless it is trusted.
            streaming: whether the answer is a stream.
            idempotency_key: the same for every repetition of one send.
            last_event_id: where a broken stream stopped.
            extensions: those that the message uses.
        """
        legacy = route.dialect is not Dialect.V1
        headers = [
            ("accept", f"{_EVENTS}, {_JSON}" if streaming else _JSON),
            ("accept-encoding", "identity"),
            ("content-type", _JSON),
            (VERSION_HEADER, LEGACY_PROTOCOL_VERSION if legacy else PROTOCOL_VERSION),
        ]
        wanted = dict.fromkeys((*self._extensions, *extensions))
        if idempotency_key:
            headers.append((IDEMPOTENCY_HEADER, idempotency_key))
            if route.deduplicates:
                wanted[IDEMPOTENCY_EXTENSION] = None
        if last_event_id:
            headers.append((LAST_EVENT_ID_HEADER, last_event_id))
            if route.replays:
                wanted[REPLAY_EXTENSION] = None
        if wanted:
            joined = ", ".join(wanted)
            headers.append((EXTENSIONS_HEADER, joined))
            if legacy:
                headers.append((OLD_EXTENSIONS_HEADER, joined))
        return (*headers, *(self._private if route.trusted else ()))
