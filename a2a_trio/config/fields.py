"""How one setting is declared: default, environment variable, unit, range, meaning, secrecy.

The declarations in ``schema`` are the only table of settings. The merge (``sources``), the editor
(``edit``), the reference page (``reference``) and the constructors' own checks all read it.
"""

import re
from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import Final, TypeVar, final

import attrs

from a2a_trio.errors import SettingsError
from a2a_trio.wire.agent_card import AgentSkill

NAME_PATTERN: Final = "[A-Za-z0-9._-]{1,64}"
"""Names of peers and gateways: they become parts of directory names and of tool answers."""
IDENTITY_PATTERN: Final = "[A-Za-z0-9._@-]{1,64}"
"""Names of callers; without a colon, so that none can look like an address (``ip:...``)."""
TRUSTED_PATTERN: Final = f"(?:gw/)?{IDENTITY_PATTERN}|ip:[0-9A-Fa-f.:]{{2,45}}"
"""Callers by name, behind a gateway, or by address, as they are known by the shared token."""
TOKEN_PATTERN: Final = "[!-~]{1,4096}"  # noqa: S105 - the shape of tokens, not one
"""A bearer token travels in a header: visible ASCII, no spaces."""

_METADATA_KEY: Final = "a2a_trio.setting"

_T = TypeVar("_T")


class Kind(StrEnum):
    """What a setting's value is."""

    BOOL = "true or false"
    INT = "a whole number"
    NUMBER = "a number"
    TEXT = "text"
    NAMES = "a list of texts"
    SECRET = "secret text"  # noqa: S105 - the name of a kind
    TOKENS = "names with tokens"
    SKILLS = "a list of skills"
    SECTION = "an object"
    SECTIONS = "an object of named objects"


@final
@attrs.frozen(kw_only=True)
class Declaration:
    """What the table says about one setting."""

    kind: Kind
    doc: str
    env: str = ""
    """Environment variable, or empty."""
    unit: str = ""
    low: float | None = None
    high: float | None = None
    choices: tuple[str, ...] = ()
    pattern: str = ""
    """What a text, or each text of a list, must match completely."""
    project_safe: bool = False
    """True if a file in the working directory may set it."""
    optional: bool = False
    """True if None means "not set"."""

    @property
    def secret(self) -> bool:
        """True if the value must never be shown."""
        return self.kind in {Kind.SECRET, Kind.TOKENS}

    @property
    def allowed(self) -> str:
        """What a value may be, as people read it."""
        if self.choices:
            return "one of " + ", ".join(f'"{choice}"' for choice in self.choices)
        text = str(self.kind)
        if self.low is not None and self.high is not None:
            text += f" from {_plain(self.low)} to {_plain(self.high)}"
        if self.unit:
            text += f" ({self.unit})"
        if self.kind is Kind.SECRET:
            text = "visible ASCII without spaces, at most 4096 characters"
        elif self.kind is Kind.TOKENS:
            text = "an object of name and token, where the token may be a list of tokens"
        elif self.pattern:
            text += f" that matches {self.pattern}"
        return text

    def problem(self, value: object) -> str | None:
        """Return what is wrong with a value in Python form, or None.

        The text names what is allowed and never the value, which may be a secret.
        """
        if value is None:
            return None if self.optional else f"must be {self.allowed}, not null"
        if not self._fits(value):
            return f"must be {self.allowed}"
        return None

    def _fits(self, value: object) -> bool:
        match self.kind:
            case Kind.BOOL:
                fits = isinstance(value, bool)
            case Kind.INT | Kind.NUMBER:
                fits = self._number_fits(value)
            case Kind.TEXT:
                fits = isinstance(value, str) and self._text_fits(value)
            case Kind.SECRET:
                fits = isinstance(value, str) and _secret_fits(value)
            case Kind.NAMES:
                fits = isinstance(value, tuple) and all(
                    isinstance(item, str) and item != "" and self._text_fits(item) for item in value
                )
            case Kind.TOKENS:
                fits = isinstance(value, Mapping) and _tokens_fit(value)
            case Kind.SKILLS:
                fits = isinstance(value, tuple) and all(isinstance(s, AgentSkill) for s in value)
            case Kind.SECTION | Kind.SECTIONS:
                fits = True
        return fits

    def _number_fits(self, value: object) -> bool:
        types = int if self.kind is Kind.INT else (int, float)
        if isinstance(value, bool) or not isinstance(value, types):
            return False
        # NaN fits no range, because every comparison with it is false.
        return (self.low is None or value >= self.low) and (self.high is None or value <= self.high)

    def _text_fits(self, value: str) -> bool:
        if self.choices:
            return value in self.choices
        if not value.isprintable():
            return False
        return not self.pattern or value == "" or re.fullmatch(self.pattern, value) is not None


def _plain(number: float) -> str:
    return str(int(number)) if number == int(number) else str(number)


def _secret_fits(value: str) -> bool:
    return value == "" or re.fullmatch(TOKEN_PATTERN, value) is not None


def _tokens_fit(value: Mapping[object, object]) -> bool:
    for name, tokens in value.items():
        if not isinstance(name, str) or re.fullmatch(IDENTITY_PATTERN, name) is None:
            return False
        if not isinstance(tokens, tuple) or not tokens:
            return False
        if not all(isinstance(t, str) and t != "" and _secret_fits(t) for t in tokens):
            return False
    return True


