"""The generated reference pages are the ones in the repository."""

import re
from pathlib import Path

import pytest

from a2a_trio.cli import reference

FOLDER = Path(__file__).parents[2] / "docs" / "reference"


@pytest.mark.parametrize("name", sorted(reference.PAGES))
def test_page_is_up_to_date(name: str) -> None:
    """Neither the table in the code nor the page changed alone."""
    expected = reference.PAGES[name]()

    assert (FOLDER / name).read_text(encoding="utf-8") == expected, (
        "run: python -m a2a_trio.cli.reference docs/reference"
    )


def test_pages_are_written(tmp_path: Path) -> None:
    """The command that the pages name writes all of them."""
    assert reference.main([str(tmp_path)]) == 0

    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(reference.PAGES)


@pytest.mark.parametrize("name", sorted(reference.PAGES))
def test_tables_are_rectangular(name: str) -> None:
    """No text of the code breaks a table of the page."""
    widths: set[int] = set()
    for line in reference.PAGES[name]().splitlines():
        if line.startswith("|"):
            widths.add(line.replace("\\|", "").count("|"))
        elif widths:
            assert len(widths) == 1, line
            widths.clear()


def test_the_design_page_shows_the_states_of_the_code() -> None:
    """The essay on tasks has the same picture as the page that is written from the table."""
    picture = re.search(r"```mermaid\n.*?```\n", reference.PAGES["states.md"](), re.DOTALL)
    assert picture is not None

    page = (FOLDER.parent / "design" / "tasks-and-scopes.md").read_text(encoding="utf-8")
    assert picture[0] in page
