"""Where the library's own log lines go.

A program that has configured structlog gets them there, with their fields. Otherwise they go to the
standard ``logging`` under ``a2a_trio``, with the fields in the text: structlog's own default would
print to standard output, which belongs to the program that embeds us.
"""

import logging
from typing import TYPE_CHECKING, Protocol, cast

if TYPE_CHECKING:
    from structlog.typing import EventDict, WrappedLogger

__all__ = ["Log", "get_logger"]


class Log(Protocol):
    """A structured logger: an event, and fields."""

    def debug(self, event: str, /, **fields: object) -> object:
        """Log what only a developer wants to know."""
        ...

    def info(self, event: str, /, **fields: object) -> object:
        """Log that something happened as it should."""
        ...

    def warning(self, event: str, /, **fields: object) -> object:
        """Log what an operator may want to look at."""
        ...

    def error(self, event: str, /, **fields: object) -> object:
        """Log a defect or an outage."""
        ...

    def exception(self, event: str, /, **fields: object) -> object:
        """Log an error with the exception being handled."""
        ...


def _to_logging(
    _logger: "WrappedLogger", _method: str, event: "EventDict"
) -> tuple[tuple[object, ...], dict[str, object]]:
    """Return the arguments of a call to ``logging``."""
    exc_info = event.pop("exc_info", None)
    text = str(event.pop("event"))
    fields = " ".join(f"{name}={value!r}" for name, value in event.items())
    return (f"{text} {fields}".rstrip(),), {"exc_info": exc_info}


class _Switch:
    """A logger that looks at each call whether structlog has been configured."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, method: str) -> object:
        # Imported here: a command that makes one call logs nothing and should start fast.
        import structlog  # noqa: PLC0415 - reason above

        if structlog.is_configured():
            return getattr(structlog.get_logger(self._name), method)
        plain = structlog.wrap_logger(
            logging.getLogger(self._name),
            processors=[_to_logging],
            wrapper_class=structlog.stdlib.BoundLogger,
        )
        return getattr(plain, method)


def get_logger(name: str) -> Log:
    """Return the logger of a module; ``name`` begins with ``a2a_trio``."""
    return cast("Log", _Switch(name))
