"""SKEW in joins of every kind: golden pipelines with a hint answer what they answer without."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from operators.sql import Sql
from service.local.case import run_case
from service.local.verdict import compare
from service.sql.pipeline import load

PIPELINES = Path(__file__).parents[1] / "pipelines"

HINTED = [
    ("temporal_join", "SELECT o.id, o.amount", "'o', 'currency'"),
    ("temporal_join_retract", "SELECT o.id, p.shown", "'o', 'product'"),
    ("temporal_join_proctime", "SELECT o.id, u.city", "'o', 'user_id', 'u1', 'u2'"),
    ("temporal_join_last_row", "SELECT o.id, r.rate", "'o', 'currency', 'Euro'"),
    ("interval_join", "SELECT o.id, p.paid", "'o', 'id'"),
    ("interval_join", "SELECT o.id, p.paid", "'p', 'order_id'"),
    ("window_join", "SELECT lw.window_start, COUNT(*)", "'rw', 'k'"),
    ("window_join", "SELECT k, v FROM lw WHERE (k", "'lw', 'k'"),
    ("window_join", "SELECT k, v FROM lw\nWHERE NOT EXISTS", "'lw', 'k'"),
]


@pytest.mark.parametrize(("name", "select", "hint"), HINTED)
def test_a_hot_key_that_is_spread_changes_no_answer(name: str, select: str, hint: str, tmp_path: Path):
    folder = shutil.copytree(PIPELINES / name, tmp_path / name)
    file = folder / "pipeline.sql"
    text = file.read_text()
    assert text.count(select) == 1
    file.write_text(text.replace(select, f"SELECT /*+ SKEW({hint}) */{select.removeprefix('SELECT')}"))
    sql = Sql()
    jobs = load(file, {}).jobs
    assert compare(folder, run_case(folder, jobs, sql, shards=3), sql) == []
