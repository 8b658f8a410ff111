"""Mutations of known inputs: of bytes, and of the tree of a JSON text."""

import copy
import json
import random
from collections.abc import Sequence
from typing import Any, Final

MAX_INPUT: Final = 4096
"""Bytes of one input; parsers break on structure, not on size."""

_ODD_VALUES: Final[tuple[Any, ...]] = (
    None, True, False, 0, 1, -1, 2, 5.0, 5.5, 2**31, 2**63, 2**64, 1e300, "", "x", "\0", "user", "agent",
    "_-8", "!", "2026-01-02T03:04:05Z", [], {}, [[]], [None], {"": None}, {"a": 1},
)  # fmt: skip


def mutate_bytes(rng: random.Random, pool: Sequence[bytes], words: Sequence[bytes]) -> bytes:
    """Return an input made of one or two known ones, without regard for their format."""
    data = bytearray(rng.choice(pool))
    for _ in range(rng.choice((1, 1, 2, 4, 8))):
        at = rng.randint(0, len(data))
        end = min(len(data), at + rng.choice((0, 1, 2, 8, 64)))
        match rng.randrange(7):
            case 0 if data:
                data[at % len(data)] ^= 1 << rng.randrange(8)
            case 1:
                data[at:end] = b""
            case 2:
                data[at:at] = rng.randbytes(rng.choice((1, 2, 4)))
            case 3 if words:
                data[at:end] = rng.choice(words)
            case 4:
                data[at:at] = data[at:end] * rng.choice((1, 2, 40))
            case 5:
                other = rng.choice(pool)
                start = rng.randint(0, len(other))
                data[at:end] = other[start : start + rng.choice((4, 32, 256))]
            case _ if words:
                data[at:at] = rng.choice(words)
    return bytes(data[:MAX_INPUT])


def mutate_json(rng: random.Random, pool: Sequence[bytes], names: Sequence[str]) -> bytes:
    """Return a JSON text made of one or two known ones; not JSON only if they were not."""
    chosen = rng.choice(pool)
    try:
        root = json.loads(chosen)
        donor = json.loads(rng.choice(pool))
    except (ValueError, RecursionError):
        return chosen
    for _ in range(rng.choice((1, 1, 2, 3))):
        places = _places(root)
        if not places:
            return json.dumps(_odd(rng)).encode()
        _change(rng, *rng.choice(places), donor, names)
    return json.dumps(root).encode()[:MAX_INPUT]


def _odd(rng: random.Random) -> Any:
    """Return a fresh value; the next change may be inside it."""
    return copy.deepcopy(rng.choice(_ODD_VALUES))


def _places(root: Any) -> list[tuple[Any, Any]]:
    """Return every (container, key) of a tree."""
    found = []
    waiting = [root]
    while waiting:
        container = waiting.pop()
        if isinstance(container, dict | list):
            keys = container if isinstance(container, dict) else range(len(container))
            found += [(container, key) for key in keys]
            waiting += container.values() if isinstance(container, dict) else container
    return found


def _change(rng: random.Random, container: Any, key: Any, donor: Any, names: Sequence[str]) -> None:
    match rng.randrange(6):
        case 0:
            container[key] = _odd(rng)
        case 1:
            del container[key]
        case 2:
            places = _places(donor)
            holder, at = rng.choice(places) if places else ([donor], 0)
            container[key] = copy.deepcopy(holder[at])
        case 3 if isinstance(container, dict) and names:
            container[rng.choice(names)] = container.pop(key)
        case 4 if isinstance(container, dict) and names:
            container[rng.choice(names)] = _odd(rng)
        case 5:
            container[key] = [copy.deepcopy(container[key]) for _ in range(rng.choice((1, 2, 5)))]
        case _:
            container[key] = {rng.choice(names or ("a",)): container[key]}
