"""Upsert streams as relations."""

from __future__ import annotations

import random
from collections import Counter

import pyarrow as pa
import pytest

from operators.rows.normalize import NormalizeOperator
from tests.operators.properties import Batch, Change, Row, Run, holds_restart
from tests.operators.shared_hashes import share_hashes

SCHEMA = pa.schema([("c0", pa.int64()), ("c1", pa.string()), ("c2", pa.list_(pa.int64()))])


def upserts(seed: int, batches: int, keys: int = 12) -> list[Batch]:
    rng = random.Random(seed)
    result = []
    for _ in range(batches):
        changes = []
        for _ in range(rng.choice([0, 1, 6, 25])):
            key = rng.choice(["x", None, *map(str, range(keys))])
            if rng.random() < 0.3:
                changes.append(Change((None, key, None), -1))
            else:
                changes.append(Change((rng.choice([None, 1, 2]), key, rng.choice([None, [], [1, None]]))))
        result.append(Batch(changes))
    return result


def test_the_relation_holds_the_last_row_of_each_key():
    run = Run((NormalizeOperator(output=SCHEMA, key=(1,)),))
    model: dict[object, Row] = {}
    for batch in upserts(1, 40):
        run(batch)
        for change in batch.changes:
            if change.weight > 0:
                number, key, items = change.row
                model[key] = (number, key, tuple(items) if items is not None else None)
            else:
                model.pop(change.row[1], None)
        assert run.applied == Counter(model.values())
        assert run.state_rows() == len(model)


def test_how_upserts_are_cut_does_not_change_the_relation():
    changes = [c for batch in upserts(2, 12) for c in batch.changes]
    results = []
    for size in (1, 5, 1000):
        run = Run((NormalizeOperator(output=SCHEMA, key=(1,)),))
        for start in range(0, len(changes), size):
            run(Batch(changes[start : start + size]))
        results.append(run.applied)
    assert results[0] == results[1] == results[2]


def test_deleting_every_key_leaves_nothing():
    run = Run((NormalizeOperator(output=SCHEMA, key=(1,)),))
    batches = upserts(3, 12)
    for batch in batches:
        run(batch)
    keys = {c.row[1] for b in batches for c in b.changes}
    run(Batch([Change((None, key, None), -1) for key in keys]))
    assert run.applied == Counter()
    assert run.state_rows() == 0


def test_normalizing_survives_a_restart_bit_by_bit():
    holds_restart((NormalizeOperator(output=SCHEMA, key=(1,)),), upserts(4, 25))


def test_keys_that_share_a_hash_are_kept_apart(monkeypatch):
    share_hashes(monkeypatch)
    test_the_relation_holds_the_last_row_of_each_key()


def test_the_same_row_again_says_nothing():
    run = Run((NormalizeOperator(output=SCHEMA, key=(1,)),))
    run(Batch([Change((1, "a", None))]))
    run(Batch([Change((1, "a", None))]))
    assert run.log == [((1, "a", None), 1)]


def test_with_a_time_to_live_the_same_row_again_is_a_refresh():
    run = Run((NormalizeOperator(output=SCHEMA, key=(1,), ttl=100),))
    run(Batch([Change((1, "a", None))], now=0))
    run(Batch([Change((1, "a", None))], now=99))
    run(Batch([Change((2, "a", None))], now=198))
    run(Batch([Change((3, "a", None))], now=298))
    assert run.log == [
        ((1, "a", None), 1),
        ((1, "a", None), 0),
        ((1, "a", None), -1),
        ((2, "a", None), 1),
        ((3, "a", None), 1),
    ]


@pytest.mark.parametrize("first", [1, -1])
def test_the_last_of_several_changes_of_a_key_counts(first):
    run = Run((NormalizeOperator(output=SCHEMA, key=(1,)),))
    run(Batch([Change((1, "a", None), first), Change((2, "a", None)), Change((3, "a", None), -first)]))
    assert run.applied == (Counter() if first == 1 else Counter({(3, "a", None): 1}))
