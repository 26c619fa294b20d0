"""Every operator in one table: its kernels, the log it is driven with, what it must answer, and what it may keep.

`test_kernels.py` runs the properties of `properties.py` over each case. A new operator is one row here; a test fails
for an operator that has none.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from operator import itemgetter
from typing import Any

import pyarrow as pa

from operators.aggregates.group_by import GroupPartial
from operators.aggregates.layout import AccumulatorLayout
from operators.kernel import Kernel
from operators.ranking.limit import LimitOperator
from operators.ranking.top_n import TopNOperator
from operators.ranking.top_n_partial import TopNPartialOperator
from operators.rows.consolidate import Consolidate
from operators.rows.normalize import NormalizeOperator
from operators.rows.set_operation import SetKind, SetOperationOperator
from operators.rows.union import UnionAll
from operators.rows.unnest import UnnestOperator
from operators.time import END_OF_TIME
from operators.windows.firing import AT_CLOSE, Firing
from operators.windows.shapes import Hop
from operators.windows.window_partial import WindowPartial
from operators.windows.window_rows import WindowRowsOperator
from tests.operators import test_calc as calc
from tests.operators import test_count_window as count_window
from tests.operators import test_firing_aggregate as firing_aggregate
from tests.operators import test_group_by as group_by
from tests.operators import test_interval_join as interval_join
from tests.operators import test_limit as limit
from tests.operators import test_lookup_join as lookup_join
from tests.operators import test_materialize as materialize
from tests.operators import test_normalize as normalize
from tests.operators import test_over as over
from tests.operators import test_pair_join as pair_join
from tests.operators import test_regular_join as regular_join
from tests.operators import test_retracting_top_n as retracting_top_n
from tests.operators import test_session_aggregate as session_aggregate
from tests.operators import test_session_arrivals as session_arrivals
from tests.operators import test_session_rows as session_rows
from tests.operators import test_set_operation as set_operation
from tests.operators import test_settle as settle
from tests.operators import test_stream_windows as stream_windows
from tests.operators import test_temporal_join as temporal_join
from tests.operators import test_top_n as top_n
from tests.operators import test_unnest as unnest
from tests.operators import test_window_aggregate as windows
from tests.operators import test_window_join as window_join
from tests.operators import test_window_top_n as window_top_n
from tests.operators.properties import Batch, Change, Row, answer_of

Log = Sequence[Change]
Cut = Callable[[Log, Iterator[int]], list[Batch]]
"""From a log and the sizes of batches to batches with the clock that belongs to them."""

FAR = 10**9
"""A processing time (ms) at which every time to live has passed."""


@dataclass(frozen=True)
class Case:
    """One operator, or a partial and the operator that reads it.

    `log` makes changes from a seed. `expected` is the relation after some batches, `bound` the number of rows of state
    that may still matter then. `end` are the batches after which no state is left; where `undone`, no rows either.
    State that only a time to live ends is kept by `ending`, the same kernels with one. `uncut` is what of the relation
    does not depend on how the log is cut into batches.
    """

    kernels: tuple[Kernel, ...]
    log: Callable[[int], Log]
    expected: Callable[[Sequence[Batch]], Counter[Row]]
    bound: Callable[[Sequence[Batch]], int]
    cut: Cut
    end: Callable[[Sequence[Batch]], list[Batch]]
    undone: bool
    ending: tuple[Kernel, ...] = ()
    uncut: Callable[[Counter[Row]], object] = Counter


def timeless(log: Log, sizes: Iterator[int]) -> list[Batch]:
    """Batches for an operator that does not ask what time it is."""
    batches, start = [], 0
    while start < len(log):
        size = next(sizes)
        batches.append(Batch(log[start : start + size]))
        start += size
    return batches


def reverted(batches: Sequence[Batch]) -> list[Batch]:
    """Every change retracted, the last first."""
    return [Batch([Change(c.row, -c.weight, c.port) for c in reversed(b.changes)]) for b in reversed(batches)]


def ended(_: Sequence[Batch]) -> list[Batch]:
    """The end of event time, and of every time to live."""
    return [Batch([], watermark=END_OF_TIME), Batch([], now=FAR, watermark=END_OF_TIME)]


def flat(batches: Sequence[Batch]) -> list[Change]:
    return [change for batch in batches for change in batch.changes]


def live(batches: Sequence[Batch], port: int | None = None) -> Counter[Row]:
    """The rows that are there, each as often as it is."""
    there: Counter[Row] = Counter()
    for change in flat(batches):
        if port in (None, change.port):
            there[(*map(_hashable, change.row), change.port)] += change.weight
    return +there


def _hashable(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


def since(batches: Sequence[Batch], reach: int) -> int:
    """How many rows have a time that the watermark has not passed by `reach` ms."""
    watermark = batches[-1].watermark if batches else 0
    return sum(_time(c.row) + reach > watermark for c in flat(batches))


def _time(row: Row) -> int:
    """The last of a row's times, in ms."""
    *_, time = (value for value in row if isinstance(value, datetime))
    return (time - datetime(1970, 1, 1)) // timedelta(milliseconds=1)


