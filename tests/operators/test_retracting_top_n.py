"""The top N rows of a group: inputs that take rows back."""

from __future__ import annotations

import random
from collections import Counter

import pyarrow as pa
import pytest

from operators.ranking import retracting_top_n
from operators.ranking.ranking import OrderBy, RankFunction, Ranking
from operators.ranking.retracting_top_n import RetractingTopNOperator
from tests.operators.properties import (
    Batch,
    Change,
    Row,
    Run,
    every,
    holds_cut,
    holds_oracle,
    holds_restart,
    holds_undo,
)
from tests.operators.shared_hashes import share_hashes

SCHEMA = pa.schema([("c0", pa.string()), ("c1", pa.int64()), ("c2", pa.float64()), ("c3", pa.string())])

ONE = (OrderBy(column=1, descending=True, nulls_first=False),)
TWO = (*ONE, OrderBy(column=2))
DENSE, RANK = RankFunction.DENSE_RANK, RankFunction.RANK

RANKINGS = {
    "top 3": Ranking(partition=(0,), order=TWO, last=3),
    "top 3 numbered": Ranking(partition=(0,), order=ONE, last=3, shown=True),
    "the first": Ranking(partition=(0,), order=ONE, last=1),
    "second to fourth": Ranking(partition=(0,), order=TWO, first=2, last=4),
    "second to fourth numbered": Ranking(partition=(0,), order=ONE, first=2, last=4, shown=True),
    "of all rows": Ranking(partition=(), order=TWO, last=5, shown=True),
    "in no order": Ranking(partition=(), order=(), last=4),
    "ranks": Ranking(partition=(0,), order=ONE, last=3, function=RANK),
    "ranks numbered": Ranking(partition=(0,), order=ONE, first=2, last=4, function=RANK, shown=True),
    "dense ranks": Ranking(partition=(0,), order=ONE, last=2, function=DENSE),
    "dense ranks numbered": Ranking(partition=(0,), order=TWO, first=2, last=3, function=DENSE, shown=True),
}

VALUE, BOTH = "c1 DESC NULLS LAST", "c1 DESC NULLS LAST, c2 NULLS FIRST"
LIST = "c3 NULLS FIRST"
W = "PARTITION BY c0"
ORACLES = {
    "top 3": f"SELECT * FROM t0 QUALIFY row_number() OVER ({W} ORDER BY {BOTH}, {LIST}) <= 3",
    "top 3 numbered": f"SELECT *, row_number() OVER ({W} ORDER BY {BOTH}, {LIST}) AS n FROM t0 QUALIFY n <= 3",
    "the first": f"SELECT * FROM t0 QUALIFY row_number() OVER ({W} ORDER BY {BOTH}, {LIST}) = 1",
    "second to fourth": f"SELECT * FROM t0 QUALIFY row_number() OVER ({W} ORDER BY {BOTH}, {LIST}) BETWEEN 2 AND 4",
    "second to fourth numbered": (
        f"SELECT *, row_number() OVER ({W} ORDER BY {BOTH}, {LIST}) AS n FROM t0 QUALIFY n BETWEEN 2 AND 4"
    ),
    "of all rows": f"SELECT *, row_number() OVER (ORDER BY {BOTH}, c0 NULLS FIRST, {LIST}) AS n FROM t0 QUALIFY n <= 5",
    "in no order": f"SELECT * FROM t0 ORDER BY c0 NULLS FIRST, c1 NULLS FIRST, c2 NULLS FIRST, {LIST} LIMIT 4",
    "ranks": f"SELECT * FROM t0 QUALIFY rank() OVER ({W} ORDER BY {VALUE}) <= 3",
    "ranks numbered": f"SELECT *, rank() OVER ({W} ORDER BY {VALUE}) AS n FROM t0 QUALIFY n BETWEEN 2 AND 4",
    "dense ranks": f"SELECT * FROM t0 QUALIFY dense_rank() OVER ({W} ORDER BY {VALUE}) <= 2",
    "dense ranks numbered": f"SELECT *, dense_rank() OVER ({W} ORDER BY {BOTH}) AS n FROM t0 QUALIFY n BETWEEN 2 AND 3",
}


@pytest.fixture(params=[1, retracting_top_n.SPARE], ids=["short heads", "long heads"])
def spare(request, monkeypatch):
    """Heads that are filled and emptied all the time, and heads that hold every row of these tests."""
    monkeypatch.setattr(retracting_top_n, "SPARE", request.param)


def kernel(name: str, **options) -> RetractingTopNOperator:
    return RetractingTopNOperator(input=SCHEMA, ranking=RANKINGS[name], **options)


