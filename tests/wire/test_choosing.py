"""Which dialect a request speaks: the table of the architecture, row by row."""

from collections.abc import Callable

import pytest
from hypothesis import given, strategies as st

from a2a_trio.errors import VersionNotSupportedError
from a2a_trio.testing.strategies import json_values, texts
from a2a_trio.wire.choosing import choose_dialect, method_name
from a2a_trio.wire.methods import METHODS, Dialect, Operation, find_method, method_of
from a2a_trio.wire.model import JsonValue

V1, V03, LEGACY = Dialect.V1, Dialect.V03, Dialect.LEGACY

V1_NAMES = [method.operation.value for method in METHODS]
OLD_NAMES = [alias for method in METHODS for alias in method.aliases if alias]
EITHER = ["message/send", "message/stream", "tasks/get", "tasks/cancel"]

PLAIN: JsonValue = {
    "id": "t",
    "message": {"messageId": "m", "role": "ROLE_USER", "parts": [{"text": "x"}]},
}


def choose(
    name: str,
    version: str | None = None,
    params: JsonValue = None,
    *,
    strict: bool = False,
    stored: Callable[[str], Dialect | None] = lambda _id: None,
) -> Dialect | None:
    """The dialect, or None for -32009."""
    try:
        return choose_dialect(name, version, params, strict=strict, stored=stored)
    except VersionNotSupportedError:
        return None


@pytest.mark.parametrize("name", V1_NAMES)
def test_v1_names(name: str) -> None:
    """Served as v1.0 without a header, unless strict; never as 0.3."""
    for version in ("1.0", "1.0.0", "1.0.7", " 1.0 "):
        assert choose(name, version) is V1
        assert choose(name, version, strict=True) is V1
    for absent in (None, "", "  "):
        assert choose(name, absent) is V1
        assert choose(name, absent, strict=True) is None
    for older in ("0.3", "0.3.0"):
        assert choose(name, older) is None


@pytest.mark.parametrize("name", [*V1_NAMES, *OLD_NAMES, "nobody/knows", "Unknown"])
@pytest.mark.parametrize(
    "version", ["2.0", "1.1", "1.5", "1", "0.2", "0.5", "abc", "1.0, 1.0", "1.0.x", "v1.0", "-1.0", "\uff11.0"]
)  # fmt: skip
def test_unsupported_versions(name: str, version: str) -> None:
    """Always -32009, whatever the method."""
    assert choose(name, version, PLAIN) is None


def test_the_refusal_names_what_is_supported_and_bounds_what_it_repeats() -> None:
    """The header is the caller's text."""
    with pytest.raises(VersionNotSupportedError) as caught:
        choose_dialect("SendMessage", "9" * 5000, None, strict=False, stored=lambda _id: None)
    assert caught.value.metadata == {"supportedVersions": "1.0, 0.3"}
    assert len(caught.value.message) < 100


@pytest.mark.parametrize("name", EITHER)
@pytest.mark.parametrize("version", [None, "1.0"])
def test_slash_names_are_legacy_unless_something_says_v03(name: str, version: str | None) -> None:
    """pi-a2a's clients send v1.0 spellings, and a 1.0 header, under slash names."""
    assert choose(name, version, PLAIN) is LEGACY
    assert choose(name, version, None) is LEGACY
    assert choose(name, version, PLAIN, strict=True) is LEGACY


@pytest.mark.parametrize("name", EITHER)
def test_the_header_says_v03(name: str) -> None:
    """Whatever the parameters look like."""
    assert choose(name, "0.3", PLAIN) is V03
    assert choose(name, "0.3.0", PLAIN) is V03


@pytest.mark.parametrize(
    "params",
    [
        {"message": {"kind": "message", "role": "ROLE_USER"}},
        {"message": {"role": "user", "parts": [{"text": "x"}]}},
        {"message": {"role": "agent"}},
        {"message": {"role": "ROLE_USER", "parts": [{"text": "x"}, {"kind": "text", "text": "x"}]}},
        {"kind": "message", "parts": []},
        {"role": "user", "parts": []},
    ],
)
def test_the_parameters_say_v03(params: JsonValue) -> None:
    """``kind`` or a lower-case role, in the message or where it is the parameters."""
    for version in (None, "1.0"):
        assert choose("message/send", version, params) is V03
        assert choose("message/stream", version, params) is V03


