"""The documents for users: where they are, and their parts that are made from the code."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
README = ROOT / "README.md"
PAGES = (
    README,
    *(ROOT / f"{name}.md" for name in ("ARCHITECTURE", "CHANGELOG", "CONTRIBUTING", "SECURITY")),
    *sorted((ROOT / "docs").rglob("*.md")),
    *(ROOT / folder / "README.md" for folder in ("bench", "charts/tailrace", "k8s")),
)

_PART = re.compile(r"(<!-- made: ([\w-]+) -->\n)(.*?)(<!-- /made -->)", re.DOTALL)


def text_of(page: Path) -> str:
    """The text of a page."""
    return page.read_text(encoding="utf-8")


def with_parts(text: str, makers: Mapping[str, Callable[[], str]]) -> str:
    """`text` with each part between `<!-- made: NAME -->` and `<!-- /made -->` as the maker of that name makes it."""
    return _PART.sub(lambda found: f"{found[1]}\n{makers[found[2]]().strip()}\n\n{found[4]}", text)


def without_code(text: str) -> str:
    """`text` without its blocks of code."""
    return re.sub(r"^```.*?^```", "", text, flags=re.DOTALL | re.MULTILINE)


def table_rows(text: str, line: str) -> list[list[str]]:
    """The cells of the first table below that line, without its head."""
    below = text.split(f"\n{line}\n", 1)[1]
    lines = below[below.index("\n|") + 1 :].splitlines()
    rows = []
    for line in lines[2:]:
        if not line.startswith("|"):
            break
        rows.append([cell.strip() for cell in line.strip("|").split("|")])
    return rows
