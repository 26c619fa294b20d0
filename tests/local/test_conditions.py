"""What a condition of a join may ask, and what becomes of rows for which it cannot be computed."""

from __future__ import annotations

import pyarrow as pa
import pytest

from operators.sql import Sql
from service.formats.registry import decoder
from service.local.runner import BatchOutput, LocalRunner
from service.plan.lowering.lower import compile_job
from service.runtime.watermarks import Tick, channel_name
from service.sql.pipeline import PipelineErrors, read

KAFKA = "'connector' = 'kafka', 'format' = 'json', 'properties.group.id' = 'g'"
TABLES = f"""
CREATE TABLE a (k INT, v INT, at TIMESTAMP_LTZ(3), ts TIMESTAMP(3), WATERMARK FOR ts AS ts)
  WITH ({KAFKA}, 'topic' = 'a');
CREATE TABLE b (k INT, w INT, ts TIMESTAMP(3), WATERMARK FOR ts AS ts) WITH ({KAFKA}, 'topic' = 'b');
CREATE TABLE o (k INT, v INT, w INT) WITH ('connector' = 'kafka', 'topic' = 'o', 'format' = 'changelog-json');
"""
NEAR = "a.k = b.k AND a.ts BETWEEN b.ts - INTERVAL '1' HOUR AND b.ts"
NOW = 1_700_000_000_000
"""2023-11-14 22:13:20 UTC."""


def answer(query: str, a: list[str], b: list[str]) -> BatchOutput:
    """What the query makes of one batch of records in each table."""
    program = compile_job(read(f"{TABLES}INSERT INTO o {query};").jobs[0])
    runner = LocalRunner(program, {s.id: decoder(s.table, s.columns) for s in program.sources}, 2, Sql())
    given = {s.id: [records(s.table.name, {"a": a, "b": b}[s.table.name])] for s in program.sources}
    channels = {s.id: (channel_name(s.id, s.table.name, 0),) for s in program.sources}
    return runner.batch(given, Tick(channels, ()), NOW)


def records(topic: str, values: list[str]) -> pa.Table:
    count = len(values)
    return pa.table(
        {
            "value": pa.array([v.encode() for v in values], pa.binary()),
            "topic": pa.array([topic] * count, pa.string()),
            "partition": pa.array([0] * count, pa.int32()),
            "offset": pa.array(range(count), pa.int64()),
        }
    )


def rows(of: BatchOutput) -> list[tuple[int | None, ...]]:
    table = pa.concat_tables(of.outputs.values())
    return sorted(zip(*(table[f"c{i}"].to_pylist() for i in range(3)), strict=True), key=str)


TIMES = [
    '{"k": 1, "v": 1, "at": "2023-11-14 21:50:00Z", "ts": "2023-11-14 21:50:00"}',
    '{"k": 1, "v": 2, "at": "2023-11-14 22:10:00Z", "ts": "2023-11-14 22:10:00"}',
]


@pytest.mark.parametrize("on", ["a.k = b.k", NEAR])
def test_now_in_a_condition_is_the_time_of_the_batch(on: str):
    query = f"SELECT a.k, a.v, b.w FROM a JOIN b ON {on} AND a.at > NOW() - INTERVAL '10' MINUTE"
    assert rows(answer(query, TIMES, ['{"k": 1, "w": 7, "ts": "2023-11-14 22:13:20"}'])) == [(1, 2, 7)]


def test_now_in_a_condition_that_is_asked_again_later_is_refused():
    with pytest.raises(PipelineErrors, match="when it is asked again whether a row has matched"):
        read(f"{TABLES}INSERT INTO o SELECT a.k, a.v, b.w FROM a LEFT JOIN b ON {NEAR} AND a.at > NOW();")


@pytest.mark.parametrize(
    "query",
    [
        "SELECT k, v, 1 FROM a WHERE CAST(v AS STRING) <> 'costs $now'",
        "SELECT a.k, a.v, b.w FROM a JOIN b ON a.k = b.k AND CONCAT(CAST(a.v AS STRING), 'x') <> '$now'",
    ],
)
def test_a_text_may_look_like_the_parameter_of_the_time(query: str):
    assert rows(answer(query, ['{"k": 1, "v": 5}'], ['{"k": 1, "w": 1}'])) == [(1, 5, 1)]


