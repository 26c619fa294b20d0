"""A table of rows by partition and time: what is needed of a few partitions is found without the others.

The sort key of a row is half of the hash of its partition, then its time: one partition's rows of one stretch of time
are one range of a block.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from operators.arrays import Numbers, Times, heads
from operators.hashing import Hashes
from operators.names import TIME
from operators.state.block import SortKeys
from operators.state.contents import TableKind, TraceSpec
from operators.state.lookup import LOW_HALF, find_between
from operators.state.operator_state import State
from operators.state.tables.table import StateTable

_UNITS = int(LOW_HALF)
_STRETCH_BITS = 30
"""A stretch of the expected length has this many bits of units, so that the 32 there are for the time go round behind
all that is kept: longer stretches have coarser units."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryTable(StateTable):
    """Rows in partitions by the columns at `keys`, of which stretches of about `length` ms are read.

    Rows are forgotten by their times, with `expire_upto`.
    """

    keys: tuple[int, ...]
    length: int

    def spec(self) -> TraceSpec:
        schema = pa.schema([*self.schema, pa.field(TIME, pa.int64())])
        return TraceSpec(schema=schema, kind=TableKind.MULTISET, timestamp=TIME)

    def add(self, state: State, rows: pa.Table, times: Times) -> None:
        """Keep `rows`, whose times are in ms."""
        prefixes = self.hashes(state, rows) & ~LOW_HALF
        self.trace(state).add(rows.append_column(TIME, pa.array(times)), prefixes | self._units(times))

    def hashes(self, state: State, rows: pa.Table) -> Hashes:
        """Return the hash of the partition of each of `rows`."""
        return self.trace(state).key_hash(rows, self.keys)

    def read(self, state: State, partitions: Hashes, lows: Times, highs: Times) -> tuple[pa.Table, Times]:
        """Return the rows of some `partitions`, by their hashes, and their times, in order; rows of one time as they
        came.

        Of each partition at least those from the least of its `lows` to the greatest of its `highs`, both included, and
        at times others: of partitions that share half of a hash, and of other times.
        """
        trace = self.trace(state)
        if len(partitions) == 0 or not trace.blocks():
            return self.schema.empty_table(), np.empty(0, dtype=np.int64)
        rows = find_between(trace, *self._ranges(partitions & ~LOW_HALF, lows, highs))
        times = rows.column(TIME)
        if rows.num_rows:
            inside = pc.and_(pc.greater_equal(times, int(lows.min())), pc.less_equal(times, int(highs.max())))
            rows = rows.filter(inside)
        found: Times = rows.column(TIME).to_numpy()
        order = np.argsort(found, kind="stable")
        return rows.select(self.schema.names).take(pa.array(order)), found[order]

    def _unit(self, times: Times) -> Numbers:
        """The number of the unit of time that each of `times` is in."""
        unit = max(1, self.length >> _STRETCH_BITS)
        return times // unit

    def _units(self, times: Times) -> SortKeys:
        return (self._unit(times) & _UNITS).astype(np.uint64)

    def _ranges(self, prefixes: Hashes, lows: Times, highs: Times) -> tuple[Hashes, Hashes]:
        """From where to where the sort keys of each partition lie; one whose times go round has two such ranges."""
        order = np.argsort(prefixes, kind="stable")
        ordered = prefixes[order]
        begins = heads(ordered)
        different = ordered[begins]
        first = np.minimum.reduceat(lows[order], begins)
        last = np.maximum.reduceat(highs[order], begins)
        starts, ends = self._units(first), self._units(last)
        whole = self._unit(last) - self._unit(first) >= _UNITS
        starts[whole], ends[whole] = 0, _UNITS
        wraps = starts > ends
        return (
            np.concatenate([different | starts, different[wraps]]),
            np.concatenate([different | np.where(wraps, LOW_HALF, ends), different[wraps] | ends[wraps]]),
        )
