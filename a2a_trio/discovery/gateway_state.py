"""The tokens that gateways have given to this peer, kept over restarts: a lost one is lost for good."""

import os
import re
from contextlib import suppress
from pathlib import Path
from typing import Final, final

from a2a_trio._disk import READ, FileOps, Folder, open_private, replace_private
from a2a_trio._threads import Offload, in_thread
from a2a_trio.errors import ProtocolError
from a2a_trio.wire.json_text import dumps, loads

__all__ = ["FOLDER", "TokenFile"]

FOLDER: Final = "a2a_gateways"
MAX_BYTES: Final = 16_384
"""Size of a file that is read."""

_ILLEGAL: Final = re.compile(r"[^A-Za-z0-9._-]", re.ASCII)


@final
class TokenFile:
    """The token of one name at one gateway: ``<home>/a2a_gateways/<key>/<name>.json``.

    Args:
        home: the state folder; nothing is kept if None.
        key: of the gateway.
        ops: the file operations.
        offload: how blocking work is run. Under a virtual clock hand in one that runs it at once.
    """

    def __init__(
        self,
        home: Path | None,
        key: str,
        *,
        ops: FileOps | None = None,
        offload: Offload = in_thread,
    ) -> None:
        self._ops = ops or FileOps()
        self._folder = None
        if home is not None:
            self._folder = Folder(home / FOLDER / _legal(key), self._ops, ours=True)
        self._offload = offload

    async def load(self, name: str) -> str:
        """Return the token of a name; "" if there is none, or the file is not to be trusted."""
        return await self._offload(self._load, name)

    async def save(self, name: str, token: str) -> None:
        """Keep a token.

        Cancellation: it is kept all the same, unless the disk hangs for ever.

        Raises:
            OSError: it cannot be written.
        """
        await self._offload(self._save, name, token)

    async def forget(self, name: str) -> None:
        """Take a token away; never raises."""
        await self._offload(self._forget, name)

    def _load(self, name: str) -> str:
        if self._folder is None:
            return ""
        try:
            with self._folder.opened(create=False) as folder:
                fd = open_private(self._ops, _file(name), READ, folder=folder)
                try:
                    content = os.read(fd, MAX_BYTES)
                finally:
                    os.close(fd)
            value = loads(content)
        except (OSError, ProtocolError):
            return ""
        if not isinstance(value, dict) or value.get("name") != name:
            return ""
        token = value.get("callerToken")
        return token if isinstance(token, str) and token.isascii() and token.isprintable() else ""

    def _save(self, name: str, token: str) -> None:
        if self._folder is None:
            return
        content = dumps({"name": name, "callerToken": token})
        with self._folder.opened() as folder:
            replace_private(self._ops, _file(name), content, folder=folder, sync=True)

    def _forget(self, name: str) -> None:
        if self._folder is None:
            return
        with suppress(OSError), self._folder.opened(create=False) as folder:
            self._ops.remove(_file(name), folder=folder)


def _legal(text: str) -> str:
    cleaned = _ILLEGAL.sub("_", text)
    return cleaned if cleaned.strip(".") else f"_{cleaned}"


def _file(name: str) -> str:
    return f"{_legal(name)}.json"
