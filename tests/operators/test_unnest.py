"""UNNEST of lists, of lists of rows and of maps."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import pyarrow as pa
import pytest

from operators.names import WEIGHT
from operators.rows.unnest import UnnestOperator
from operators.time import Clock
from tests.operators.properties import SQL, Row, no_state

PAIR = pa.struct([("a", pa.int64()), ("b", pa.string())])
TYPES = {"list": pa.list_(pa.int64()), "rows": pa.list_(PAIR), "map": pa.map_(pa.string(), pa.int64())}
VALUES: dict[str, list[Any]] = {
    "list": [None, [], [1], [2, None, 2]],
    "rows": [None, [], [{"a": 1, "b": "x"}], [{"a": None, "b": "y"}, {"a": 2, "b": None}]],
    "map": [None, [], [("k", 1)], [("a", None), ("b", 2)]],
}
WIDTH = {"list": 1, "rows": 2, "map": 2}


def expected(kind: str, rows: list[Row], ordinality: bool, outer: bool) -> list[Row]:
    """What Python makes of it."""
    result = []
    for number, value, weight in rows:
        found: list[Row] = [(e,) if kind == "list" else tuple(e.values()) if kind == "rows" else e for e in value or []]
        places: list[int | None] = list(range(1, len(found) + 1))
        if not found and outer:
            found, places = [(None,) * WIDTH[kind]], [None]
        for element, place in zip(found, places, strict=True):
            result.append((number, *element, *([place] if ordinality else []), weight))
    return result


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("ordinality", [False, True])
@pytest.mark.parametrize("outer", [False, True])
def test_each_row_comes_out_once_for_each_element(kind: str, ordinality: bool, outer: bool):
    schema = pa.schema([("c0", pa.int64()), ("c1", TYPES[kind])])
    kernel = UnnestOperator(input=schema, column=1, ordinality=ordinality, outer=outer)
    rng = random.Random(1)
    rows = [(i, rng.choice(VALUES[kind]), rng.choice([1, -1, 2])) for i in range(50)]
    block = pa.table(
        [
            pa.array([r[0] for r in rows]),
            pa.array([r[1] for r in rows], TYPES[kind]),
            pa.array([r[2] for r in rows], pa.int64()),
        ],
        names=["c0", "c1", WEIGHT],
    )
    changes = kernel.advance(no_state(), [block], Clock(0, 0, 0), SQL).changes
    answer = list(zip(*(c.to_pylist() for c in changes.drop_columns(["c1"]).columns), strict=True))
    assert answer == expected(kind, rows, ordinality, outer)
    parts = [kernel.advance(no_state(), [block.slice(i, 7)], Clock(0, 0, 0), SQL).changes for i in range(0, 50, 7)]
    cut = pa.concat_tables(parts).drop_columns(["c1"])
    assert list(zip(*(c.to_pylist() for c in cut.columns), strict=True)) == answer


def test_taking_rows_back_takes_their_elements_back():
    schema = pa.schema([("c0", pa.list_(pa.int64()))])
    kernel = UnnestOperator(input=schema, column=0)
    block = pa.table([pa.array([[1, 2], [1, 2]], schema.field(0).type), pa.array([1, -1])], names=["c0", WEIGHT])
    changes = kernel.advance(no_state(), [block], Clock(0, 0, 0), SQL).changes
    net: Counter[int] = Counter()
    for value, weight in zip(changes["c1"].to_pylist(), changes[WEIGHT].to_pylist(), strict=True):
        net[value] += weight
    assert all(weight == 0 for weight in net.values())
