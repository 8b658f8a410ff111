"""What a credential looks like: the patterns, and the search for them in one stretch of text.

Two facts keep the search linear and let ``secret_stream`` cut a stream at any point:

* every secret here lies within one *run*, an unbroken stretch of printable ASCII without spaces,
  quotes, angle brackets and backslashes; only private key blocks do not, and they have their own
  reader in ``secret_stream``;
* what must stand before a value to give it away (``password=``, ``Bearer``) is at most
  ``LOOKBACK`` characters long, and every pattern knows a secret by its first ``RECOGNISED``
  characters.

Repetition in the patterns is possessive or bounded, so no pattern is tried twice over the same text.
"""

import base64
import binascii
import re
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Final, final

import attrs

__all__ = [
    "LOOKBACK",
    "PRIVATE_KEY_BEGINS",
    "RECOGNISED",
    "RUN",
    "Span",
    "find_secrets",
    "is_sensitive_name",
]

LOOKBACK: Final = 128
RECOGNISED: Final = 1024

RUN: Final = r"[!#-&(-;=?-\[\]-_a-~]"
"""One character of a run, as a pattern."""


@final
@attrs.frozen
class Span:
    """A stretch of text to be replaced; ``label`` is empty where it continues the one before it."""

    start: int
    end: int
    label: str


# --- tokens that are known by their own form -----------------------------------------------

# A weak prefix counts at the beginning of a word, also where an escape (\n, %3D, \u003d) precedes
# it. Looking back from behind the prefix lets the search jump from prefix to prefix.


def _weak(prefix: str) -> str:
    before = (r"(?<![A-Za-z0-9]{})", r"(?<=\\[nrt]{})", r"(?<=%[0-9A-Fa-f]{{2}}{})",
              r"(?<=\\u[0-9A-Fa-f]{{4}}{})")  # fmt: skip
    return prefix + "(?:" + "|".join(look.format(prefix) for look in before) + ")"


@final
@attrs.frozen
class _Shape:
    """One form of token. Only text that contains one of the anchors is searched for it."""

    label: str
    anchors: tuple[str, ...]
    pattern: re.Pattern[str]


def _shape(label: str, anchors: str, pattern: str) -> _Shape:
    return _Shape(label, tuple(anchors.split()), re.compile(pattern))


_WORD: Final = "[A-Za-z0-9_-]"
_JWT: Final = (
    _weak("eyJ") + rf"{_WORD}{{8,800}}+\.(?:eyJ{_WORD}++(?:\.{_WORD}*+){{0,3}}+"
    rf"|(?:{_WORD}{{10,200}}+)?\.{_WORD}++(?:\.{_WORD}*+){{0,2}}+)"
)

