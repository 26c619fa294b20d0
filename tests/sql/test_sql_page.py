"""The page about SQL shows what runs."""

from __future__ import annotations

import re
from pathlib import Path

from service.sql.pipeline import read

PAGE = (Path(__file__).parents[2] / "docs" / "sql.md").read_text(encoding="utf-8")


def test_the_table_of_the_page_is_taken_as_it_is_written():
    (example,) = re.findall(r"```sql\n(.*?)```", PAGE, re.DOTALL)
    (table,) = read(example).tables.values()
    assert [c.name for c in table.columns] == ["id", "who", "amount", "ms", "ts", "arrived", "at"]
    assert (table.rowtime, table.proctimes, table.key) == (4, frozenset({6}), (0,))