def keys(batches: Sequence[Batch], place: int) -> int:
    """How many different values the column at `place` has had."""
    return len({c.row[place] for c in flat(batches)})


def nothing(_: Sequence[Batch]) -> int:
    return 0


def retracting(
    kernels: tuple[Kernel, ...],
    log: Callable[[int], Log],
    query: str,
    bound: Callable[[Sequence[Batch]], int] = nothing,
) -> Case:
    """An operator whose input may retract what it has added."""
    return Case(kernels, log, answer_of(kernels[0], query), bound, timeless, reverted, undone=True)


def timed(
    kernels: tuple[Kernel, ...],
    log: Callable[[int], Log],
    query: str | Callable[[Batch], str],
    bound: Callable[[Sequence[Batch]], int],
    cut: Cut,
    ending: tuple[Kernel, ...] = (),
) -> Case:
    """An operator in event time, whose input only adds rows; its own cut sends the watermark to the end of time."""
    return Case(kernels, log, answer_of(kernels[0], query), bound, lambda c, s: cut(c, s)[:-1], ended, False, ending)


def _last_of_keys(batches: Sequence[Batch]) -> Counter[Row]:
    last: dict[Any, Change] = {}
    for change in flat(batches):
        last[change.row[1]] = change
    return Counter(tuple(map(_hashable, c.row)) for c in last.values() if c.weight > 0)


def _last_written(batches: Sequence[Batch]) -> Counter[Row]:
    """Of the rows of each key that are there: the one whose count grew in the latest batch, of several the greatest."""
    there: Counter[Row] = Counter()
    grew: dict[Row, int] = {}
    for number, batch in enumerate(batches):
        before = Counter(there)
        for change in batch.changes:
            there[change.row] += change.weight
        grew |= {row: number for row in there if there[row] > before[row]}
    shown = {row[0]: row for row in sorted(+there, key=lambda row: (grew[row], row))}
    return Counter(shown.values())


def _shown_keys(applied: Counter[Row]) -> object:
    return Counter(row[0] for row in applied.elements())


def _deleted(batches: Sequence[Batch]) -> list[Batch]:
    return [Batch([Change((None, key, None), -1) for key in {c.row[1] for c in flat(batches)}])]


def _versions_ended(batches: Sequence[Batch]) -> list[Batch]:
    ends = [temporal_join.ended(key, FAR) for key in sorted({c.row[0] for c in flat(batches) if c.port == 1})]
    return [Batch(ends, watermark=FAR - 1), Batch([], watermark=END_OF_TIME)]


def _other_halves(batches: Sequence[Batch]) -> list[Batch]:
    """The halves that are missing."""
    came = {(change.port, pair_join.key_of(change)) for change in flat(batches)}
    return [Batch([pair_join.half(1 - port, *key) for port, key in came if (1 - port, key) not in came])]


def _sets(partial: GroupPartial | WindowPartial) -> int:
    """How many multisets of values the aggregates of a grouping keep."""
    return len(AccumulatorLayout(partial.input, partial.aggregates, partial.append, windowed=False).sets)