_SHAPES: Final = (
    # model providers. "sk-" begins English compounds too, so words with hyphens need a digit
    _shape("api-key", "sk-ant- sk-proj- sk-svcacct- sk-admin- sk-or- sk-lf-",
           rf"sk-(?:ant|proj|svcacct|admin|or|lf)-{_WORD}{{16,}}+"),
    _shape("api-key", "sk-", _weak("sk-") + rf"(?:[A-Za-z0-9_]{{16,}}+{_WORD}*+"
           rf"|(?=[A-Za-z_-]{{0,64}}+[0-9]){_WORD}{{16,}}+)"),
    *(
        _shape("api-key", prefix, _weak(prefix) + rf"(?=[a-z_-]{{0,64}}+[A-Z0-9]){_WORD}{{24,}}+")
        for prefix in ("hf_", "gsk_", "r8_", "xai-", "pplx-", "nvapi-", "tvly-", "csk-")
    ),
    # version control
    _shape("vcs-token", "ghp_ gho_ ghu_ ghs_ ghr_", r"gh[pousr]_[A-Za-z0-9]{20,}+"),
    _shape("vcs-token", "github_pat_", r"github_pat_[A-Za-z0-9_]{20,}+"),
    _shape("vcs-token", "glpat- gldt- glrt- glcbt- glptt- glft- glsoat- glagent- glimt-",
           r"gl(?:pat|dt|rt|cbt|ptt|ft|soat|agent|imt)-[A-Za-z0-9_.-]{16,}+"),
    _shape("vcs-token", "ATATT3", r"ATATT3[A-Za-z0-9_=-]{20,}+"),
    _shape("vcs-token", "ATBB", r"ATBB[A-Za-z0-9]{24,}+"),
    # clouds
    _shape("aws-key", "AKIA ASIA ABIA ACCA", r"A(?:KI|SI|BI|CC)A[A-Z0-9]{16}(?![A-Z0-9])"),
    _shape("gcp-key", "AIza", rf"AIza{_WORD}{{30,}}+"),
    _shape("gcp-key", "GOCSPX-", rf"GOCSPX-{_WORD}{{20,}}+"),
    _shape("gcp-key", "ya29.", _weak(r"ya29\.") + r"[A-Za-z0-9_.-]{20,}+"),
    _shape("azure-key", "Q~", r"(?<=[A-Za-z0-9_~.-]{3}[0-9])Q~[A-Za-z0-9_~.-]{31,}+"),
    _shape("cloud-token", "doo_v1_ dop_v1_ dor_v1_", r"do[opr]_v1_[A-Za-z0-9]{32,}+"),
    _shape("cloud-token", "hvs. hvb. hvr.", rf"hv[sbr]\.{_WORD}{{24,}}+"),
    _shape("cloud-token", "dp.pt. dp.st. dp.ct.", r"dp\.[psc]t\.[A-Za-z0-9._-]{20,}+"),
    _shape("cloud-token", "dapi", _weak("dapi") + "[0-9a-f]{32}"),
    *(
        _shape("cloud-token", prefix, _weak(prefix) + "(?=[A-Za-z]{0,32}+[0-9])[A-Za-z0-9]{24,}+")
        for prefix in ("sbp_", "rnd_", "ops_")
    ),
    # chat
    _shape("chat-token", "xox", r"xox[a-z]-[A-Za-z0-9-]{10,}+"),
    _shape("chat-token", "xapp-", r"xapp-[0-9]-[A-Za-z0-9-]{10,}+"),
    _shape("chat-token", ":AA", rf"(?<=[0-9]{{8}}):AA{_WORD}{{32,}}+"),
    _shape("chat-token", ".", rf"(?<!{_WORD})[MNO]{_WORD}{{23,27}}+\.{_WORD}{{6}}\.{_WORD}{{27,}}+"),
    _shape("webhook", "hooks.slack.com",
           r"hooks\.slack\.com/(?:services|workflows|triggers)/[A-Za-z0-9_/-]{16,}+"),
    _shape("webhook", "/webhooks/",
           rf"discord(?:app)?\.com/api/(?:v[0-9]{{1,2}}/)?webhooks/[0-9]{{10,24}}/{_WORD}{{16,}}+"),
    _shape("webhook", "/webhookb2/", r"\.webhook\.office\.com/webhookb2/[A-Za-z0-9@/_-]{16,}+"),
    # registries, payment, mail and the rest
    _shape("registry-token", "npm_", "npm_[A-Za-z0-9]{30,}+"),
    _shape("registry-token", "pypi-", rf"pypi-{_WORD}{{32,}}+"),
    _shape("registry-token", "dckr_pat_", rf"dckr_pat_{_WORD}{{20,}}+"),
    _shape("registry-token", "rubygems_", "rubygems_[a-f0-9]{40,}+"),
    _shape("payment-key", "_live_ _test_", "[srp]k_(?:live|test)_[A-Za-z0-9]{10,}+"),
    _shape("payment-key", "whsec_", "whsec_[A-Za-z0-9+/=]{16,}+"),
    _shape("api-key", "SG.", rf"SG\.{_WORD}{{16,64}}+\.{_WORD}{{16,}}+"),
    _shape("api-key", "SK", _weak("SK") + "[0-9a-f]{32}(?![0-9a-f])"),
    _shape("api-key", "key-", _weak("key-") + "[0-9a-f]{32}(?![0-9a-f])"),
    _shape("api-key", "shpat_ shpca_ shppa_ shpss_", "shp(?:at|ca|pa|ss)_[a-fA-F0-9]{32,}+"),
    _shape("api-key", "sq0atp- sq0csp-", rf"sq0(?:atp|csp)-{_WORD}{{20,}}+"),
    _shape("api-key", "lin_api_", "lin_api_[A-Za-z0-9]{20,}+"),
    _shape("api-key", "figd_", rf"figd_{_WORD}{{20,}}+"),
    _shape("api-key", "ntn_", "ntn_[A-Za-z0-9]{30,}+"),
    _shape("api-key", "PMAK-", "PMAK-[a-f0-9-]{32,}+"),
    _shape("api-key", "AGE-SECRET-KEY-1", "AGE-SECRET-KEY-1[A-Z0-9]{40,}+"),
    _shape("api-key", "glsa_", "glsa_[A-Za-z0-9_]{24,}+"),
    _shape("api-key", "sntrys_", "sntrys_[A-Za-z0-9+/=_-]{24,}+"),
    _shape("gateway-token", "agw-", _weak("agw-") + rf"(?=[A-Za-z_-]{{0,64}}+[0-9]){_WORD}{{16,}}+"),
    _shape("gateway-token", "agw_", "agw_[a-f0-9]{32,}+"),
    # signed and encrypted tokens: three to five parts, or two of which both are JSON objects
    _shape("jwt", "eyJ", _JWT),
)  # fmt: skip

