"""The reference page of all settings, made from the table: ``python -m a2a_trio.config.reference``.

The page is ``docs/reference/settings.md``; a test compares it with what this module makes.
"""

import json
import sys
from collections.abc import Iterator, Mapping
from itertools import groupby
from types import MappingProxyType
from typing import Final

from a2a_trio.config.fields import Kind
from a2a_trio.config.table import ANY_NAME, Key, keys
from a2a_trio.config.values import to_json

__all__ = ["render"]

_INTRODUCTION: Final = """\
# Settings

<!-- Made by `python -m a2a_trio.config.reference`; do not edit. -->

Settings live in `settings.json` in the state directory: `A2A_HOME` if set, else the platform's user
state directory for `a2a-trio`. They are members of the object `a2a`; other members of the file are
left alone. Comments and trailing commas are allowed, and `a2a-trio config set` keeps them.

```jsonc
{
  "a2a": {
    // who may call, by name
    "server": { "port": 9910, "peerTokens": { "alice": { "file": "alice.token" } } },
    "peers": { "researcher": { "url": "http://localhost:9999", "timeout": 120 } },
  }
}
```

## Which source counts

The first of these that has a key wins, key by key:

1. the command line;
2. environment variables (an empty one is not set), then the `A2A_*` lines of `.env.local` in the
   state directory;
3. `.a2a/settings.json`, then `.pi/settings.json`, in the working directory: only the keys marked
   *project* below. Everything else there is ignored with a warning, because a repository that you
   check out must not open a server or redirect your calls. Peers named there get no credential and
   cannot take the name of one of yours;
4. the settings file;
5. the default.

A list, and the directory `server.peerTokens`, is one value: the source that counts replaces it whole.
`"key": null` means "not set here". An unknown key is a warning; a wrong type or a value out of range
is an error, and all errors are told at once.

## Values

- *Secrets* are text, `{"file": "path"}` (relative to the settings file, white space around it is not
  part of the secret) or `{"env": "NAME"}`. They are never shown, and outgoing text is searched for
  those of at least eight characters. A settings file with secrets should have mode 0600.
- In environment variables switches are `1`, `true`, `yes`, `on` or `0`, `false`, `no`, `off`; lists are
  separated by commas.
- Durations may have fractions. Note the units: a peer's `timeout` is in seconds, `timeouts.*` are in
  milliseconds.
- A token in `server.peerTokens` may be a list, so that the old one still works while callers change
  to the new one. This peer itself presents the first.
"""

_TITLES: Final[Mapping[str, str]] = MappingProxyType(
    {
        "peers": "Peers",
        "server": "Server",
        "timeouts": "Time-outs of outbound calls",
        "discovery": "Discovery",
        "ui": "What is shown",
        "push": "Push notifications",
        "filters": "Content filters",
        "log": "Log",
    }
)


def render() -> str:
    """Return the page as Markdown."""
    lines = [_INTRODUCTION]
    for title, group in groupby(_ordered(), key=_title):
        lines += [f"## {title}", ""]
        lines += ["| key | default | allowed | variable | meaning |", "|---|---|---|---|---|"]
        lines += [_row(key) for key in group]
        lines.append("")
    return "\n".join(lines)


def _ordered() -> Iterator[Key]:
    """Yield the keys with those of the top level first, so that each title comes once."""
    found = tuple(keys())
    yield from (key for key in found if len(key.path) == 1)
    yield from (key for key in found if len(key.path) > 1)


def _title(key: Key) -> str:
    return "General" if len(key.path) == 1 else _TITLES[key.path[0]]


def _row(key: Key) -> str:
    told = key.declaration
    name = f"`{key.name}`" + (" *project*" if told.project_safe else "")
    variable = f"`{told.env}`" if told.env else ""
    cells = (name, _default(key), _allowed(key), variable, told.doc)
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def _default(key: Key) -> str:
    if key.declaration.optional:
        return "not set"
    if key.path[-2:] == (ANY_NAME, "url"):
        return "required" if key.path[0] == "peers" else '`""`'
    return f"`{json.dumps(to_json(key.default))}`"


def _allowed(key: Key) -> str:
    told = key.declaration
    if told.kind is Kind.SECRET:
        return "secret"
    if told.kind is Kind.TOKENS:
        return "object of names and secrets"
    if told.choices:
        return ", ".join(f"`{choice}`" for choice in told.choices)
    return told.allowed.partition(" that matches ")[0]


if __name__ == "__main__":
    sys.stdout.write(render())
