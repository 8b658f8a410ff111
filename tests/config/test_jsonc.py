"""JSON with comments: read with positions, changed in one place."""

import json

import pytest
from hypothesis import given, strategies as st

from a2a_trio.config.jsonc import MAX_DEPTH, JsoncError, parse, put, remove
from a2a_trio.wire.model import JsonValue

FILE = """\
// the peers of this machine
{
  "theme": "dark", // for another program
  "a2a": {
    /* who we are */
    "selfIdentity": "alice",
    "server": { "port": 9910, "host": "127.0.0.1", },
  },
}
"""


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("{}", {}),
        (
            ' \r\n\t{"a": [1, -2.5e3, true, false, null, "x"]}\n',
            {"a": [1, -2500.0, True, False, None, "x"]},
        ),
        ("[1, 2, ]", [1, 2]),
        ('{"a": 1,}', {"a": 1}),
        ("// c\n/* d */ 5 // e", 5),
        ('{"a": "http://x/*y*/" /* c */}', {"a": "http://x/*y*/"}),
        (r'"\u00e4\n\"\\"', 'ä\n"\\'),
        ('"\\ud800"', "\ud800"),
        ("/***/ 1 /* ** */", 1),
    ],
)
def test_read(text: str, value: JsonValue) -> None:
    """JSON, comments and trailing commas."""
    assert parse(text)[0].value == value


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "the end, where a value should be at line 1, column 1"),
        ("{", "something that is not a name in quotes at line 1, column 2"),
        ('{"a"', "no colon after a name at line 1, column 5"),
        ('{"a":\n', "the end, where a value should be at line 2, column 1"),
        ('{"a": 1\n"b": 2}', "no comma and no } at line 2, column 1"),
        ('{"a": "x\n"}', "a text without end, or with a control character at line 1, column 7"),
        (r'{"a": "\x"}', "a text with a wrong escape at line 1, column 7"),
        ("[1 2]", "no comma and no ] at line 1, column 4"),
        ("{} {}", "text after the end of the value at line 1, column 4"),
        ("/* never", "a comment without end at line 1, column 1"),
        ("{,}", "something that is not a name in quotes at line 1, column 2"),
        ("[,]", "something that is not JSON at line 1, column 2"),
        ("01", "something that is not JSON at line 1, column 1"),
        ("NaN", "something that is not JSON at line 1, column 1"),
        ("'a'", "something that is not JSON at line 1, column 1"),
        ("9" * 41, "something that is not JSON at line 1, column 1"),
        ("\x00", "something that is not JSON at line 1, column 1"),
        ("[" * (MAX_DEPTH + 2), f"more than {MAX_DEPTH} levels at line 1, column {MAX_DEPTH + 2}"),
        ("[" * 100_000, f"more than {MAX_DEPTH} levels at line 1, column {MAX_DEPTH + 2}"),
    ],
)
def test_refused(text: str, message: str) -> None:
    """With the place, and without quoting the text, which may hold a secret."""
    with pytest.raises(JsoncError) as caught:
        parse(text)
    assert str(caught.value) == message


def test_names_given_twice_are_told() -> None:
    """The last one counts, as everywhere."""
    node, twice = parse('{"a": 1, "b": {"c": 1, "c": 2}, "a": 3}')
    assert node.value == {"a": 3, "b": {"c": 2}}
    assert twice == ("c", "a")


def test_put_replaces_the_value_only() -> None:
    """Comments, order and spacing stay."""
    assert put(FILE, ("a2a", "server", "port"), 9920) == FILE.replace("9910", "9920")


def test_put_adds_a_member_at_the_end() -> None:
    """With the objects on the way."""
    changed = put(FILE, ("a2a", "peers", "bob", "url"), "http://b:1")
    assert changed == FILE.replace(
        '"host": "127.0.0.1", },\n',
        '"host": "127.0.0.1", },\n'
        '    "peers": {\n      "bob": {\n        "url": "http://b:1"\n      }\n    }\n',
    ).replace("\n    }\n  },", "\n    }\n  },")


def test_put_after_a_comment() -> None:
    """A new member is not swallowed by a comment."""
    changed = put('{\n  "a": 1 // last\n}', ("b",), 2)
    assert changed == '{\n  "a": 1, // last\n  "b": 2\n}'
    assert parse(put("{ // none\n}", ("b",), 2))[0].value == {"b": 2}


def test_put_does_not_go_through_a_value() -> None:
    """What is no object is not replaced by one."""
    with pytest.raises(JsoncError, match='"a2a" is not an object'):
        put('{"a2a": 5}', ("a2a", "x"), 1)


