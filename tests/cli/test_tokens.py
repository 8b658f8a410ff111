"""Bearer tokens come from three places and show up in none."""

from pathlib import Path

import pytest

from a2a_trio.cli.exits import UsageError
from a2a_trio.cli.tokens import MAX_FILE_BYTES, given_token, variable_token


def test_no_token_is_none() -> None:
    """Nothing given, nothing sent."""
    assert given_token(None, None) is None
    assert variable_token({}) is None
    assert variable_token({"A2A_BEARER_TOKEN": ""}) is None


def test_token_file_gives_its_first_line(tmp_path: Path) -> None:
    """White space and further lines are no part of the token."""
    path = tmp_path / "token"
    path.write_text(" abc \r\nsecond\n")

    assert given_token(None, str(path)) == "abc"


@pytest.mark.parametrize("token", ["", "two words", "line\nfeed", "tök", "a\x00b"])
def test_what_a_header_cannot_carry_is_refused_and_not_shown(token: str) -> None:
    """The text names the source; the token itself stays secret."""
    with pytest.raises(UsageError) as caught:
        given_token(token, None)

    assert str(caught.value).startswith("--token: ")
    assert not token or token not in str(caught.value)


def test_variable_is_checked_too() -> None:
    """A broken variable is an error, not a call without a token."""
    with pytest.raises(UsageError, match="A2A_BEARER_TOKEN"):
        variable_token({"A2A_BEARER_TOKEN": "two words"})


def test_missing_file_is_a_usage_error(tmp_path: Path) -> None:
    """The text says which file and why."""
    with pytest.raises(UsageError, match="No such file"):
        given_token(None, str(tmp_path / "missing"))


def test_empty_and_huge_files_are_refused(tmp_path: Path) -> None:
    """A file that is no token file is not read to its end."""
    empty, huge = tmp_path / "empty", tmp_path / "huge"
    empty.write_bytes(b"")
    huge.write_bytes(b"x" * (MAX_FILE_BYTES + 1))

    with pytest.raises(UsageError, match="empty"):
        given_token(None, str(empty))
    with pytest.raises(UsageError, match="larger than"):
        given_token(None, str(huge))
