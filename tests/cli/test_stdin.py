"""Standard input: text, bounded, and a plain error where there is none."""

import io
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from a2a_trio.cli.exits import UsageError
from a2a_trio.cli.stdin import read_text
from tests.cli.conftest import PATIENCE


def test_standard_input_is_read_whole() -> None:
    """The line feed that shells and editors add is no part of the message."""
    text = "zwei\nZeilen: grün"
    assert read_text(io.BytesIO(f"{text}\n".encode()), len(text) + 2) == text


def test_standard_input_has_a_bound() -> None:
    """A mistaken ``cat disk.img |`` ends before it fills the memory."""
    source = io.BytesIO(b"x" * 12)

    with pytest.raises(UsageError, match="longer than 10 bytes"):
        read_text(source, 10)
    assert len(source.read()) == 1


def test_standard_input_must_be_text() -> None:
    """Binary input is refused with the place of the first bad byte."""
    with pytest.raises(UsageError, match="not UTF-8 at byte 2"):
        read_text(io.BytesIO(b"ab\xff"), 10)


def test_standard_input_that_cannot_be_read() -> None:
    """A descriptor that is only for writing is a mistake of the caller, not of this program."""
    read_end, write_end = os.pipe()
    os.close(read_end)
    with (
        open(write_end, "rb", closefd=True) as source,  # noqa: PTH123 - a descriptor
        pytest.raises(UsageError, match="standard input: Bad file descriptor"),
    ):
        read_text(source, 10)


WORDS = [
    ["send", "http://127.0.0.1:9", "-"],
    ["config", "set", "server.sharedToken", "-"],
]


@pytest.mark.parametrize("words", WORDS, ids=" ".join)
def test_without_standard_input_it_is_a_usage_error(
    words: list[str], environment: Mapping[str, str], tmp_path: Path
) -> None:
    """``a2a-trio send URL - <&-``, as some process managers start programs."""
    done = subprocess.run(
        ["bash", "-c", 'exec "$@" <&-', "bash", sys.executable, "-m", "a2a_trio", *words],  # noqa: S607 - whichever bash there is
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env=environment,
        timeout=PATIENCE,
        check=False,
    )

    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "a2a-trio: standard input is closed\n"
    assert not (tmp_path / "home" / "settings.json").exists()


@pytest.mark.parametrize("words", WORDS, ids=" ".join)
def test_binary_standard_input_is_a_usage_error(
    words: list[str], environment: Mapping[str, str], tmp_path: Path
) -> None:
    """Also for a value, and in a locale that would take any byte."""
    done = subprocess.run(
        [sys.executable, "-m", "a2a_trio", *words],
        input=b"ab\xff",
        capture_output=True,
        cwd=tmp_path,
        env=environment,
        timeout=PATIENCE,
        check=False,
    )

    assert (done.returncode, done.stdout) == (2, b"")
    assert done.stderr == b"a2a-trio: standard input is not UTF-8 at byte 2\n"