CHOSEN = [group_by.AGGREGATES[i] for i in (0, 3, 10, 14)]
"""COUNT, SUM, MIN and COUNT(DISTINCT): `test_group_by.py` goes through all of them."""

WHOLE = [group_by.AGGREGATES[14], *group_by.WHOLES]
"""A COUNT(DISTINCT) that shares a set of values with percentiles, and answers from all values of a group."""

LISTED = [*group_by.LISTS, *group_by.DISTINCT_LISTS]


def _full_windows(batches: Sequence[Batch]) -> Counter[Row]:
    windows = count_window.brute(batches, (0,), 3, 3)
    return Counter((*row, w[0][1], w[-1][1], now) for w in windows for row, now in w)


def _filled(batches: Sequence[Batch]) -> list[Batch]:
    """Enough rows of each partition that its last window is full."""
    partitions = Counter(c.row[0] for c in flat(batches))
    return [Batch([Change((name, 1, True)) for name, n in partitions.items() for _ in range(-n % 3)])]


def _in_open_sessions(batches: Sequence[Batch]) -> int:
    """How many rows are in sessions that have not closed."""
    closed = answer_of(session_rows.rows_with_sessions()[0], session_rows.oracle())(batches)
    return len(flat(batches)) - closed.total()


def _closed_windows(name: str) -> Callable[[Batch], str]:
    def query(batch: Batch) -> str:
        closed = f"(SELECT * FROM t0 WHERE epoch_ms(c4) <= {batch.watermark})"
        return window_top_n.ORACLES[name].replace("FROM closed", f"FROM {closed}")

    return query


def _first_arrivals(batches: Sequence[Batch]) -> Counter[Row]:
    return Counter(change.row for change in flat(batches)[FIRST_ROWS.first - 1 : FIRST_ROWS.last])


def _lists(seed: int) -> Log:
    """Lists that come; some of them go again."""
    rng = random.Random(seed)
    made = [Change((number, tuple(rng.choice(unnest.VALUES["list"]) or ()))) for number in range(40)]
    return [*made, *(Change(change.row, -1) for change in rng.sample(made, 15))]


def _by_sorted_time(log: Log, sizes: Iterator[int]) -> list[Batch]:
    batches, start = [], 0
    while start < len(log):
        size = next(sizes)
        batches.append(Batch(log[start : start + size], watermark=limit.highest(log[: start + size])))
        start += size
    return [*batches, Batch([], watermark=END_OF_TIME)]


def walked(name: str, bound: Callable[[Sequence[Batch]], int] | None = None) -> Case:
    """A window of a stream in event time, beside going through the rows one by one.

    Unless `bound` says otherwise, it keeps what is ahead of the watermark or in a window that is open.
    """
    kernel, brute, partition = stream_windows.EVENT[name]

    def expected(batches: Sequence[Batch]) -> Counter[Row]:
        rows = sorted((stream_windows.Timed(c.row, stream_windows.ms(c.row)) for c in flat(batches)), key=itemgetter(1))
        return stream_windows.expected(brute, partition, rows, batches[-1].watermark)

    def cut(log: Log, sizes: Iterator[int]) -> list[Batch]:
        return stream_windows.event_batches(log, lambda: next(sizes))[:-1]

    return Case(
        (kernel,),
        lambda seed: stream_windows.stream(seed, 60),
        expected,
        bound or _in_open_windows(name),
        cut,
        _emitted,
        undone=False,
    )


def _emitted(batches: Sequence[Batch]) -> list[Batch]:
    """A row of each partition that ends a state, and then the end of time."""
    return [Batch(_ends_of_states(batches), watermark=FAR - 1), *ended(batches)]


def _ends_of_states(batches: Sequence[Batch]) -> list[Change]:
    last = stream_windows.EPOCH + timedelta(milliseconds=FAR)
    return [Change((key, 0, False, True, last)) for key in {c.row[0] for c in flat(batches)}]


