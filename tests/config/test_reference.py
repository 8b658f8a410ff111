"""The reference page says what the table says."""

from pathlib import Path

from a2a_trio.config.reference import render
from a2a_trio.config.table import keys

PAGE = Path(__file__).resolve().parents[2] / "docs" / "reference" / "settings.md"


def test_page_is_up_to_date() -> None:
    """Whoever changes a setting makes the page again: ``python -m a2a_trio.config.reference``."""
    assert PAGE.read_text(encoding="utf-8") == render()


def test_page_has_every_key_and_variable() -> None:
    """Each once, with its sentence."""
    page = render()
    for key in keys():
        assert page.count(f"\n| `{key.name}`") == 1
        assert key.declaration.doc.replace("|", "\\|") in page
        if key.declaration.env:
            assert f"`{key.declaration.env}`" in page
