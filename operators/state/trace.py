"""A trace: the rows that an operator remembers, as a log-structured merge tree of sorted blocks.

A batch appends what it wrote as one new block, the newest. Runs of similar size are merged into larger ones, a range of
sort keys at a time, so that the work of a batch follows what it wrote and not what is kept. While a merge is under way
its sources are seen from its cursor on and its target before it. Every decision depends on numbers in the manifest
alone, so a replay makes the same blocks.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from enum import Enum

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from operators.hashing import Hashes
from operators.names import SORT_KEY, TOMBSTONE
from operators.pieces import LARGEST
from operators.slots import placed_hash
from operators.state.block import Block, BlockStore, Loaded, SortKeys, distinct, slice_between
from operators.state.compaction import Run, boundary, mergeable, merged, rows_left, taken
from operators.time import MIN_TIME

STEP_ROWS = 32_768
"""A merge advances by about so many rows at a time."""

STEP_BYTES = LARGEST
"""And by so many bytes at most, since rows may be of any size."""

Combine = Callable[[pa.Table], pa.Table]


class TableKind(Enum):
    """The kind of a trace: how its rows are found, and what writing a row means."""

    KEYED = "keyed"
    """By the hash of their key; what is written replaces what was there for that hash."""
    MULTISET = "multiset"
    """By the hash of their key; rows are only added, until they are too old."""
    TIME_ORDERED = "time-ordered"
    """By time; rows are only added, until they are consumed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceSpec:
    """Describe a state table: the columns of its rows, its kind, and the column by which rows expire.

    `timestamp` names a BIGINT column: rows whose timestamp is at or below the bound of `Trace.expire` are gone. The
    timestamp of a time-ordered row is its time.

    The slot of a row is the upper bits of its sort key, which `Trace.key_hash` makes; of a time-ordered row it is told
    by the columns `key`, those of the operator's key in their order. Where `key_is_hash`, the one column is itself what
    `Trace.key_hash` has made. Where rows are found by more columns than the operator's key, that is the first `placing`
    of them. Raises ValueError for a time-ordered table without a `key`, which may be ().
    """

    schema: pa.Schema
    kind: TableKind
    timestamp: str | None = None
    key: tuple[str, ...] | None = None
    key_is_hash: bool = False
    placing: int | None = None

    def __post_init__(self) -> None:
        if (self.key is None) is (self.kind is TableKind.TIME_ORDERED):
            raise ValueError("the slots of a time-ordered table are told by its key, those of others by their sort key")

    @property
    def stored(self) -> pa.Schema:
        """The columns of a block."""
        sort_key = pa.field(SORT_KEY, pa.int64() if self.kind is TableKind.TIME_ORDERED else pa.uint64())
        tombstone = [pa.field(TOMBSTONE, pa.bool_())] if self.kind is TableKind.KEYED else []
        return pa.schema([*self.schema, sort_key, *tombstone])

    @property
    def expires_by(self) -> str | None:
        """The column by which rows expire, if they do."""
        return SORT_KEY if self.kind is TableKind.TIME_ORDERED else self.timestamp


@dataclass(frozen=True, slots=True)
class Merge:
    """A merge under way: the run `target` takes the rows of the `sources` next to it, step by step."""

    target: int
    sources: tuple[int, ...]
    fuel: int


@dataclass(slots=True)
class Contents:
    """The contents of one trace as the manifest says them: runs by number, newest first, and the merges under way.

    `live` is the number of keys of a keyed trace that does not age, None as long as it has rows of states of other
    slots, which nobody has counted.
    """

    runs: dict[int, Run]
    merges: list[Merge]
    next_run: int = 0
    expired_upto: int = MIN_TIME
    live: int | None = 0


