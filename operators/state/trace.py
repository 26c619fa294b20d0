"""A trace: the rows that an operator remembers, as a log-structured merge tree of sorted blocks.

A batch appends what it wrote as one new block, the newest. Runs of similar size are merged into larger ones, a stretch
of orders at a time, so that the work of a batch follows what it wrote and not what is kept. While a merge is under way
its sources are seen from its cursor on and its target before it. Every decision depends on numbers in the manifest
alone, so a replay makes the same blocks.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import Enum

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from operators.state.block import ORDER, Block, Loaded, Orders, Store, distinct, slice_between
from operators.state.compaction import GONE, Run, boundary, mergeable, merged, rows_left, taken
from operators.time import MIN_TIME

STRETCH = 32_768
"""A merge advances by about so many rows at a time."""

Combine = Callable[[pa.Table], pa.Table]


class Order(Enum):
    """How the rows of a trace are found again."""

    KEY = "key"
    """By the hash of their key; what is written replaces what was there for that hash."""
    LOG = "log"
    """By the hash of their key; rows are only added, until they are too old."""
    TIME = "time"
    """By time; rows are only added, until they are consumed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceSpec:
    """What kind of table a trace is: the columns of its rows, how they are found, and which of them ages a row.

    `stamp` names a BIGINT column: rows whose stamp is at or below the horizon (see `Trace.forget`) are gone. The stamp
    of a row by TIME is its time.
    """

    schema: pa.Schema
    order: Order
    stamp: str | None = None

    @property
    def stored(self) -> pa.Schema:
        """The columns of a block."""
        order = pa.field(ORDER, pa.int64() if self.order is Order.TIME else pa.uint64())
        gone = [pa.field(GONE, pa.bool_())] if self.order is Order.KEY else []
        return pa.schema([*self.schema, order, *gone])

    @property
    def ages(self) -> str | None:
        """The column that ages a row."""
        return ORDER if self.order is Order.TIME else self.stamp


@dataclass(frozen=True, slots=True)
class Merge:
    """A merge under way: the run `target` takes the rows of the `sources` next to it, stretch by stretch."""

    target: int
    sources: tuple[int, ...]
    credit: int


@dataclass(slots=True)
class Contents:
    """What the manifest says of one trace: runs by number, newest first, and the merges under way."""

    runs: dict[int, Run]
    merges: list[Merge]
    next_run: int = 0
    horizon: int = MIN_TIME
    live: int = 0


