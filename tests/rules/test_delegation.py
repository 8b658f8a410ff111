"""The chain of delegation: depth, loops, malformed chains."""

import json

import pytest
from hypothesis import given, strategies as st

from a2a_trio.rules.delegation import MAX_CHAIN, MAX_NAME_CHARS, check, extend
from a2a_trio.wire.extensions import DELEGATION_EXTENSION
from a2a_trio.wire.model import JsonObject, JsonValue

NAMES = st.text(min_size=1, max_size=20)


def chain(value: JsonValue) -> JsonObject:
    return {DELEGATION_EXTENSION: value}


def test_a_message_that_nobody_delegated_passes() -> None:
    assert check({}, self_id="me", max_depth=0) is None
    assert check({"other": 1}, self_id="me", max_depth=0) is None


def test_extending_adds_this_agent_and_keeps_the_rest() -> None:
    first = extend({"trace": "x"}, self_id="a")
    assert first == {"trace": "x", DELEGATION_EXTENSION: {"hops": 1, "chain": ["a"]}}
    second = extend(first, self_id="b")
    assert second[DELEGATION_EXTENSION] == {"hops": 2, "chain": ["a", "b"]}
    assert first[DELEGATION_EXTENSION] == {"hops": 1, "chain": ["a"]}, "the original is unchanged"


def test_an_agent_already_in_the_chain_refuses() -> None:
    reason = check(chain({"hops": 2, "chain": ["me", "b"]}), self_id="me", max_depth=8)
    assert reason is not None
    assert "loop" in reason


def test_an_agent_without_a_name_counts_but_is_not_named() -> None:
    extended = extend({}, self_id="")
    assert extended[DELEGATION_EXTENSION] == {"hops": 1, "chain": []}
    assert check(extended, self_id="", max_depth=1) is None
    assert check(extended, self_id="", max_depth=0) is not None


def test_depth_is_the_number_of_hand_overs() -> None:
    metadata: JsonObject = {}
    for hop in range(8):
        metadata = extend(metadata, self_id=f"agent-{hop}")
    assert check(metadata, self_id="me", max_depth=8) is None
    reason = check(metadata, self_id="me", max_depth=7)
    assert reason == "delegated 8 times, which is beyond the limit of 7"


def test_a_number_that_protocol_buffers_made_a_double_is_read() -> None:
    assert check(chain({"hops": 2.0, "chain": ["a"]}), self_id="me", max_depth=2) is None
    assert check(chain({"chain": ["a"]}), self_id="me", max_depth=1) is None


@pytest.mark.parametrize(
    "value",
    [
        None,
        [],
        "a,b",
        3,
        {"hops": "2"},
        {"hops": True, "chain": []},
        {"hops": 1.5},
        {"hops": -1},
        {"hops": 2**40},
        {"hops": float("inf")},
        {"hops": float("nan")},
        {"hops": 1, "chain": ["a", "b"]},
        {"chain": "abc"},
        {"chain": {"a": 1}},
        {"chain": [1]},
        {"chain": [""]},
        {"chain": [["a"]]},
        {"chain": ["x" * (MAX_NAME_CHARS + 1)]},
        {"chain": ["x"] * (MAX_CHAIN + 1)},
        {"chain": None},
        {"hops": None},
    ],
)
def test_a_malformed_chain_is_refused_in_words(value: JsonValue) -> None:
    reason = check(chain(value), self_id="me", max_depth=8)
    assert reason is not None
    assert reason.startswith("malformed delegation metadata: ")
    with pytest.raises(ValueError, match="malformed delegation metadata"):
        extend(chain(value), self_id="me")


def test_a_chain_that_is_full_cannot_be_extended() -> None:
    full = chain({"chain": ["x"] * MAX_CHAIN})
    with pytest.raises(ValueError, match="cannot be extended"):
        extend(full, self_id="me")
    with pytest.raises(ValueError, match="cannot be extended"):
        extend({}, self_id="x" * (MAX_NAME_CHARS + 1))
    with pytest.raises(ValueError, match="cannot be extended"):
        extend(chain({"hops": 2**31 - 1}), self_id="me")


@given(st.lists(NAMES, max_size=12), st.integers(0, 12), NAMES)
def test_check_agrees_with_the_walk(path: list[str], max_depth: int, self_id: str) -> None:
    """A walk through agents is refused exactly where the naive model says so."""
    metadata: JsonObject = {}
    for name in path:
        metadata = extend(metadata, self_id=name)
    metadata = json.loads(json.dumps(dict(metadata)))
    refused = check(metadata, self_id=self_id, max_depth=max_depth) is not None
    assert refused == (self_id in path or len(path) > max_depth)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=8,
)


@given(JSON | st.fixed_dictionaries({}, optional={"hops": JSON, "chain": JSON}))
def test_any_value_is_read_or_refused(value: JsonValue) -> None:
    """No metadata raises from ``check``; what it accepts can be extended and is then deeper."""
    if check(chain(value), self_id="me", max_depth=10**9) is None:
        extended = extend(chain(value), self_id="me")
        assert check(extended, self_id="me", max_depth=10**9) is not None
        assert check(extended, self_id="you", max_depth=0) is not None
