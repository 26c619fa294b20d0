"""RAND() and UUID() are drawn once for each row, also where what is computed from them fails for some rows."""

from __future__ import annotations

import pyarrow as pa
import pytest

from operators.sql import Sql
from service.formats.registry import decoder
from service.local.runner import Answer, LocalRunner
from service.plan.explain import as_text, explain
from service.plan.lowering.lower import compile_job
from service.runtime.watermarks import Tick, channel_name
from service.sql.pipeline import read

ROWS = 400
TABLES = """
CREATE TABLE t (n INT) WITH ('connector' = 'kafka', 'topic' = 't', 'format' = 'json', 'properties.group.id' = 'g');
CREATE TABLE o (a STRING, b STRING) WITH ('connector' = 'kafka', 'topic' = 'o', 'format' = 'json');
CREATE TABLE p (a DOUBLE, b INT) WITH ('connector' = 'kafka', 'topic' = 'o', 'format' = 'json');
"""


def answer(query: str) -> Answer:
    """What the query makes of ROWS rows that count from 0."""
    program = compile_job(read(f"{TABLES}INSERT INTO o {query};").jobs[0])
    (source,) = program.sources
    runner = LocalRunner(program, {source.id: decoder(source.table, source.columns)}, 2, Sql())
    records = pa.table(
        {
            "value": pa.array([b'{"n": %d}' % n for n in range(ROWS)], pa.binary()),
            "topic": pa.array(["t"] * ROWS),
            "partition": pa.array([0] * ROWS, pa.int32()),
            "offset": pa.array(range(ROWS), pa.int64()),
        }
    )
    return runner.batch({source.id: [records]}, Tick({source.id: (channel_name(source.id, "t", 0),)}, ()), 1_000)


def rows(of: Answer) -> list[tuple[str | None, str | None]]:
    (table,) = of.outputs.values()
    return list(zip(table["c0"].to_pylist(), table["c1"].to_pylist(), strict=True))


@pytest.mark.parametrize(
    "expression",
    [
        "TRY_CAST(CAST(RAND_INTEGER(2) AS STRING) AS INT)",
        "TRY_CAST(SUBSTRING(UUID(), 1, 1) AS INT)",
        "JSON_VALUE('{\"a\": ' || CAST(RAND_INTEGER(9) AS STRING) || '}', '$.a')",
    ],
)
def test_what_may_fail_without_harm_may_be_drawn(expression: str):
    found = {a for a, _ in rows(answer(f"SELECT CAST({expression} AS STRING), '' FROM t"))}
    assert len(found) > 1


def test_a_row_that_cannot_be_computed_does_not_have_the_others_drawn_again():
    drawn = answer("SELECT CAST(10 / r AS STRING), CAST(r AS STRING) FROM (SELECT RAND_INTEGER(3) AS r FROM t)")
    good = rows(drawn)
    dead = sum(table.num_rows for tables in drawn.dead.values() for table in tables)
    assert set(good) == {("10", "1"), ("5", "2")}
    assert len(good) + dead == ROWS
    assert ROWS / 6 < dead < ROWS / 2


def test_a_filter_that_draws_lets_every_row_pass_or_not_once():
    drawn = answer("SELECT CAST(n AS STRING), '' FROM t WHERE 10 / RAND_INTEGER(3) > 7")
    passed = [int(a or "") for a, _ in rows(drawn)]
    dead = sum(table.num_rows for tables in drawn.dead.values() for table in tables)
    assert passed == sorted(set(passed))
    assert ROWS / 6 < len(passed) < ROWS / 2
    assert ROWS / 6 < dead < ROWS / 2


def test_what_stands_there_twice_is_drawn_twice():
    assert any(a != b for a, b in rows(answer("SELECT UUID() || 'x', UUID() || 'x' FROM t")))
    same = "SELECT u || 'x', 'y' || u FROM (SELECT UUID() AS u FROM t)"
    assert all((a or "")[:36] == (b or "")[1:] for a, b in rows(answer(same)))


def test_a_query_that_draws_nothing_and_one_that_only_draws_have_no_projection_more():
    def steps(query: str) -> int:
        return len(explain(read(f"{TABLES}INSERT INTO {query};").jobs[0]).steps)

    assert steps("o SELECT 'a', CAST(n AS STRING) FROM t") == steps("p SELECT RAND(), n FROM t") == 2
    assert steps("p SELECT RAND(), n + 1 FROM t") == steps("p SELECT RAND() + 1, n FROM t") == 3


def test_the_plan_tells_it_in_words():
    job = read(f"{TABLES}INSERT INTO o SELECT CAST(RAND_INTEGER(n) AS STRING), '' FROM t;").jobs[0]
    assert "RAND_INTEGER(n, RAND)" in as_text(explain(job), "p.sql")