def _in_open_windows(name: str) -> Callable[[Sequence[Batch]], int]:
    """How many rows are ahead of the watermark, or behind it in a window that has not closed; and of each partition a
    record and a timer."""
    _, brute, partition = stream_windows.EVENT[name]

    def rows(batches: Sequence[Batch]) -> int:
        changes = [*flat(batches), *_ends_of_states(batches)]
        seen = sorted((stream_windows.Timed(c.row, stream_windows.ms(c.row)) for c in changes), key=itemgetter(1))
        watermark = batches[-1].watermark
        whole, closed = (stream_windows.expected(brute, partition, seen, at) for at in (END_OF_TIME, watermark))
        open_rows: int = (whole - closed).total() - sum(row[-1] == FAR for row in whole)
        return open_rows + since(batches, 0) + 2 * keys(batches, 0)

    return rows


def _by_window_time(log: Log, sizes: Iterator[int]) -> list[Batch]:
    batches, start = [], 0
    while start < len(log):
        size = next(sizes)
        seen = [_time((change.row[2],)) for change in log[: start + size]]
        batches.append(Batch(log[start : start + size], watermark=max(seen) - window_top_n.DELAY))
        start += size
    return [*batches, Batch([], watermark=END_OF_TIME)]


FIRST_ROWS = LimitOperator(output=limit.NUMBERS, first=4, last=20)
TOP = limit.RANKINGS[0]
UNNESTED = UnnestOperator(
    input=pa.schema([("c0", pa.int64()), ("c1", unnest.TYPES["list"])]), column=1, ordinality=True
)

GROUPS = group_by.grouping((0,), CHOSEN)
WHOLE_GROUPS = group_by.grouping((4,), WHOLE)
ENDS = group_by.grouping((0,), group_by.ENDS)
LISTING = group_by.grouping((4,), LISTED)
SESSION_SETS = 1
"""One multiset: the values of the COUNT(DISTINCT) of `session_aggregate.AGGREGATES`."""

HOP = Hop(size=30, slide=10)
WINDOWS = windows.windowed(HOP)
CLOSING = firing_aggregate.firing(AT_CLOSE, HOP, firing_aggregate.ENDS, append=False)
CALLS = over.CALLS["all at once"]
NUMBERING = [*over.CALLS["everything so far"][6:], *over.CALLS["values once so far"]]
NEXT_ROWS, NEXT_TIME = over.AHEAD["next rows"], over.AHEAD["next time"]
AROUND = (-10, 20)
PAIR = pa.schema([("c0", pa.string()), ("c1", pa.int64())])

