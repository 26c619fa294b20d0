"""Phrases that read as translated stay out of documents, settings, messages, docstrings and comments."""

from __future__ import annotations

import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.docs.pages import PAGES, ROOT, text_of

BANNED = {
    r"\banew\b": "again, or a verb with re-: rewritten, restarted, recomputed",
    r"\b(is|are) no more\b(?! than)": "no longer exists, has ended",
    r"\b(told|tells|tell) of\b": "reports, describes, contains",
    r"\b(is|are) told by\b": "follows from; by",
    r"\bgone back to\b": "restored",
    r"\bfor good\b": "permanently",
    r"\bfor ever\b": "forever",
    r"\bof which there\b": "a sentence of its own: there is ...",
    r"\bso many\b": "the number, or n: the last n rows",
    r"\bpassed by since\b|\bpasses? by\b": "skipped",
    r"\bwhat (becomes|would become) of\b": "what happens to, the result of",
    r"\bfor (its|their) sake\b": "because of it",
    r"\bin the midst of\b": "during",
    r"\b(where|if) nothing is said\b": "by default",
    r"\bwithout a word\b": "silently",
    r"\bwhat it takes\b": "what it needs; its limit",
    r"\brows that are taken back\b": "retracted rows, updating inputs",
    r"\bstart(s|ed)? afresh\b": "start over, start with a new checkpoint",
}
"""Each phrase, as a regular expression, and what to write instead."""

CHART = ROOT / "charts" / "tailrace"
DOCUMENTS = (
    *(page for page in PAGES if page.parent != ROOT / "docs" / "design"),
    *(CHART / name for name in ("values.yaml", "templates/NOTES.txt")),
)
MODULES = tuple(path for part in ("operators", "service") for path in sorted((ROOT / part).rglob("*.py")))


def prose(path: Path) -> Iterator[tuple[int, str]]:
    """Yield the line and the text of each comment and each string of a module."""
    with tokenize.open(path) as file:
        for token in tokenize.generate_tokens(file.readline):
            if token.type in (tokenize.COMMENT, tokenize.STRING):
                yield token.start[0], token.string


def banned(text: str, line: int = 1) -> Iterator[str]:
    """Yield each banned phrase of `text`, which begins at `line`, with what to write instead; a phrase may be cut by a
    line's end."""
    plain = re.sub(r"\s+", lambda space: "\n" if "\n" in space[0] else " ", text)
    for phrase, better in BANNED.items():
        for found in re.finditer(phrase.replace(" ", r"\s"), plain):
            where = line + plain.count("\n", 0, found.start())
            yield f'{where}: "{" ".join(found[0].split())}"; write: {better}'


@pytest.mark.parametrize("page", DOCUMENTS, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_a_document_has_no_phrase_that_reads_as_translated(page: Path):
    assert list(banned(text_of(page))) == []


def test_no_message_docstring_or_comment_has_a_phrase_that_reads_as_translated():
    assert [
        f"{path.relative_to(ROOT)}:{each}"
        for path in MODULES
        for line, text in prose(path)
        for each in banned(text, line)
    ] == []


def test_a_phrase_is_found_also_over_the_end_of_a_line():
    assert list(banned("a\nbatch is planned\n    anew")) == [
        '3: "anew"; write: again, or a verb with re-: rewritten, restarted, recomputed'
    ]
    assert list(banned("what\n  becomes of it")) == ['1: "what becomes of"; write: what happens to, the result of']
    assert list(banned("`batch is replanned` is an event, and no more than that")) == []
