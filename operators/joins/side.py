"""One input of a join: the rows it keeps, how a batch changes them, which of them a change of the other side meets.

A side whose input only inserts, and of which nobody counts matches, is a log: rows are added and never looked up to be
written. Otherwise a row is kept once with how often it is there and, where the join pads or withholds rows of this
side, with its degree: the number of rows of the other side that it matches.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from operators.arrays import Numbers
from operators.changes import net
from operators.hashing import Hashes
from operators.joins.keys import split_matchable
from operators.joins.kinds import JoinKind
from operators.joins.matching import Matches, match_in_pieces
from operators.joins.shown import beside_nulls
from operators.names import COUNT, DEGREE, DOUBTS, PREVIOUS, TIME, WEIGHT
from operators.sql import Sql
from operators.state.operator_state import State
from operators.state.tables.keyed import KeyedRows, KeyedTable
from operators.state.tables.logged import LoggedTable


@dataclass(frozen=True, slots=True)
class Touched:
    """Rows of one side that a batch touches: how often each was there and is there, its degree: how many rows it
    matched, and how many it perhaps matched (`doubts`), where both are kept.

    Where they are counted, `pairs` are the rows that the batch changes, as they were read, and `kept` others that were
    read, as they were.
    """

    rows: pa.Table
    old: Numbers
    new: Numbers
    degrees: Numbers
    doubts: Numbers
    unmatched_retractions: int = 0
    pairs: KeyedRows | None = None
    kept: pa.Table | None = None

    @classmethod
    def logged(cls, rows: pa.Table, *, old: int) -> Touched:
        """Return the rows of a log: each is there once, and was there before or not."""
        zeros = np.zeros(rows.num_rows, dtype=np.int64)
        return cls(rows, zeros + old, zeros + 1, zeros, zeros)


class TouchedRows:
    """The rows of one side that a batch touches, those that it changes first, and how many matches each has gained
    where they are counted: of a row that was there, the change of its partners; of a new one, all of them."""

    def __init__(self, changed: Touched, matching: Touched, *, counted: bool) -> None:
        self.changed, self.matching = changed, matching
        self.rows = pa.concat_tables([changed.rows, matching.rows])
        self.old = np.concatenate([changed.old, matching.old])
        self.new = np.concatenate([changed.new, matching.new])
        self.gained, self.doubted = (np.zeros(len(self.old), dtype=np.int64) for _ in range(2))
        self._counted = counted

    @property
    def split(self) -> int:
        """How many rows are changed; the others are behind them."""
        return len(self.changed.old)

    @property
    def degrees(self) -> Numbers:
        """How many rows each row matched."""
        return np.concatenate([self.changed.degrees, self.matching.degrees])

    @property
    def degrees_after(self) -> Numbers:
        """How many rows each row matches now."""
        return np.where(self.old > 0, self.degrees, 0) + self.gained

    @property
    def doubts(self) -> Numbers:
        """How many rows each row perhaps matched."""
        return np.concatenate([self.changed.doubts, self.matching.doubts])

    @property
    def doubts_after(self) -> Numbers:
        """How many rows each row perhaps matches now."""
        return np.where(self.old > 0, self.doubts, 0) + self.doubted

    def gain(self, places: Numbers, other_old: Numbers, other_new: Numbers) -> None:
        """Count matches of the rows at `places` with rows of the other side that were and are there so often."""
        self._count(self.gained, places, other_old, other_new)

    def doubt(self, places: Numbers, other_old: Numbers, other_new: Numbers) -> None:
        """Count rows of the other side that the rows at `places` perhaps match, apart from those that they match."""
        self._count(self.doubted, places, other_old, other_new)

    def _count(self, counts: Numbers, places: Numbers, other_old: Numbers, other_new: Numbers) -> None:
        if self._counted:
            np.add.at(counts, places, other_new - np.where(self.old[places] > 0, other_old, 0))


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """The knowledge that a join of a `kind` has of the input at `port` (0 is left): columns, keys, whether it only
    inserts (`append`), whether its rows have a degree, and beside it the number of rows that they perhaps match;
    `other` are the columns of the other input.

    Rows live for `ttl` ms of processing time after they were written (0 = forever). They end in `AgingTable.expire`
    (`operators/state/tables/time_to_live.py`), which `RegularJoin.steps` calls for the `table` of each side before it
    reads. Rows of a side that is `timed` live until their own time, which is kept in TIME: `IntervalJoinOperator` ends
    them with `expire_upto`.
    """

    port: int
    kind: JoinKind
    schema: pa.Schema
    other: pa.Schema
    keys: tuple[int, ...]
    null_safe: tuple[bool, ...]
    append: bool = True
    tracks_degree: bool = False
    tracks_doubts: bool = False
    ttl: int = 0
    timed: bool = False
    table: KeyedTable | LoggedTable = field(init=False)
    """The rows that are kept."""

    def __post_init__(self) -> None:
        # Once, and not whenever it is asked for, which is ten times a batch.
        table = self._log() if self.append and not self.tracks_degree else self._counts()
        object.__setattr__(self, "table", table)

    @property
    def name(self) -> str:
        """The name of the side, and of the table that keeps its rows."""
        return ("left", "right")[self.port]

    def _log(self) -> LoggedTable:
        schema = self.schema.append(pa.field(TIME, pa.int64())) if self.timed else self.schema
        return LoggedTable(
            name=self.name, schema=schema, key=self.keys, ttl=self.ttl, expires_by=TIME if self.timed else None
        )

    def _counts(self) -> KeyedTable:
        numbers = [COUNT, *([DEGREE] if self.tracks_degree else []), *([DOUBTS] if self.tracks_doubts else [])]
        schema = pa.schema([*self.schema, *(pa.field(name, pa.int64()) for name in numbers)])
        return KeyedTable(name=self.name, schema=schema, keys=len(self.schema), group=self.keys, ttl=self.ttl)

    def split(self, rows: pa.Table) -> tuple[pa.Table, pa.Table]:
        """Split `rows` into those that may match something, and those with a NULL in a key, which match nothing."""
        return split_matchable(rows, self.keys, self.null_safe)

    def hashes(self, state: State, rows: pa.Table) -> Hashes:
        """Return the hash of the join key of each row."""
        return self.table.hash(state, rows, self.keys)

    def changed(self, state: State, rows: pa.Table, sql: Sql) -> Touched:
        """Return the rows that a batch changes, with what is kept of them."""
        if not isinstance(table := self.table, KeyedTable):
            return Touched.logged(rows.select(self.schema.names), old=0)

        def netted(rows: pa.Table) -> pa.Table:
            return net(sql, rows, self.schema.names).cast(rows.schema)

        pairs = table.read(state, rows, sql, unite=netted)
        old = _numbers(pairs.rows, PREVIOUS + COUNT)
        wanted = old + _numbers(pairs.rows, WEIGHT)
        new = np.maximum(wanted, 0)
        return Touched(
            rows=pairs.rows.select(self.schema.names),
            old=old,
            new=new,
            degrees=_numbers(pairs.rows, PREVIOUS + DEGREE) if self.tracks_degree else np.zeros_like(old),
            doubts=_numbers(pairs.rows, PREVIOUS + DOUBTS) if self.tracks_doubts else np.zeros_like(old),
            unmatched_retractions=int((new - wanted).sum()),
            pairs=pairs,
        )

    def matching(self, state: State, hashes: Hashes, changed: Touched | None = None) -> Touched:
        """Return the kept rows, other than those `changed`, whose keys have one of the `hashes`."""
        if not isinstance(table := self.table, KeyedTable):
            return Touched.logged(table.read(state, hashes).select(self.schema.names), old=1)
        assert changed is not None
        assert changed.pairs is not None
        kept = table.read_beside(state, changed.pairs, hashes)
        count = _numbers(kept, COUNT)
        return Touched(
            rows=kept.select(self.schema.names),
            old=count,
            new=count,
            degrees=_numbers(kept, DEGREE) if self.tracks_degree else np.zeros_like(count),
            doubts=_numbers(kept, DOUBTS) if self.tracks_doubts else np.zeros_like(count),
            kept=kept,
        )

    def keep(self, state: State, touched: TouchedRows, now: int) -> None:
        """Write the counts of the rows that have changed, and the degrees of all rows that have gained matches."""
        changed, matching = touched.changed, touched.matching
        if not isinstance(table := self.table, KeyedTable):
            table.add(state, changed.rows, now)
            return
        assert changed.pairs is not None
        rows = touched.rows.append_column(COUNT, pa.array(touched.new))
        if self.tracks_degree:
            rows = rows.append_column(DEGREE, pa.array(touched.degrees_after))
        if self.tracks_doubts:
            rows = rows.append_column(DOUBTS, pa.array(touched.doubts_after))
        fresh = np.arange(len(touched.new)) < touched.split
        written = fresh | (touched.gained != 0) | (touched.doubted != 0) if self.tracks_degree else fresh
        stays = touched.new > 0
        table.write_beside(state, changed.pairs, matching.kept, rows, now, stays=stays, changed=written)

    def keep_timed(self, state: State, rows: pa.Table, times: Numbers) -> None:
        """Add `rows` to a log whose rows go by their `times` (ms)."""
        assert isinstance(self.table, LoggedTable), "the rows of a side that is timed are not counted"
        self.table.add(state, rows.append_column(TIME, pa.array(times)))

    def alone(self, rows: pa.Table, *, shown: bool = False) -> list[pa.ChunkedArray | pa.Array]:
        """Return the columns of the join for `rows` that stand for themselves: with NULLs for the other side where that
        is shown; of a mark join whether they match, which is `shown`."""
        if self.kind is JoinKind.MARK:
            return [*rows.columns, pa.array(np.full(rows.num_rows, shown))]
        if not self.kind.shows_right:
            return list(rows.columns)
        return beside_nulls(rows, self.other, self.port)


def matches_of(
    sql: Sql,
    on: str,
    residual: str | None,
    touched: tuple[TouchedRows, TouchedRows],
    keys: tuple[Sequence[int], Sequence[int]],
    now: int,
) -> Iterator[Matches]:
    """Return the matches, in pieces, of which a row at least has changed; the other arguments are as in
    `match_in_pieces`."""
    left, right = touched
    parts = [
        (left.changed.rows, right.rows, 0, 0),
        (left.matching.rows, right.changed.rows, left.split, 0),
    ]
    return match_in_pieces(sql, on, residual, parts, keys, left.rows.num_columns, now)


def _numbers(rows: pa.Table, name: str) -> Numbers:
    """A BIGINT column as numbers, NULL as 0."""
    column = rows.column(name)
    numbers: Numbers = (pc.fill_null(column, 0) if column.null_count else column).to_numpy()
    return numbers