WINDOWS = "{0}.k = {1}.k AND {0}.window_start = {1}.window_start AND {0}.window_end = {1}.window_end"
ANSWERS: dict[str, list[tuple[int | None, ...]]] = {
    "JOIN": [(2, 6, 3)],
    "LEFT JOIN": [(2, 6, 3), (3, 6, None)],
    "RIGHT JOIN": [(2, 6, 3), (None, None, 4)],
    "FULL JOIN": [(2, 6, 3), (3, 6, None), (None, None, 4)],
    "EXISTS": [(2, 6, 0)],
    "NOT EXISTS": [(3, 6, 0)],
}
"""What each kind of join answers to rows of a with the keys 1, 2 and 3, and rows of b with 1, 2 and 4: of the pair of
key 1 the condition cannot be computed, of the pair of key 2 it is true."""


@pytest.mark.parametrize("form", ["regular", "interval", "window"])
@pytest.mark.parametrize("kind", ANSWERS)
def test_a_pair_whose_condition_cannot_be_computed_is_a_dead_letter_and_nothing_else(form: str, kind: str):
    ends = '{"k": 9, "v": 6, "w": 6, "ts": "2023-11-15 22:00:00"}'
    a = [*(f'{{"k": {k}, "v": 6, "ts": "2023-11-14 22:00:00"}}' for k in (1, 2, 3)), ends]
    b = [*(f'{{"k": {k}, "w": {w}, "ts": "2023-11-14 22:13:20"}}' for k, w in ((1, 0), (2, 3), (1, 0), (4, 4))), ends]
    left, right = [
        f"TABLE(TUMBLE(TABLE {t}, DESCRIPTOR(ts), INTERVAL '1' HOUR))" if form == "window" else t for t in "ab"
    ]
    on = {"regular": "a.k = b.k", "interval": NEAR, "window": WINDOWS.format("a", "b")}[form] + " AND a.v / b.w >= 0"
    if "EXISTS" in kind:
        query = f"SELECT a.k, a.v, 0 FROM {left} a WHERE {kind} (SELECT 1 FROM {right} b WHERE {on})"
    else:
        query = f"SELECT a.k, a.v, b.w FROM {left} a {kind} {right} b ON {on}"
    found = answer(query, a, b)
    assert [row for row in rows(found) if 9 not in row] == sorted(ANSWERS[kind], key=str)
    dead = [row for tables in found.dead.values() for table in tables for row in table.to_pylist()]
    # Equal rows are one row of a regular join.
    lefts, equal = ([1] if kind != "RIGHT JOIN" else []), [1] if form == "regular" else [1, 1]
    rights = equal if kind in ("RIGHT JOIN", "FULL JOIN") else []
    assert [(row["c0"], row["_weight"]) for row in dead] == [(k, 1) for k in (*lefts, *rights)]
    assert {row["_reason"] for row in dead} == {"the condition of the join: Division by zero"}


def test_a_value_that_is_compared_and_cannot_be_computed_costs_its_own_row_alone():
    a, b = ['{"k": 1, "v": 6}', '{"k": 2, "v": 6}'], ['{"k": 1, "w": 0}', '{"k": 2, "w": 3}']
    found = answer("SELECT a.k, a.v, b.w FROM a LEFT JOIN b ON a.k = b.k AND a.v / 3 = 6 / b.w", a, b)
    assert rows(found) == [(1, 6, None), (2, 6, 3)]
    dead = [row for tables in found.dead.values() for table in tables for row in table.to_pylist()]
    assert [(row["c0"], row["c1"]) for row in dead] == [(1, 0)]


UNLIKE = "k NOT IN (SELECT k FROM b WHERE a.v / b.w > 1)"


@pytest.mark.parametrize(
    ("query", "answers"),
    [
        (f"SELECT k, v, 0 FROM a WHERE {UNLIKE}", [(2, 6, 0), (4, 6, 0)]),
        (f"SELECT k, CAST({UNLIKE} AS INT), 0 FROM a", [(2, 1, 0), (3, 0, 0), (4, 1, 0)]),
        ("SELECT a.k, v, w FROM a LEFT JOIN b ON a.v / b.w > 1 AND a.k >= b.k AND a.k < 4", [(3, 6, 2), (4, 6, None)]),
    ],
)
def test_a_part_of_a_condition_that_fails_is_of_no_matter_where_another_part_is_not_true(
    query: str, answers: list[tuple[int | None, ...]]
):
    """The row of b with key 1 divides by zero: only rows of a for which its key makes it matter are dead."""
    a = [f'{{"k": {k}, "v": 6}}' for k in (1, 2, 3, 4)]
    found = answer(query, a, ['{"k": 1, "w": 0}', '{"k": 3, "w": 2}'])
    assert rows(found) == answers
    dead = [row["c0"] for tables in found.dead.values() for table in tables for row in table.to_pylist()]
    assert sorted(set(dead)) == ([1, 2, 3] if "LEFT JOIN" in query else [1])