PRIVATE_KEY_BEGINS: Final = re.compile(r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----")
"""The first line of a private key block; at most ``LOOKBACK`` characters."""

# --- values that are known by what stands before them --------------------------------------

_PASSWORD_NAMES: Final = "pass(?:word|wd|phrase|code)|pwd|kennwort"  # noqa: S105 - names, not a password
_KEY_OWNERS: Final = (
    "api", "access", "account", "secret", "signing", "encryption", "master", "private",
    "subscription",
)  # fmt: skip
_KEY: Final = "(?:" + "|".join(f"(?<={name})|(?<={name}[_-])" for name in _KEY_OWNERS) + ")key"
_OTHER_NAMES: Final = (
    "secret|token|credentials?|authorization|(?:(?<=x-amz-)|(?<=x-goog-))signature|(?<=[?&])sig"
)
_QUOTE: Final = r"(?:\\?[\"'`])?"
_CONTEXT: Final = re.compile(
    rf"(?:(?P<password>{_PASSWORD_NAMES})|(?P<key>{_KEY}|{_OTHER_NAMES}))"
    rf"{_QUOTE}\s{{0,4}}(?P<sign>:=|=>|[:=>])\s{{0,4}}{_QUOTE}"
    rf"(?P<scheme>(?:bearer|basic|token|apikey)\s{{1,4}})?"
    rf"|(?<=-)(?:(?P<password_flag>{_PASSWORD_NAMES})|(?P<key_flag>key|secret|token))\s{{1,4}}{_QUOTE}"
    r"|(?<![A-Za-z0-9])(?P<bearer>bearer|token)\s{1,8}"
    r"|(?<![A-Za-z0-9])(?P<basic>basic)\s{1,8}",
    re.IGNORECASE,
)
# Every match of the pattern begins with one of these, and looking for them is far cheaper.
_STEMS: Final = (
    "pass", "pwd", "kennwort", "key", "secret", "token", "credential", "authorization", "signature",
    "sig", "bearer", "basic",
)  # fmt: skip
_LOWER: Final[Mapping[int, int]] = MappingProxyType(
    {upper: upper + 32 for upper in range(ord("A"), ord("Z") + 1)}
)
_VALUE_CHARACTER: Final = "[!#-%*+\\-./0-9:=?@A-Z^_a-z~]"
_VALUE: Final = re.compile(rf"{_VALUE_CHARACTER}{{1,128}}+")
"""The beginning of a value, which is enough to judge it."""
_REST: Final = re.compile(rf"{_VALUE_CHARACTER}*+")
_CALL: Final = "(["
_PUNCTUATION: Final = ".,:;?!"

_SENSITIVE_NAME: Final = re.compile(
    rf"(?:.{{0,40}}[_.-])?(?:{_PASSWORD_NAMES}|(?:{'|'.join(_KEY_OWNERS)})[_-]?key|secrets?|credentials?"
    r"|(?:access|refresh|auth|id|session|private|bot|bearer|security)[_-]?token|authorization)",
    re.IGNORECASE,
)
_DIGIT_OR_SYMBOL: Final = re.compile(r"[0-9!#$%*+?@^~]")
_LEAST_TOKEN: Final = 14
_LEAST_PASSWORD: Final = 6
_LEAST_KEY: Final = 16
_LEAST_OPAQUE: Final = 20
_LEAST_BASIC: Final = 8
_LEAST_NAMED: Final = 4
_FIRST_PRINTABLE: Final = 0x20


def _gate(shape: _Shape) -> str:
    """Return a character that all anchors of a shape have, the rarer in prose the better."""
    common = set[str].intersection(*map(set, shape.anchors))
    return min(common, key=lambda c: (c.isalnum(), c.islower(), c))


# Most text has few of these characters, and so needs to be searched for few of the anchors.
_GATES: Final[Mapping[str, tuple[_Shape, ...]]] = MappingProxyType(
    {
        gate: tuple(shape for shape in _SHAPES if _gate(shape) == gate)
        for gate in sorted(set(map(_gate, _SHAPES)))
    }
)


def is_sensitive_name(name: str) -> bool:
    """Tell whether a member of that name holds a credential, e.g. ``clientSecret``, ``DB_PASSWORD``."""
    snake = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name[:64])
    return _SENSITIVE_NAME.fullmatch(snake) is not None