@pytest.mark.parametrize("odd", [None, True, 5, 1.5, "x", [], ["user"], {}, {"user": 1}])
def test_members_of_any_type_are_no_surprise(odd: JsonValue) -> None:
    """The parameters are not checked yet when the dialect is chosen."""
    shapes: list[JsonValue] = [
        odd,
        {"message": odd, "id": odd},
        {"message": {"role": odd, "parts": odd, "taskId": odd}},
        {"message": {"parts": [odd, {"kind": odd}]}},
        {"role": odd, "parts": [odd]},
    ]
    for name in EITHER:
        assert all(choose(name, None, params) in (V03, LEGACY) for params in shapes)


@pytest.mark.parametrize(
    ("name", "params"),
    [
        ("tasks/get", {"id": "t"}),
        ("tasks/cancel", {"id": "t"}),
        ("message/send", {"message": {"taskId": "t", "role": "ROLE_USER"}}),
    ],
)
def test_the_task_says_v03(name: str, params: JsonValue) -> None:
    """A task created in v0.3 is answered in v0.3 (a poll has no marks of its own)."""
    created: dict[str, Dialect] = {"t": V03}
    assert choose(name, None, params, stored=created.get) is V03
    created["t"] = LEGACY
    assert choose(name, None, params, stored=created.get) is LEGACY
    created["t"] = V1
    assert choose(name, None, params, stored=created.get) is LEGACY
    assert choose(name, None, params) is LEGACY


@pytest.mark.parametrize("version", [None, "0.3", "1.0"])
def test_names_that_only_one_dialect_had(version: str | None) -> None:
    """resubscribe and the push names are v0.3's; list and subscribe are pi-a2a's."""
    assert choose("tasks/resubscribe", version, PLAIN) is V03
    assert choose("tasks/pushNotificationConfig/set", version, PLAIN) is V03
    assert choose("agent/getAuthenticatedExtendedCard", version, None) is V03
    assert choose("tasks/list", version, {}) is LEGACY
    assert choose("tasks/subscribe", version, PLAIN) is LEGACY


@given(
    st.sampled_from([*V1_NAMES, *OLD_NAMES]) | texts(),
    st.none() | st.sampled_from(["1.0", "0.3"]) | texts(),
    json_values(),
)
def test_any_request_gets_a_dialect_or_the_one_error(
    name: str, version: str | None, params: JsonValue
) -> None:
    """No input surprises the choice; a v1.0 name never gets an older dialect."""
    chosen = choose(name, version, params, stored=lambda _id: V03)
    assert chosen in ({None, V1} if "/" not in name else {None, V03, LEGACY})


# --- the method table -----------------------------------------------------------------------


def test_every_name_finds_its_row_and_no_two_rows_share_one() -> None:
    """The table is a function of the name."""
    names = [*V1_NAMES, *OLD_NAMES]
    assert len(names) == len(set(names))
    for method in METHODS:
        for name in (method.operation.value, *filter(None, method.aliases)):
            assert find_method(name) is method
    assert find_method("") is None
    assert find_method("sendmessage") is None


def test_names_per_dialect() -> None:
    """v0.3 had no way to list tasks over JSON-RPC; pi-a2a had."""
    listing = method_of(Operation.LIST_TASKS)
    names = {dialect: method_name(listing, dialect) for dialect in Dialect}
    assert names == {V1: "ListTasks", V03: None, LEGACY: "tasks/list"}
    subscribing = method_of(Operation.SUBSCRIBE_TO_TASK)
    assert method_name(subscribing, V03) == "tasks/resubscribe"
    assert method_name(subscribing, LEGACY) == "tasks/subscribe"


@pytest.mark.parametrize("method", METHODS, ids=lambda method: method.operation.value)
@pytest.mark.parametrize("dialect", list(Dialect))
def test_a_name_is_understood_in_the_dialect_it_was_made_for(
    method: object, dialect: Dialect
) -> None:
    """Client and server agree."""
    row = next(m for m in METHODS if m is method)
    name = method_name(row, dialect)
    if name is not None:
        assert find_method(name) is row
        version = {V1: "1.0", V03: "0.3", LEGACY: None}[dialect]
        assert choose(name, version, {}) is dialect