# --- the field functions of the schema ---------------------------------------------------------


def declaration_of(attribute: "attrs.Attribute[_T]") -> Declaration | None:
    """Return what the table says about an attribute, or None if it is no setting."""
    found = attribute.metadata.get(_METADATA_KEY)
    return found if isinstance(found, Declaration) else None


def _metadata(declaration: Declaration) -> Mapping[str, Declaration]:
    return MappingProxyType({_METADATA_KEY: declaration})


def _validate(instance: object, attribute: "attrs.Attribute[_T]", value: _T) -> None:
    declaration = declaration_of(attribute)
    problem = None if declaration is None else declaration.problem(value)
    if declaration is not None and problem is not None:
        shown = "" if declaration.secret else f" (given: {value!r:.80})"
        raise SettingsError(f"{type(instance).__name__}.{attribute.name} {problem}{shown}")


def flag(default: bool, doc: str, *, env: str = "", project_safe: bool = False) -> bool:  # noqa: FBT001 - the default reads naturally first
    """Declare a switch."""
    told = Declaration(kind=Kind.BOOL, doc=doc, env=env, project_safe=project_safe)
    return attrs.field(default=default, validator=_validate, metadata=_metadata(told))


def maybe_flag(doc: str, *, env: str = "") -> bool | None:
    """Declare a switch that may be left to another setting."""
    told = Declaration(kind=Kind.BOOL, doc=doc, env=env, optional=True)
    unset: bool | None = None
    return attrs.field(default=unset, validator=_validate, metadata=_metadata(told))


def integer(
    default: int, low: int, high: int, doc: str, *, unit: str = "", env: str = "",
    project_safe: bool = False,
) -> int:  # fmt: skip
    """Declare a whole number."""
    told = Declaration(
        kind=Kind.INT, doc=doc, env=env, unit=unit, low=low, high=high, project_safe=project_safe
    )
    return attrs.field(default=default, validator=_validate, metadata=_metadata(told))


def number(
    default: float, low: float, high: float, doc: str, *, unit: str, env: str = "",
    project_safe: bool = False,
) -> float:  # fmt: skip
    """Declare a duration."""
    told = Declaration(
        kind=Kind.NUMBER, doc=doc, env=env, unit=unit, low=low, high=high, project_safe=project_safe
    )
    return attrs.field(default=default, validator=_validate, metadata=_metadata(told))


def maybe_number(low: float, high: float, doc: str, *, unit: str) -> float | None:
    """Declare a duration that may be left to another setting; safe in a project file."""
    told = Declaration(
        kind=Kind.NUMBER, doc=doc, unit=unit, low=low, high=high, project_safe=True, optional=True
    )
    unset: float | None = None
    return attrs.field(default=unset, validator=_validate, metadata=_metadata(told))


def text(
    default: str, doc: str, *, env: str = "", choices: tuple[str, ...] = (), pattern: str = "",
    project_safe: bool = False,
) -> str:  # fmt: skip
    """Declare one line of text."""
    told = Declaration(
        kind=Kind.TEXT, doc=doc, env=env, choices=choices, pattern=pattern,
        project_safe=project_safe,
    )  # fmt: skip
    return attrs.field(default=default, validator=_validate, metadata=_metadata(told))


def names(
    doc: str, *, env: str = "", pattern: str = "", project_safe: bool = False
) -> tuple[str, ...]:
    """Declare a list of texts; the environment variable separates them with commas."""
    told = Declaration(
        kind=Kind.NAMES, doc=doc, env=env, pattern=pattern, project_safe=project_safe
    )
    return attrs.field(default=(), validator=_validate, metadata=_metadata(told))


def secret(doc: str, *, env: str = "") -> str:
    """Declare a secret: masked when shown, never taken from a project file."""
    told = Declaration(kind=Kind.SECRET, doc=doc, env=env)
    return attrs.field(default="", validator=_validate, metadata=_metadata(told), repr=False)


def tokens(doc: str, *, env: str = "") -> Mapping[str, tuple[str, ...]]:
    """Declare a directory of caller names and their tokens."""
    told = Declaration(kind=Kind.TOKENS, doc=doc, env=env)
    nobody: Mapping[str, tuple[str, ...]] = MappingProxyType({})
    return attrs.field(
        default=nobody, converter=_frozen_tokens, validator=_validate, metadata=_metadata(told),
        repr=False, hash=False,
    )  # fmt: skip


def _frozen_tokens(value: Mapping[str, str | tuple[str, ...]]) -> Mapping[str, tuple[str, ...]]:
    return MappingProxyType(
        {name: (held,) if isinstance(held, str) else tuple(held) for name, held in value.items()}
    )


def skills(doc: str) -> tuple[AgentSkill, ...]:
    """Declare a list of skills; safe in a project file, which knows what its agent can do."""
    told = Declaration(kind=Kind.SKILLS, doc=doc, project_safe=True)
    return attrs.field(default=(), validator=_validate, metadata=_metadata(told))


def section_told(doc: str) -> Mapping[str, Declaration]:
    """Metadata of an attribute that holds an object of settings."""
    return _metadata(Declaration(kind=Kind.SECTION, doc=doc))


def sections_told(doc: str) -> Mapping[str, Declaration]:
    """Metadata of an attribute that holds named objects of settings."""
    return _metadata(Declaration(kind=Kind.SECTIONS, doc=doc))