def find_secrets(text: str, start: int, end: int, *, floor: int = 0) -> Iterator[Span]:
    """Find the secrets that lie in ``text[start:end]``, which cuts no run at its end.

    Text before ``start`` is only read for what gives a value away, and never before ``floor``.
    Spans come in no order and may overlap.
    """
    if end - start >= _LEAST_TOKEN:
        yield from _find_tokens(text, start, end)
    inside = set[int]()
    if text.find("@", start, end) >= 0:
        for span in _find_userinfo(text, start, end):
            inside.add(span.end)
            yield span
        yield from (s for at, s in _find_addresses(text, start, end) if at not in inside)
    if end - start >= _LEAST_NAMED:
        yield from _find_values(text, start, end, max(start - LOOKBACK, floor))


def _find_tokens(text: str, start: int, end: int) -> Iterator[Span]:
    for gate, shapes in _GATES.items():
        if text.find(gate, start, end) < 0:
            continue
        for shape in shapes:
            if any(text.find(anchor, start, end) >= 0 for anchor in shape.anchors):
                for match in shape.pattern.finditer(text, start, end):
                    yield Span(match.start(), match.end(), shape.label)


# --- addresses ------------------------------------------------------------------------------

_USERINFO: Final = re.compile(rf"://(?=[^/?#\s@]{{0,512}}+@)((?:(?![/?#]){RUN}){{1,512}}+)")
_LOCAL: Final = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._%+-"
_DOMAIN: Final = re.compile(r"@[A-Za-z0-9-]{1,63}+(?:\.[A-Za-z0-9-]{1,63}+){1,8}+")
_MOST_LOCAL: Final = 64
_LEAST_SUFFIX: Final = 2


