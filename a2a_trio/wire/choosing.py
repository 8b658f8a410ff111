"""Which dialect a request speaks.

==========================  ==================  ===========================================
method name                 ``A2A-Version``     dialect
==========================  ==================  ===========================================
``SendMessage`` ...         1.0                 v1.0
``SendMessage`` ...         none                v1.0; -32009 if ``server.strictVersion``
``SendMessage`` ...         0.3                 -32009
``message/send`` ...        0.3                 v0.3
``message/send`` ...        none or 1.0         v0.3 if the parameters look like it (``kind``, a
                                                lower-case role) or the task was created so;
                                                else legacy
``tasks/resubscribe``,      none, 0.3 or 1.0    v0.3: nobody else had these names
push and card names
``tasks/list``,             none, 0.3 or 1.0    legacy: v0.3 had no such names
``tasks/subscribe``
any                         anything else       -32009
==========================  ==================  ===========================================

Patch numbers are ignored (A2A section 3.6).
"""

import re
from collections.abc import Callable
from typing import Final

from a2a_trio.errors import VersionNotSupportedError
from a2a_trio.wire import v03
from a2a_trio.wire.extensions import LEGACY_PROTOCOL_VERSION, PROTOCOL_VERSION
from a2a_trio.wire.methods import METHODS, Dialect, Method
from a2a_trio.wire.model import JsonValue

_VERSION: Final = re.compile(r"(\d{1,9}\.\d{1,9})(?:\.\d{1,9})?", re.ASCII)

_V03_NAMES: Final = frozenset(method.aliases[0] for method in METHODS)
_LEGACY_NAMES: Final = frozenset(method.aliases[-1] for method in METHODS if method.legacy)


def choose_dialect(
    name: str,
    version: str | None,
    params: JsonValue,
    *,
    strict: bool,
    stored: Callable[[str], Dialect | None],
) -> Dialect:
    """Return the dialect of a request.

    Args:
        name: the JSON-RPC method name, known or not.
        version: the ``A2A-Version`` header; None or blank if absent.
        params: the parameters, not yet checked.
        strict: refuse v1.0 names without a version (A2A section 3.6.2).
        stored: tells the dialect in which a task was created, None if there is no such task.

    Raises:
        VersionNotSupportedError: see the table above.
    """
    asked = asked_version(version)
    if "/" not in name:
        if asked == LEGACY_PROTOCOL_VERSION or (asked is None and strict):
            raise _not_supported(version)
        return Dialect.V1
    if name not in _V03_NAMES:
        return Dialect.LEGACY
    if asked == LEGACY_PROTOCOL_VERSION or name not in _LEGACY_NAMES or v03.is_v03(params):
        return Dialect.V03
    task_id = _task_id(params)
    created = stored(task_id) if task_id else None
    return Dialect.V03 if created is Dialect.V03 else Dialect.LEGACY


def asked_version(version: str | None) -> str | None:
    """Return what an ``A2A-Version`` asks for: "1.0", "0.3", or None for absent.

    Raises:
        VersionNotSupportedError: it is no version, or one that is not spoken here.
    """
    text = (version or "").strip()
    if not text:
        return None
    match = _VERSION.fullmatch(text)
    if match is None or match[1] not in (PROTOCOL_VERSION, LEGACY_PROTOCOL_VERSION):
        raise _not_supported(version)
    return match[1]


def _not_supported(version: str | None) -> VersionNotSupportedError:
    shown = (version or "").strip()[:32] or "(none)"
    return VersionNotSupportedError(
        f"A2A version {shown} is not supported for this method",
        metadata={"supportedVersions": f"{PROTOCOL_VERSION}, {LEGACY_PROTOCOL_VERSION}"},
    )


def _task_id(params: JsonValue) -> str:
    if not isinstance(params, dict):
        return ""
    message = params.get("message")
    found = message.get("taskId") if isinstance(message, dict) else params.get("id")
    return found if isinstance(found, str) else ""


def method_name(method: Method, dialect: Dialect) -> str | None:
    """Return the JSON-RPC name of an operation, or None if the dialect has none."""
    match dialect:
        case Dialect.V1:
            return method.operation.value
        case Dialect.V03:
            return method.aliases[0] or None
        case Dialect.LEGACY:
            return method.aliases[-1] if method.legacy else None
