"""One side of a join: the rows it keeps, how a batch changes them, which of them a change of the other side meets.

A side whose input only inserts, and of which nobody counts matches, is a log: rows are added and never looked up to be
written. Otherwise a row is kept once with how often it is there and, where the join pads or withholds rows of this
side, with its degree: the number of rows of the other side that it matches.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from operators.changes import net
from operators.hashing import Hashes, bucket_hash
from operators.kernel import WEIGHT
from operators.sql import Sql
from operators.state.block import SortKeys, among, distinct
from operators.state.lookup import find, find_groups, nested, sort_keys_of
from operators.state.operator_state import WRITTEN, State, TableKind, TraceSpec
from operators.state.pairing import FOUND, PREVIOUS, read_keyed
from operators.state.trace import Trace

COUNT = "_count"
DEGREE = "_degree"

Numbers = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Touched:
    """Rows of one side that a batch touches: how often each was there and is there, and its degree: how many rows it
    matched.

    `found` says which are kept already, and `timestamps` when those were last written.
    """

    rows: pa.Table
    sort_keys: SortKeys
    old: Numbers
    new: Numbers
    degrees: Numbers
    found: npt.NDArray[np.bool_]
    timestamps: Numbers
    others: pa.Table | None = None
    unmatched_retractions: int = 0

    @classmethod
    def logged(cls, rows: pa.Table, sort_keys: SortKeys, *, old: int) -> Touched:
        """Rows of a log: each is there once, and was there before or not."""
        zeros = np.zeros(rows.num_rows, dtype=np.int64)
        return cls(rows, sort_keys, zeros + old, zeros + 1, zeros, zeros > 0, zeros)

    def degrees_after(self, degree_deltas: Numbers) -> Numbers:
        """How many rows each row matches now; `degree_deltas` holds all matches of rows that were not there before."""
        return np.where(self.old > 0, self.degrees, 0) + degree_deltas


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """What a join knows of one input: columns, keys, whether it only inserts, whether its rows have a degree."""

    name: str
    schema: pa.Schema
    keys: tuple[int, ...]
    null_safe: tuple[bool, ...]
    append: bool
    tracks_degree: bool
    ttl: int

    @property
    def is_log(self) -> bool:
        """Whether rows are only ever added."""
        return self.append and not self.tracks_degree

    def spec(self) -> TraceSpec:
        """The trace that keeps this side's rows."""
        numbers = [] if self.is_log else [COUNT, *([DEGREE] if self.tracks_degree else [])]
        hidden = [pa.field(name, pa.int64()) for name in (*numbers, *([WRITTEN] if self.ttl else []))]
        kind = TableKind.MULTISET if self.is_log else TableKind.KEYED
        return TraceSpec(schema=pa.schema([*self.schema, *hidden]), kind=kind, timestamp=WRITTEN if self.ttl else None)

    def hashes(self, state: State, touched: Touched) -> Hashes:
        """The hash of the join key of each row."""
        return state[self.name].key_hash(touched.rows, self.keys)

    def changed(self, state: State, rows: pa.Table, sql: Sql) -> Touched:
        """The rows that a batch changes, with what is kept of them."""
        if self.is_log:
            return Touched.logged(rows.select(self.schema.names), state[self.name].key_hash(rows, self.keys), old=0)
        rows, sort_keys = self._netted(state[self.name], rows, sql)
        pairs = read_keyed(sql, state[self.name], rows, sort_keys, len(self.schema))
        old = _numbers(pairs.rows, PREVIOUS + COUNT)
        wanted = old + _numbers(pairs.rows, WEIGHT)
        new = np.maximum(wanted, 0)
        return Touched(
            rows=pairs.rows.select(self.schema.names),
            sort_keys=pairs.sort_keys,
            old=old,
            new=new,
            degrees=_numbers(pairs.rows, PREVIOUS + DEGREE) if self.tracks_degree else np.zeros_like(old),
            found=pairs.rows.column(FOUND).to_numpy(),
            timestamps=np.zeros_like(old),
            others=pairs.others,
            unmatched_retractions=int((new - wanted).sum()),
        )

    def _netted(self, trace: Trace, rows: pa.Table, sql: Sql) -> tuple[pa.Table, SortKeys]:
        """Equal rows as one, with the sum of their weights."""
        whole = bucket_hash(rows, range(len(self.schema)))
        if len(distinct(whole)) < len(whole):
            rows = net(sql, rows, self.schema.names).cast(rows.schema)
            whole = bucket_hash(rows, range(len(self.schema)))
        return rows, nested(trace.key_hash(rows, self.keys), whole)

    def matching(self, state: State, keys: Hashes, changed: Touched) -> Touched:
        """The kept rows, other than those `changed`, whose keys have one of the hashes `keys`."""
        trace = state[self.name]
        if self.is_log:
            rows = find(trace, distinct(keys))
            return Touched.logged(rows.select(self.schema.names), sort_keys_of(rows), old=1)
        rows = find_groups(trace, keys)
        apart = ~among(sort_keys_of(rows), changed.sort_keys)
        rows = rows.filter(pa.array(apart))
        if changed.others is not None and changed.others.num_rows:
            rows = pa.concat_tables([rows, changed.others.select(rows.column_names)]).combine_chunks()
        count = _numbers(rows, COUNT)
        return Touched(
            rows=rows.select(self.schema.names),
            sort_keys=sort_keys_of(rows),
            old=count,
            new=count,
            degrees=_numbers(rows, DEGREE) if self.tracks_degree else np.zeros_like(count),
            found=np.ones(rows.num_rows, dtype=np.bool_),
            timestamps=_numbers(rows, WRITTEN) if self.ttl else np.zeros_like(count),
        )

    def keep(self, state: State, changed: Touched, matching: Touched, degree_deltas: Numbers, now: int) -> None:
        """Write the counts of the rows `changed`, and the degrees of all rows as changed by `degree_deltas`.

        Rows that share a sort key are replaced together, so those that share one with a row to be written are written
        too.
        """
        trace = state[self.name]
        if self.is_log:
            rows = changed.rows
            if self.ttl:
                rows = rows.append_column(WRITTEN, pa.array(np.full(rows.num_rows, now)))
            trace.add(rows, changed.sort_keys)
            return
        split = len(changed.sort_keys)
        sort_keys = np.concatenate([changed.sort_keys, matching.sort_keys])
        counts = np.concatenate([changed.new, matching.new])
        fresh = np.concatenate([np.ones(split, dtype=np.bool_), (degree_deltas[split:] != 0) & self.tracks_degree])
        written = among(sort_keys, sort_keys[fresh])
        found = sort_keys[written & np.concatenate([changed.found, matching.found])]
        rows = pa.concat_tables([changed.rows, matching.rows]).append_column(COUNT, pa.array(counts))
        if self.tracks_degree:
            degrees = np.concatenate(
                [changed.degrees_after(degree_deltas[:split]), matching.degrees_after(degree_deltas[split:])]
            )
            rows = rows.append_column(DEGREE, pa.array(degrees))
        if self.ttl:
            timestamps = np.where(fresh, now, np.concatenate([changed.timestamps, matching.timestamps]))
            rows = rows.append_column(WRITTEN, pa.array(timestamps))
        stays = written & (counts > 0)
        trace.replace(rows.filter(pa.array(stays)), sort_keys[stays], found, now)


def _numbers(rows: pa.Table, name: str) -> Numbers:
    """A BIGINT column as numbers, NULL as 0."""
    column = rows.column(name)
    numbers: Numbers = (pc.fill_null(column, 0) if column.null_count else column).to_numpy()
    return numbers
