"""The top N rows of a group: inputs that only insert."""

from __future__ import annotations

import random

import pyarrow as pa
import pytest

from operators.ranking import top_n
from operators.ranking.ranking import OrderBy, RankFunction, Ranking
from operators.ranking.top_n import TopNOperator
from tests.operators.properties import SQL, Batch, Change, Run, block, every, holds_cut, holds_oracle, holds_restart
from tests.operators.shared_hashes import share_hashes

SCHEMA = pa.schema([("c0", pa.string()), ("c1", pa.int64()), ("c2", pa.float64()), ("c3", pa.int64())])
"""A group, two columns to order by, and the number of the row as it arrives."""

BY_VALUE = (OrderBy(column=1, descending=True, nulls_first=False), OrderBy(column=2))

RANKINGS = {
    "top 3": Ranking(partition=(0,), order=BY_VALUE, last=3),
    "top 3 numbered": Ranking(partition=(0,), order=BY_VALUE, last=3, shown=True),
    "second to fourth": Ranking(partition=(0,), order=BY_VALUE, first=2, last=4),
    "second to fourth numbered": Ranking(partition=(0,), order=BY_VALUE, first=2, last=4, shown=True),
    "the latest": Ranking(partition=(0,), order=BY_VALUE[:1], last=1, latest_first=True),
    "of all rows": Ranking(partition=(), order=BY_VALUE, last=5, shown=True),
    "in no order": Ranking(partition=(0,), order=(), last=2),
    "ranks": Ranking(partition=(0,), order=BY_VALUE[:1], last=2, function=RankFunction.RANK, shown=True),
    "dense ranks": Ranking(partition=(0,), order=BY_VALUE[:1], last=2, function=RankFunction.DENSE_RANK, shown=True),
    "dense, second": Ranking(partition=(0,), order=BY_VALUE[:1], first=2, last=2, function=RankFunction.DENSE_RANK),
}

ORACLES = {
    "top 3": "SELECT t0.* FROM t0 QUALIFY row_number() OVER (w ORDER BY {value}, {rest}, c3) <= 3",
    "top 3 numbered": "SELECT t0.*, row_number() OVER (w ORDER BY {value}, {rest}, c3) AS n FROM t0 QUALIFY n <= 3",
    "second to fourth": (
        "SELECT t0.* FROM t0 QUALIFY row_number() OVER (w ORDER BY {value}, {rest}, c3) BETWEEN 2 AND 4"
    ),
    "second to fourth numbered": (
        "SELECT t0.*, row_number() OVER (w ORDER BY {value}, {rest}, c3) AS n FROM t0 QUALIFY n BETWEEN 2 AND 4"
    ),
    "the latest": "SELECT t0.* FROM t0 QUALIFY row_number() OVER (w ORDER BY {value}, c3 DESC) = 1",
    "of all rows": "SELECT t0.*, row_number() OVER (ORDER BY {value}, {rest}, c3) AS n FROM t0 QUALIFY n <= 5",
    "in no order": "SELECT t0.* FROM t0 QUALIFY row_number() OVER (w ORDER BY c3) <= 2",
    "ranks": "SELECT t0.*, rank() OVER (w ORDER BY {value}) AS n FROM t0 QUALIFY n <= 2",
    "dense ranks": "SELECT t0.*, dense_rank() OVER (w ORDER BY {value}) AS n FROM t0 QUALIFY n <= 2",
    "dense, second": "SELECT t0.* FROM t0 QUALIFY dense_rank() OVER (w ORDER BY {value}) = 2",
}


def oracle(name: str) -> str:
    text = ORACLES[name].replace("(w ", "(PARTITION BY c0 ")
    return text.format(value="c1 DESC NULLS LAST", rest="c2 ASC NULLS FIRST")


def arrivals(seed: int, count: int) -> list[Change]:
    rng = random.Random(seed)
    rows = []
    for i in range(count):
        value, rest = rng.choice([None, *range(6)]), rng.choice([None, 0.5, float("nan")])
        rows.append(Change((rng.choice(["a", "", None]), value, rest, i)))
    return rows


def batches(seed: int, count: int) -> list[Batch]:
    rng, rows, result = random.Random(seed), arrivals(seed, count), []
    while rows:
        size = rng.choice([0, 1, 3, 20])
        result.append(Batch(rows[:size]))
        rows = rows[size:]
    return result


def cut_into(rows: pa.Table, size: int) -> list[pa.Table]:
    return [rows.slice(first, size) for first in range(0, max(rows.num_rows, 1), size)]


@pytest.mark.parametrize("name", RANKINGS)
def test_the_top_equals_that_of_a_batch_query(name):
    holds_oracle((TopNOperator(input=SCHEMA, ranking=RANKINGS[name]),), batches(1, 120), oracle(name), restart=True)


@pytest.mark.parametrize("name", RANKINGS)
def test_the_top_does_not_depend_on_how_the_log_is_cut(name):
    kernel = TopNOperator(input=SCHEMA, ranking=RANKINGS[name])
    holds_cut((kernel,), arrivals(2, 80), [every(1), every(7), every(1000)])


