"""RAND() and UUID() are drawn once for each row, also where what is computed from them fails for some rows."""

from __future__ import annotations

import re
from uuid import RFC_4122, UUID

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from operators.sql import Sql
from service.formats.registry import decoder
from service.local.runner import BatchOutput, LocalRunner
from service.plan.explain import as_text, explain
from service.plan.lowering.lower import compile_job
from service.runtime.watermarks import Tick, channel_name
from service.sql.pipeline import PipelineErrors, read

ROWS = 400
TABLES = """
CREATE TABLE t (n INT, at TIMESTAMP_LTZ(3))
  WITH ('connector' = 'kafka', 'topic' = 't', 'format' = 'json', 'properties.group.id' = 'g');
CREATE TABLE o (a STRING, b STRING) WITH ('connector' = 'kafka', 'topic' = 'o', 'format' = 'changelog-json');
CREATE TABLE p (a DOUBLE, b INT) WITH ('connector' = 'kafka', 'topic' = 'o', 'format' = 'json');
"""
TIMED = """
CREATE TABLE e (n INT, ts AS TO_TIMESTAMP_LTZ(n, 3), WATERMARK FOR ts AS ts)
  WITH ('connector' = 'kafka', 'topic' = 't', 'format' = 'json', 'properties.group.id' = 'g');
"""
OTHER = """
CREATE TABLE u (n INT) WITH ('connector' = 'kafka', 'topic' = 'u', 'format' = 'json', 'properties.group.id' = 'g');
CREATE TABLE c (n INT, a STRING, b INT) WITH ('connector' = 'kafka', 'topic' = 'c', 'format' = 'changelog-json');
"""
MET = """
CREATE TABLE s (n INT, now_ AS PROCTIME())
  WITH ('connector' = 'kafka', 'topic' = 's', 'format' = 'json', 'properties.group.id' = 'g');
CREATE TABLE versions (n INT, name STRING, PRIMARY KEY (n) NOT ENFORCED)
  WITH ('connector' = 'upsert-kafka', 'topic' = 'v', 'key.format' = 'json', 'value.format' = 'json');
CREATE TABLE answers (n INT, name STRING, PRIMARY KEY (n) NOT ENFORCED)
  WITH ('connector' = 'jdbc', 'url' = 'jdbc:postgresql://shop/shop', 'table-name' = 'answers');
CREATE TABLE several (n INT, name STRING)
  WITH ('connector' = 'jdbc', 'url' = 'jdbc:postgresql://shop/shop', 'table-name' = 'several');
"""
TWO_WINDOWS = "(SELECT LEAD(n) OVER (PARTITION BY n / 100 ORDER BY ts) AS a, LEAD(n) OVER (ORDER BY ts) AS b, n FROM e)"
TWICE = "HOP(TABLE e, DESCRIPTOR(ts), INTERVAL '0.1' SECOND, INTERVAL '0.2' SECOND)"
LEFT_JOIN = "SELECT t.n, UUID(), u.n FROM t LEFT JOIN u ON t.n = u.n"
REFUSING = """
CREATE TABLE cdc (k INT) WITH ('connector' = 'kafka', 'topic' = 'd', 'format' = 'debezium-json',
  'properties.group.id' = 'g');
CREATE TABLE w (ts TIMESTAMP(3), WATERMARK FOR ts AS ts) WITH ('connector' = 'kafka', 'topic' = 'w',
  'format' = 'json', 'properties.group.id' = 'g');
CREATE TABLE drawn_watermark (ts TIMESTAMP(3), WATERMARK FOR ts AS ts - INTERVAL '1' SECOND * RAND_INTEGER(9))
  WITH ('connector' = 'kafka', 'topic' = 'w', 'format' = 'json', 'properties.group.id' = 'g');
CREATE TABLE clock_watermark (n INT, ts AS CAST(NOW() AS TIMESTAMP(3)), WATERMARK FOR ts AS ts)
  WITH ('connector' = 'kafka', 'topic' = 'w', 'format' = 'json', 'properties.group.id' = 'g');
"""


def answer(query: str) -> BatchOutput:
    """What the query makes of ROWS rows that count from 0."""
    program = compile_job(read(f"{TABLES}{TIMED}INSERT INTO o {query};").jobs[0])
    (source,) = program.sources
    runner = LocalRunner(program, {source.id: decoder(source.table, source.columns)}, 2, Sql())
    tick = Tick({source.id: (channel_name(source.id, "t", 0),)}, ())
    return runner.batch({source.id: [records("t", range(ROWS))]}, tick, 1_000)


def records(topic: str, numbers: range) -> pa.Table:
    """A record for each number, at that offset."""
    return pa.table(
        {
            "value": pa.array([b'{"n": %d}' % n for n in numbers], pa.binary()),
            "topic": pa.array([topic] * len(numbers)),
            "partition": pa.array([0] * len(numbers), pa.int32()),
            "offset": pa.array(numbers, pa.int64()),
        }
    )


