"""Every page and every part of a page that is made from the code. `make docs` rewrites them."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Mapping
from pathlib import Path

from service import settings_page
from service.observability.metrics import page as metrics
from service.sql import options_page
from tests.docs import examples, expressions
from tests.docs.pages import README, ROOT, text_of, with_parts

PLANNED = "planned"
"""What the reason of a difference starts with that is only not there yet."""


def queries() -> str:
    """The differences between queries that `make compare` knows, as a list."""
    entries = tomllib.loads((ROOT / "bench" / "compare" / "known-differences.toml").read_text())["difference"]
    reasons = [entry["reason"] for entry in entries if not entry["reason"].startswith(PLANNED)]
    return "\n".join(f"- {reason[0].upper()}{reason[1:]}." for reason in reasons)


PARTS: Mapping[str, Callable[[], str]] = {
    "queries": queries,
    "expressions": expressions.table,
    **examples.PARTS,
}
"""The parts of pages that are written by hand, by the name that stands before them."""

WHOLE: Mapping[Path, Callable[[], str]] = {
    ROOT / "docs" / "metrics.md": metrics.markdown,
    ROOT / "docs" / "options.md": options_page.markdown,
    ROOT / "docs" / "settings.md": settings_page.markdown,
}
"""Pages that are made as a whole."""

WITH_PARTS = (README, *(ROOT / "docs" / f"{name}.md" for name in ("differences", "example", "operations", "sql")))

MADE = (*WHOLE, *WITH_PARTS)


def wanted(page: Path) -> str:
    """The text that a page should have."""
    return WHOLE[page]() if page in WHOLE else with_parts(text_of(page), PARTS)


if __name__ == "__main__":
    for page in MADE:
        page.write_text(wanted(page), encoding="utf-8")
