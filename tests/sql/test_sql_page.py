"""The page about SQL shows what runs."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from service.plan.explain import explain
from service.sql.pipeline import read

PAGE = (Path(__file__).parents[2] / "docs" / "sql.md").read_text(encoding="utf-8")
SQL = "\n".join(re.findall(r"```sql\n(.*?)```", PAGE, re.DOTALL))
VIEWS = re.findall(r"CREATE VIEW (\w+)", SQL)


def test_the_table_of_the_page_is_taken_as_it_is_written():
    table = read(SQL).tables["payments"]
    assert [c.name for c in table.columns] == ["id", "who", "amount", "ms", "ts", "arrived", "at"]
    assert (table.rowtime, table.proctimes, table.key) == (4, frozenset({6}), (0,))


@pytest.mark.parametrize("view", VIEWS)
def test_the_views_of_the_page_run(view: str):
    (job,) = read(f"{SQL}\nEXPLAIN SELECT * FROM {view};").explains
    assert explain(job).steps


def test_an_interval_join_of_the_page_is_one():
    (job,) = read(f"{SQL}\nEXPLAIN SELECT * FROM shipped;").explains
    assert "interval join" in {step.kind for step in explain(job).steps}
