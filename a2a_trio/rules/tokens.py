"""Bearer tokens and whom they name, compared without telling how nearly one was right."""

import hmac
from collections.abc import Iterable
from hashlib import sha256
from typing import Final, TypeAlias, final

MAX_MINTED_TOKENS: Final = 256
"""Tokens minted at run time: one per gateway, with room for rotation."""

RESERVED_PREFIX: Final = "ip:"
"""Begins the identity of a caller who is known by address; no configured name may."""

_Entries: TypeAlias = tuple[tuple[bytes, str], ...]


@final
class TokenTable:
    """Find out whom a presented token names.

    Order of precedence: the peers' own tokens, minted tokens, shared tokens.

    Args:
        named: (name, token) pairs; a name may have several tokens, for rotation.
        shared: tokens that admit without naming anybody.

    Raises:
        ValueError: a name or token is empty (an empty token would admit everybody), or a name
            begins with ``RESERVED_PREFIX``; a token is no text.
    """

    def __init__(self, named: Iterable[tuple[str, str]], shared: Iterable[str]) -> None:
        self._named = _entries(named)
        self._minted: _Entries = ()
        shared = tuple(shared)
        if not all(shared):
            raise ValueError("a token must not be empty")
        self._shared: _Entries = tuple((_digest(_bytes(token)), "") for token in shared)
        self.names = frozenset(name.casefold() for _, name in self._named)
        """Every configured or minted name, case folded."""

    def set_minted(self, tokens: Iterable[tuple[str, str]]) -> None:
        """Replace the minted tokens: (name, token) pairs.

        Raises:
            ValueError: as at construction, or more than ``MAX_MINTED_TOKENS``; nothing is replaced.
        """
        minted = _entries(tokens)
        if len(minted) > MAX_MINTED_TOKENS:
            raise ValueError(f"more than {MAX_MINTED_TOKENS} minted tokens")
        self._minted = minted
        self.names = frozenset(name.casefold() for _, name in (*self._named, *minted))

    def match(self, presented: bytes) -> str | None:
        """Return the name of a token, "" for a shared one, None for an unknown one.

        Compares with every token, always: the time taken tells neither how many characters were
        right nor whose token it was.
        """
        digest = _digest(presented)
        found: str | None = None
        for known, name in (*self._named, *self._minted, *self._shared):
            if hmac.compare_digest(known, digest) and found is None:
                found = name
        return found


def _entries(pairs: Iterable[tuple[str, str]]) -> _Entries:
    entries = []
    for name, token in pairs:
        if not name or not token:
            raise ValueError("the name of a token and the token must not be empty")
        if name.startswith(RESERVED_PREFIX):
            raise ValueError(f"a name must not begin with {RESERVED_PREFIX}: {name!r}")
        entries.append((_digest(_bytes(token)), name))
    return tuple(entries)


def _bytes(token: str) -> bytes:
    """Return a configured token as it comes on the wire; the environment may not be UTF-8."""
    try:
        return token.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        raise ValueError("a token must be text without lone surrogates") from None


def _digest(token: bytes) -> bytes:
    """Give every token one length, so that comparing reveals none."""
    return sha256(token).digest()
