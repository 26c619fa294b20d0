"""Sessions over updating inputs, whose rows come out in the order in which they arrived."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from itertools import repeat

import pytest

from operators.time import END_OF_TIME
from operators.windows.session_arrivals import SessionArrivals
from operators.windows.session_partial import SessionPartial
from tests.operators.properties import Batch, Change, Run, holds_cut, holds_oracle, holds_restart
from tests.operators.test_session_aggregate import GAP, INPUT, arrivals, at, cut, retracted, steps
from tests.operators.test_session_rows import oracle


def in_order(keys=(0,)):
    partial = SessionPartial(input=INPUT, time=2, gap=GAP, keys=keys, aggregates=(), append=False)
    return (SessionArrivals(partial=partial),)


def left(batches: Iterable[Batch]) -> list[Change]:
    """The rows that are left in the order in which they came; of equal rows the oldest was retracted."""
    there: list[tuple[object, ...]] = []
    for change in (c for b in batches for c in b.changes):
        if change.weight > 0:
            there += [change.row] * change.weight
        else:
            there.remove(change.row)
    return [Change(row) for row in there]


def by_session(rows: Sequence[tuple[object, ...]]) -> dict[tuple[object, ...], list[object]]:
    """The values of each session in the order in which they came out."""
    sessions: dict[tuple[object, ...], list[object]] = defaultdict(list)
    for row in rows:
        sessions[(row[0], *row[3:])].append(row[1])
    return sessions


@pytest.mark.parametrize("seed", [11, 12, 13])
def test_rows_that_are_left_come_out_as_they_came(seed):
    batches = [Batch(b.changes, watermark=b.watermark - 200) for b in cut(retracted(seed, 150), steps(seed))[:-1]]
    last = Batch([], watermark=END_OF_TIME)
    run = holds_oracle(in_order(), [*batches, last], oracle())
    assert (run.late_count, run.unmatched_retractions, run.state_rows()) == (0, 0, 0)
    sorted_out = Run(in_order())
    sorted_out(Batch(left(batches)))
    sorted_out(last)
    assert by_session([row for row, _ in run.log]) == by_session([row for row, _ in sorted_out.log])


def test_of_equal_rows_the_oldest_goes():
    run = Run(in_order())
    for value, weight in ((1, 1), (2, 1), (1, 1), (1, -1)):
        run(Batch([Change(("a", value, at(5)), weight)]))
    run(Batch([], watermark=END_OF_TIME))
    assert [row[1] for row, _ in run.log] == [2, 1]


def test_the_order_does_not_depend_on_how_the_log_is_cut():
    cuts = [lambda c, n=n: cut(c, iter(lambda: n, 0)) for n in (1, 17, 1000)]
    holds_cut(in_order(), arrivals(3, 80), cuts)
    logs = []
    for n in (1, 7, 1000):
        run = Run(in_order())
        for batch in cut(retracted(5, 80), repeat(n))[:-1]:
            run(Batch(batch.changes))
        run(Batch([], watermark=END_OF_TIME))
        logs.append(by_session([row for row, _ in run.log]))
    assert logs[0] == logs[1] == logs[2]
    assert max(map(len, logs[0].values())) > 1


def test_the_order_survives_a_restart_bit_by_bit():
    holds_restart(in_order(), cut(arrivals(4, 100), steps(4)))


def test_when_every_row_is_retracted_no_rows_are_kept():
    changes = arrivals(21, 40)
    run = Run(in_order())
    run(Batch(changes))
    run(Batch([Change(c.row, -1) for c in reversed(changes)]))
    assert [run.states[0][name].rows_seen() for name in ("sessions", "rows")] == [0, 0]
