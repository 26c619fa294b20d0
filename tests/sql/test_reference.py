"""The page of options says what the code takes."""

from __future__ import annotations

from pathlib import Path

from service.sql.reference import markdown

PAGE = Path(__file__).parents[2] / "docs" / "options.md"


def test_the_page_of_options_is_up_to_date():
    assert PAGE.read_text(encoding="utf-8") == markdown(), "run: python -m service.sql.reference > docs/options.md"
