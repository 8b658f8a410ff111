"""Where a bearer token comes from. A token is never shown, not even in an error text."""

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from a2a_trio.cli.exits import UsageError

TOKEN_VARIABLE: Final = "A2A_BEARER_TOKEN"  # noqa: S105 - the name of a variable, not a token

MAX_FILE_BYTES: Final = 65_536
"""A token file larger than this is surely another file."""


def given_token(token: str | None, token_file: str | None) -> str | None:
    """Return the token of ``--token`` or ``--token-file``, or None if neither was given.

    Raises:
        UsageError: the file cannot be read, or what was given cannot be a token.
    """
    if token is not None:
        return _checked(token, "--token")
    if token_file is not None:
        return _checked(_first_line(Path(token_file)), f"--token-file {token_file}")
    return None


def variable_token(environ: Mapping[str, str]) -> str | None:
    """Return the token of ``A2A_BEARER_TOKEN``, or None if it is unset or empty.

    Raises:
        UsageError: what it holds cannot be a token.
    """
    token = environ.get(TOKEN_VARIABLE, "")
    return _checked(token, TOKEN_VARIABLE) if token else None


def _first_line(path: Path) -> str:
    try:
        with path.open("rb") as file:
            content = file.read(MAX_FILE_BYTES + 1)
    except OSError as error:
        raise UsageError(f"--token-file {path}: {error.strerror}") from None
    if len(content) > MAX_FILE_BYTES:
        raise UsageError(f"--token-file {path}: larger than {MAX_FILE_BYTES} bytes")
    lines = content.decode("utf-8", "replace").splitlines()
    return lines[0].strip() if lines else ""


def _checked(token: str, source: str) -> str:
    if not token:
        raise UsageError(f"{source}: the token is empty")
    if not token.isascii() or not token.isprintable() or " " in token:
        raise UsageError(f"{source}: a token has only visible ASCII characters")
    return token