class Trace:
    """One table of an operator's state. `order` says which columns of the operator's key, by their place in it, chose
    the slots of rows; None for all of them in their order."""

    def __init__(
        self, spec: TraceSpec, contents: Contents, store: BlockStore, order: tuple[int, ...] | None = None
    ) -> None:
        self.spec = spec
        self._order = order
        self.contents = contents
        self._store = store
        self._written = 0
        self.combine: Combine | None = None

    # -- reading

    def blocks(self) -> list[Block]:
        """Return all blocks, newest run first."""
        return [block for run in self.contents.runs.values() for block in run]

    def load(self, block: Block) -> Loaded:
        """Return the rows of `block`."""
        return self._store.load(block)

    def note_read(self, rows: int) -> None:
        """Count `rows` that a lookup takes out of blocks."""
        self._store.rows_read += rows

    def key_hash(self, rows: pa.Table, columns: Sequence[int]) -> Hashes:
        """Return a hash of the operator's key, which is at `columns`: what the sort keys of all its tables begin
        with."""
        order = self._order
        if order is None and self.spec.placing is not None:
            order = tuple(range(self.spec.placing))
        return placed_hash(rows, columns, order)

    def visible(self, rows: pa.Table) -> pa.Table:
        """Return `rows` without tombstones and expired rows, and without the tombstone column."""
        if self.spec.kind is TableKind.KEYED:
            gone = rows.column(TOMBSTONE)
            if pc.any(gone).as_py():
                rows = rows.filter(pc.invert(gone))
            rows = rows.drop_columns([TOMBSTONE])
        if self.spec.timestamp is not None and self.contents.expired_upto > MIN_TIME:
            rows = rows.filter(pc.greater(rows.column(self.spec.timestamp), self.contents.expired_upto))
        return rows

    def rows_seen(self) -> int:
        """Return how many rows are kept; where rows age, those not yet swept are counted too."""
        if self.spec.kind is TableKind.TIME_ORDERED:
            return sum(self._seen_rows(b) for b in self.blocks())
        if self.spec.kind is TableKind.KEYED and self.spec.timestamp is None and self.contents.live is not None:
            return self.contents.live
        # Of a clipped block the estimate will do: it need not be read for this.
        foreign = sum(block.rows for block in self.blocks() if block.clip is not None)
        runs = self.contents.runs.values()
        return foreign + sum(rows_left(tuple(b for b in run if b.clip is None), self._store) for run in runs)

    def between(self, after: int, upto: int) -> pa.Table:
        """Return the rows with after < time <= upto, by time; rows of one time in the order of arrival."""
        after = max(after, self.contents.expired_upto)
        parts = []
        for number in reversed(self.contents.runs):
            for block in self.contents.runs[number]:
                first, count = self._time_slice(block, after, upto)
                if count:
                    parts.append(self._store.load(block).rows.slice(first, count))
        if not parts:
            return self.spec.stored.empty_table()
        rows = pa.Table.from_batches(parts)
        self.note_read(rows.num_rows)
        if len(parts) == 1:
            return rows
        rows = rows.combine_chunks()
        sort_keys = rows.column(SORT_KEY).chunk(0).to_numpy(zero_copy_only=True)
        return rows.take(pa.array(np.argsort(sort_keys, kind="stable")))

    def _seen_rows(self, block: Block) -> int:
        """How many rows a block of a time-ordered table has, an estimate where it is clipped."""
        return self._time_slice(block, self.contents.expired_upto, None)[1] if block.clip is None else block.rows

    def _time_slice(self, block: Block, after: int, upto: int | None) -> tuple[int, int]:
        low = max(block.start, after + 1)
        if block.high < low or (upto is not None and block.low > upto):
            return 0, 0
        if low <= block.low and (upto is None or block.high <= upto):
            return 0, block.rows if block.clip is None else len(self._store.load(block).sort_keys)
        first, last = slice_between(self._store.load(block), low, None if upto is None else upto + 1)
        return first, last - first

    # -- writing

    def add(self, rows: pa.Table, sort_keys: SortKeys) -> None:
        """Add `rows` in the place that `sort_keys` gives each of them."""
        if rows.num_rows == 0:
            return
        rows = rows.select(self.spec.schema.names).append_column(SORT_KEY, pa.array(sort_keys))
        if self.spec.kind is TableKind.KEYED:
            rows = rows.append_column(TOMBSTONE, pa.repeat(pa.scalar(False), rows.num_rows))
        self._append(rows.cast(self.spec.stored), sort_keys)

    def replace(self, rows: pa.Table, sort_keys: SortKeys, found: SortKeys, timestamp: int = 0) -> None:
        """Put `rows` in place of all rows whose sort keys are among `found`, those of the rows found there before."""
        if self.contents.live is not None:
            self.contents.live += rows.num_rows - len(found)
        if self.contents.live == 0 and self.spec.timestamp is None:
            self.clear()
            return
        emptied = _without(found, sort_keys)
        if len(emptied) == 0:
            self.add(rows, sort_keys)
            return
        schema = self.spec.stored
        marks = {
            SORT_KEY: pa.array(emptied),
            TOMBSTONE: pa.repeat(pa.scalar(True), len(emptied)),
        }
        if self.spec.timestamp is not None:
            marks[self.spec.timestamp] = pa.repeat(pa.scalar(timestamp), len(emptied))
        columns = [marks.get(f.name) for f in schema]
        nothing = [pa.nulls(len(emptied), f.type) if c is None else c for f, c in zip(schema, columns, strict=True)]
        rows = rows.select(self.spec.schema.names).append_column(SORT_KEY, pa.array(sort_keys))
        rows = rows.append_column(TOMBSTONE, pa.repeat(pa.scalar(False), rows.num_rows)).cast(schema)
        table = pa.concat_tables([rows, pa.table(nothing, schema=schema)])
        self._append(table, np.concatenate([sort_keys, emptied]))

    def _append(self, rows: pa.Table, sort_keys: SortKeys) -> None:
        if len(sort_keys) > 1 and not bool((sort_keys[1:] >= sort_keys[:-1]).all()):
            rows = rows.combine_chunks().take(pa.array(np.argsort(sort_keys, kind="stable")))
        contents = self.contents
        contents.runs = {contents.next_run: self._store.write(rows, self.spec.expires_by), **contents.runs}
        contents.next_run += 1
        self._written += rows.num_rows

    def clear(self) -> None:
        """Forget everything."""
        for block in self.blocks():
            self._store.drop(block)
        self.contents.runs, self.contents.merges, self.contents.live = {}, [], 0

    def expire(self, expired_upto: int) -> None:
        """Expire the rows whose timestamp (of a time-ordered table: time) is at or below `expired_upto`.

        A block of which all rows have expired is dropped without being read.
        """
        contents = self.contents
        if expired_upto <= contents.expired_upto:
            return
        contents.expired_upto = expired_upto
        for number, run in contents.runs.items():
            for block in run:
                if block.newest <= expired_upto:
                    self._store.drop(block)
            contents.runs[number] = tuple(b for b in run if b.newest > expired_upto)
        busy = {n for m in contents.merges for n in (m.target, *m.sources)}
        contents.runs = {n: run for n, run in contents.runs.items() if run or n in busy}

    # -- keeping the tree in shape

    def compact(self) -> None:
        """Advance the merges by what this batch wrote, and begin those that are due."""
        contents = self.contents
        written, self._written = self._written, 0
        self._sweep(max(STEP_ROWS, 8 * written))
        self._begin()
        step = min(max(STEP_ROWS, written), self._rows_in(STEP_BYTES))
        batch_fuel = max(STEP_ROWS, 8 * written)
        for merge in sorted(contents.merges, key=self._rows_left):
            left = self._rows_left(merge)
            fuel = merge.fuel + 2 * written
            while left and batch_fuel > 0 and (left <= step or fuel >= step):
                moved = self._advance(merge, step)
                fuel, batch_fuel = fuel - moved, batch_fuel - moved
                left = self._rows_left(merge)
            at = contents.merges.index(merge)
            contents.merges[at] = replace(merge, fuel=max(0, fuel))
            if left == 0:
                del contents.merges[at]
                for number in merge.sources:
                    for block in contents.runs.pop(number):
                        self._store.drop(block)
                if not contents.runs[merge.target]:
                    contents.runs.pop(merge.target)
        self.combine = None
        if contents.live is None:
            self._recount()

    def _recount(self) -> None:
        """Count the keys again once all that others wrote has been merged away."""
        contents = self.contents
        if contents.merges or len(contents.runs) > 1 or any(block.clip is not None for block in self.blocks()):
            return
        counted = 0
        for block in self.blocks():
            loaded = self._store.load(block)
            first, last = slice_between(loaded, block.start, None)
            gone = loaded.rows.column(TOMBSTONE).slice(first, last - first)
            counted += len(gone) - (pc.sum(gone).as_py() or 0)
        contents.live = counted

    def _rows_in(self, size: int) -> int:
        """About how many rows are in `size` bytes of blocks, at least one."""
        blocks = self.blocks()
        return max(1, size * sum(b.rows for b in blocks) // max(1, sum(b.bytes for b in blocks)))

    def _rows_left(self, merge: Merge) -> int:
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

    def _advance(self, merge: Merge, step: int) -> int:
        """Move one step from the sources of `merge` to its target; returns how many rows that read."""
        contents, store = self.contents, self._store
        sources = [contents.runs[n] for n in merge.sources]
        bound = boundary(sources, step, store)
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
            table = merged(parts, replacing=self.spec.kind is TableKind.KEYED, oldest=oldest)
            self._keep(merge.target, table)
        for block in finished:
            store.drop(block)
        return moved

    def _keep(self, target: int, rows: pa.Table) -> None:
        """Add what is not too old of the merged `rows` to the run `target`."""
        expires_by = self.spec.expires_by
        if expires_by is not None and self.contents.expired_upto > MIN_TIME:
            rows = rows.filter(pc.greater(rows.column(expires_by), self.contents.expired_upto))
        if self.combine is not None and rows.num_rows:
            rows = self.combine(rows)
        if rows.num_rows:
            self.contents.runs[target] = (*self.contents.runs[target], *self._store.write(rows, expires_by))

    def _sweep(self, fuel: int) -> None:
        """Write those blocks anew that hold more of what is too old than of what is not, as many as `fuel` rows allow:
        the blocks of a large run are all of one age."""
        contents, expires_by = self.contents, self.spec.expires_by
        if expires_by is None or self.spec.kind is TableKind.TIME_ORDERED or contents.expired_upto == MIN_TIME:
            return
        busy = {n for m in contents.merges for n in (m.target, *m.sources)}
        for number, run in list(contents.runs.items()):
            if number in busy:
                continue
            kept: list[Block] = []
            for block in run:
                if fuel <= 0 or contents.expired_upto - block.oldest <= block.newest - contents.expired_upto:
                    kept.append(block)
                    continue
                fuel -= block.rows
                loaded = self._store.load(block)
                first, last = slice_between(loaded, block.start, None)
                rows = pa.Table.from_batches([loaded.rows.slice(first, last - first)])
                rows = rows.filter(pc.greater(rows.column(expires_by), contents.expired_upto))
                self._store.drop(block)
                if rows.num_rows:
                    kept.extend(self._store.write(rows, expires_by))
            contents.runs[number] = tuple(kept)
        contents.runs = {n: run for n, run in contents.runs.items() if run or n in busy}


def _without(found: SortKeys, written: SortKeys) -> SortKeys:
    """The sort keys among `found` that are not `written`, each once."""
    if len(found) == 0 or len(written) == 0:
        return distinct(found)
    if not bool((written[1:] >= written[:-1]).all()):
        written = np.sort(written)
    at = np.minimum(np.searchsorted(written, found), len(written) - 1)
    return distinct(found[written[at] != found])