class _InPieces(TopNOperator):
    """Takes a batch in pieces, of each of which it gets what it needs."""

    def advance(self, state, inputs, clock, sql):
        parts = [self.needed(piece, sql) for piece in cut_into(inputs[0], 5)]
        return TopNOperator.advance(self, state, [pa.concat_tables(parts)], clock, sql)


@pytest.mark.parametrize("ttl", [0, 100])
@pytest.mark.parametrize("name", RANKINGS)
def test_what_is_needed_of_the_pieces_of_a_batch_answers_as_the_batch(name, ttl, monkeypatch):
    monkeypatch.setattr(top_n, "SPARED", 1)
    whole, pieces = (Run((kind(input=SCHEMA, ranking=RANKINGS[name], ttl=ttl),)) for kind in (TopNOperator, _InPieces))
    for i, batch in enumerate(batches(6, 200)):
        for run in (whole, pieces):
            run(Batch(batch.changes, now=9 * i))
        assert pieces.log == whole.log
    assert pieces.applied


def test_of_a_piece_the_rows_behind_its_top_are_not_needed(monkeypatch):
    kernel = TopNOperator(input=SCHEMA, ranking=RANKINGS["top 3"])
    rows = block(SCHEMA, arrivals(7, 200))
    assert kernel.needed(rows, SQL).num_rows == 200
    monkeypatch.setattr(top_n, "SPARED", 200)
    assert kernel.needed(rows, SQL).num_rows == 9


@pytest.mark.parametrize("ttl", [0, 100])
def test_the_top_survives_a_restart_bit_by_bit(ttl):
    kernel = TopNOperator(input=SCHEMA, ranking=RANKINGS["top 3 numbered"], ttl=ttl)
    timed = [Batch(batch.changes, now=9 * i) for i, batch in enumerate(batches(3, 150))]
    holds_restart((kernel,), timed)


@pytest.mark.parametrize("name", RANKINGS)
def test_groups_that_share_a_hash_are_kept_apart(name, monkeypatch):
    share_hashes(monkeypatch)
    holds_oracle((TopNOperator(input=SCHEMA, ranking=RANKINGS[name]),), batches(4, 80), oracle(name))


def test_state_holds_the_top_alone():
    for name, kept in {"top 3": 9, "second to fourth": 12, "the latest": 3, "of all rows": 5, "in no order": 6}.items():
        run = Run((TopNOperator(input=SCHEMA, ranking=RANKINGS[name]),))
        for batch in batches(5, 300):
            run(batch)
            assert run.state_rows() <= kept, name


def test_a_row_that_does_not_enter_the_top_says_nothing_and_writes_nothing():
    run = Run((TopNOperator(input=SCHEMA, ranking=RANKINGS["top 3"]),))
    run(Batch([Change(("a", value, None, value)) for value in (5, 6, 7)]))
    blocks = [len(trace.blocks()) for trace in (run.states[0]["rows"],)]
    run(Batch([Change(("a", 4, None, 4))]))
    assert len(run.log) == 3
    assert [len(trace.blocks()) for trace in (run.states[0]["rows"],)] == blocks


def test_of_rows_that_tie_the_first_to_arrive_stays():
    run = Run((TopNOperator(input=SCHEMA, ranking=Ranking(partition=(0,), order=BY_VALUE[:1], last=1)),))
    run(Batch([Change(("a", 5, None, 1)), Change(("a", 5, None, 2))]))
    run(Batch([Change(("a", 5, None, 3))]))
    assert run.log == [(("a", 5, None, 1), 1)]


def test_equal_rows_that_change_places_are_no_change():
    run = Run((TopNOperator(input=SCHEMA, ranking=RANKINGS["the latest"]),))
    run(Batch([Change(("a", 5, None, 1))]))
    run(Batch([Change(("a", 5, None, 1))]))
    assert run.log == [(("a", 5, None, 1), 1)]


def test_a_change_moves_the_ranks_of_those_behind_it_alone():
    run = Run((TopNOperator(input=SCHEMA, ranking=RANKINGS["top 3 numbered"]),))
    run(Batch([Change(("a", value, None, value)) for value in (9, 7)]))
    run(Batch([Change(("a", 8, None, 8))]))
    assert run.log[2:] == [(("a", 7, None, 7, 2), -1), (("a", 8, None, 8, 2), 1), (("a", 7, None, 7, 3), 1)]


def test_a_group_is_forgotten_after_its_time_to_live_and_refreshed_by_any_of_its_rows():
    run = Run((TopNOperator(input=SCHEMA, ranking=RANKINGS["the latest"], ttl=100),))
    for now, value in ((0, 5), (99, 4), (198, 3), (298, 2)):
        run(Batch([Change(("a", value, None, value))], now=now))
    row = ("a", 5, None, 5)
    assert run.log == [(row, 1), (row, 0), (row, 0), (("a", 2, None, 2), 1)]