class Trace:
    """One table of an operator's state."""

    def __init__(self, spec: TraceSpec, contents: Contents, store: Store) -> None:
        self.spec = spec
        self.contents = contents
        self._store = store
        self._written = 0
        self.combine: Combine | None = None

    # -- reading

    def blocks(self) -> list[Block]:
        """All blocks, newest run first."""
        return [block for run in self.contents.runs.values() for block in run]

    def load(self, block: Block) -> Loaded:
        """The rows of `block`."""
        return self._store.load(block)

    def visible(self, rows: pa.Table) -> pa.Table:
        """`rows` without what is gone or too old, and without the mark."""
        if self.spec.order is Order.KEY:
            gone = rows.column(GONE)
            if pc.any(gone).as_py():
                rows = rows.filter(pc.invert(gone))
            rows = rows.drop_columns([GONE])
        if self.spec.stamp is not None and self.contents.horizon > MIN_TIME:
            rows = rows.filter(pc.greater(rows.column(self.spec.stamp), self.contents.horizon))
        return rows

    def rows_seen(self) -> int:
        """How many rows are kept; where rows age, those not yet swept are counted too."""
        if self.spec.order is Order.TIME:
            return sum(self._time_slice(b, self.contents.horizon, None)[1] for b in self.blocks())
        if self.spec.order is Order.KEY and self.spec.stamp is None:
            return self.contents.live
        return sum(rows_left(run, self._store) for run in self.contents.runs.values())

    def between(self, after: int, upto: int) -> pa.Table:
        """The rows with after < time <= upto, by time; rows of one time in the order of arrival."""
        after = max(after, self.contents.horizon)
        parts = []
        for number in reversed(self.contents.runs):
            for block in self.contents.runs[number]:
                first, count = self._time_slice(block, after, upto)
                if count:
                    parts.append(self._store.load(block).rows.slice(first, count))
        if not parts:
            return self.spec.stored.empty_table()
        rows = pa.Table.from_batches(parts)
        if len(parts) == 1:
            return rows
        rows = rows.combine_chunks()
        orders = rows.column(ORDER).chunk(0).to_numpy(zero_copy_only=True)
        return rows.take(pa.array(np.argsort(orders, kind="stable")))

    def _time_slice(self, block: Block, after: int, upto: int | None) -> tuple[int, int]:
        low = max(block.start, after + 1)
        if block.high < low or (upto is not None and block.low > upto):
            return 0, 0
        first, last = slice_between(self._store.load(block), low, None if upto is None else upto + 1)
        return first, last - first

    # -- writing

    def add(self, rows: pa.Table, orders: Orders) -> None:
        """Add `rows` in the place that `orders` gives each of them."""
        if rows.num_rows == 0:
            return
        rows = rows.select(self.spec.schema.names).append_column(ORDER, pa.array(orders))
        if self.spec.order is Order.KEY:
            rows = rows.append_column(GONE, pa.repeat(pa.scalar(False), rows.num_rows))
        self._append(rows.cast(self.spec.stored), orders)

    def replace(self, rows: pa.Table, orders: Orders, found: Orders, stamp: int = 0) -> None:
        """Put `rows` in place of all rows whose orders are among `found`, the orders of the rows found there before."""
        self.contents.live += rows.num_rows - len(found)
        if self.contents.live == 0 and self.spec.stamp is None:
            self.clear()
            return
        emptied = _without(found, orders)
        if len(emptied) == 0:
            self.add(rows, orders)
            return
        schema = self.spec.stored
        marks = {
            ORDER: pa.array(emptied),
            GONE: pa.repeat(pa.scalar(True), len(emptied)),
        }
        if self.spec.stamp is not None:
            marks[self.spec.stamp] = pa.repeat(pa.scalar(stamp), len(emptied))
        columns = [marks.get(f.name) for f in schema]
        nothing = [pa.nulls(len(emptied), f.type) if c is None else c for f, c in zip(schema, columns, strict=True)]
        rows = rows.select(self.spec.schema.names).append_column(ORDER, pa.array(orders))
        rows = rows.append_column(GONE, pa.repeat(pa.scalar(False), rows.num_rows)).cast(schema)
        table = pa.concat_tables([rows, pa.table(nothing, schema=schema)])
        self._append(table, np.concatenate([orders, emptied]))

    def _append(self, rows: pa.Table, orders: Orders) -> None:
        if len(orders) > 1 and not bool((orders[1:] >= orders[:-1]).all()):
            rows = rows.combine_chunks().take(pa.array(np.argsort(orders, kind="stable")))
        contents = self.contents
        contents.runs = {contents.next_run: (self._store.write(rows, self.spec.ages),), **contents.runs}
        contents.next_run += 1
        self._written += rows.num_rows

    def clear(self) -> None:
        """Forget everything."""
        for block in self.blocks():
            self._store.drop(block)
        self.contents.runs, self.contents.merges, self.contents.live = {}, [], 0

    def forget(self, horizon: int) -> None:
        """Rows whose stamp (by TIME: whose time) is at or below `horizon` are gone; whole blocks of them unread."""
        contents = self.contents
        if horizon <= contents.horizon:
            return
        contents.horizon = horizon
        for number, run in contents.runs.items():
            for block in run:
                if block.newest <= horizon:
                    self._store.drop(block)
            contents.runs[number] = tuple(b for b in run if b.newest > horizon)
        busy = {n for m in contents.merges for n in (m.target, *m.sources)}
        contents.runs = {n: run for n, run in contents.runs.items() if run or n in busy}

    # -- keeping the tree in shape

    def settle(self) -> None:
        """Advance the merges by what this batch wrote, and begin those that are due."""
        contents = self.contents
        written, self._written = self._written, 0
        self._sweep()
        self._begin()
        stretch = max(STRETCH, written)
        budget = max(STRETCH, 8 * written)
        for merge in sorted(contents.merges, key=self._left):
            left = self._left(merge)
            credit = merge.credit + 2 * written
            while left and budget > 0 and (left <= stretch or credit >= stretch):
                moved = self._advance(merge, stretch)
                credit, budget = credit - moved, budget - moved
                left = self._left(merge)
            at = contents.merges.index(merge)
            contents.merges[at] = replace(merge, credit=max(0, credit))
            if left == 0:
                del contents.merges[at]
                for number in merge.sources:
                    contents.runs.pop(number)
                if not contents.runs[merge.target]:
                    contents.runs.pop(merge.target)
        self.combine = None

    def _left(self, merge: Merge) -> int:
        return sum(rows_left(self.contents.runs[n], self._store) for n in merge.sources)

    def _begin(self) -> None:
        """Begin merging neighbouring runs of one size, where no merge of theirs is under way."""
        contents = self.contents
        busy = {n for m in contents.merges for n in (m.target, *m.sources)}
        while True:
            idle: list[int] = []
            for number in contents.runs:
                if number in busy:
                    break
                idle.append(number)
            sizes = [sum(b.rows for b in contents.runs[n]) for n in idle]
            span = mergeable(sizes)
            if span is None:
                return
            sources = tuple(idle[span[0] : span[1]])
            target = contents.next_run
            contents.next_run += 1
            runs: dict[int, Run] = {}
            for number, run in contents.runs.items():
                if number == sources[0]:
                    runs[target] = ()
                runs[number] = run
            contents.runs = runs
            contents.merges.append(Merge(target, sources, 0))
            busy |= {target, *sources}

    def _advance(self, merge: Merge, stretch: int) -> int:
        """Move one stretch from the sources of `merge` to its target; returns how many rows that read."""
        contents, store = self.contents, self._store
        sources = [contents.runs[n] for n in merge.sources]
        bound = boundary(sources, stretch, store)
        parts: list[list[pa.RecordBatch]] = []
        finished: list[Block] = []
        for number, run in zip(merge.sources, sources, strict=True):
            rows, contents.runs[number], used = taken(run, bound, store)
            parts.append(rows)
            finished += used
        moved: int = sum(batch.num_rows for run in parts for batch in run)
        if moved:
            numbers = list(contents.runs)
            oldest = numbers[-1] == merge.sources[-1]
            table = merged(parts, replacing=self.spec.order is Order.KEY, oldest=oldest)
            self._keep(merge.target, table)
        for block in finished:
            store.drop(block)
        return moved

    def _keep(self, target: int, rows: pa.Table) -> None:
        """Add what is not too old of the merged `rows` to the run `target`."""
        ages = self.spec.ages
        if ages is not None and self.contents.horizon > MIN_TIME:
            rows = rows.filter(pc.greater(rows.column(ages), self.contents.horizon))
        if self.combine is not None and rows.num_rows:
            rows = self.combine(rows)
        if rows.num_rows:
            self.contents.runs[target] = (*self.contents.runs[target], self._store.write(rows, ages))

    def _sweep(self) -> None:
        """Write those blocks anew that hold more of what is too old than of what is not."""
        contents, ages = self.contents, self.spec.ages
        if ages is None or self.spec.order is Order.TIME or contents.horizon == MIN_TIME:
            return
        busy = {n for m in contents.merges for n in (m.target, *m.sources)}
        for number, run in list(contents.runs.items()):
            if number in busy:
                continue
            kept: list[Block] = []
            for block in run:
                if contents.horizon - block.oldest <= block.newest - contents.horizon:
                    kept.append(block)
                    continue
                rows = pa.Table.from_batches([self._store.load(block).rows])
                rows = rows.filter(pc.greater(rows.column(ages), contents.horizon))
                self._store.drop(block)
                if rows.num_rows:
                    kept.append(self._store.write(rows, ages))
            contents.runs[number] = tuple(kept)
        contents.runs = {n: run for n, run in contents.runs.items() if run or n in busy}


def _without(found: Orders, written: Orders) -> Orders:
    """The orders among `found` that are not `written`, each once."""
    if len(found) == 0 or len(written) == 0:
        return distinct(found)
    if not bool((written[1:] >= written[:-1]).all()):
        written = np.sort(written)
    at = np.minimum(np.searchsorted(written, found), len(written) - 1)
    return distinct(found[written[at] != found])
