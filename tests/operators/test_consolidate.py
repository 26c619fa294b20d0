"""The net change of each row before the sink."""

from __future__ import annotations

import random

import pyarrow as pa
import pytest

from operators import pieces
from operators.columns import weighted
from operators.rows.consolidate import Consolidate
from operators.time import Clock
from tests.operators.properties import SQL, no_state, rows_of

SCHEMA = pa.schema([("c0", pa.string()), ("c1", pa.int64())])


def table_of(*changes: tuple[str, int, int]) -> pa.Table:
    return pa.table([[c[i] for c in changes] for i in range(3)], schema=weighted(SCHEMA))


def net(*changes: tuple[str, int, int], key=(0,)):
    table = table_of(*changes)
    kernel = Consolidate(output=SCHEMA, key=key)
    step = kernel.advance(no_state(), [table], Clock(0, 0, 0), SQL)
    return rows_of(step.changes)


def test_changes_that_cancel_are_left_out():
    assert net(("a", 1, -1), ("a", 2, 1), ("a", 2, -1), ("a", 3, 1)) == [("a", 1, -1), ("a", 3, 1)]


def test_what_leaves_a_key_stands_before_what_comes():
    rows = net(*[(k, 2, 1) for k in "abcdef"], *[(k, 1, -1) for k in "fedcba"])
    assert [weight for _, _, weight in rows] == [-1, 1] * 6
    assert [rows[i][0] for i in range(0, 12, 2)] == [rows[i][0] for i in range(1, 12, 2)]


def test_a_row_written_again_unchanged_stays_as_a_mark():
    assert net(("a", 1, 0), ("a", 1, 0), ("b", 1, 1), ("b", 1, -1)) == [("a", 1, 0)]


def test_equal_rows_are_counted():
    assert net(("a", 1, 1), ("a", 1, 1), key=()) == [("a", 1, 2)]


@pytest.mark.parametrize("key", [(0,), (0, 1)])
def test_many_changes_come_in_parts_and_those_of_a_key_in_one(key, monkeypatch: pytest.MonkeyPatch):
    rng = random.Random(1)
    changes = [(rng.choice("abcdefghij"), rng.randrange(9), rng.choice([-1, 1])) for _ in range(500)]
    whole = net(*changes, key=key)
    monkeypatch.setattr(pieces, "STEP", 800)
    kernel = Consolidate(output=SCHEMA, key=key)
    table = pa.concat_tables([table_of(*changes[:300]), table_of(*changes[300:])])
    parts = [rows_of(step.changes) for step in kernel.steps(no_state(), [table], Clock(0, 0, 0), SQL)]
    assert len(parts) > 5
    assert sorted(row for part in parts for row in part) == sorted(whole)
    keys = [{tuple(row[place] for place in key) for row in part} for part in parts]
    assert sum(map(len, keys)) == len(set().union(*keys))
    assert net(*changes, key=key) == [row for part in parts for row in part]
