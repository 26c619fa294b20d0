"""What a small batch costs while state grows, for every operator that keeps state.

A case fills the state of its kernels with n rows, of ever more keys or of one key, and says what a small batch then
brings. `test_growth.py` counts what that batch costs with n rows and with ten times as many.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

import pyarrow as pa

from operators.columns import positional
from operators.kernel import Kernel
from operators.over.over import Frame, OverCallSpec
from operators.ranking.top_n import TopNOperator
from operators.rows.materialize import Materialize
from operators.rows.normalize import NormalizeOperator
from operators.rows.set_operation import SetKind
from operators.sql import Sql
from operators.windows.firing import Firing
from operators.windows.shapes import Hop, tumble
from operators.windows.stream.session_window import SessionWindow
from operators.windows.stream.sliding_window import SlidingWindow
from operators.windows.stream.state_window import StateWindow
from operators.windows.stream.time_window import TimeWindow
from operators.windows.stream.window_output import WindowOutput
from tests.operators import test_count_window as count_window
from tests.operators import test_firing_aggregate as firing_aggregate
from tests.operators import test_group_by as group_by
from tests.operators import test_interval_join as interval_join
from tests.operators import test_limit as limit
from tests.operators import test_lookup_join as lookup_join
from tests.operators import test_over as over
from tests.operators import test_pair_join as pair_join
from tests.operators import test_regular_join as regular_join
from tests.operators import test_retracting_top_n as retracting_top_n
from tests.operators import test_session_aggregate as session_aggregate
from tests.operators import test_session_arrivals as session_arrivals
from tests.operators import test_session_rows as session_rows
from tests.operators import test_set_operation as set_operation
from tests.operators import test_settle as settle
from tests.operators import test_temporal_join as temporal_join
from tests.operators import test_top_n as top_n
from tests.operators import test_window_aggregate as windows
from tests.operators import test_window_join as window_join
from tests.operators import test_window_top_n as window_top_n
from tests.operators.properties import Batch, Change, Row, Run

HOUR = 3_600_000


@dataclass(frozen=True)
class Cost:
    """What a batch cost: statements, the rows they read and gave, and the rows taken out of the blocks of state."""

    statements: int
    rows_of_statements: int
    rows_of_state: int


class CountingSql(Sql):
    """Runs statements and counts them, the rows that they read and those that they give."""

    def __init__(self) -> None:
        super().__init__()
        self.statements = self.rows = 0

    def __call__(
        self,
        statement: str,
        tables: Mapping[str, pa.Table],
        parameters: Mapping[str, object] | None = None,
        *,
        by_row: bool = False,
    ) -> pa.Table:
        answer = super().__call__(statement, tables, parameters, by_row=by_row)
        self.statements += 1
        self.rows += answer.num_rows + sum(table.num_rows for table in tables.values())
        return answer


@dataclass(frozen=True)
class Growth:
    """`kernels` whose state the batches of `filled` make as large as they are asked to, and what comes then."""

    kernels: tuple[Kernel, ...]
    filled: Callable[[int], Sequence[Batch]]
    small: Batch

    def cost(self, rows: int) -> Cost:
        """What the small batch costs on a state that `rows` rows have filled."""
        sql = CountingSql()
        run = Run(self.kernels, sql=sql)
        for batch in self.filled(rows):
            run(batch)
        assert run.state_rows() >= rows / 2, "a state that does not grow shows nothing"
        statements, given, read = sql.statements, sql.rows, sum(state.rows_read for state in run.states)
        run(self.small)
        return Cost(sql.statements - statements, sql.rows - given, sum(s.rows_read for s in run.states) - read)


def growing(
    kernels: tuple[Kernel, ...],
    row: Callable[[int], Row],
    small: Sequence[Row],
    *,
    port: int = 0,
    small_port: int | None = None,
    gone: Sequence[Row] = (),
    watermark: int = 0,
    then: int | None = None,
) -> Growth:
    """Rows by number, in four batches so that there are several blocks, before the watermark goes to `watermark`.

    The small batch brings the rows `small` at the same port or at `small_port`, takes back those that are `gone`, and
    moves the watermark on to `then`.
    """

    def filled(rows: int) -> list[Batch]:
        quarter = -(-rows // 4)
        numbers = [range(start, min(rows, start + quarter)) for start in range(0, rows, quarter)]
        batches = [Batch([Change(row(i), 1, port) for i in each]) for each in numbers]
        return [*batches, Batch([], watermark=watermark)]

    comes_at = port if small_port is None else small_port
    changes = [*(Change(each, 1, comes_at) for each in small), *(Change(each, -1, comes_at) for each in gone)]
    return Growth(kernels, filled, Batch(changes, 0, watermark if then is None else then))


def at(ms: int) -> datetime:
    return over.at(ms)


EVENTS = positional([pa.string(), pa.int64(), pa.bool_(), pa.bool_(), pa.timestamp("us")])
ROWS_OUT = WindowOutput(input=EVENTS, output=positional([*EVENTS.types, *[pa.int64()] * 3]))
FEW = ["k1", "k100", "new"]


def event(key: str, ms: int, begin: bool = True, emit: bool = False) -> Row:
    return key, 1, begin, emit, at(ms)


def _group(key: str, value: int) -> Row:
    return key, value, 1.0, None, True, 1


def _windowed(key: int, time: int) -> Row:
    return (*window_join.row(0, key, 1, 0, HOUR).row[:2], at(time // HOUR * HOUR), at(HOUR), at(HOUR - 1))


def _frame(*names: str) -> tuple[Kernel, ...]:
    return (over.over([call for name in names for call in over.CALLS[name]]),)


def _over(key: str, ms: int) -> Row:
    return key, 7, at(ms), 1.0


def _numbered(key: str, ms: int) -> Row:
    return tuple({0: key, 2: at(ms)}.get(place, value) for place, value in enumerate(settle.row(1, ms).row))


DISTINCT = group_by.AGGREGATES[14:15]
ALL_SO_FAR = Frame(rows=False, preceding=None)

GROWTH: dict[str, Growth] = {
    "group by, keys": growing(
        group_by.grouping((0,), group_by.AGGREGATES),
        lambda i: _group(f"k{i}", i),
        [_group(key, 5) for key in FEW],
        gone=[_group("k7", 7)],
    ),
    "group by, distinct values of a key": growing(
        group_by.grouping((0,), DISTINCT),
        lambda i: _group("k", i),
        [_group("k", -5), _group("k", 3)],
        gone=[_group("k", 7)],
    ),
    "group by, values of a key of which the least stays": growing(
        group_by.grouping((0,), group_by.AGGREGATES[10:11]),
        lambda i: _group("k", i),
        [_group("k", -5), _group("k", 3)],
        gone=[_group("k", 7)],
    ),
    "group by, arrivals of a key": growing(
        group_by.grouping((0,), group_by.ENDS[1:]),
        lambda i: _group("k", i),
        [_group("k", -5), _group("k", 3)],
        gone=[_group("k", 7)],
    ),
    "group by, keys with percentiles and bits": growing(
        group_by.grouping((0,), group_by.WHOLES),
        lambda i: _group(f"k{i}", i),
        [_group(key, 5) for key in FEW],
        gone=[_group("k7", 7)],
    ),
    "regular join, keys": growing(
        (regular_join.joined("full"),), lambda i: (i, "x"), [(1, "y"), (100, "y"), (-1, "y")], gone=[(7, "x")]
    ),
    **{
        f"{kind} join, rows of a key that matches already": Growth(
            (regular_join.joined(kind),),
            lambda rows: [
                Batch([Change(("y", 1, 0.5), 1, 1)]),
                *(Batch([Change((1, f"x{i}"), 1, 0) for i in range(start, rows, 3)]) for start in range(3)),
            ],
            Batch([Change(("z", 1, 1.5), 1, 1), Change(("y", 1, 0.5), -1, 1), Change((1, "x0"), -1, 0)]),
        )
        for kind in ("semi", "anti", "mark")
    },
    "normalize, keys": growing(
        (NormalizeOperator(output=regular_join.LEFT, key=(0,)),), lambda i: (i, "x"), [(1, "y"), (-1, "y")]
    ),
    "materialize, keys": growing(
        (Materialize(output=regular_join.LEFT, key=(0,)),), lambda i: (i, "x"), [(1, "y"), (-1, "y")], gone=[(7, "x")]
    ),
    "set operation, rows": growing(
        (set_operation.operation(SetKind.INTERSECT_ALL),), lambda i: (i, "x"), [(1, "x"), (-1, "x")], gone=[(7, "x")]
    ),
    "top n, keys": growing(
        (TopNOperator(input=top_n.SCHEMA, ranking=top_n.RANKINGS["top 3 numbered"]),),
        lambda i: (f"k{i}", i, 1.0, i),
        [(key, 5, 1.0, -1) for key in FEW],
    ),
    "top n, keys with a time to live": growing(
        (TopNOperator(input=top_n.SCHEMA, ranking=top_n.RANKINGS["top 3 numbered"], ttl=HOUR),),
        lambda i: (f"k{i}", i, 1.0, i),
        [(key, 5, 1.0, -1) for key in FEW],
    ),
    "retracting top n, keys": growing(
        (retracting_top_n.kernel("top 3 numbered"),),
        lambda i: (f"k{i}", i, 1.0, "x"),
        [(key, 5, 1.0, "y") for key in FEW],
        gone=[("k7", 7, 1.0, "x")],
    ),
    "retracting top n, rows of a key": growing(
        (retracting_top_n.kernel("top 3 numbered"),),
        lambda i: ("k", -i, 1.0, "x"),
        [("k", 5, 1.0, "y"), ("k", -1500, 1.0, "y")],
        gone=[("k", 0, 1.0, "x"), ("k", -700, 1.0, "x")],
    ),
    "window top n, rows of an open window": growing(
        (window_top_n.kernel("top 2 by key"),),
        lambda i: window_top_n.row(f"k{i}", i, 10, i).row,
        [window_top_n.row("k1", 5, 10, -1).row],
        then=5,
    ),
    "time sort, rows ahead": growing(
        (limit.BY_TIME,), lambda i: (at(HOUR + i), 1, i), [(at(5), 1, -1), (at(HOUR), 1, -2)], then=10
    ),
    "window aggregate, keys of an open window": growing(
        windows.windowed(tumble(HOUR)),
        lambda i: (f"k{i}", i, at(i % HOUR)),
        [("k1", 5, at(2)), ("k", 1, at(3))],
        then=9,
    ),
    "window aggregate, hopping over keys of open windows": growing(
        windows.windowed(Hop(size=HOUR, slide=HOUR // 6)),
        lambda i: (f"k{i}", i, at(HOUR + i)),
        [("k1", 5, at(HOUR)), ("k", 1, at(5))],
        then=9,
    ),
    "window aggregate, in the order of arrival over keys of open windows": growing(
        windows.in_order(Hop(size=HOUR, slide=HOUR // 6)),
        lambda i: (f"k{i}", i, at(HOUR + i)),
        [("k1", 5, at(HOUR)), ("k", 1, at(5))],
        then=9,
    ),
    "firing aggregate, keys of an open window": growing(
        firing_aggregate.firing(Firing(0, None, 0), tumble(HOUR)),
        lambda i: (f"k{i}", i, at(i)),
        [("k1", 5, at(2)), ("k", 1, at(3))],
        then=9,
    ),
    "firing aggregate, keys that wait for their turn": growing(
        firing_aggregate.firing(Firing(1000, 1000, HOUR), tumble(HOUR)),
        lambda i: (f"k{i}", i, at(i)),
        [("k1", 5, at(2)), ("k", 1, at(3))],
        then=9,
    ),
    "session aggregate, keys": growing(
        session_aggregate.sessions(gap=HOUR),
        lambda i: (f"k{i}", i, at(i)),
        [(key, 5, at(9)) for key in FEW],
        then=9,
    ),
    "session aggregate, keys whose rows may be retracted": growing(
        session_aggregate.sessions(gap=HOUR, append=False),
        lambda i: (f"k{i}", i, at(i)),
        [(key, 5, at(9)) for key in FEW],
        gone=[("k7", 7, at(7))],
        then=9,
    ),
    "session rows, keys": growing(
        (session_rows.rows_with_sessions()[0],),
        lambda i: (f"k{i}", i, at(HOUR + i)),
        [(key, 5, at(9)) for key in FEW],
        then=9,
    ),
    "session rows, rows of a session": growing(
        (session_rows.rows_with_sessions()[0],),
        lambda i: ("k", i, at(HOUR + i)),
        [("k", 5, at(HOUR)), ("other", 5, at(9))],
        then=9,
    ),
    "session rows in the order of arrival, keys": growing(
        session_arrivals.in_order(),
        lambda i: (f"k{i}", i, at(HOUR + i)),
        [(key, 5, at(9)) for key in FEW],
        then=9,
    ),
    "count window, partitions": growing(
        (count_window.rows_out((0,), 3, 3),), lambda i: (f"k{i}", i, True), [(key, 5, True) for key in FEW]
    ),
    "count window, rows that wait": growing(
        (count_window.rows_out((0,), 10**6, 10**6),), lambda i: ("k", i, True), [("k", 5, True), ("other", 5, True)]
    ),
    "sliding window, partitions": growing(
        (SlidingWindow(result=ROWS_OUT, partition=(0,), time=4, size=HOUR, delay=0, fires=None),),
        lambda i: event(f"k{i}", 1 + i),
        [event(key, 10**6) for key in FEW],
        watermark=10**6 - 1,
        then=10**6,
    ),
    "sliding window with a delay, partitions": growing(
        (SlidingWindow(result=ROWS_OUT, partition=(0,), time=4, size=HOUR, delay=HOUR, fires=None),),
        lambda i: event(f"k{i}", HOUR + i),
        [event(key, 10) for key in FEW],
        then=HOUR + 10,
    ),
    "session window, partitions": growing(
        (SessionWindow(result=ROWS_OUT, partition=(0,), time=4, longest=HOUR, timeout=HOUR),),
        lambda i: event(f"k{i}", 1 + i),
        [event(key, 10**6) for key in FEW],
        watermark=10**6 - 1,
        then=10**6,
    ),
    "session window, rows of a session": growing(
        (SessionWindow(result=ROWS_OUT, partition=(0,), time=4, longest=HOUR, timeout=HOUR),),
        lambda i: event("k", 1 + i),
        [event("k", 10**6)],
        watermark=10**6 - 1,
        then=10**6,
    ),
    "state window, partitions": growing(
        (StateWindow(result=ROWS_OUT, partition=(0,), time=None, begin=2, emit=3),),
        lambda i: event(f"k{i}", 1 + i),
        [event(key, 10) for key in FEW],
    ),
    "state window, rows of a window": growing(
        (StateWindow(result=ROWS_OUT, partition=(0,), time=None, begin=2, emit=3),),
        lambda i: event("k", 1 + i),
        [event("k", 10)],
    ),
    "time window, rows of an open window": growing(
        (TimeWindow(result=ROWS_OUT, time=4, window=Hop(size=HOUR, slide=HOUR // 2)),),
        lambda i: event("k", HOUR + i),
        [event("k", 10)],
        then=20,
    ),
    "interval join, keys": growing(
        (interval_join.joined("full", (-HOUR, HOUR)),),
        lambda i: (i, at(i), "x"),
        [(1, at(5), "y"), (-1, at(5), "y")],
        then=9,
    ),
    "temporal join, keys": growing(
        (temporal_join.joined("left"),),
        lambda i: (f"k{i}", i, at(i)),
        [("k1", 5, at(HOUR)), ("new", 5, at(HOUR))],
        port=1,
        watermark=10**6,
        then=10**6 + 1,
    ),
    "temporal join, orders that wait": growing(
        (temporal_join.joined("left"),),
        lambda i: (at(HOUR + i), i, f"k{i}"),
        [(at(5), 5, "k1"), (at(HOUR), 5, "new")],
        then=9,
    ),
    "temporal join, versions that are still to come": growing(
        (temporal_join.joined("left"),),
        lambda i: ("k", i, at(HOUR + i)),
        [("k", 5, at(HOUR))],
        port=1,
        then=9,
    ),
    "temporal join at arrival, rows that may be retracted": growing(
        (temporal_join.at_arrival(),),
        lambda i: (at(5), i, f"k{i}"),
        [(at(5), 5, "k1"), (at(HOUR), 5, "new")],
        gone=[(at(5), 7, "k7")],
    ),
    "window join, rows of open windows": growing(
        (window_join.joined("full"),), lambda i: _windowed(i, i), [_windowed(1, 1), _windowed(-1, 1)], then=9
    ),
    "pair join, halves that wait": growing(
        (pair_join.KERNEL,),
        lambda i: pair_join.half(0, "k", i).row,
        [pair_join.half(1, "k", i).row for i in (5, 500, -1)],
        small_port=1,
    ),
    "over rows, keys": growing(
        _frame("last rows"), lambda i: _over(f"k{i}", i), [_over(key, HOUR) for key in FEW], watermark=10**6, then=HOUR
    ),
    "over range, keys": growing(
        (over.over([(OverCallSpec(function="COUNT", frame=Frame(rows=False, preceding=HOUR)), pa.int64(), "")]),),
        lambda i: _over(f"k{i}", i),
        [_over(key, 10**6 + 1) for key in FEW],
        watermark=10**6,
        then=10**6 + 1,
    ),
    "over everything so far, keys": growing(
        _frame("everything so far"),
        lambda i: _over(f"k{i}", 1 + i),
        [_over(key, HOUR) for key in FEW],
        watermark=10**6,
        then=HOUR,
    ),
    "over everything so far, values of a key that count once": growing(
        (
            over.over(
                [(OverCallSpec(function="COUNT", frame=ALL_SO_FAR, arguments=(1,), distinct=True), pa.int64(), "")]
            ),
        ),
        lambda i: ("k", i, at(1 + i), 1.0),
        [("k", 7, at(HOUR), 1.0)],
        watermark=10**6,
        then=HOUR,
    ),
    "over, rows that wait for the next of their key": growing(
        (over.over(over.AHEAD["next rows"][0]),),
        lambda i: _over(f"k{i}", 1 + i),
        [_over(key, HOUR) for key in FEW],
        watermark=10**6,
        then=HOUR,
    ),
    "over, rows that wait for the next of their key until a time to live": growing(
        (over.over(over.AHEAD["next rows"][0], ttl=HOUR),),
        lambda i: _over(f"k{i}", 1 + i),
        [_over(key, HOUR) for key in FEW],
        watermark=10**6,
        then=HOUR,
    ),
    "over, rows ahead": growing(
        _frame("all at once"), lambda i: _over(f"k{i}", HOUR + i), [_over(key, 5) for key in FEW], then=9
    ),
    "rows that settle, waiting for their time": growing(
        (settle.KERNEL,), lambda i: _numbered(f"k{i}", HOUR + i), [_numbered(key, 5) for key in FEW], then=9
    ),
    "lookup join, rows that may be retracted": growing(
        (lookup_join.asking(lookup_join.joined("left"), lookup_join.TABLE),),
        lambda i: (i % 6, f"v{i}"),
        [(1, "v1"), (2, "new")],
        gone=[(3, "v3")],
    ),
}