def rows(of: BatchOutput) -> list[tuple[str | None, str | None]]:
    table = pa.concat_tables(of.outputs.values())
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


def test_calls_with_one_seed_draw_the_same_of_a_row_and_not_of_another():
    drawn = rows(answer("SELECT CAST(RAND(1) AS STRING), CAST(RAND(1) AS STRING) FROM t"))
    assert all(a == b for a, b in drawn)
    assert len({a for a, _ in drawn}) == ROWS
    other = rows(
        answer("SELECT CAST(RAND_INTEGER(2, 1000000) AS STRING), CAST(RAND_INTEGER(3, 1000000) AS STRING) FROM t")
    )
    assert sum(a == b for a, b in other) < ROWS / 2


def test_drawing_costs_no_step_more():
    def steps(query: str) -> int:
        return len(explain(read(f"{TABLES}INSERT INTO {query};").jobs[0]).steps)

    assert steps("o SELECT 'a', CAST(n AS STRING) FROM t") == steps("p SELECT RAND() + 1, n FROM t") == 2


def test_of_the_topics_of_a_pattern_each_row_draws_by_its_own():
    table = TABLES.replace("'topic' = 't'", "'topic-pattern' = 't.*'")
    program = compile_job(read(f"{table}INSERT INTO o SELECT UUID(), '' FROM t;").jobs[0])
    assert [column.name for column in program.sources[0].table.columns][-3:] == ["topic", "partition", "offset"]


def test_the_plan_says_it_in_words():
    job = read(f"{TABLES}INSERT INTO o SELECT CAST(RAND_INTEGER(n) AS STRING), '' FROM t;").jobs[0]
    assert "RAND_INTEGER(n, RAND(origin(" in as_text(explain(job), "p.sql")


@pytest.mark.parametrize(
    "query",
    [
        "SELECT UUID(), CAST(RAND() AS STRING) FROM t",
        "SELECT CAST(n AS STRING), UUID() FROM t WHERE RAND() < 0.5",
        "SELECT CAST(s AS STRING), CAST(COUNT(*) AS STRING) FROM (SELECT RAND_INTEGER(9) AS s FROM t) GROUP BY s",
        "SELECT UUID(), '' FROM (SELECT n FROM t UNION ALL SELECT n + 1 FROM t)",
        "SELECT UUID(), CAST(a.n AS STRING) FROM t AS a JOIN t AS b ON a.n = b.n",
        "SELECT UUID(), CAST(a.n AS STRING) FROM t AS a LEFT JOIN t AS b ON a.n = b.n + 1 AND RAND() < 0.5",
        "SELECT UUID(), '' FROM t AS a WHERE EXISTS (SELECT 1 FROM t AS b WHERE b.n = a.n)",
        "SELECT CAST(a.n AS STRING), '' FROM t AS a JOIN t AS b ON a.n = b.n AND RAND() < 0.5",
    ],
)
def test_a_batch_that_is_done_again_has_the_same_rows(query: str):
    first, again = rows(answer(query)), rows(answer(query))
    assert first == again
    assert len(set(first)) >= 9


@pytest.mark.parametrize(
    ("query", "least"),
    [
        ("SELECT UUID(), CAST(RAND() AS STRING) FROM t", ROWS),
        ("SELECT UUID(), CAST(RAND() AS STRING) FROM (SELECT n FROM t UNION ALL SELECT n FROM t)", 2 * ROWS),
        ("SELECT UUID(), CAST(RAND() AS STRING) FROM t AS a JOIN t AS b ON a.n / 2 = b.n / 2", 2 * ROWS - 2),
        ("SELECT UUID(), CAST(RAND() AS STRING) FROM t AS a LEFT JOIN t AS b ON a.n = b.n + 1", ROWS),
        (f"SELECT UUID(), CAST(RAND() AS STRING) FROM {TWO_WINDOWS}", ROWS - 4),
        (f"SELECT UUID(), CAST(RAND() AS STRING) FROM {TWICE}", 2 * ROWS),
        ("SELECT UUID(), CAST(RAND() AS STRING) FROM t CROSS JOIN UNNEST(ARRAY[7, 7]) AS u (x)", 2 * ROWS),
        ("SELECT UUID(), CAST(RAND() AS STRING) FROM t LEFT JOIN UNNEST(MAP['a', 1]) AS u (k, v) ON TRUE", ROWS),
        (f"SELECT UUID(), CAST(RAND() AS STRING) FROM (SELECT n FROM {TWICE} WHERE n >= 0)", 2 * ROWS),
        (f"SELECT UUID(), r FROM (SELECT CAST(RAND() AS STRING) AS r, n FROM {TWICE} WHERE RAND() < 2)", 2 * ROWS),
        (f"SELECT UUID(), CAST(RAND() AS STRING) FROM (SELECT n FROM {TWICE} UNION ALL SELECT n FROM e)", 3 * ROWS),
    ],
)
def test_no_two_rows_draw_the_same(query: str, least: int):
    drawn = rows(answer(query))
    assert len({a for a, _ in drawn}) == len({b for _, b in drawn}) == len(drawn) >= least


