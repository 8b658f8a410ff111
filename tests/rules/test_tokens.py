"""Bearer tokens and whom they name."""

import pytest
from hypothesis import given, strategies as st

from a2a_trio.rules.tokens import MAX_MINTED_TOKENS, TokenTable

TEXT = st.text(st.characters(codec="utf-8"), min_size=1, max_size=8)


def test_precedence_is_peer_then_minted_then_shared() -> None:
    table = TokenTable([("alice", "one"), ("bob", "one")], ["one", "two", "three"])
    table.set_minted([("gateway", "two")])
    assert table.match(b"one") == "alice"
    assert table.match(b"two") == "gateway"
    assert table.match(b"three") == ""
    assert table.match(b"four") is None
    assert table.match(b"") is None


def test_a_peer_may_have_several_tokens() -> None:
    table = TokenTable([("alice", "old"), ("alice", "new")], [])
    assert table.match(b"old") == table.match(b"new") == "alice"


def test_tokens_need_not_be_ascii() -> None:
    assert TokenTable([("alice", "schlüssel-🔑")], []).match("schlüssel-🔑".encode()) == "alice"


def test_a_token_from_an_environment_that_is_not_utf_8_is_its_bytes() -> None:
    assert TokenTable([("alice", "a\udce4")], []).match(b"a\xe4") == "alice"
    with pytest.raises(ValueError, match="lone surrogates") as caught:
        TokenTable([], ["secret\ud800"])
    assert "secret" not in str(caught.value)
    assert caught.value.__cause__ is None


def test_minted_tokens_are_replaced_as_a_whole() -> None:
    table = TokenTable([("Alice", "a")], [])
    table.set_minted([("Gate", "one")])
    assert table.names == {"alice", "gate"}
    table.set_minted([("other", "two")])
    assert table.match(b"one") is None
    assert table.match(b"two") == "other"
    assert table.names == {"alice", "other"}


@pytest.mark.parametrize("pair", [("", "t"), ("alice", ""), ("ip:10.0.0.1", "t")])
def test_a_token_that_would_admit_everybody_is_refused(pair: tuple[str, str]) -> None:
    table = TokenTable([("alice", "a")], [])
    table.set_minted([("gate", "g")])
    with pytest.raises(ValueError, match="name"):
        TokenTable([pair], [])
    with pytest.raises(ValueError, match="name"):
        table.set_minted([pair])
    assert table.match(b"g") == "gate", "nothing was replaced"
    with pytest.raises(ValueError, match="empty"):
        TokenTable([], [""])


def test_minted_tokens_are_bounded() -> None:
    table = TokenTable([], [])
    with pytest.raises(ValueError, match="more than"):
        table.set_minted((str(n), str(n)) for n in range(MAX_MINTED_TOKENS + 1))


@given(st.lists(st.tuples(TEXT.filter(lambda t: not t.startswith("ip:")), TEXT)), TEXT)
def test_the_table_agrees_with_a_plain_search(pairs: list[tuple[str, str]], token: str) -> None:
    table = TokenTable(pairs, [])
    assert table.match(token.encode()) == next((n for n, t in pairs if t == token), None)
