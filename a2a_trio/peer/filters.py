"""Which filters a caller's texts pass, on the way in and on the way out."""

from collections.abc import Callable
from typing import Final, final

from a2a_trio.config.schema import Settings
from a2a_trio.rules.addresses import is_loopback_name
from a2a_trio.rules.callers import LOCAL
from a2a_trio.rules.framing import frame
from a2a_trio.rules.redaction import Redactor, TaskRedactor
from a2a_trio.server.run import OutboundFilter, Request
from a2a_trio.wire.model import Artifact, Message

__all__ = ["NoFilter", "filters_of", "framer_of"]


@final
class NoFilter:
    """Lets everything through, for callers whom the operator trusts with it."""

    def message(self, message: Message) -> Message:
        """Return the message."""
        return message

    def artifact(self, artifact: Artifact, *, append: bool, last: bool) -> Artifact:  # noqa: ARG002 - the protocol's signature
        """Return the chunk."""
        return artifact

    def pending(self) -> tuple[Artifact, ...]:
        """Return nothing: nothing is held back."""
        return ()


_NO_FILTER: Final = NoFilter()


def filters_of(settings: Settings, redactor: Redactor) -> Callable[[Request], OutboundFilter]:
    """Return what makes the filter of a task: redaction, unless it is off for its caller."""

    def filter_for(request: Request) -> OutboundFilter:
        if settings.filters_for(request.caller.identity).redact:
            return TaskRedactor(redactor)
        return _NO_FILTER

    return filter_for


def framer_of(settings: Settings) -> Callable[[str, Request], str]:
    """Return what frames a caller's text, unless framing is off for it."""

    def framer(text: str, request: Request) -> str:
        caller = request.caller
        if not settings.filters_for(caller.identity).frame:
            return text
        local = caller.address == LOCAL or is_loopback_name(caller.address)
        return frame(
            text,
            peer=caller.display,
            provenance=caller.provenance,
            transport="loopback" if local else "remote",
        )

    return framer
