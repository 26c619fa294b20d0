"""Projection, filter and UNION ALL."""

from __future__ import annotations

import pickle
from dataclasses import replace
from datetime import datetime

import pyarrow as pa
import pytest

from operators.columns import weighted
from operators.rows.calc import Calc
from operators.rows.union import UnionAll
from operators.time import Clock
from tests.operators.properties import SQL, Batch, Change, Run, holds_oracle, holds_undo, no_state, rows_of

INPUT = pa.schema([("c0", pa.int32()), ("c1", pa.string())])
HALF = Calc(
    input=INPUT,
    output=pa.schema([("c0", pa.int32()), ("c1", pa.string())]),
    expressions=("CAST(10 // c0 AS INTEGER)", "upper(c1)"),
    where="c1 <> 'skip'",
)
BATCHES = [
    Batch([Change((1, "a")), Change((2, None)), Change((5, "skip"))]),
    Batch([Change((1, "a"), -1), Change((None, "b"))]),
    Batch([]),
]


def step(kernel, *rows, now=0):
    table = pa.table([[row[i] for row in rows] for i in range(3)], schema=weighted(kernel.inputs[0]))
    return kernel.advance(no_state(), [table] * len(kernel.inputs), Clock(now, 0, 0), SQL)


def test_rows_are_projected_and_filtered_with_their_weights():
    query = "SELECT CAST(10 // c0 AS INTEGER), upper(c1) FROM t0 WHERE c1 <> 'skip'"
    holds_oracle((HALF,), BATCHES, query)
    holds_undo((HALF,), BATCHES)


def test_a_row_that_cannot_be_computed_is_dead_and_the_rest_of_the_batch_goes_on():
    answer = step(HALF, (1, "a", 1), (0, "b", -1), (0, "skip", 1), (5, "c", 2))
    assert rows_of(answer.changes) == [(10, "A", 1), (2, "C", 2)]
    assert rows_of(answer.dead[0]) == [(0, "b", -1, "Division by zero")]


@pytest.mark.parametrize(
    ("expression", "bad", "reason"),
    [
        ("CAST(c1 AS INTEGER)", (1, "abc", 1), "Could not convert string 'abc' to INT32"),
        ("CAST(c0 * 1000000 AS INTEGER)", (2_000_000, "1", 1), "Overflow"),
        ("CAST(c0 AS TINYINT)", (300, "1", 1), "out of range"),
    ],
)
def test_a_dead_row_says_why(expression, bad, reason):
    kernel = Calc(input=INPUT, output=pa.schema([("c0", pa.int32())]), expressions=(f"CAST({expression} AS INTEGER)",))
    answer = step(kernel, (1, "1", 1), bad)
    assert answer.changes.num_rows == 1
    assert reason.lower() in answer.dead[0].column("_reason")[0].as_py().lower()


def test_a_condition_that_cannot_be_computed_kills_its_row_too():
    kernel = Calc(
        input=INPUT, output=pa.schema([("c0", pa.int32())]), expressions=("c0",), where="CAST(c1 AS INTEGER) > 1"
    )
    answer = step(kernel, (1, "2", 1), (2, "x", 1), (3, "0", 1))
    assert rows_of(answer.changes) == [(1, 1)]
    assert answer.dead[0].column("c1").to_pylist() == ["x"]


def test_now_is_the_time_of_the_batch():
    kernel = Calc(input=INPUT, output=pa.schema([("c0", pa.timestamp("us"))]), expressions=("$now",))
    assert rows_of(step(kernel, (1, "a", 1), now=1500).changes) == [(datetime(1970, 1, 1, 0, 0, 1, 500000), 1)]


def test_a_projection_may_leave_no_column():
    kernel = Calc(input=INPUT, output=pa.schema([]), expressions=())
    assert step(kernel, (1, "a", 1), (2, "a", -1)).changes.column("_weight").to_pylist() == [1, -1]


def test_a_union_has_all_rows_of_all_inputs():
    run = Run((UnionAll(ports=2, output=INPUT),))
    run(Batch([Change((1, "a"), 1, 0), Change((1, "a"), 1, 1), Change((2, "b"), 1, 1)]))
    assert run.applied == {(1, "a"): 2, (2, "b"): 1}


def test_a_kernel_travels_as_a_value_and_its_fingerprint_with_it():
    copy = pickle.loads(pickle.dumps(HALF))
    assert copy == HALF
    assert copy.fingerprint() == HALF.fingerprint()
    assert copy.fingerprint() != replace(HALF, input=pa.schema([*INPUT, ("c2", pa.int32())])).fingerprint()


@pytest.mark.parametrize(
    ("expressions", "where", "reads_now"),
    [(("c0",), None, False), (("$now",), None, True), (("c0",), "c0 < $now", True), (("'$now'",), None, False)],
)
def test_a_projection_says_whether_it_asks_for_the_time(expressions, where, reads_now):
    kernel = Calc(input=INPUT, output=pa.schema([("c0", pa.int32())]), expressions=expressions, where=where)
    assert kernel.reads_now is reads_now
