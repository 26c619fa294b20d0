"""Joins of several tables on one key: each table is exchanged once, and all of them meet in one level."""

from __future__ import annotations

import pytest

from service.plan.lowering.lower import compile_job
from service.sql.pipeline import read

TABLES = "".join(
    f"CREATE TABLE {name} (k BIGINT, {name}1 BIGINT) WITH ('connector' = 'kafka', 'topic' = '{name}',"
    " 'properties.bootstrap.servers' = 'b', 'format' = 'debezium-json');\n"
    for name in ("a", "b", "c", "d")
)


def exchanges(query: str) -> tuple[int, list[str]]:
    """How many levels the program of `query` has, and which tables or operators it exchanges."""
    text = f"{TABLES}CREATE TABLE o (k BIGINT, n BIGINT) WITH ('connector' = 'kafka', 'topic' = 'o'"
    text += f", 'properties.bootstrap.servers' = 'b', 'format' = 'debezium-json');\nINSERT INTO o {query};"
    (job,) = read(text).jobs
    program = compile_job(job)
    names = {s.id: s.table.name for s in program.sources} | {o.id: o.name for o in program.operators}
    moved = [names[e.producer] for o in program.operators for e in o.inputs if e.key is not None]
    return program.levels, moved


@pytest.mark.parametrize(
    "query",
    [
        "SELECT a.k, b1 FROM a JOIN b ON a.k = b.k JOIN c ON c.k = b.k JOIN d ON d.k = a.k",
        "SELECT a.k, d1 FROM a LEFT JOIN b ON a.k = b.k LEFT JOIN c ON a.k = c.k LEFT JOIN d ON a.k = d.k",
        "SELECT a.k, SUM(d1) FROM a JOIN b USING (k) LEFT JOIN c USING (k) LEFT JOIN d USING (k) GROUP BY a.k",
        "SELECT k, d1 FROM a FULL JOIN b USING (k) FULL JOIN c USING (k) FULL JOIN d USING (k)",
        "SELECT k, COUNT(*) FROM a NATURAL FULL JOIN b NATURAL FULL JOIN c NATURAL FULL JOIN d GROUP BY k",
        "SELECT k, a1 FROM a WHERE k IN (SELECT k FROM b) AND NOT EXISTS (SELECT * FROM d WHERE d.k = a.k)"
        " AND (a1 > 5 OR EXISTS (SELECT * FROM c WHERE c.k = a.k))",
    ],
)
def test_tables_that_are_joined_on_one_key_are_exchanged_once_and_meet_in_one_level(query: str):
    levels, moved = exchanges(query)
    assert levels == 1
    assert sorted(moved) == ["a", "b", "c", "d"]


def test_a_padded_key_is_no_key_to_meet_by():
    levels, moved = exchanges("SELECT c.k, c1 FROM a FULL JOIN b ON a.k = b.k JOIN c ON c.k = a.k")
    assert levels == 2
    assert "join_1" in moved
