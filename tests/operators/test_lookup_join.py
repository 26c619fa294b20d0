"""Lookup joins: what a row meets when it comes, and with what it is retracted."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pytest

from operators.base import KernelDefaults
from operators.joins.kinds import JoinKind
from operators.joins.lookup_join import LookupJoinOperator
from operators.kernel import Step
from operators.names import REASON
from operators.sql import Sql
from operators.state.operator_state import State, TraceSpec
from operators.time import Clock
from tests.operators.properties import SQL, Batch, Change, Row, Run, block, holds_oracle, no_state, rows_of

LEFT = pa.schema([("c0", pa.int64()), ("c1", pa.string())])
RIGHT = pa.schema([("c0", pa.string()), ("c1", pa.int64()), ("c2", pa.float64())])

Found = tuple[Row, ...]
TABLE: Found = (("x", 0, 0.5), ("x", 0, 0.5), ("", 1, 1.5), (None, 1, None), ("x", 2, 2.5), ("y", 4, 0.5))
"""A table with two equal rows of key 0, two rows of key 1, and none of keys 3 and 5."""


def joined(
    kind: str, residual: str | None = None, *, append: bool = False, ttl: int = 0, keys: tuple[int, ...] = (0,)
) -> LookupJoinOperator:
    return LookupJoinOperator(
        left=LEFT,
        right=RIGHT,
        kind=JoinKind(kind),
        left_keys=keys,
        right_keys=(1, 0)[: len(keys)],
        residual=residual,
        append=append,
        ttl=ttl,
    )


@dataclass(frozen=True)
class Asking(KernelDefaults):
    """A lookup join together with the tables that it asks: `tables` are by the time from which on they hold."""

    kernel: LookupJoinOperator
    tables: Mapping[int, Found]

    @property
    def key(self) -> tuple[int, ...]:
        return self.kernel.left_keys

    @property
    def inputs(self) -> tuple[pa.Schema, ...]:
        return self.kernel.inputs

    @property
    def output(self) -> pa.Schema:
        return self.kernel.output

    def traces(self) -> Mapping[str, TraceSpec]:
        return self.kernel.traces()

    def fingerprint(self) -> str:
        return self.kernel.fingerprint()

    def advance(self, state: State, inputs: Sequence[pa.Table], clock: Clock, sql: Sql) -> Step:
        asked = {row[0] for row in rows_of(self.kernel.asked(inputs[0], sql))}
        since = max(time for time in self.tables if time <= clock.now)
        found = answers(row for row in self.tables[since] if row[1] in asked)
        return self.kernel.advance(state, [*inputs, found], clock, sql)


def asking(kernel: LookupJoinOperator, *tables: Found) -> Asking:
    """The table is the first one in a batch of time 0, the next from time 1 on, and so on."""
    return Asking(kernel, dict(enumerate(tables)))


def answers(rows: object, reason: str | None = None) -> pa.Table:
    found = block(RIGHT, [Change(row) for row in rows]).drop_columns(["_weight"])  # type: ignore[attr-defined]
    return found.append_column(REASON, pa.array([reason] * found.num_rows, pa.string()))


def oracle(kind: str, residual: str = "true") -> str:
    values = ", ".join(
        f"({'NULL' if a is None else repr(a)}, {b}, CAST({'NULL' if c is None else c} AS DOUBLE))" for a, b, c in TABLE
    )
    right = f"(SELECT r0 AS c2, r1 AS c3, r2 AS c4 FROM (VALUES {values}) AS v(r0, r1, r2)) AS r"
    return f"SELECT t0.*, r.* FROM t0 {kind} JOIN {right} ON c0 = c3 AND {residual}"


def generated(seed: int, batches: int, *, append: bool = False) -> list[Batch]:
    rng = random.Random(seed)
    there: list[Row] = []
    result = []
    for _ in range(batches):
        changes = []
        for _ in range(rng.choice([0, 1, 5, 20])):
            if there and not append and rng.random() < 0.45:
                changes.append(Change(there.pop(rng.randrange(len(there))), -1))
                continue
            there.append((rng.choice([None, *range(6)]), rng.choice(["x", "", None])))
            changes.append(Change(there[-1]))
        result.append(Batch(changes))
    return result


def kept_rows(batches: Sequence[Batch]) -> int:
    """At most: for each left row that is there, once, what it meets, or that it meets nothing."""
    there = Counter(change.row for batch in batches for change in batch.changes if change.weight > 0)
    return sum(max(1, len({r for r in TABLE if r[1] == row[0]})) for row in there)


@pytest.mark.parametrize("kind", ["inner", "left"])
@pytest.mark.parametrize("residual", [None, "c1 = c2"])
@pytest.mark.parametrize("append", [True, False])
def test_joins_equal_a_batch_query_over_a_table_that_does_not_change(kind, residual, append):
    kernel = asking(joined(kind, residual, append=append), TABLE)
    run = holds_oracle((kernel,), generated(1, 25, append=append), oracle(kind, residual or "true"), restart=True)
    assert run.unmatched_retractions == 0


@pytest.mark.parametrize("kind", ["inner", "left"])
@pytest.mark.parametrize("append", [True, False])
def test_a_row_for_which_the_residual_cannot_be_computed_is_a_dead_letter_and_not_padded(kind, append):
    run = Run((asking(joined(kind, "CAST(c1 AS INTEGER) > 0", append=append), (("x", 1, 1.0),)),))
    run(Batch([Change((1, "a")), Change((1, "7")), Change((1, "-7")), Change((2, "b"))]))
    padded = [(1, "-7", None, None, None), (2, "b", None, None, None)] if kind == "left" else []
    assert run.applied == Counter([(1, "7", "x", 1, 1.0), *padded])
    assert run.dead == [(0, (1, "a", 1))]
    if not append:
        run(Batch([Change((1, "a"), -1), Change((1, "7"), -1), Change((1, "-7"), -1), Change((2, "b"), -1)]))
        assert (run.applied, run.unmatched_retractions, len(run.dead)) == (Counter(), 0, 1)


def test_a_row_is_retracted_with_what_it_met_when_it_came():
    before, after = (("x", 1, 1.0), ("z", 1, 3.0)), (("y", 1, 2.0),)
    run = Run((asking(joined("left"), before, after),))
    run(Batch([Change((1, "a")), Change((2, "b"))], now=0))
    run(Batch([Change((1, "c"))], now=1))
    assert run.applied == Counter(
        {
            (1, "a", "x", 1, 1.0): 1,
            (1, "a", "z", 1, 3.0): 1,
            (2, "b", None, None, None): 1,
            (1, "c", "y", 1, 2.0): 1,
        }
    )
    run(Batch([Change((1, "a"), -1), Change((2, "b"), -1), Change((2, "B"))], now=1))
    assert run.applied == Counter({(1, "c", "y", 1, 2.0): 1, (2, "B", None, None, None): 1})
    assert run.unmatched_retractions == 0


@pytest.mark.parametrize("kind", ["inner", "left"])
def test_equal_rows_that_are_there_together_share_one_answer(kind):
    run = Run((asking(joined(kind), (("x", 1, 1.0),), (("y", 1, 2.0),), ()),))
    run(Batch([Change((1, "a"))], now=0))
    run(Batch([Change((1, "a"))], now=1))
    assert run.applied == Counter({(1, "a", "x", 1, 1.0): 2})
    run(Batch([Change((1, "a"), -1)], now=2))
    run(Batch([Change((1, "a"), -1)], now=2))
    assert not run.applied
    assert run.state_rows() == 0
    assert run.unmatched_retractions == 0


def test_a_row_that_met_nothing_stays_without_a_match_although_one_has_come():
    run = Run((asking(joined("inner"), (), (("x", 1, 1.0),)),))
    run(Batch([Change((1, "a"))], now=0))
    assert run.state_rows() == 1
    run(Batch([Change((1, "a"))], now=1))
    assert not run.applied
    run(Batch([Change((1, "a"), -2)], now=1))
    assert (run.state_rows(), run.unmatched_retractions) == (0, 0)


def test_a_random_table_never_takes_back_what_was_not_there():
    rng = random.Random(7)
    tables = [tuple(rng.sample(TABLE, rng.randrange(len(TABLE)))) for _ in range(30)]
    for kind in ("inner", "left"):
        run = Run((asking(joined(kind), *tables),), restart=True)
        batches = generated(7, 30)
        for now, batch in enumerate(batches):
            run(Batch(batch.changes, now=now))
        live: Counter[Row] = Counter()
        for change in (c for batch in batches for c in batch.changes):
            live[change.row] += change.weight
        run(Batch([Change(row, -count) for row, count in (+live).items()], now=29))
        assert not run.applied
        assert run.state_rows() == 0
        assert run.unmatched_retractions == 0


def test_what_a_row_met_is_forgotten_when_its_time_is_over():
    run = Run((asking(joined("left", ttl=10), TABLE),))
    run(Batch([Change((2, "a"))], now=0))
    run(Batch([Change((2, "a"), -1)], now=11))
    assert run.unmatched_retractions == 1
    assert run.applied == Counter({(2, "a", "x", 2, 2.5): 1})


def test_only_keys_that_may_have_rows_are_asked_for_and_each_once():
    kernel = joined("left", keys=(0, 1))
    rows = block(
        LEFT, [Change((1, "a")), Change((1, "a")), Change((None, "a")), Change((2, None)), Change((3, "b"), -1)]
    )
    assert rows_of(kernel.asked(rows, SQL)) == [(1, "a")]


@pytest.mark.parametrize("append", [True, False])
def test_a_row_that_meets_one_which_cannot_be_read_is_dead_and_the_others_go_on(append):
    kernel = joined("left", append=append)
    changes = block(LEFT, [Change((1, "a")), Change((2, "b"))])
    found = pa.concat_tables([answers([(None, 1, None)], "column c0 is 7"), answers([("x", 2, 2.5)])])
    state = State.open(kernel.traces(), None, _never)
    step = kernel.advance(state, [changes, found], Clock(0, 0, 0), SQL)
    assert rows_of(step.changes) == [(2, "b", "x", 2, 2.5, 1)]
    assert rows_of(step.dead[0]) == [(1, "a", 1, "column c0 is 7")]


def test_a_condition_that_cannot_be_computed_makes_its_row_dead():
    kernel = joined("left", "CAST(c2 AS BIGINT) > 0", append=True)
    changes = block(LEFT, [Change((1, "a")), Change((2, "b"))])
    step = kernel.advance(no_state(), [changes, answers([("no", 1, None), ("3", 2, None)])], Clock(0, 0, 0), SQL)
    assert (2, "b", "3", 2, None, 1) in rows_of(step.changes)
    assert [row[:2] for row in rows_of(step.dead[0])] == [(1, "a")]


def _never(name: str) -> pa.Buffer:
    raise AssertionError(name)
