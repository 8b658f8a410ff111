"""What is in the repository at all: nothing of one machine, nothing that was left lying about."""

import re
import subprocess
from pathlib import Path
from typing import Final

import pytest

ROOT: Final = Path(__file__).parents[1]
TOP_LEVEL: Final = frozenset(
    {"pyproject.toml", "a2a_trio", "tests", "fuzz", "docs", "README.md", "LICENSE"}
)
# Written in pieces, or this file would be the first to be found.
FOREIGN: Final = re.compile(
    "|".join(
        [
            r"(?<![\w.:/-])/" + "(?:work|farm)/",  # folders of a machine
            r"(?<![\w.:/-])/" + r"tmp/[a-z]",  # tests ask for their folders
            "shared" + "/(?:reference|design|seed)",
            r"\b" + r"issue #?\d",  # a number says nothing to a reader of the code
            "<{7} |>{7} ",  # a merge that was not finished
        ]
    ),
    re.IGNORECASE,
)


def tracked() -> list[Path]:
    """Return the files of the repository, or all there are where it is none."""
    listing = subprocess.run(
        ["git", "ls-files", "-z"],  # noqa: S607 - whichever git the developer uses
        cwd=ROOT,
        capture_output=True,
        check=False,
    )
    names = listing.stdout.decode().split("\0") if listing.returncode == 0 else []
    found = [ROOT / name for name in names if name]
    if not found:
        places = (ROOT / name for name in TOP_LEVEL)
        found = [f for p in places for f in ([p] if p.is_file() else p.rglob("*.*"))]
    return [path for path in found if path.is_file()]


def foreign_lines(text: str) -> list[str]:
    return [line for line in text.splitlines() if FOREIGN.search(line)]


def test_nothing_speaks_of_one_machine_or_of_the_work() -> None:
    """A stranger's checkout has none of these places."""
    files = tracked()
    assert len(files) > 20
    found = [
        f"{path.relative_to(ROOT)}: {line.strip()[:100]}"
        for path in files
        for line in foreign_lines(path.read_bytes().decode("utf-8", "replace"))
    ]
    assert found == []


def test_the_top_level_holds_its_plan() -> None:
    """Everything has a place below; dotfiles configure tools."""
    top = {path.relative_to(ROOT).parts[0] for path in tracked()}
    assert {name for name in top if not name.startswith(".")} <= TOP_LEVEL


def test_nothing_large_is_kept() -> None:
    """Generated data is generated again."""
    assert {path.name for path in tracked() if path.stat().st_size > 200_000} == set()


@pytest.mark.parametrize(
    ("line", "is_found"),
    [
        ("see /" + "work/main/x.py", True),
        ("open('/" + "tmp/x')", True),
        ("as issue" + " 12 asks", True),
        ("the " + "shared" + "/reference folder", True),
        ("http://host/" + "work/", False),
        ("a2a/" + "tmp/x", False),
        ("reissue 12 tokens", False),
    ],
)
def test_the_check_itself(line: str, *, is_found: bool) -> None:
    """It finds what it should and leaves the rest."""
    assert bool(foreign_lines(line)) is is_found
