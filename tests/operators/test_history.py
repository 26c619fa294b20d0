"""Rows by partition and time, against going through all of them."""

from __future__ import annotations

import random

import numpy as np
import pyarrow as pa
import pytest

from operators.state.operator_state import State
from operators.state.tables.history import HistoryTable
from operators.state.tables.table import specs_of

ROWS = pa.schema([("c0", pa.string()), ("c1", pa.int64())])


def history_of(schema: pa.Schema, keys: tuple[int, ...], length: int) -> HistoryTable:
    return HistoryTable(name="history", schema=schema, keys=keys, length=length)


def kept(history: HistoryTable, rows: list[tuple[str, int]], batches: int = 3) -> State:
    state = State.open(specs_of(history), None, lambda name: pa.py_buffer(b""))
    for at in range(batches):
        part = rows[at::batches]
        table = pa.table([[key for key, _ in part], [time for _, time in part]], schema=ROWS)
        history.add(state, table, table.column(1).to_numpy())
    return state


def read(history: HistoryTable, state: State, asked: dict[str, tuple[int, int]]) -> list[tuple[str, int]]:
    names = pa.table([list(asked), [0] * len(asked)], schema=ROWS)
    lows, highs = (np.array([bounds[i] for bounds in asked.values()]) for i in (0, 1))
    rows, times = history.read(state, history.hashes(state, names), lows, highs)
    assert rows.column(1).to_pylist() == times.tolist() == sorted(times.tolist())
    return [(key, time) for key, time in zip(*(c.to_pylist() for c in rows.columns), strict=True) if key in asked]


@pytest.mark.parametrize("length", [10, 2**31, 2**40])
@pytest.mark.parametrize("around", [0, 2**32, -(2**32), 2**45])
def test_a_stretch_of_a_few_partitions_is_found_wherever_time_is(length: int, around: int):
    rng = random.Random(1)
    rows = [(f"k{rng.randrange(20)}", around + rng.randrange(-100, 100)) for _ in range(300)]
    history = history_of(ROWS, (0,), length)
    asked = {"k1": (around - 50, around + 20), "k2": (around - 50, around + 20), "none": (around, around)}
    expected = sorted(((k, t) for k, t in rows if k in asked and around - 50 <= t <= around + 20), key=lambda r: r[1])
    found = read(history, kept(history, rows), asked)
    assert sorted(found) == sorted(expected)


def test_each_partition_is_read_from_its_own_time_on():
    history = history_of(ROWS, (0,), 1000)
    state = kept(history, [(key, time) for key in "ab" for time in range(1000)])
    before = state.rows_read
    assert read(history, state, {"a": (900, 904), "b": (10, 12)}) != []
    assert state.rows_read - before == 5 + 3


def test_a_stretch_longer_than_time_goes_round_is_the_whole_partition():
    history = history_of(ROWS, (0,), 10)
    rows = [("a", 5), ("a", 2**33), ("b", 7)]
    assert read(history, kept(history, rows), {"a": (0, 2**34)}) == [("a", 5), ("a", 2**33)]


def test_rows_of_one_time_come_as_they_came():
    history = history_of(pa.schema([*ROWS, ("c2", pa.int64())]), (0,), 10)
    blocks: dict[str, pa.Buffer] = {}
    state = State.open(specs_of(history), None, blocks.__getitem__)
    for number in range(9):
        table = pa.table([["a"], [5], [number]], schema=history.schema)
        history.add(state, table, np.array([5]))
        blocks |= state.seal().added
    rows, _ = history.read(state, history.hashes(state, table), np.array([0]), np.array([9]))
    assert rows.column(2).to_pylist() == list(range(9))


def test_rows_that_have_expired_are_not_found():
    history = history_of(ROWS, (), 10)
    state = kept(history, [("a", time) for time in range(10)])
    history.expire_upto(state, 4)
    found, _ = history.read(state, np.array([history.hashes(state, found_one())[0]]), np.array([0]), np.array([9]))
    assert found.column(1).to_pylist() == [5, 6, 7, 8, 9]


def found_one() -> pa.Table:
    return pa.table([["a"], [0]], schema=ROWS)
