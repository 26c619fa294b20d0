"""Tables as text, as one would write them in a note: rows of cells between bars, cut into batches by lines of dashes.

    | user | amount |
    |------|--------|
    | ann  | 5      |
    ---
    | bob  | 7      |

A line that starts with `@` or with a word instead of a bar belongs to whoever reads the file; `#` starts a comment.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from service.local.errors import CaseError

_CUT = re.compile(r"-{3,}$")
_RULE = re.compile(r"\|(\s*:?-+:?\s*\|)+$")
_BAR = re.compile(r"(?<!\\)\|")


class Line(NamedTuple):
    """A line that means something, and its number in the file, from 1."""

    number: int
    text: str


class TextBatch(NamedTuple):
    """The lines between two cuts."""

    lines: tuple[Line, ...]


def batches(text: str) -> list[TextBatch]:
    """Return the text cut at its lines of dashes; blank lines and comments are left out."""
    found: list[list[Line]] = [[]]
    for number, raw in enumerate(text.splitlines(), 1):
        line = raw.strip()
        if _CUT.match(line):
            found.append([])
        elif line and not line.startswith("#"):
            found[-1].append(Line(number, line))
    return [TextBatch(tuple(lines)) for lines in found]


def read_batches(path: Path) -> list[TextBatch]:
    """Return the batches of a file. Raises CaseError where it is not UTF-8."""
    raw = path.read_bytes()
    try:
        return batches(raw.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        raise CaseError.at(path, raw.count(b"\n", 0, error.start) + 1, "the file is not UTF-8") from None


def is_row(line: Line) -> bool:
    """Return whether a line is one of a table."""
    return line.text.startswith("|")


def is_rule(line: Line) -> bool:
    """Return whether a line is the rule under a table's head."""
    return _RULE.match(line.text) is not None


def cells(line: Line) -> tuple[str, ...]:
    """Return the cells of a row, as written, without the spaces around them."""
    inner = line.text[1:-1] if line.text.endswith("|") else line.text[1:]
    return tuple(c.strip().replace("\\|", "|") for c in _BAR.split(inner))


def widths(table: Sequence[Sequence[str]]) -> list[int]:
    """Return how wide each column must be."""
    return [max(len(_escaped(cell)) for cell in column) for column in zip(*table, strict=True)]


def aligned(table: Sequence[Sequence[str]], wide: Sequence[int] | None = None) -> list[str]:
    """Return rows as lines of one width; the first one is the head and gets a rule under it."""
    wide = widths(table) if wide is None else wide
    lines = [
        "| " + " | ".join(_escaped(cell).ljust(w) for cell, w in zip(row, wide, strict=True)) + " |" for row in table
    ]
    rule = "|" + "|".join("-" * (w + 2) for w in wide) + "|"
    return [lines[0], rule, *lines[1:]]


def _escaped(cell: str) -> str:
    return cell.replace("|", "\\|")