@pytest.mark.parametrize(("table", "draws"), [("versions", True), ("answers", True), ("several", False)])
def test_a_row_draws_by_its_own_record_where_it_meets_one_other_at_most(table: str, draws: bool):
    query = f"SELECT UUID(), m.name FROM s LEFT JOIN {table} FOR SYSTEM_TIME AS OF s.now_ AS m ON s.n = m.n"
    text = f"{TABLES}{MET}INSERT INTO o {query};"
    if not draws:
        with pytest.raises(PipelineErrors, match=re.escape(f"UUID() {DRAWN_NOWHERE}")):
            read(text)
        return
    job = read(text).jobs[0]
    assert "UUID(origin)" in as_text(explain(job), "p.sql")
    assert compile_job(job).operators


def test_what_is_drawn_looks_like_it():
    drawn = rows(answer("SELECT UUID(), CAST(RAND() AS STRING) FROM t"))
    assert all(UUID(a).version == 4 and UUID(a).variant == RFC_4122 for a, _ in drawn)
    numbers = sorted(float(b or "") for _, b in drawn)
    assert 0 <= numbers[0] < 0.05 < 0.4 < numbers[ROWS // 2] < 0.6 < 0.95 < numbers[-1] < 1


def test_a_row_that_is_retracted_has_the_values_it_was_written_with():
    """A LEFT JOIN shows a row alone, then takes it back for the pair."""
    program = compile_job(read(f"{TABLES}{OTHER}INSERT INTO c {LEFT_JOIN};").jobs[0])
    runner = LocalRunner(program, {s.id: decoder(s.table, s.columns) for s in program.sources}, 2, Sql())
    left, right = program.sources
    tick = Tick({s.id: (channel_name(s.id, s.table.name, 0),) for s in program.sources}, ())
    (alone,) = runner.batch({left.id: [records("t", range(20))]}, tick, 1_000).outputs.values()
    (paired,) = runner.batch({right.id: [records("u", range(20))]}, tick, 2_000).outputs.values()
    written = dict(zip(alone["c0"].to_pylist(), alone["c1"].to_pylist(), strict=True))
    gone = paired.filter(pc.field("_weight") < 0)
    assert dict(zip(gone["c0"].to_pylist(), gone["c1"].to_pylist(), strict=True)) == written
    assert len(written) == 20


DRAWN_NOWHERE = "would have another value on a replay"
TAKEN_BACK = "would have another value when its row is retracted"


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("SELECT CAST(a.k AS STRING), UUID() FROM cdc AS a", f"which is UUID(), {TAKEN_BACK}"),
        ("SELECT CAST(a.k AS STRING), '' FROM cdc AS a JOIN t ON a.k = t.n AND RAND() < 0.5", TAKEN_BACK),
        (
            "SELECT CAST(n AS STRING), UUID() FROM (SELECT n, COUNT(*) FROM t GROUP BY n)",
            f"which is UUID(), {TAKEN_BACK}",
        ),
        (
            "SELECT UUID(), '' FROM (SELECT window_end FROM TUMBLE(TABLE w, DESCRIPTOR(ts), INTERVAL '1' MINUTE)"
            " GROUP BY window_start, window_end)",
            f"UUID() {DRAWN_NOWHERE}",
        ),
        (
            "SELECT CAST(window_start AS STRING), '' FROM TUMBLE(TABLE drawn_watermark, DESCRIPTOR(ts),"
            " INTERVAL '1' MINUTE) GROUP BY window_start, window_end",
            'the watermark of table "drawn_watermark" would have another value on a replay',
        ),
        (
            "SELECT CAST(window_start AS STRING), '' FROM TUMBLE(TABLE clock_watermark, DESCRIPTOR(ts),"
            " INTERVAL '1' MINUTE) GROUP BY window_start, window_end",
            'the watermark of table "clock_watermark" would have another value on a replay',
        ),
        (
            "SELECT '', '' FROM (SELECT * FROM TUMBLE(TABLE w, DESCRIPTOR(ts), INTERVAL '1' MINUTE)) AS l"
            " JOIN (SELECT * FROM TUMBLE(TABLE w, DESCRIPTOR(ts), INTERVAL '1' MINUTE)) AS r"
            " ON l.window_start = r.window_start AND l.window_end = r.window_end AND RAND() < 0.5",
            f"(RAND() < 0.5) {DRAWN_NOWHERE}",
        ),
        ("SELECT CAST(a.k AS STRING), '' FROM cdc AS a JOIN t ON a.k = t.n AND t.at > NOW()", TAKEN_BACK),
    ],
)
def test_what_cannot_be_the_same_again_is_refused(query: str, message: str):
    with pytest.raises(PipelineErrors) as refused:
        read(f"{TABLES}{REFUSING}INSERT INTO o {query};")
    assert any(message in str(m) and "hint:" in str(m) for m in refused.value.mistakes), str(refused.value)
