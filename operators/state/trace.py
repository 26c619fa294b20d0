"""A trace: the rows that an operator remembers, as a log-structured merge tree of sorted blocks.

A batch appends what it wrote as one new block, the newest. Runs of similar size are merged into larger ones, a range of
sort keys at a time (`upkeep`). While a merge is under way its sources are seen from its cursor on and its target before
it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from operators.arrays import ascends, distinct
from operators.hashing import Hashes
from operators.names import SORT_KEY, TOMBSTONE
from operators.slots import placed_hash
from operators.state.block import BLOCK, Block, BlockStore, Loaded, SortKeys, slice_between
from operators.state.compaction import rows_left
from operators.state.contents import Contents, TableKind, TraceSpec
from operators.state.upkeep import Combine, Upkeep
from operators.time import MIN_TIME


class Trace:
    """One table of an operator's state. `order` says which columns of the operator's key, by their place in it, chose
    the slots of rows; None for all of them in their order."""

    def __init__(
        self, spec: TraceSpec, contents: Contents, store: BlockStore, order: tuple[int, ...] | None = None
    ) -> None:
        self.spec = spec
        self._stored = spec.stored
        self._order = order
        self.contents = contents
        self._store = store
        self._written = 0
        self.combine: Combine | None = None

    # -- reading

    def blocks(self) -> list[Block]:
        """Return all blocks, newest run first."""
        return self.contents.blocks()

    def nothing(self) -> pa.Table:
        """Return a block without rows, with the columns of a block that was read."""
        return self.visible(self._stored.empty_table())

    def load(self, block: Block) -> Loaded:
        """Return the rows of `block`."""
        return self._store.load(block)

    def note_read(self, rows: int) -> None:
        """Count `rows` that a lookup reads from blocks."""
        self._store.rows_read += rows

    def note_searched(self, keys: int) -> None:
        """Note that this number of keys was searched for in a block, and that what was found has been copied."""
        self._store.searched(keys)

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
            return self._stored.empty_table()
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
            return 0, block.rows if block.clip is None else len(self._store.peek(block).sort_keys)
        first, last = slice_between(self._store.peek(block), low, None if upto is None else upto + 1)
        return first, last - first

    # -- writing

    def add(self, rows: pa.Table, sort_keys: SortKeys) -> None:
        """Add `rows` in the place that `sort_keys` gives each of them."""
        if rows.num_rows == 0:
            return
        self._append(self._as_stored(rows, sort_keys), sort_keys)

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
        schema = self._stored
        marks = {
            SORT_KEY: pa.array(emptied),
            TOMBSTONE: pa.repeat(pa.scalar(True), len(emptied)),
        }
        if self.spec.timestamp is not None:
            marks[self.spec.timestamp] = pa.repeat(pa.scalar(timestamp), len(emptied))
        columns = [marks.get(f.name) for f in schema]
        nothing = [pa.nulls(len(emptied), f.type) if c is None else c for f, c in zip(schema, columns, strict=True)]
        table = pa.concat_tables([self._as_stored(rows, sort_keys), pa.table(nothing, schema=schema)])
        self._append(table, np.concatenate([sort_keys, emptied]))

    def _as_stored(self, rows: pa.Table, sort_keys: SortKeys) -> pa.Table:
        """`rows` with the columns that a block has, cast where DuckDB chose a neighbouring type."""
        rows = rows.select(self.spec.schema.names).append_column(SORT_KEY, pa.array(sort_keys))
        if self.spec.kind is TableKind.KEYED:
            rows = rows.append_column(TOMBSTONE, pa.repeat(pa.scalar(False), rows.num_rows))
        return rows if rows.schema.equals(self._stored, check_metadata=True) else rows.cast(self._stored)

    def _append(self, rows: pa.Table, sort_keys: SortKeys) -> None:
        count = rows.num_rows
        ordered = iter((rows,)) if ascends(sort_keys) else _sorted_pieces(rows, sort_keys)
        del rows
        run = tuple(block for piece in ordered for block in self._store.write(piece, self.spec.expires_by))
        contents = self.contents
        contents.runs = {contents.next_run: run, **contents.runs}
        contents.next_run += 1
        self._written += count

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
        busy = contents.busy()
        contents.runs = {n: run for n, run in contents.runs.items() if run or n in busy}

    def compact(self) -> None:
        """Keep the tree in shape, by a work that follows what this batch wrote."""
        Upkeep(self.spec, self.contents, self._store, self.combine).advance(self._written)
        self.combine, self._written = None, 0


def _sorted_pieces(rows: pa.Table, sort_keys: SortKeys) -> Iterator[pa.Table]:
    """The rows in the order of their sort keys, in pieces that are copied when they are asked for."""
    order = np.argsort(sort_keys, kind="stable")
    most = max(1, BLOCK * rows.num_rows // max(1, rows.nbytes))
    rows = rows.combine_chunks()  # to take rows out of several chunks would put them together each time
    for first in range(0, len(order), most):
        yield rows.take(pa.array(order[first : first + most]))


def _without(found: SortKeys, written: SortKeys) -> SortKeys:
    """The sort keys among `found` that are not `written`, each once."""
    if len(found) == 0 or len(written) == 0:
        return distinct(found)
    if not ascends(written):
        written = np.sort(written)
    at = np.minimum(np.searchsorted(written, found), len(written) - 1)
    return distinct(found[written[at] != found])