CASES: dict[str, Case] = {
    "calc": retracting(
        (calc.HALF,),
        lambda seed: [Change((n % 7 - 8, "ab"[n % 2])) for n in range(seed, seed + 50)],
        "SELECT CAST(10 // c0 AS INTEGER), upper(c1) FROM t0 WHERE c1 <> 'skip'",
    ),
    "union": retracting(
        (UnionAll(ports=2, output=PAIR),),
        lambda seed: [Change(c.row, c.weight, n % 2) for n, c in enumerate(_pairs(seed)) if c.weight > 0],
        "SELECT * FROM t0 UNION ALL SELECT * FROM t1",
    ),
    "consolidate": retracting((Consolidate(output=PAIR, key=(0,)),), lambda seed: _pairs(seed), "SELECT * FROM t0"),
    "window rows": retracting(
        (WindowRowsOperator(input=windows.INPUT, time=2, window=HOP),),
        lambda seed: windows.arrivals(seed, 50),
        "SELECT t0.*, make_timestamp(ws * 1000), make_timestamp(we * 1000), make_timestamp(we * 1000 - 1000)"
        f" FROM t0 JOIN (VALUES {windows.brute(HOP)}) w(ws, we) ON epoch_ms(c2) >= ws AND epoch_ms(c2) < we",
    ),
    "group by": retracting(
        GROUPS,
        lambda seed: flat(group_by.generated(seed, 10, append=False)),
        group_by.query((0,), CHOSEN),
        lambda batches: len({row[0] for row in live(batches)}) + _sets(GROUPS[0]) * len(live(batches)),
    ),
    "group by, deviations": retracting(
        group_by.grouping((0,), group_by.SPREADS),
        lambda seed: flat(group_by.generated(seed, 10, append=False)),
        group_by.query((0,), group_by.SPREADS),
        lambda batches: len({row[0] for row in live(batches)}) + len(live(batches)),
    ),
    "group by, lists": retracting(
        LISTING,
        lambda seed: flat(group_by.generated(seed, 10, append=False)),
        group_by.query((4,), LISTED),
        lambda batches: len({row[4] for row in live(batches)}) + _sets(LISTING[0]) * len(live(batches)),
    ),
    "group by, percentiles and bits": retracting(
        WHOLE_GROUPS,
        lambda seed: flat(group_by.generated(seed, 10, append=False)),
        group_by.query((4,), WHOLE),
        lambda batches: len({row[4] for row in live(batches)}) + _sets(WHOLE_GROUPS[0]) * len(live(batches)),
    ),
    "group by, first and last value": Case(
        ENDS,
        lambda seed: flat(group_by.generated(seed, 10, append=False)),
        group_by.first_and_last,
        lambda batches: len({row[0] for row in live(batches)}) + _sets(ENDS[0]) * len(live(batches)),
        timeless,
        reverted,
        undone=True,
    ),
    "regular join": retracting(
        (regular_join.joined("full"),),
        lambda seed: flat(regular_join.generated(seed, 12)),
        regular_join.oracle("full"),
        lambda batches: len(live(batches)),
    ),
    "regular join, undecided": retracting(
        (regular_join.joined("mark", regular_join.FAILING, doubts=True),),
        lambda seed: flat(regular_join.generated(seed, 12, keys=3)),
        regular_join.undecided_oracle("mark"),
        lambda batches: len(live(batches)),
    ),
    "regular join, mark": retracting(
        (regular_join.joined("mark", "c1 = c2"),),
        lambda seed: flat(regular_join.generated(seed, 12)),
        regular_join.oracle("mark", "c1 = c2"),
        lambda batches: len(live(batches)),
    ),
    "lookup join": Case(
        (lookup_join.asking(lookup_join.joined("left", append=True), lookup_join.TABLE),),
        lambda seed: flat(lookup_join.generated(seed, 12, append=True)),
        answer_of(lookup_join.joined("left"), lookup_join.oracle("left")),
        nothing,
        timeless,
        ended,
        undone=False,
    ),
    "lookup join, retracting": retracting(
        (lookup_join.asking(lookup_join.joined("inner"), lookup_join.TABLE),),
        lambda seed: flat(lookup_join.generated(seed, 12)),
        lookup_join.oracle("inner"),
        lookup_join.kept_rows,
    ),
    "normalize": Case(
        (NormalizeOperator(output=normalize.SCHEMA, key=(1,)),),
        lambda seed: flat(normalize.upserts(seed, 12)),
        _last_of_keys,
        lambda batches: len(_last_of_keys(batches)),
        timeless,
        _deleted,
        undone=True,
    ),
    "materialize": Case(
        (materialize.KERNEL,),
        lambda seed: flat(materialize.random_batches(seed, 20)),
        _last_written,
        lambda batches: len(live(batches)),
        timeless,
        reverted,
        undone=True,
        uncut=_shown_keys,  # which row of a key is shown follows from the batch that it grew in
    ),
    "top n": Case(
        (TopNOperator(input=top_n.SCHEMA, ranking=top_n.RANKINGS["top 3 numbered"]),),
        lambda seed: top_n.arrivals(seed, 80),
        answer_of(TopNOperator(input=top_n.SCHEMA, ranking=top_n.RANKINGS["top 3"]), top_n.oracle("top 3 numbered")),
        lambda batches: sum(min(3, n) for n in Counter(c.row[0] for c in flat(batches)).values()),
        timeless,
        ended,
        undone=False,
        ending=(TopNOperator(input=top_n.SCHEMA, ranking=top_n.RANKINGS["top 3 numbered"], ttl=100),),
    ),
    "top n of each block": Case(
        (TopNPartialOperator(output=limit.NUMBERS, ranking=TOP), TopNOperator(input=limit.NUMBERS, ranking=TOP)),
        lambda seed: limit.numbers(seed, 60),
        answer_of(
            FIRST_ROWS,
            "SELECT *, row_number() OVER (ORDER BY c0 ASC NULLS FIRST, c1) AS n FROM t0 QUALIFY n <= 3",
        ),
        lambda batches: min(3, len(flat(batches))),
        timeless,
        ended,
        undone=False,
        ending=(
            TopNPartialOperator(output=limit.NUMBERS, ranking=TOP),
            TopNOperator(input=limit.NUMBERS, ranking=TOP, ttl=100),
        ),
    ),
    "limit": Case(
        (FIRST_ROWS,), lambda seed: limit.numbers(seed, 40), _first_arrivals, nothing, timeless, ended, undone=False
    ),
    "time sort": timed(
        (limit.BY_TIME,),
        lambda seed: limit.timed(seed, 60),
        lambda batch: f"SELECT * FROM t0 WHERE epoch_ms(c0) <= {batch.watermark}",
        lambda batches: since(batches, 0),
        _by_sorted_time,
    ),
    "unnest": retracting(
        (UNNESTED,), _lists, "SELECT c0, c1, unnest(c1), CAST(unnest(range(1, len(c1) + 1)) AS INTEGER) FROM t0"
    ),
    "set operation": retracting(
        (set_operation.operation(SetKind.EXCEPT_ALL),),
        lambda seed: set_operation.log(seed, 90),
        "SELECT * FROM t0 EXCEPT ALL SELECT * FROM t1",
        lambda batches: len(live(batches)),
    ),
    "retracting top n": retracting(
        (retracting_top_n.kernel("top 3 numbered"),),
        lambda seed: flat(retracting_top_n.batches(seed, 15)),
        retracting_top_n.ORACLES["top 3 numbered"],
        lambda batches: len(live(batches)) + keys(batches, 0),
    ),
    "window top n": timed(
        (window_top_n.kernel("top 3"),),
        lambda seed: [change for _, change in window_top_n.arrivals(seed, 60)],
        _closed_windows("top 3"),
        lambda batches: since(batches, 0),
        _by_window_time,
    ),
    "window ranks of all rows": timed(
        (window_top_n.kernel("part behind"),),
        lambda seed: [change for _, change in window_top_n.arrivals(seed, 60)],
        _closed_windows("part behind"),
        lambda batches: since(batches, 0),
        _by_window_time,
    ),
    "session aggregate": timed(
        session_aggregate.sessions(),
        lambda seed: session_aggregate.arrivals(seed, 60),
        session_aggregate.oracle(),
        # Each open session is kept once and waits once to be closed; the values of its sets are kept beside it.
        lambda batches: (2 + SESSION_SETS) * _in_open_sessions(batches),
        session_aggregate.cut,
    ),
    "session rows": timed(
        session_rows.rows_with_sessions(),
        lambda seed: session_aggregate.arrivals(seed, 60),
        session_rows.oracle(),
        lambda batches: 3 * _in_open_sessions(batches),
        session_aggregate.cut,
    ),
    "session rows as they came": timed(
        session_arrivals.in_order(),
        lambda seed: session_aggregate.arrivals(seed, 60),
        session_rows.oracle(),
        lambda batches: 3 * _in_open_sessions(batches),
        session_aggregate.cut,
    ),
    "count window": Case(
        (count_window.rows_out((0,), 3, 3),),
        lambda seed: count_window.stream(seed, 60),
        _full_windows,
        lambda batches: (2 + 1) * keys(batches, 0),  # rows that wait for the third, and how far the partition has come
        timeless,
        _filled,
        undone=False,
    ),
    "sliding window": walked(
        # A row is kept while it may be in a window, twice as long until half of its block has gone, and is noted once
        # more until it fires.
        "sliding with a delay, partition",
        lambda batches: 2 * since(batches, 20 + 15) + since(batches, 15),
    ),
    "session window": walked("sessions 30 12, partition"),
    "state window": walked(
        "states from one to another, partition", _in_open_windows("states from one to another, partition")
    ),
    "time window": walked("hopping, stream", lambda batches: 2 * since(batches, 30)),
    "window join": timed(
        (window_join.joined("full"),),
        lambda seed: window_join.arrivals(seed, 40),
        lambda batch: window_join.oracle("full", batch.watermark),
        lambda batches: since(batches, 0),
        window_join.cut,
    ),
    "window aggregate": timed(
        WINDOWS,
        lambda seed: windows.arrivals(seed, 60),
        windows.oracle(HOP),
        # A row is in a partial of its slice, and its value in one of each set; a slice lasts as long as its last
        # window.
        lambda batches: (1 + _sets(WINDOWS[0])) * since(batches, HOP.size + HOP.slide),
        windows.cut,
    ),
    "window aggregate, in the order of arrival": timed(
        windows.in_order(HOP),
        lambda seed: windows.numbered(windows.arrivals(seed, 60)),
        windows.oracle(HOP, windows.IN_ORDER),
        lambda batches: since(batches, HOP.size + HOP.slide),
        windows.cut,
    ),
    "firing aggregate, early": timed(
        firing_aggregate.firing(Firing(0, None, 0), HOP),
        lambda seed: windows.arrivals(seed, 60),
        firing_aggregate.oracle(HOP, closed_only=False),
        # Each row is in three windows, each of which has a group and a value in each set; expired rows go when they
        # are half of their block.
        lambda batches: 2 * 3 * (1 + _sets(WINDOWS[0])) * since(batches, HOP.size),
        windows.cut,
    ),
    "firing aggregate, late": timed(
        firing_aggregate.firing(Firing(None, 0, 30), HOP),
        lambda seed: windows.arrivals(seed, 60),
        firing_aggregate.oracle(HOP, closed_only=True),
        # The same, and of each group what is shown, and when its window closes.
        lambda batches: 2 * 3 * (3 + _sets(WINDOWS[0])) * since(batches, HOP.size + 30),
        windows.cut,
    ),
    "firing aggregate, first and last value at the close": Case(
        CLOSING,
        lambda seed: firing_aggregate.retracted(seed, 60),
        lambda batches: firing_aggregate.first_and_last(batches, HOP, closed_only=True),
        # Each row is in three windows, each of which has a group, when it closes, and the values of each set.
        lambda batches: 2 * 3 * (2 + _sets(CLOSING[0])) * since(batches, HOP.size),
        lambda log, sizes: firing_aggregate.cut(log, sizes, 40)[:-1],
        ended,
        undone=False,
    ),
    "interval join": timed(
        (interval_join.joined("full", AROUND),),
        lambda seed: interval_join.arrivals(seed, 60),
        interval_join.oracle("full", AROUND),
        # Each row is kept once to be met and once to be padded. Expired rows go when they are half of their block.
        lambda batches: 2 * 2 * since(batches, AROUND[1] - AROUND[0]),
        interval_join.cut,
    ),
    "temporal join": Case(
        (temporal_join.joined("left"),),
        lambda seed: temporal_join.arrivals(seed, 60),
        lambda batches: temporal_join.expected(flat(batches), batches[-1].watermark, "left"),
        lambda batches: since(batches, 0) + keys(batches, 0),
        lambda log, sizes: temporal_join.cut(log, sizes)[:-1],
        _versions_ended,
        undone=False,
    ),
    "temporal join at arrival, retracting": Case(
        (temporal_join.at_arrival(),),
        temporal_join.after_their_rates,
        lambda batches: temporal_join.expected_at_arrival(flat(batches)),
        # The rates of two keys, and each order once.
        lambda batches: 2 + temporal_join.expected_at_arrival(flat(batches)).total(),
        timeless,
        reverted,
        undone=True,
    ),
    "pair join": Case(
        (pair_join.KERNEL,),
        pair_join.halves,
        answer_of(pair_join.KERNEL, pair_join.ORACLE),
        pair_join.halves_missing,
        timeless,
        _other_halves,
        undone=False,
    ),
    "over": timed(
        (over.over(CALLS, schema=over.NUMBERED),),
        lambda seed: over.arrivals(seed, 60),
        over.oracle(CALLS),
        # The rows of two frames of 20 ms, which go when they are half of their block; of each key the last two
        # rows and the totals.
        lambda batches: 2 * since(batches, 2 * 20) + 3 * keys(batches, 0),
        over.cut,
        ending=(over.over(CALLS, schema=over.NUMBERED, ttl=10),),
    ),
    "settle": timed(
        (settle.KERNEL,),
        lambda seed: settle.arrivals(seed, 60),
        settle.settled,
        # Every change of rows ahead of the watermark.
        lambda batches: since(batches, 0),
        over.cut,
    ),
    "over, numbers of rows and values that count once": timed(
        (over.over(NUMBERING, schema=over.NUMBERED),),
        lambda seed: over.arrivals(seed, 60),
        over.oracle(NUMBERING),
        # Those ahead of the watermark; of each key the totals; its values of two columns, of one of them once more
        # under a filter.
        lambda batches: (
            since(batches, 0)
            + keys(batches, 0)
            + 2 * len({c.row[:2] for c in flat(batches)})
            + len({(c.row[0], c.row[3]) for c in flat(batches)})
        ),
        over.cut,
        ending=(over.over(NUMBERING, schema=over.NUMBERED, ttl=10),),
    ),
    "over, frames that end some rows behind": timed(
        (over.over(NEXT_ROWS[0], schema=over.NUMBERED),),
        lambda seed: over.arrivals(seed, 60),
        over.oracle(NEXT_ROWS[0], complete=NEXT_ROWS[1]),
        # Those ahead of the watermark; of each key three rows that wait, two that have been answered, the totals, and
        # the values that a DISTINCT counts.
        lambda batches: since(batches, 0) + 6 * keys(batches, 0) + len({c.row[:2] for c in flat(batches)}),
        over.cut,
        ending=(over.over(NEXT_ROWS[0], schema=over.NUMBERED, ttl=10),),
    ),
    "over, frames that end some time behind": timed(
        (over.over(NEXT_TIME[0], schema=over.NUMBERED),),
        lambda seed: over.arrivals(seed, 60),
        over.oracle(NEXT_TIME[0], complete=NEXT_TIME[1]),
        # Rows wait for 15 ms by time and by key, and stay for two frames of 35 ms; rows of a table by key go when they
        # are half of their block. Of each key the totals.
        lambda batches: 3 * since(batches, 15) + 2 * since(batches, 15 + 2 * 35) + keys(batches, 0),
        over.cut,
        ending=(over.over(NEXT_TIME[0], schema=over.NUMBERED, ttl=10),),
    ),
}


def key_columns(kernel: Any) -> list[tuple[int, ...]]:
    """The positions of the key in the input of each port: rows that are equal there must meet."""
    if isinstance(kernel, SetOperationOperator):
        return [tuple(range(len(schema))) for schema in kernel.inputs]
    if hasattr(kernel, "left_keys"):
        return [kernel.left_keys, kernel.right_keys]
    if hasattr(kernel, "partial"):
        columns = kernel.inputs[0] == kernel.partial.output
        return [tuple(range(len(kernel.partial.keys))) if columns else kernel.partial.keys]
    for source in (getattr(kernel, "ranking", None), kernel):
        for name in ("partition", "key", "keys"):
            if hasattr(source, name):
                return [getattr(source, name)]
    return [()] * len(kernel.inputs)


def _pairs(seed: int) -> list[Change]:
    return flat(materialize.random_batches(seed, 20))


def sizes(seed: int) -> Iterator[int]:
    """The sizes of batches of one cut: all of one size, or a few sizes in turn."""
    while True:
        yield from [(3,), (1, 2, 20), (7,), (1000,)][seed % 4]
