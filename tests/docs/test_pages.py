"""The documents name only what exists: files, headings, settings, commands, functions; and made parts are fresh."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from service.checkpoint.address import SCHEMES
from service.checkpoint.sweep import KEPT
from service.checkpoint.sweeper import EVERY
from service.cli import COMMANDS
from service.observability.metrics import KNOWN
from service.settings import ELSEWHERE, variables
from service.sql.expressions.aggregate_types import AGGREGATES
from service.sql.functions import FORMS, FUNCTIONS, PLANNED
from service.sql.pipeline import read
from tests.docs.made import MADE, wanted
from tests.docs.pages import PAGES, ROOT, text_of, without_code

FOLDERS = (
    "bench",
    "charts",
    "docs",
    "examples",
    "image",
    "k8s",
    "monitoring",
    "operators",
    "scripts",
    "service",
    "tests",
)
FUNCTIONS_PAGE = ROOT / "docs" / "functions.md"
NAMES = {n for n in (*FUNCTIONS, *FORMS, *AGGREGATES) if n.replace("_", "").isalnum()}
NOT_YET = set(PLANNED)


def name_of(page: Path) -> str:
    return str(page.relative_to(ROOT))


each_page = pytest.mark.parametrize("page", PAGES, ids=name_of)


@pytest.mark.parametrize("page", MADE, ids=name_of)
def test_what_is_made_from_the_code_is_up_to_date(page: Path):
    assert text_of(page) == wanted(page), "run: make docs"


@each_page
def test_every_link_leads_somewhere(page: Path):
    for target in re.findall(r"\]\(([^)\s]+)\)", without_code(text_of(page))):
        if re.match(r"https?://", target):
            continue
        path, _, place = target.partition("#")
        file = (page.parent / path).resolve() if path else page
        assert file.exists(), f"{target}: there is no {path}"
        assert not place or place in anchors(text_of(file)), f"{target}: {file.name} has no such heading"


@each_page
def test_every_file_that_is_named_is_there(page: Path):
    named = re.findall(rf"`((?:{'|'.join(FOLDERS)})/[\w./-]*)`", without_code(text_of(page)))
    named = [name for name in named if not name.startswith("bench/results")]
    assert [name for name in named if not any((folder / name).exists() for folder in (ROOT, page.parent))] == []


@each_page
def test_every_setting_that_is_named_is_known(page: Path):
    named = re.findall(r"TAILRACE_[A-Z_]*[A-Z]", text_of(page))
    known = [*variables(), *ELSEWHERE]
    assert [n for n in named if not any(k == n or k.startswith(n + "__") for k in known)] == []


@each_page
def test_every_metric_that_is_named_is_there(page: Path):
    named = re.findall(r"`tailrace_(\w+)", text_of(page))
    assert [n for n in named if n not in KNOWN] == []


@each_page
def test_every_command_that_is_named_is_there(page: Path):
    targets = set(re.findall(r"^([a-z][\w-]*):", text_of(ROOT / "Makefile"), re.MULTILINE))
    commands = {command.__name__.rpartition(".")[2] for command in COMMANDS}
    text = text_of(page)
    assert set(re.findall(r"(?:`|^|\$ )make ([a-z][\w-]*)", text, re.MULTILINE)) <= targets
    assert set(re.findall(r"(?:`|^|\$ |bin/)tailrace ([a-z]+)", text, re.MULTILINE)) <= commands


def test_the_sql_of_the_pages_is_taken_as_it_is_written():
    assert [text for text in sql_blocks() if not read(text, {}).tables] == []


def test_the_page_of_functions_lists_all_of_them():
    page, _, not_yet = without_code(text_of(FUNCTIONS_PAGE)).partition("\n## Not there yet\n")
    assert set(words_in_code(not_yet)) == NOT_YET
    assert NAMES - NOT_YET - set(words_in_code(page)) == set()
    assert NOT_YET & set(code_in(page)) == set()


def test_the_page_of_functions_promises_none_that_is_not_there():
    page = text_of(FUNCTIONS_PAGE).partition("\n## Not there yet\n")[0]
    called = re.findall(r"\b([A-Z][A-Z0-9_]+)\(", " ".join(code_in(page)))
    ranks = {"ROW_NUMBER", "RANK", "DENSE_RANK", "NTILE", "PERCENT_RANK", "CUME_DIST", "NTH_VALUE"}
    others = {"CHAR", "DECIMAL", "VARCHAR", "TIMESTAMP", "LAG", "LEAD", "SINGLE_VALUE", "GROUPING", "GROUP_ID", *ranks}
    assert set(called) - NAMES - others == set()


def anchors(text: str) -> set[str]:
    """What the headings of a page are called in links."""
    titles = re.findall(r"^#+ (.*)$", without_code(text), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


def sql_blocks() -> Iterator[str]:
    """The SQL of each page as one pipeline: what it declares stands before what it asks."""
    for page in PAGES:
        blocks = re.findall(r"^```sql\n(.*?)^```", text_of(page), re.DOTALL | re.MULTILINE)
        if blocks:
            yield "\n".join(blocks)


def code_in(text: str) -> list[str]:
    """What stands in backquotes or code tags."""
    return [a or b for a, b in re.findall(r"`([^`]+)`|<code>(.*?)</code>", text)]


def words_in_code(text: str) -> list[str]:
    """The words in capitals that stand in backquotes."""
    return [word for code in code_in(text) for word in re.findall(r"[A-Z][A-Z0-9_]*", code)]


def test_the_page_of_operations_knows_where_checkpoints_may_be_and_when_their_files_go():
    page = " ".join((ROOT / "docs" / "operations.md").read_text().split())
    assert [scheme for scheme in SCHEMES if scheme not in ("", "file") and f"{scheme}://" not in page] == []
    assert f"are removed {KEPT} to {KEPT + EVERY} batches later" in page
