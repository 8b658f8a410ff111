"""Agents by name: what can be one, and what the message says where something cannot."""

from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from a2a_trio import TaskContext, echo
from a2a_trio.agents import load_agent
from a2a_trio.agents.check import why_no_agent
from a2a_trio.errors import SettingsError

MODULES = {
    "fine": "async def agent(task):\n    return task.raw_text\n\nclass Box:\n    inner = agent\n",
    "zero": "x = 1\ny = 1 / 0\n",
    "imports": "import nonexistent_thing_for_this_test\n",
    "syntax": "def broken(:\n",
    "wrong": "def none(): ...\n\nnumber = 5\n\nclass Agent:\n    async def __call__(self, task): ...\n",
}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Modules to load agents from, under names that no other test has imported."""
    monkeypatch.setattr("sys.path", [str(tmp_path), *__import__("sys").path])
    for name, text in MODULES.items():
        (tmp_path / f"agents_of_{tmp_path.name}_{name}.py".replace("-", "_")).write_text(text)
    return tmp_path


def name_of(folder: Path, module: str) -> str:
    return f"agents_of_{folder.name}_{module}".replace("-", "_")


def test_echo_and_module_attribute(folder: Path) -> None:
    assert load_agent("echo") is echo
    found = load_agent(f"{name_of(folder, 'fine')}:agent")
    assert load_agent(f"{name_of(folder, 'fine')}:Box.inner") is found


@pytest.mark.parametrize("name", ["", "nothing", ":x", "module:", "a b"])
def test_what_is_no_name_is_told_what_is(name: str) -> None:
    with pytest.raises(SettingsError, match="module:attribute"):
        load_agent(name)


@pytest.mark.parametrize(
    ("module", "attribute", "texts"),
    [
        ("zero", "agent", ("ZeroDivisionError", "division by zero", "zero.py:2")),
        ("imports", "agent", ("nonexistent_thing_for_this_test", "imports.py:1")),
        ("syntax", "agent", ("SyntaxError", "syntax.py", "line 1")),
        ("absent", "agent", ("no module named",)),
        ("fine", "missing", ("has no attribute 'missing'",)),
        ("wrong", "number", ("not int",)),
        ("wrong", "none", ("does not take one argument",)),
        ("wrong", "Agent", ("is a class",)),
    ],
)
def test_what_cannot_be_loaded_says_what_and_where(
    folder: Path, module: str, attribute: str, texts: tuple[str, ...]
) -> None:
    with pytest.raises(SettingsError) as refused:
        load_agent(f"{name_of(folder, module)}:{attribute}")
    for text in texts:
        assert text in str(refused.value)


async def an_async_one(task: TaskContext) -> None:
    """Be an agent."""


def a_plain_one(task: TaskContext, verbose: str = "") -> None:
    """Be an agent."""


class AnObject:
    """Be one too."""

    async def __call__(self, task: TaskContext) -> None:
        """Be an agent."""

    async def method(self, task: TaskContext) -> None:
        """Be an agent."""


async def a_generator(task: TaskContext) -> AsyncIterator[str]:
    yield task.raw_text


async def two_arguments(task: TaskContext, other: str) -> None:
    """Be no agent."""


@pytest.mark.parametrize(
    "candidate",
    [
        an_async_one,
        a_plain_one,
        AnObject(),
        AnObject().method,
        partial(two_arguments, other="x"),
        len,
    ],
)
def test_what_can_be_an_agent(candidate: Any) -> None:
    assert why_no_agent(candidate) == ""


@pytest.mark.parametrize(
    ("candidate", "text"),
    [
        (5, "not int"),
        (None, "not NoneType"),
        (AnObject, "is a class"),
        (a_generator, "is a generator"),
        (two_arguments, "does not take one argument"),
        (lambda: None, "does not take one argument"),
    ],
)
def test_what_cannot_be_an_agent(candidate: Any, text: str) -> None:
    assert text in why_no_agent(candidate)
