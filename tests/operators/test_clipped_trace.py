"""A trace whose slots are cut again while merges are under way, against a model: what was merged is not seen again."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pytest

from operators.arrays import distinct
from operators.slots import SLOTS, first_hash
from operators.state import upkeep
from operators.state.clipping import StatePart, clipped
from operators.state.lookup import LOW_HALF, find, find_groups, sort_keys_of
from operators.state.operator_state import State, TableKind, TraceSpec
from tests.operators.properties import slots_of_shard

VALUES = pa.schema([("c0", pa.int64())])
SPECS = {
    "log": TraceSpec(schema=VALUES, kind=TableKind.MULTISET),
    "rows": TraceSpec(schema=VALUES, kind=TableKind.KEYED),
}
SHARDS = (1, 2, 1, 3, 2, 4, 1, 2)


@pytest.fixture(autouse=True)
def merges_in_small_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that mostly some are under way."""
    monkeypatch.setattr(upkeep, "STEP_ROWS", 16)
    monkeypatch.setattr("operators.state.compaction._SMALLEST", 4)


class Shards:
    """The traces of one operator, over another number of states in each batch."""

    def __init__(self) -> None:
        self._parts = [StatePart(range(SLOTS), None)]
        self._blocks: list[dict[str, pa.Buffer]] = [{}]

    def cut(self, count: int) -> Iterator[tuple[range, State]]:
        """Yield each of `count` states, which is sealed when the next is asked for."""
        parts: list[StatePart] = []
        stores: list[dict[str, pa.Buffer]] = []
        for shard in range(count):
            mine = slots_of_shard(shard, count)
            over = [i for i, p in enumerate(self._parts) if p.slots.start < mine.stop and p.slots.stop > mine.start]
            found = clipped(SPECS, None, [self._parts[i] for i in over], mine)
            stored = {name: self._blocks[over[part]][old] for name, (part, old) in found.blocks.items()}
            state = State.open(SPECS, found.manifest, stored.__getitem__)
            yield mine, state
            saved = state.seal()
            stored |= saved.added
            for name in saved.removed:
                del stored[name]
            parts.append(StatePart(mine, saved.manifest))
            stores.append(stored)
        self._parts, self._blocks = parts, stores


def table(values: list[int]) -> pa.Table:
    return pa.table([pa.array(values, pa.int64())], schema=VALUES)


@pytest.mark.parametrize("seed", range(3))
def test_rows_are_found_once_however_slots_are_cut_between_the_steps_of_merges(seed: int):
    rng = random.Random(seed)
    keys = [rng.randrange(1 << 64) for _ in range(150)]
    log: dict[int, Counter[int]] = {key: Counter() for key in keys}
    rows: dict[int, int] = {}
    shards = Shards()
    for batch in range(45):
        written = sorted(rng.sample(keys, rng.choice([5, 30, 60])))
        gone = {key for key in written if rng.random() < 0.4}
        for slots, state in shards.cut(rng.choice(SHARDS)):
            inside = [k for k in written if first_hash(slots.start) <= k < first_hash(slots.stop)]
            at = np.array(inside, np.uint64)
            found = find(state["rows"], at)
            there = dict(zip(sort_keys_of(found).tolist(), found["c0"].to_pylist(), strict=True))
            assert there == {k: rows[k] for k in inside if k in rows}
            groups = find_groups(state["rows"], at)
            assert Counter(groups["c0"].to_pylist()) == Counter(there.values()), "by the first half of the keys"
            logged = find(state["log"], at)
            assert Counter(logged["c0"].to_pylist()) == sum((log[k] for k in inside), Counter())
            between = find_groups(state["log"], distinct(at & ~LOW_HALF))
            assert Counter(between["c0"].to_pylist()) == sum((log[k] for k in inside), Counter())
            state["log"].add(table([batch] * len(inside)), at)
            stay = [k for k in inside if k not in gone]
            state["rows"].replace(table([batch] * len(stay)), np.array(stay, np.uint64), sort_keys_of(found))
        for key in written:
            log[key][batch] += 1
            rows.pop(key, None)
            if key not in gone:
                rows[key] = batch