@pytest.mark.parametrize(
    ("path", "left"),
    [
        (("theme",), FILE.replace('  "theme": "dark", // for another program\n', "   // for another program\n").replace("   //", "  // ")),
        (("a2a", "server", "port"), FILE.replace('"port": 9910, ', "")),
        (("nothing",), FILE),
        (("theme", "x"), FILE),
    ],
)  # fmt: skip
def test_remove(path: tuple[str, ...], left: str) -> None:
    """The member goes and everything else stays."""
    after = remove(FILE, path)
    assert parse(after)[0].value == parse(left)[0].value
    assert after.count("//") == FILE.count("//")


def test_remove_takes_duplicates_too() -> None:
    """Else an older value would count again."""
    assert parse(remove('{"a": 1, "b": 2, "a": 3}', ("a",)))[0].value == {"b": 2}


def test_remove_the_last_before_a_comment() -> None:
    """The closing bracket is not swallowed by a comment."""
    assert parse(remove('{"a": 1, // keep\n"b": 2 }', ("b",)))[0].value == {"a": 1}


json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**30), 10**30) | st.text(),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=4)
    ),
    max_leaves=12,
)
objects = st.dictionaries(st.text(max_size=4), json_values, max_size=4)
paths = st.lists(st.text(max_size=4), min_size=1, max_size=3).map(tuple)


@given(json_values, st.sampled_from([None, 0, 2]))
def test_reads_what_json_writes(value: JsonValue, indent: int | None) -> None:
    """Any value, in any layout."""
    assert parse(json.dumps(value, indent=indent))[0].value == value


@given(st.text(alphabet='{}[]",:/*\\ \n1ae-.', max_size=30))
def test_any_text_is_read_or_refused(text: str) -> None:
    """Nothing else is raised, and what Python reads we read as well."""
    try:
        value = parse(text)[0].value
    except JsoncError:
        with pytest.raises(ValueError):  # noqa: PT011 - any refusal will do
            json.loads(text)
        return
    assert value == value  # noqa: PLR0124 - no NaN can come out


@given(objects, paths, json_values, st.sampled_from([None, 2]))
def test_put_then_read(
    root: dict[str, JsonValue], path: tuple[str, ...], value: JsonValue, indent: int | None
) -> None:
    """The value is at its place and its neighbours are as they were."""
    text = json.dumps(root, indent=indent)
    try:
        changed = parse(put(text, path, value))[0].value
    except JsoncError:
        return
    assert isinstance(changed, dict)
    assert {k: v for k, v in changed.items() if k != path[0]} == {
        k: v for k, v in root.items() if k != path[0]
    }
    found: JsonValue = changed
    for name in path:
        assert isinstance(found, dict)
        found = found[name]
    assert found == value


@given(objects, st.sampled_from([None, 2]))
def test_remove_then_read(root: dict[str, JsonValue], indent: int | None) -> None:
    """Each member can go alone, and all of them one after the other."""
    text = json.dumps(root, indent=indent)
    left = dict(root)
    for name in root:
        text = remove(text, (name,))
        del left[name]
        assert parse(text)[0].value == left


@pytest.mark.parametrize(
    ("path", "left"),
    [
        (("a",), '{\n  "b": {\n    "c": 2,\n    "d": 3\n  },\n  "e": 4\n}\n'),
        (("b",), '{\n  "a": 1,\n  "e": 4\n}\n'),
        (("e",), '{\n  "a": 1,\n  "b": {\n    "c": 2,\n    "d": 3\n  }\n}\n'),
        (("b", "c"), '{\n  "a": 1,\n  "b": {\n    "d": 3\n  },\n  "e": 4\n}\n'),
        (("b", "d"), '{\n  "a": 1,\n  "b": {\n    "c": 2\n  },\n  "e": 4\n}\n'),
    ],
)
def test_what_is_removed_takes_its_line_along(path: tuple[str, ...], left: str) -> None:
    """No empty lines pile up in a file that is edited by command."""
    text = '{\n  "a": 1,\n  "b": {\n    "c": 2,\n    "d": 3\n  },\n  "e": 4\n}\n'
    assert remove(text, path) == left


def test_a_line_with_something_else_on_it_stays() -> None:
    """Comments and neighbours are not part of what is removed."""
    assert remove('{"a": 1, "b": 2}', ("b",)) == '{"a": 1}'
    assert remove('{"a": 1, "b": 2}', ("a",)) == '{"b": 2}'
    assert remove('{\n  "a": 1 // mine\n}', ("a",)) == "{\n  // mine\n}"
