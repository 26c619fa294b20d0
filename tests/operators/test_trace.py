"""A trace against a model: whatever was written last is found, however blocks were merged meanwhile."""

from __future__ import annotations

import random

import numpy as np
import pyarrow as pa
import pytest

from operators.names import SORT_KEY
from operators.state import upkeep
from operators.state.lookup import find, find_groups, nested, sort_keys_of
from operators.state.operator_state import State, TableKind, TraceSpec

VALUES = pa.schema([("c0", pa.int64()), ("c1", pa.string())])


class Storage:
    """Where a test keeps blocks, as an adapter would."""

    def __init__(self, specs):
        self.specs = specs
        self.blocks: dict[str, pa.Buffer] = {}
        self.manifest = None
        self.ids: set[str] = set()

    def open(self) -> State:
        return State.open(self.specs, self.manifest, self.blocks.__getitem__)

    def seal(self, state: State) -> None:
        saved = state.seal()
        assert not self.ids & saved.added.keys(), "an id was used twice"
        self.ids |= saved.added.keys()
        self.blocks |= saved.added
        for name in saved.removed:
            del self.blocks[name]
        self.manifest = saved.manifest


@pytest.fixture(params=[8, 100, 32_768])
def stretch(request, monkeypatch):
    monkeypatch.setattr(upkeep, "STEP_ROWS", request.param)
    monkeypatch.setattr("operators.state.compaction._SMALLEST", request.param // 8)
    return request.param


def rows_of(pairs) -> tuple[pa.Table, np.ndarray]:
    keys = np.array([key for key, _ in pairs], dtype=np.uint64)
    return pa.table([keys.astype(np.int64), [value for _, value in pairs]], schema=VALUES), keys


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("reopen", [False, True])
def test_the_last_row_written_for_a_key_is_found(stretch, seed, reopen):
    rng = random.Random(seed)
    storage = Storage({"t": TraceSpec(schema=VALUES, kind=TableKind.KEYED)})
    state = storage.open()
    model: dict[int, str] = {}
    for batch in range(80):
        keys = sorted({rng.randrange(300) for _ in range(rng.choice([1, 5, 40]))})
        wanted = np.array(keys, dtype=np.uint64)
        found = find(state["t"], wanted)
        assert dict(zip(found["c0"].to_pylist(), found["c1"].to_pylist(), strict=True)) == {
            k: model[k] for k in keys if k in model
        }
        written = [(k, f"{k} in {batch}") for k in keys if rng.random() < 0.6]
        for k in keys:
            model.pop(k, None)
        model |= dict(written)
        rows, sort_keys = rows_of(written)
        state["t"].replace(rows, sort_keys, sort_keys_of(found))
        storage.seal(state)
        if reopen:
            state = storage.open()
        assert state.table_sizes()["t"].rows == len(model)
    everything = find(state["t"], np.arange(300, dtype=np.uint64))
    assert sorted(everything["c0"].to_pylist()) == sorted(model)
    assert len(state["t"].blocks()) < 80


def test_a_state_that_lives_on_and_one_opened_again_write_the_same_blocks(stretch):
    shelves = [Storage({"t": TraceSpec(schema=VALUES, kind=TableKind.KEYED)}) for _ in range(2)]
    lasting = shelves[0].open()
    rng = random.Random(1)
    for batch in range(100):
        keys = np.array(sorted({rng.randrange(200) for _ in range(20)}), dtype=np.uint64)
        for storage, state in zip(shelves, (lasting, shelves[1].open()), strict=True):
            found = find(state["t"], keys)
            rows, sort_keys = rows_of([(k, str(batch)) for k in keys if k % 3])
            state["t"].replace(rows, sort_keys, sort_keys_of(found))
            storage.seal(state)
        assert shelves[0].manifest == shelves[1].manifest
        assert {k: b.to_pybytes() for k, b in shelves[0].blocks.items()} == {
            k: b.to_pybytes() for k, b in shelves[1].blocks.items()
        }


def test_when_nothing_is_left_no_block_is_left():
    storage = Storage({"t": TraceSpec(schema=VALUES, kind=TableKind.KEYED)})
    state = storage.open()
    rows, sort_keys = rows_of([(k, "x") for k in range(50)])
    state["t"].replace(rows, sort_keys, sort_keys[:0])
    storage.seal(state)
    state["t"].replace(rows.slice(0, 0), sort_keys[:0], sort_keys)
    storage.seal(state)
    assert storage.blocks == {}
    assert state.table_sizes()["t"] == (0, 0)


def test_groups_are_found_by_the_first_half_of_an_order(stretch):
    storage = Storage({"t": TraceSpec(schema=VALUES, kind=TableKind.KEYED)})
    state = storage.open()
    rng = random.Random(2)
    model: dict[tuple[int, int], str] = {}

    def order(group: int, member: int) -> int:
        hashes = nested(np.array([group << 32], np.uint64), np.array([member << 32], np.uint64))
        return int(hashes[0])

    for batch in range(60):
        touched = {(rng.randrange(10), rng.randrange(20)) for _ in range(10)}
        written = sorted((order(*k), f"{k} {batch}") for k in touched)
        rows, sort_keys = rows_of(written)
        found = find(state["t"], sort_keys)
        state["t"].replace(rows, sort_keys, sort_keys_of(found))
        model |= {k: f"{k} {batch}" for k in touched}
        storage.seal(state)
        groups = [rng.randrange(10) for _ in range(3)]
        hits = find_groups(state["t"], np.array([g << 32 for g in groups], np.uint64))
        assert sorted(hits["c1"].to_pylist()) == sorted(v for k, v in model.items() if k[0] in groups)


@pytest.mark.parametrize("reopen", [False, True])
def test_rows_by_time_come_in_the_order_of_arrival_and_go_when_consumed(stretch, reopen):
    storage = Storage({"t": TraceSpec(schema=VALUES, kind=TableKind.TIME_ORDERED, key=("c0",))})
    state = storage.open()
    rng = random.Random(3)
    model: list[tuple[int, str]] = []
    for batch in range(100):
        written = [(batch * 10 + rng.randrange(40), f"{batch}/{i}") for i in range(rng.randrange(30))]
        model += written
        table = pa.table([[t for t, _ in written], [v for _, v in written]], schema=VALUES)
        state["t"].add(table, np.array([t for t, _ in written], dtype=np.int64))
        low, high = batch * 10 - 100, batch * 10
        rows = state["t"].between(low, high)
        expected = sorted((r for r in model if low < r[0] <= high), key=lambda r: r[0])
        assert rows["c1"].to_pylist() == [v for _, v in expected]
        state["t"].expire(high - 60)
        model = [r for r in model if r[0] > high - 60]
        storage.seal(state)
        assert state.table_sizes()["t"].rows == len(model)
        if reopen:
            state = storage.open()
    state["t"].expire(10**6)
    storage.seal(state)
    assert storage.blocks == {}


def test_rows_in_a_log_go_when_their_stamp_is_behind_the_horizon(stretch):
    schema = pa.schema([*VALUES, ("_time", pa.int64())])
    storage = Storage({"t": TraceSpec(schema=schema, kind=TableKind.MULTISET, timestamp="_time")})
    state = storage.open()
    rng = random.Random(4)
    model: list[tuple[int, int, str]] = []
    for batch in range(200):
        written = [(rng.randrange(20), batch * 10 + rng.randrange(40), f"{batch}/{i}") for i in range(10)]
        model += written
        keys = np.array([k for k, _, _ in written], dtype=np.uint64)
        table = pa.table([keys.astype(np.int64), [v for _, _, v in written], [t for _, t, _ in written]], schema=schema)
        state["t"].add(table, keys)
        state["t"].expire(batch * 10 - 100)
        model = [r for r in model if r[1] > batch * 10 - 100]
        storage.seal(state)
        wanted = np.array(sorted(rng.sample(range(20), 5)), dtype=np.uint64)
        assert sorted(find(state["t"], wanted)["c1"].to_pylist()) == sorted(v for k, _, v in model if k in wanted)
        assert state.table_sizes()["t"].rows <= 4 * len(model) + 4 * stretch
    assert SORT_KEY in find(state["t"], wanted).column_names
