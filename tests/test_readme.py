"""What README says of SQL: what works is accepted, and what is planned is refused, with its place."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

from service.cli import main
from service.sql.options.connector_options import CONNECTORS
from service.sql.options.format_options import FORMAT_OPTIONS
from tests.docs.pages import README, table_rows, text_of

DATA: dict[str, Any] = tomllib.loads((Path(__file__).parent / "docs" / "constructs.toml").read_text(encoding="utf-8"))
ROWS = dict(table_rows(text_of(README), "## SQL"))
PLANNED = [
    (statement, message)
    for row in DATA["row"]
    if ROWS.get(row["construct"]) == "planned"
    for statement, message in zip(row["statements"], row["says"], strict=True)
]
ACCEPTED = [statement for row in DATA["row"] if "says" not in row for statement in row["statements"]]


LONGEST = 250
"""Lines of README: what is more belongs in docs/, where someone who knows what they look for finds it."""


def test_the_readme_is_short():
    assert len(text_of(README).splitlines()) <= LONGEST


@pytest.fixture
def written(tmp_path: Path):
    """Writes a pipeline of the common tables and one statement; a query becomes an EXPLAIN of it."""

    def write(statement: str) -> str:
        query = statement.lstrip().startswith(("SELECT", "WITH", "VALUES"))
        path = tmp_path / "pipeline.sql"
        path.write_text(f"{DATA['tables'].strip()}\n{'EXPLAIN ' if query else ''}{statement.strip()}")
        return str(path)

    return write


def test_every_construct_of_the_table_has_a_statement():
    assert list(ROWS) == [row["construct"] for row in DATA["row"]]
    assert [c for c, status in ROWS.items() if status == "planned"] == [
        row["construct"] for row in DATA["row"] if "says" in row
    ]


@pytest.mark.parametrize("statement", ACCEPTED)
def test_what_works_is_accepted_and_planned_to_the_end(statement: str, written, capsys: pytest.CaptureFixture[str]):
    path = written(statement)
    assert main(["check", "--quiet", path]) == 0, capsys.readouterr().err
    assert main(["explain", path]) == 0


@pytest.mark.parametrize(("statement", "message"), PLANNED)
def test_what_is_planned_is_refused_with_its_place(
    statement: str, message: str, written, capsys: pytest.CaptureFixture[str]
):
    path = written(statement)
    assert main(["check", path]) == 2
    printed = capsys.readouterr().err
    line = DATA["tables"].strip().count("\n") + 2
    assert re.match(rf"pipeline\.sql:{line}:\d+: {re.escape(message)}", printed), printed
    assert len(printed.split("pipeline.sql:")) == 2, printed


def test_every_connector_and_format_stands_in_its_table():
    connectors = table_rows(text_of(README), "## Connectors and formats")
    (line,) = re.findall("^\\| `print`.*$", text_of(README), re.MULTILINE)
    formats = table_rows(text_of(README), line)
    assert {name for row in connectors for name in re.findall("`([^`]+)`", row[0])} == set(CONNECTORS)
    there = {name for row in formats for name in re.findall("`([^`]+)`", row[0])}
    assert there - set(CONNECTORS) == set(FORMAT_OPTIONS)
