"""An interval join: rows of two streams whose keys are equal and whose times are near; state ends with the watermark.

A left row l can meet right rows from l.time - upper to l.time - lower, so it is kept until the watermark passes the
latter. If the join pads or withholds left rows, each is decided at that time: a left row that no stored right row
matches is emitted padded (or withheld). Right rows are stored until no left row can need them. The same holds with
sides swapped.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from operators.arrays import Mask, Positions, Times, distinct
from operators.changes import weigh
from operators.columns import as_changes, no_changes
from operators.fingerprint import DUCKDB_TEXT
from operators.hashing import Hashes
from operators.joins.kinds import JoinKind
from operators.joins.matching import Matches, Pairs, condition, taken
from operators.joins.side import Side, Touched, TouchedRows, matches_of
from operators.joins.two_inputs import JoinDefaults
from operators.joins.undecided import UndecidedPairs
from operators.kernel import Step, count_late, in_steps
from operators.lateness import has_passed, out_of_reach
from operators.names import WEIGHT, column, columns
from operators.sql import Sql
from operators.state.operator_state import State, TraceSpec
from operators.state.tables.table import StateTable, specs_of
from operators.state.tables.timed import TimedTable
from operators.time import Clock
from operators.windows.event_time import milliseconds, running_clock, timed


@dataclass(frozen=True, slots=True, kw_only=True)
class IntervalJoinOperator(JoinDefaults):
    """Joins the pairs with `lower` <= left time - right time <= `upper`, in ms, both inclusive. Both inputs
    and the output only insert.

    Keys, `null_safe`, `residual`, ports and output as in `RegularJoin`. `processing` says that the times are
    PROCTIME(). A row behind the watermark still joins what is kept; one whose last partner has passed and that finds
    none is late, unless the join pads it. A row without a time is dead.
    """

    left: pa.Schema
    right: pa.Schema
    kind: JoinKind
    left_keys: tuple[int, ...]
    right_keys: tuple[int, ...]
    null_safe: tuple[bool, ...]
    left_time: int
    right_time: int
    lower: int
    upper: int
    residual: str | None = field(default=None, metadata=DUCKDB_TEXT)
    processing: bool = False

    def output_watermark(self, watermark: int) -> int:
        """Hold the watermark back by the larger bound: a row may still be joined that much after its time has
        passed."""
        return watermark - max(self.upper, -self.lower, 0)

    def traces(self) -> Mapping[str, TraceSpec]:
        tables: list[StateTable] = []
        for side, asks in zip(self._sides(), self.kind.shows_alone, strict=True):
            tables += [side.table, *([self._open(side)] if asks else [])]
        return specs_of(*tables)

    def _sides(self) -> tuple[Side, Side]:
        left = Side(
            port=0,
            kind=self.kind,
            schema=self.left,
            other=self.right,
            keys=self.left_keys,
            null_safe=self.null_safe,
            timed=True,
        )
        return left, replace(left, port=1, schema=self.right, other=self.left, keys=self.right_keys)

    def _open(self, side: Side) -> TimedTable:
        """The rows of a side that wait until their last possible partner has passed."""
        name = ("left_open", "right_open")[side.port]
        return TimedTable(name=name, schema=side.schema, key=tuple(columns(side.keys)))

    def _reach(self) -> tuple[int, int]:
        """How long after its time a left and a right row can meet a new partner."""
        return -self.lower, self.upper

    def steps(self, state: State, inputs: Sequence[pa.Table], clock: Clock, sql: Sql) -> Iterator[Step]:
        clock = running_clock(state, clock, self.processing)
        sides = self._sides()
        dead: dict[int, pa.Table] = {}
        unmatched: list[pa.Table] = []
        arrived: list[Touched] = []
        times: list[Times] = []
        for side, rows, place in zip(sides, inputs, (self.left_time, self.right_time), strict=True):
            rows, without = timed(rows, place)
            if without:
                dead[side.port] = without[0]
            rows, unmatchable = side.split(rows.drop_columns([WEIGHT]))
            unmatched.append(unmatchable)
            arrived.append(side.changed(state, rows, sql))
            times.append(milliseconds(rows.column(place)))
        touched = (
            _touched(state, sides[0], arrived[0], sides[1].hashes(state, arrived[1].rows)),
            _touched(state, sides[1], arrived[1], sides[0].hashes(state, arrived[0].rows)),
        )
        met = [np.zeros(rows.split, dtype=np.bool_) for rows in touched]
        undecided = UndecidedPairs(self.kind, dead)
        tables = list((yield from in_steps(self._together(touched, met, undecided, state, clock.now, sql))))
        late: dict[int, pa.Table] = {}
        for side, asks, reach in zip(sides, self.kind.shows_alone, self._reach(), strict=True):
            port, rows = side.port, arrived[side.port].rows
            closed = out_of_reach(times[port], reach, clock.previous)
            if asks:
                tables.append(self._weighed(side.alone(unmatched[port])))
                tables.append(self._weighed(side.alone(rows.filter(pa.array(closed & ~met[port])))))
                self._open(side).add(state, rows.filter(pa.array(~closed)), times[port][~closed] + reach)
            elif (hopeless := closed & ~met[port] & has_passed(times[port], clock.previous)).any():
                late[port] = weigh(rows.filter(pa.array(hopeless)), 1)
            side.keep_timed(state, rows, times[port])
        for side, asks in zip(sides, self.kind.shows_alone, strict=True):
            if asks:
                tables.append(self._expired(state, side, clock.watermark, sql))
        self._forget(state, clock.watermark)
        changes = pa.concat_tables([no_changes(self.output), *tables])
        yield Step(changes=changes, late=late, late_count=count_late(late), dead=undecided.dead())

    def _near(self) -> str:
        width = len(self.left)
        difference = f"epoch_ms({column(self.left_time)}) - epoch_ms({column(width + self.right_time)})"
        near = f"{difference} BETWEEN {self.lower} AND {self.upper}"
        equal = condition(self.left_keys, self.right_keys, self.null_safe, width)
        return near if equal == "true" else f"{equal} AND {near}"

    def _matches(self, touched: tuple[TouchedRows, TouchedRows], now: int, sql: Sql) -> Iterator[Matches]:
        """All pairs of which one row at least has just come."""
        if self.lower > self.upper:
            return iter(())
        return matches_of(sql, self._near(), self.residual, touched, (self.left_keys, self.right_keys), now)

    def _together(
        self,
        touched: tuple[TouchedRows, TouchedRows],
        met: Sequence[Mask],
        undecided: UndecidedPairs,
        state: State,
        now: int,
        sql: Sql,
    ) -> Iterator[pa.Table]:
        """The pairs, in pieces. Meanwhile the fresh rows that have `met` a partner are marked, and those of `undecided`
        pairs as well: none of these is alone."""
        left, right = touched
        for matches in self._matches(touched, now, sql):
            pairs = matches.pairs
            for found in (pairs, matches.failed):
                for places, mine in zip(found, met, strict=True):
                    mine[places[places < len(mine)]] = True
            undecided.add(matches, left.rows, right.rows)
            if self.kind is JoinKind.SEMI:
                yield self._weighed(left.rows.take(pa.array(self._first(left, pairs, state, sql))).columns)
            elif self.kind is not JoinKind.ANTI:
                for _, mine_rows, others in taken(left.rows, right.rows, pairs):
                    yield self._weighed([*mine_rows.columns, *others.columns])

    def _first(self, left: TouchedRows, pairs: Pairs, state: State, sql: Sql) -> Positions:
        """The rows of left that match for the first time."""
        first = distinct(pairs.left)
        before = first[first >= left.split]
        if len(before):
            had = self._met(left.rows.take(pa.array(before)), state, sql).matched
            first = np.concatenate([first[first < left.split], before[~had]])
        return first

    def _met(self, rows: pa.Table, state: State, sql: Sql, port: int = 0) -> _Met:
        """Which `rows` of the side `port` match a row that is kept of the other side, and which may."""
        sides = self._sides()
        side, other = sides[port], sides[1 - port]
        asking = TouchedRows(Touched.logged(rows, old=1), _no_rows(side), counted=False)
        kept = other.matching(state, side.hashes(state, rows))
        known = TouchedRows(_no_rows(other), kept, counted=False)
        matched, doubtful = (np.zeros(rows.num_rows, dtype=np.bool_) for _ in range(2))
        # Of inner joins alone a condition asks for the time, and they do not come here.
        for found in self._matches((known, asking) if port else (asking, known), 0, sql):
            matched[found.pairs[port]] = True
            doubtful[found.failed[port]] = True
        return _Met(matched, doubtful)

    def _expired(self, state: State, side: Side, watermark: int, sql: Sql) -> pa.Table:
        """The rows whose last possible partner has passed and that have met none."""
        rows = self._open(side).take(state, watermark)
        if rows.num_rows:
            met = self._met(rows, state, sql, side.port)
            rows = rows.filter(pa.array(~(met.matched | met.doubtful)))
        return self._weighed(side.alone(rows))

    def _forget(self, state: State, watermark: int) -> None:
        """Rows go when no new partner can come, and, where the other side asks for its matches, nobody can ask."""
        asks, span = self.kind.shows_alone, max(self.upper - self.lower, 0)
        asked = asks[1], asks[0] or self.kind is JoinKind.SEMI
        for side, reach, is_asked in zip(self._sides(), self._reach(), asked, strict=True):
            side.table.expire_upto(state, watermark - (max(reach, span) if is_asked else reach))

    def _weighed(self, columns: Sequence[pa.ChunkedArray | pa.Array]) -> pa.Table:
        return as_changes(weigh(pa.table(list(columns), names=self.output.names), 1), self.output)


class _Met(NamedTuple):
    """Which rows have a partner, and which have one for which the condition cannot be computed."""

    matched: Mask
    doubtful: Mask


def _touched(state: State, side: Side, arrived: Touched, hashes: Hashes) -> TouchedRows:
    """The rows of a side that have `arrived`, and those that are kept and have one of the `hashes`."""
    return TouchedRows(arrived, side.matching(state, hashes), counted=False)


def _no_rows(side: Side) -> Touched:
    return Touched.logged(side.schema.empty_table(), old=0)
