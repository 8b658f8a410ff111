"""Stop work from being handed round in circles: the chain of agents in message metadata.

Under ``DELEGATION_EXTENSION`` a message carries ``{"hops": 2, "chain": ["a", "b"]}``: how often the
work was handed on, and the names of those who handed it on, the first one first. An agent that does
not want to be named only raises ``hops``, which may therefore be larger than the chain is long.

The metadata is the sender's word: it stops accidents, such as two agents that delegate to each
other, not a peer that lies. Rate limit and turn cap hold against those.
"""

from collections.abc import Mapping
from typing import Final, final

import attrs

from a2a_trio.wire.extensions import DELEGATION_EXTENSION
from a2a_trio.wire.model import JsonObject, JsonValue

MAX_CHAIN: Final = 64
"""Names in a chain; far beyond any useful depth, so more is malformed."""
MAX_NAME_CHARS: Final = 256
_MAX_HOPS: Final = 2**31 - 1


@final
@attrs.frozen
class _Chain:
    hops: int = 0
    names: tuple[str, ...] = ()


def check(metadata: JsonObject, *, self_id: str, max_depth: int) -> str | None:
    """Return why a message must not be worked on, or None.

    Args:
        metadata: the metadata of the message.
        self_id: this agent's name in chains; "" if it has none, then only the depth is checked.
        max_depth: hand-overs allowed; 0 accepts only messages that nobody delegated.
    """
    try:
        chain = _read(metadata)
    except ValueError as exc:
        return str(exc)
    if self_id and self_id in chain.names:
        return "delegation loop: this agent is already in the chain of the request"
    if chain.hops > max_depth:
        return f"delegated {chain.hops} times, which is beyond the limit of {max_depth}"
    return None


def extend(metadata: JsonObject, *, self_id: str) -> dict[str, JsonValue]:
    """Return the metadata for handing the work on: a copy with this agent added to the chain.

    Args:
        metadata: of the message being worked on, or of one that begins here (then without chain).
        self_id: this agent's name in chains; "" is counted but not named.

    Raises:
        ValueError: the chain is malformed or full (``check`` refuses such messages), or the name is
            longer than ``MAX_NAME_CHARS``.
    """
    chain = _read(metadata)
    names = (*chain.names, self_id) if self_id else chain.names
    if len(self_id) > MAX_NAME_CHARS or len(names) > MAX_CHAIN or chain.hops >= _MAX_HOPS:
        raise ValueError("the delegation chain cannot be extended")
    extended: dict[str, JsonValue] = {"hops": chain.hops + 1, "chain": list(names)}
    return {**metadata, DELEGATION_EXTENSION: extended}


def _read(metadata: JsonObject) -> _Chain:
    """Read the chain strictly: a chain that cannot be read might contain this agent.

    Raises:
        ValueError: it is malformed.
    """
    if DELEGATION_EXTENSION not in metadata:
        return _Chain()
    value = metadata[DELEGATION_EXTENSION]
    if not isinstance(value, Mapping):
        raise ValueError(  # noqa: TRY004 - wrong is the sender's value, not a type of ours
            "malformed delegation metadata: it is not an object"
        )
    names = value.get("chain", [])
    if not isinstance(names, list) or len(names) > MAX_CHAIN:
        raise ValueError(f"malformed delegation metadata: chain is not a list of up to {MAX_CHAIN}")
    texts = tuple(name for name in names if isinstance(name, str) and name)
    if len(texts) < len(names) or any(len(name) > MAX_NAME_CHARS for name in texts):
        raise ValueError("malformed delegation metadata: chain has an entry that is no name")
    hops = _whole(value.get("hops", len(texts)))
    if hops is None or not len(texts) <= hops <= _MAX_HOPS:
        raise ValueError("malformed delegation metadata: hops is not a count of the chain")
    return _Chain(hops, texts)


def _whole(value: JsonValue) -> int | None:
    """Accept 2 and 2.0, which are the same number in JSON and to protocol buffers."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) else None
