"""Invariant: any text is a settings file or is refused with the one error; edits keep the rest.

A value that was put can be read again at its place, and nothing else changes; removing it gives the
old value back. What a file in the working directory says never sets what is not safe.
"""

import contextlib

from a2a_trio.config.jsonc import JsoncError, parse, put, remove
from a2a_trio.config.sources import merge, read_environment, read_object
from a2a_trio.config.table import keys, split_key
from a2a_trio.errors import SettingsError
from a2a_trio.wire.model import JsonValue
from fuzz.harness import Target


def no_secret(where: str, name: str) -> str:
    """Find nothing, as in an empty home."""
    raise ValueError(f"no {where} {name:.20}")


def check_edit(text: str, root: dict[str, JsonValue]) -> None:
    """Put a member, read it, remove it."""
    changed = put(text, ("a2a-fuzz", "key"), [1])
    node, _ = parse(changed)
    held = root.get("a2a-fuzz")
    inner = {**held, "key": [1]} if isinstance(held, dict) else {"key": [1]}
    assert node.value == {**root, "a2a-fuzz": inner}
    back, _ = parse(remove(changed, ("a2a-fuzz",)))
    assert back.value == {name: value for name, value in root.items() if name != "a2a-fuzz"}
    for name in root:
        left, _ = parse(remove(text, (name,)))
        assert left.value == {n: v for n, v in root.items() if n != name}


def check(data: bytes) -> None:
    """Read the text as a file of both kinds, and as an environment variable."""
    text = data.decode("utf-8", "replace")
    for key in keys():
        if key.declaration.env:
            with contextlib.suppress(SettingsError):
                merge((read_environment({key.declaration.env: text}),))
    split_key(text)
    try:
        node, _ = parse(text)
    except JsoncError:
        return
    if isinstance(node.value, dict) and node.value == node.value:
        with contextlib.suppress(JsoncError):
            check_edit(text, node.value)
    for project in (False, True):
        layer = read_object(node.value, label="file", project=project, read_secret=no_secret)
        try:
            merged = merge((layer,))
        except SettingsError:
            continue
        assert not project or not merged.settings.secrets()
        assert not project or not merged.settings.server.enabled


TARGET = Target(
    name="settings",
    check=check,
    words=(
        b"{", b"}", b"[", b"]", b":", b",", b'"', b"// c\n", b"/* c */", b"true", b"null", b"1e5", b"\\u00e4",
        b'"server"', b'"port": 9910', b'"peers"', b'"url": "http://x"', b'"file"', b'"env"', b"\xef\xbb\xbf", b"\n",
    ),
    names=(*dict.fromkeys(part for key in keys() for part in key.path), "a2a-fuzz"),
)  # fmt: skip