def _find_userinfo(text: str, start: int, end: int) -> Iterator[Span]:
    """Find passwords in URLs: ``scheme://user:password@host``; ends at the ``@``."""
    for match in _USERINFO.finditer(text, start, end):
        begin = match.start(1)
        at = match.group(1).rfind("@")
        user, colon, password = match.group(1)[:at].partition(":")
        if colon and password:
            yield Span(begin + len(user) + 1, begin + at, "password")
        elif len(user) >= _LEAST_KEY and any(c.isdigit() for c in user):
            yield Span(begin, begin + at, "password")


def _find_addresses(text: str, start: int, end: int) -> Iterator[tuple[int, Span]]:
    """Find e-mail addresses, each with the offset of its ``@``."""
    for match in _DOMAIN.finditer(text, start, end):
        at = match.start()
        before = text[max(start, at - _MOST_LOCAL) : at]
        local = before[len(before.rstrip(_LOCAL)) :].lstrip(".")
        suffix = match.group().rpartition(".")[2]
        if not local or len(suffix) < _LEAST_SUFFIX or not suffix.isalpha():
            continue
        # git@host is how repositories are addressed, not a person.
        if local != "git":
            yield at, Span(at - len(local), match.end(), "email")


# --- values in context ----------------------------------------------------------------------


def _find_stems(text: str, start: int, end: int) -> list[int]:
    """Return where a name that gives a value away may begin."""
    part = text[start:end]
    # Lower case of some other letters is longer than they are.
    lowered = part.lower() if part.isascii() else part.translate(_LOWER)
    found = []
    for stem in _STEMS:
        at = lowered.find(stem)
        while at >= 0:
            found.append(start + at)
            at = lowered.find(stem, at + 1)
    return sorted(found)


def _find_values(text: str, start: int, end: int, lookback: int) -> Iterator[Span]:
    covered = start
    for stem in _find_stems(text, lookback, end):
        match = _CONTEXT.match(text, stem, end)
        if match is None:
            continue
        value = _VALUE.match(text, match.end(), end)
        if value is None or value.start() < covered:
            continue
        called = value.end() < end and text[value.end()] in _CALL
        found = value.group().rstrip(_PUNCTUATION)
        if called or not found or not _gives_away(match, found):
            continue
        rest = _REST.match(text, value.end(), end)
        covered = value.end() if rest is None else rest.end()
        while text[covered - 1] in _PUNCTUATION:
            covered -= 1
        yield Span(value.start(), covered, _label(match))


def _label(match: re.Match[str]) -> str:
    if match["password"] or match["password_flag"]:
        return "password"
    return "credential"


def _gives_away(match: re.Match[str], value: str) -> bool:
    """Decide whether a value after a telling name is a secret and not a word or an expression."""
    if value[0] == "$":
        return False
    if match["basic"] or (match["scheme"] or "").lower().startswith("basic"):
        return _is_basic(value)
    if match["scheme"]:
        return len(value) >= _LEAST_NAMED
    if match["password"] or match["password_flag"]:
        return _is_password(value)
    return _is_opaque(value)


def _is_basic(value: str) -> bool:
    """Tell whether it is base64 of ``user:password``."""
    if len(value) < _LEAST_BASIC:
        return False
    try:
        decoded = base64.b64decode(value[:512].rstrip("=") + "===", altchars=b"-_", validate=False)
    except binascii.Error:
        return False
    return b":" in decoded and all(byte >= _FIRST_PRINTABLE for byte in decoded)


def _is_password(value: str) -> bool:
    if len(value) < _LEAST_PASSWORD:
        return False
    if _DIGIT_OR_SYMBOL.search(value) is not None:
        return True
    # settings.dbPassword is an expression
    return "." not in value and (
        not value.islower() and not value.isupper() and not value.istitle()
    )


def _is_opaque(value: str) -> bool:
    """Tell a random token from a word, a name or a path by its length and its digits."""
    if len(value) < _LEAST_KEY:
        return False
    digits = sum(c.isdigit() for c in value)
    if digits == 0:
        return len(value) >= _LEAST_OPAQUE and value.isalnum()
    return digits < len(value) or len(value) >= _LEAST_OPAQUE
