"""Log lines: redacted, on one stream, and nothing configured unless asked."""

import io
import json
import logging
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime

import pytest
import structlog

from a2a_trio.logs import configure_logging, request_fields, reset_logging
from a2a_trio.rules.audit import AuditEntry


def redact(text: str) -> str:
    return text.replace("hunter2", "[redacted]")


@pytest.fixture(autouse=True)
def restored() -> Iterator[None]:
    """Whatever a test configured is gone after it."""
    handlers, level = list(logging.getLogger().handlers), logging.getLogger().level
    yield
    reset_logging()
    logging.getLogger().setLevel(level)
    assert logging.getLogger().handlers == handlers


@pytest.fixture
def stream() -> io.StringIO:
    return io.StringIO()


def lines(stream: io.StringIO) -> list[dict[str, object]]:
    return [json.loads(line) for line in stream.getvalue().splitlines()]


def test_a_line_is_one_json_object(stream: io.StringIO) -> None:
    """Time stamp, level and fields as members."""
    configure_logging("info", json=True, redact=redact, stream=stream)
    structlog.get_logger("a2a_trio").info("request", identity="alice", duration_ms=1.5)
    (line,) = lines(stream)
    assert datetime.fromisoformat(str(line.pop("timestamp"))).tzinfo is not None
    assert line == {
        "event": "request",
        "level": "info",
        "identity": "alice",
        "duration_ms": 1.5,
    }


def test_lines_below_the_level_are_not_written(stream: io.StringIO) -> None:
    """Ours and those of libraries."""
    configure_logging("warning", json=True, redact=redact, stream=stream)
    structlog.get_logger().info("quiet")
    logging.getLogger("hypercorn.error").info("quiet")
    structlog.get_logger().warning("loud")
    logging.getLogger("hypercorn.error").warning("loud")
    assert [line["event"] for line in lines(stream)] == ["loud", "loud"]


@pytest.mark.parametrize("as_json", [True, False])
def test_secrets_are_in_no_value(stream: io.StringIO, *, as_json: bool) -> None:
    """Also nested, in objects that are shown by their text, and in tracebacks."""
    configure_logging("info", json=as_json, redact=redact, stream=stream)
    log = structlog.get_logger()
    log.info(
        "token hunter2", a="hunter2", b={"c": ["hunter2", ("hunter2",)]}, d=ValueError("hunter2")
    )
    try:
        int("hunter2")
    except ValueError:
        log.exception("failed")
        logging.getLogger("lib").exception("failed with %s", "hunter2")
    assert "hunter2" not in stream.getvalue()
    assert stream.getvalue().count("[redacted]") >= 7
    assert "Traceback" in stream.getvalue()


def test_what_is_nested_too_deep_is_left_out(stream: io.StringIO) -> None:
    """A value that contains itself ends."""
    configure_logging("info", json=True, redact=redact, stream=stream)
    endless: list[object] = []
    endless.append(endless)
    structlog.get_logger().info("x", value=endless)
    assert "..." in stream.getvalue()


def test_a_terminal_sees_no_control_characters(stream: io.StringIO) -> None:
    """A peer's name can neither start a new line nor recolour the screen."""
    configure_logging("info", json=False, redact=redact, stream=stream)
    structlog.get_logger().info("x\n2030-01-01 forged", peer="\x1b[31mred \u202e \ud800")
    (text,) = stream.getvalue().splitlines()
    assert "\x1b" not in text
    assert "\u202e" not in text
    assert "x\\n2030" in text


def test_lines_of_libraries_are_taken_in(stream: io.StringIO) -> None:
    """Hypercorn's messages have the same form, with the logger's name."""
    configure_logging("info", json=True, redact=redact, stream=stream)
    logging.getLogger("hypercorn.error").info("Running on %s", "http://127.0.0.1:1")
    (line,) = lines(stream)
    assert line["event"] == "Running on http://127.0.0.1:1"
    assert (line["logger"], line["level"]) == ("hypercorn.error", "info")


def test_libraries_that_log_every_request_are_quiet(stream: io.StringIO) -> None:
    """Our own line says it once, and without the URL."""
    configure_logging("info", json=True, redact=redact, stream=stream)
    logging.getLogger("httpx").info("HTTP Request: POST http://user:pass@host/")
    assert stream.getvalue() == ""


def test_the_last_configuration_counts(stream: io.StringIO) -> None:
    """Twice configured is not twice written."""
    configure_logging("info", json=True, redact=redact, stream=stream)
    configure_logging("info", json=True, redact=redact, stream=stream)
    logging.getLogger("lib").warning("once")
    structlog.get_logger().info("once")
    assert len(lines(stream)) == 2


def test_a_broken_stream_harms_nobody() -> None:
    """A closed pipe loses the line only."""
    stream = io.StringIO()
    configure_logging("info", json=True, redact=redact, stream=stream)
    stream.close()
    structlog.get_logger().info("x")
    logging.getLogger("lib").warning("x")


def test_a_bad_format_string_of_a_library_harms_nobody(
    stream: io.StringIO, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As with any handler of ``logging``."""
    monkeypatch.setattr(logging, "raiseExceptions", False)
    configure_logging("info", json=True, redact=redact, stream=stream)
    logging.getLogger("lib").warning("%d", "no number")
    assert stream.getvalue() == ""


def test_an_unknown_level_is_refused(stream: io.StringIO) -> None:
    """Before anything is changed."""
    with pytest.raises(KeyError):
        configure_logging("loud", json=True, redact=redact, stream=stream)


def test_the_line_of_a_call_says_who_what_and_how_it_ended() -> None:
    """Not what was said."""
    entry = AuditEntry(
        at=datetime(2030, 1, 1, tzinfo=UTC),
        direction="inbound",
        phase="outcome",
        identity="alice",
        provenance="token",
        method="SendMessage",
        task_id="t",
        context_id="c",
        state="TASK_STATE_COMPLETED",
        duration_ms=12.34567,
        preview="private",
    )
    assert request_fields(entry) == {
        "direction": "inbound",
        "identity": "alice",
        "provenance": "token",
        "method": "SendMessage",
        "task": "t",
        "context": "c",
        "duration_ms": 12.3,
        "outcome": "TASK_STATE_COMPLETED",
    }


def test_importing_the_library_configures_nothing() -> None:
    """A program that embeds it keeps its own logging."""
    script = (
        "import logging, structlog\n"
        "import a2a_trio.logs, a2a_trio.journal\n"
        "assert not structlog.is_configured()\n"
        "assert logging.getLogger().handlers == []\n"
        "names = [n for n in logging.root.manager.loggerDict if n.startswith('a2a_trio')]\n"
        "assert all(not logging.getLogger(n).handlers for n in names), names\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True, timeout=60)