def batches(seed: int, count: int, values: int = 8) -> list[Batch]:
    """Rows that come, several times at times, and those that are there go again."""
    rng = random.Random(seed)
    there: Counter[int] = Counter()
    rows: list[Row] = []
    result = []
    for _ in range(count):
        changes = []
        for _ in range(rng.choice([0, 1, 4, 25])):
            alive = [i for i in there if there[i] > 0]
            if alive and rng.random() < 0.45:
                at, weight = rng.choice(alive), -1
            else:
                row = (
                    rng.choice(["a", "", None]),
                    rng.choice([None, *range(values)]),
                    rng.choice([None, 0.5, float("nan")]),
                    rng.choice([None, "", "x"]),
                )
                rows.append(row)
                at, weight = len(rows) - 1, rng.choice([1, 1, 1, 2])
            there[at] += weight
            changes.append(Change(rows[at], weight))
        result.append(Batch(changes))
    return result


@pytest.mark.parametrize("name", RANKINGS)
def test_the_top_equals_that_of_a_batch_query(name, spare):
    run = holds_oracle((kernel(name),), batches(1, 40), ORACLES[name], restart=True)
    assert run.unmatched_retractions == 0


@pytest.mark.parametrize("name", RANKINGS)
def test_taking_everything_back_leaves_nothing(name, spare):
    holds_undo((kernel(name),), batches(2, 15))


@pytest.mark.parametrize("name", ["top 3 numbered", "dense ranks", "in no order"])
def test_the_top_does_not_depend_on_how_the_log_is_cut(name, spare):
    changes = [change for batch in batches(3, 12) for change in batch.changes]
    holds_cut((kernel(name),), changes, [every(1), every(6), every(1000)])


@pytest.mark.parametrize("ttl", [0, 60])
def test_the_top_survives_a_restart_bit_by_bit(ttl, spare):
    timed = [Batch(batch.changes, now=9 * i) for i, batch in enumerate(batches(4, 30))]
    holds_restart((kernel("top 3 numbered", ttl=ttl),), timed)


@pytest.mark.parametrize("name", ["top 3 numbered", "ranks", "dense ranks"])
def test_rows_and_groups_that_share_a_hash_are_kept_apart(name, spare, monkeypatch):
    share_hashes(monkeypatch)
    holds_oracle((kernel(name),), batches(5, 25), ORACLES[name])


def test_a_batch_reads_the_head_of_a_group_and_not_its_rest(monkeypatch):
    run = Run((kernel("top 3"),))
    rows = [Change(("a", value, None, None)) for value in range(2_000)]
    run(Batch(rows))
    read: list[int] = []
    original = RetractingTopNOperator._ranked

    def counted(self, changes, head, rest, whole, sql):
        read.append(head.num_rows + rest.num_rows)
        return original(self, changes, head, rest, whole, sql)

    monkeypatch.setattr(RetractingTopNOperator, "_ranked", counted)
    for value in range(3_000, 3_100):
        run(Batch([Change(("a", value, None, None)), Change(("a", value - 3_000, None, None), -1)]))
    assert max(read) <= 3 + 2 * retracting_top_n.SPARE + 2
    assert run.state_rows() == 2_000


def test_a_head_that_has_become_short_is_filled_from_the_rest():
    run = Run((kernel("the first"),))
    run(Batch([Change(("a", value, None, None)) for value in range(500)]))
    for value in reversed(range(500)):
        assert +run.applied == Counter([("a", value, None, None)])
        run(Batch([Change(("a", value, None, None), -1)]))
    assert run.applied == Counter()
    assert run.state_rows() == 0


def test_what_was_never_there_is_dropped_and_counted(spare):
    run = Run((kernel("the first"),))
    run(Batch([Change(("a", 5, None, None), -1)]))
    run(Batch([Change(("a", value, None, None)) for value in (9, 8, 7, 6)]))
    run(Batch([Change(("a", 1, None, None), -1), Change(("a", 9, None, None), -2)]))
    assert run.unmatched_retractions == 3
    assert +run.applied == Counter([("a", 8, None, None)])


def test_a_row_is_forgotten_after_its_time_to_live_and_kept_by_a_refresh(spare):
    run = Run((kernel("the first", ttl=100),))
    low, high = ("a", 1, None, None), ("a", 9, None, None)
    run(Batch([Change(low), Change(high)], now=0))
    run(Batch([Change(low, 0)], now=60))
    run(Batch([Change(low, 0)], now=120))
    assert run.log == [(high, 1), (low, 1)]


def test_a_refresh_of_a_shown_row_travels_on(spare):
    run = Run((kernel("top 3 numbered", ttl=100),))
    run(Batch([Change(("a", 1, None, None)), Change(("a", 2, None, None))], now=0))
    run(Batch([Change(("a", 1, None, None), 0)], now=60))
    assert run.log[2:] == [(("a", 1, None, None, 2), 0)]
