"""Log lines of the command line: structured, redacted, on one stream.

The library only calls ``structlog.get_logger`` and never configures anything: a program that
embeds it keeps its own logging. ``configure_logging`` is for programs whose logging is ours, which
is the command line. It also takes in what hypercorn and other libraries log through ``logging``.
"""

import logging
from collections.abc import Callable, Mapping
from typing import Final, TextIO, final

import structlog
from structlog.typing import EventDict, Processor, WrappedLogger

from a2a_trio.rules.audit import AuditEntry

LEVELS: Final[Mapping[str, int]] = {
    "debug": logging.DEBUG,
    "info": logging.INFO,
    "warning": logging.WARNING,
    "error": logging.ERROR,
}

# These log every request, with its URL, below warning; our own line says it once.
_CHATTY: Final = ("hypercorn.access", "httpcore", "httpx")
_MAX_DEPTH: Final = 8
"""How deep values of a log line are redacted; what lies deeper is left out."""
# Written by ourselves: a time stamp is not a telephone number.
_OWN_KEYS: Final = frozenset({"timestamp", "level"})


@final
class Redaction:
    """A structlog processor that redacts every text of a line and shows no control characters.

    Args:
        redact: removes secrets from a text.
    """

    def __init__(self, redact: Callable[[str], str]) -> None:
        self._redact = redact

    def __call__(self, _logger: WrappedLogger, _method: str, event: EventDict) -> EventDict:
        """Return the line with every value redacted; keys are ours."""
        return {
            key: value if key in _OWN_KEYS else self._clean(value, keep_lines=key == "exception")
            for key, value in event.items()
        }

    def _clean(self, value: object, *, keep_lines: bool = False, depth: int = 0) -> object:
        if value is None or isinstance(value, bool | int | float):
            return value
        if depth >= _MAX_DEPTH:
            return "..."
        if isinstance(value, Mapping):
            return {str(k): self._clean(v, depth=depth + 1) for k, v in value.items()}
        if isinstance(value, list | tuple | set | frozenset):
            return [self._clean(v, depth=depth + 1) for v in value]
        return _printable(self._redact(str(value)), keep_lines=keep_lines)


@final
class _Lines:
    """Writes lines to a stream; a broken pipe or a full disk loses the line, nothing else."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def msg(self, text: str) -> None:
        try:
            self._stream.write(text + "\n")
            self._stream.flush()
        except (OSError, ValueError):
            # ValueError: the stream is closed, or cannot encode the text. Nobody can be told.
            return

    debug = info = warning = error = critical = msg


@final
class _Bridge(logging.Handler):
    """Writes what libraries log through ``logging`` as lines of the same kind."""

    def __init__(self, lines: _Lines, formatter: logging.Formatter) -> None:
        super().__init__()
        self._lines = lines
        self.setFormatter(formatter)

    def emit(self, record: logging.LogRecord) -> None:
        try:
            self._lines.msg(self.format(record))
        except Exception:  # noqa: BLE001 - a bad format string of a library; logging's own rule
            self.handleError(record)


def configure_logging(
    level: str, *, json: bool, redact: Callable[[str], str], stream: TextIO
) -> None:
    """Send the log lines of this process to a stream. Calling it again replaces the first call.

    Args:
        level: the least level shown, a key of ``LEVELS``.
        json: one JSON object per line instead of text for people.
        redact: removes secrets from a text; applied to every value of every line.
        stream: where lines go; coloured if it is a terminal. Not closed.

    Raises:
        KeyError: there is no such level.
    """
    threshold = LEVELS[level]
    reset_logging()
    lines = _Lines(stream)
    renderer: Processor = (
        structlog.processors.JSONRenderer(default=str)
        if json
        else structlog.dev.ConsoleRenderer(colors=stream.isatty())
    )
    processors: list[Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        structlog.processors.format_exc_info,
        Redaction(redact),
        renderer,
    ]
    structlog.configure(
        processors=processors,
        wrapper_class=structlog.make_filtering_bound_logger(threshold),
        logger_factory=lambda *_names: lines,
        cache_logger_on_first_use=False,
    )
    formatter = structlog.stdlib.ProcessorFormatter(
        processors=[
            structlog.stdlib.add_logger_name,
            structlog.stdlib.ProcessorFormatter.remove_processors_meta,
            *processors,
        ],
        foreign_pre_chain=[structlog.stdlib.add_log_level],
    )
    root = logging.getLogger()
    root.addHandler(_Bridge(lines, formatter))
    root.setLevel(threshold)
    for name in _CHATTY:
        logging.getLogger(name).setLevel(max(threshold, logging.WARNING))


def reset_logging() -> None:
    """Undo ``configure_logging``: both libraries with the defaults that they are imported with."""
    structlog.reset_defaults()
    root = logging.getLogger()
    for handler in [h for h in root.handlers if isinstance(h, _Bridge)]:
        root.removeHandler(handler)
        handler.close()
    root.setLevel(logging.WARNING)
    for name in _CHATTY:
        logging.getLogger(name).setLevel(logging.NOTSET)


def request_fields(entry: AuditEntry) -> dict[str, object]:
    """Return the fields of the log line of one call: who, what, how long, how it ended.

    Never what was said: a preview belongs into the audit log only.
    """
    fields: dict[str, object] = {
        "direction": entry.direction,
        "identity": entry.identity,
        "provenance": entry.provenance,
        "method": entry.method,
        "task": entry.task_id,
        "context": entry.context_id,
        "duration_ms": None if entry.duration_ms is None else round(entry.duration_ms, 1),
        "outcome": entry.error or entry.state or "ok",
    }
    return {name: value for name, value in fields.items() if value not in ("", None)}


def _printable(text: str, *, keep_lines: bool) -> str:
    """Escape what a terminal would obey: control, bidirectional and separator characters."""
    if text.isprintable():
        return text
    return "".join(
        char
        if char.isprintable() or (keep_lines and char == "\n")
        else char.encode("unicode_escape", "surrogatepass").decode("ascii")
        for char in text
    )
