"""A temporal join: each row meets the version of a table that was in force at the row's own time.

Law: a left row at time t meets, of the versions of its key, the one with the greatest time <= t. It waits until the
watermark reaches t, for then no version at or before t is missing; what comes later corrects nothing that was answered.

Of each key the last version at or before the watermark is kept (`current`), and all newer ones by time (`ahead`). A
batch reads the rows and versions that become due and the current versions of their keys, whatever else is kept.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from operators.arrays import Mask, Positions, Times, in_order
from operators.base import KernelDefaults
from operators.changes import weigh
from operators.columns import as_changes, no_changes, positional, weighted
from operators.fingerprint import DUCKDB_TEXT
from operators.joins.answered import Answered
from operators.joins.deletes import UntimedDeletes
from operators.joins.kinds import JoinKind
from operators.joins.lookup_join import LookupJoinOperator
from operators.joins.matching import holding
from operators.joins.undecided import UndecidedPairs
from operators.joins.versions import Versions, asof
from operators.kernel import Step, count_late
from operators.lateness import has_passed
from operators.names import REASON, WEIGHT, columns
from operators.sql import Sql
from operators.state.operator_state import State, TraceSpec
from operators.state.tables.table import specs_of
from operators.state.tables.timed import TimedTable
from operators.time import Clock
from operators.windows.event_time import milliseconds, timed


class _Rows(NamedTuple):
    """Left rows with their weights, and their times."""

    rows: pa.Table
    times: Times


@dataclass(frozen=True, slots=True, kw_only=True)
class TemporalJoinOperator(KernelDefaults):
    """Left rows with the version of the right row of the same key at their time, if `residual` is true of both.

    Right changes are an upsert stream: a weight of 0 or more is a version from its time on, -1 ends the row from its
    time on; of two versions at one time the later in arrival counts. `left_time` and `right_time` are the positions of
    the time attributes. A left row behind the watermark is late, and so is a version that a newer one had replaced by
    then. A row without a time is dead; with `untimed_deletes` a delete without one has that of the row it deletes.

    Without a `right_time` it is a join in processing time: a left row meets the version that is there when it comes;
    the versions of its own batch are there already. `left_time` is not read.

    `append` says that left only inserts. If it does not, a row behind the watermark meets what was met by those of its
    key and time, which are forgotten `ttl` ms of processing time after the last of them came (0 = never); it is late
    where there were none. In processing time rows are retracted with what they have met, as those of a lookup join.

    `doubts` says that `residual` may fail, and that rows without a match are shown.
    """

    left: pa.Schema
    right: pa.Schema
    kind: JoinKind
    left_keys: tuple[int, ...]
    right_keys: tuple[int, ...]
    left_time: int | None
    right_time: int | None
    residual: str | None = field(default=None, metadata=DUCKDB_TEXT)
    append: bool = True
    ttl: int = 0
    untimed_deletes: bool = False
    doubts: bool = field(default=False, metadata=DUCKDB_TEXT)

    @property
    def version(self) -> int:
        """3 where a row that is retracted in event time is padded only if its condition can be computed: in version 1
        it was padded anyway, in version 2 fewer conditions could be."""
        return 3 if self.doubts and not self.append and self.right_time is not None else 1

    @property
    def inputs(self) -> tuple[pa.Schema, ...]:
        return (self.left, self.right)

    @property
    def output(self) -> pa.Schema:
        return positional([*self.left.types, *self.right.types])

    def traces(self) -> Mapping[str, TraceSpec]:
        versions = self._versions()
        if self.right_time is None:
            return {**specs_of(versions.current), **({} if self.append else self._recalling().traces())}
        answered = () if self.append else (self._answered().table,)
        times = (self._deletes().table,) if self.untimed_deletes else ()
        return specs_of(self._waiting(), versions.ahead, versions.current, *answered, *times)

    def _waiting(self) -> TimedTable:
        """The left rows that wait for their time."""
        schema = self.left if self.append else weighted(self.left)
        return TimedTable(name="waiting", schema=schema, key=tuple(columns(self.left_keys)))

    def _answered(self) -> Answered:
        return Answered(schema=self.right, keys=tuple(self.left.field(k).type for k in self.left_keys), ttl=self.ttl)

    def _recalling(self) -> LookupJoinOperator:
        """The join with versions that are there, which are looked up as rows of a table outside are."""
        return LookupJoinOperator(
            left=self.left,
            right=self.right,
            kind=self.kind,
            left_keys=self.left_keys,
            right_keys=self.right_keys,
            residual=self.residual,
            append=False,
            ttl=self.ttl,
        )

    def _deletes(self) -> UntimedDeletes:
        assert self.right_time is not None
        return UntimedDeletes(schema=self.right, keys=self.right_keys, time=self.right_time)

    def _versions(self) -> Versions:
        return Versions(schema=self.right, keys=self.right_keys, time=self.right_time)

    def advance(self, state: State, inputs: Sequence[pa.Table], clock: Clock, sql: Sql) -> Step:
        left, right = inputs
        if self.right_time is None and not self.append:
            return self._recalled(state, left, right, clock, sql)
        dropped = 0
        if self.untimed_deletes:
            right, dropped = self._deletes().filled(state, right, sql)
        dead: dict[int, pa.Table] = {}
        versions, late = self._versions(), dict[int, pa.Table]()
        if self.right_time is None:
            final = versions.final(state, right, clock)
            due, behind = _at_once(left), _at_once(left.slice(0, 0))
        else:
            assert self.left_time is not None
            left, right = self._timed(left, self.left_time, 0, dead), self._timed(right, self.right_time, 1, dead)
            final = versions.final(state, right, clock)
            due, behind = self._due(state, left, self.left_time, clock)
        changes = no_changes(self.output)
        if due.rows.num_rows or final.num_rows:
            hashes = versions.current.hash(state, due.rows, self.left_keys)
            known = versions.known(state, final, hashes, clock.previous, sql)
            if known.late.any():
                late[1] = weigh(final.select(self.right.names).filter(pa.array(known.late)), 1)
            places, found = asof(sql, due.rows, due.times, self.left_keys, known, self.right_keys), known.rows
            versions.keep(state, known)
        else:
            places, found = np.empty(0, dtype=np.int64), self.right.empty_table()
        if self.append:
            if behind.rows.num_rows:
                late[0] = behind.rows
        elif due.rows.num_rows or behind.rows.num_rows:
            rows = pa.concat_tables([behind.rows, due.rows]).combine_chunks()
            due = _Rows(rows, np.concatenate([behind.times, due.times]))
            met = np.concatenate([np.full(behind.rows.num_rows, -1), places]), found
            recalled = self._answered().recall(
                state, rows, self.left_keys, due.times, met, clock.previous, clock.now, sql
            )
            if recalled.late.any():
                late[0] = rows.filter(pa.array(recalled.late))
            due = _Rows(rows.filter(pa.array(~recalled.late)), due.times[~recalled.late])
            places, found = recalled.places[~recalled.late], recalled.versions
        if due.rows.num_rows:
            changes = self._answers(due.rows, found, places, clock, sql, dead)
        return Step(changes=changes, late=late, late_count=count_late(late), dead=dead, unmatched_retractions=dropped)

    def _recalled(self, state: State, left: pa.Table, right: pa.Table, clock: Clock, sql: Sql) -> Step:
        """The answers in processing time to left rows that may be retracted."""
        versions, join = self._versions(), self._recalling()
        final = versions.final(state, right, clock)
        found = self.right.empty_table()
        if left.num_rows or final.num_rows:
            hashes = versions.current.hash(state, left, self.left_keys)
            known = versions.known(state, final, hashes, clock.previous, sql)
            versions.keep(state, known)
            found = known.rows.filter(pa.array(known.last & ~known.gone)).select(self.right.names)
        readable = pa.nulls(found.num_rows, pa.string())
        return join.advance(state, [left, found.append_column(REASON, readable)], clock, sql)

    def _timed(self, rows: pa.Table, time: int, port: int, dead: dict[int, pa.Table]) -> pa.Table:
        """The rows that have a time; the others are added to the `dead`."""
        rows, without = timed(rows, time)
        if without:
            dead[port] = without[0]
        return rows

    def _due(self, state: State, rows: pa.Table, time: int, clock: Clock) -> tuple[_Rows, _Rows]:
        """The left rows that the watermark has reached in this batch, and those that it had reached before."""
        times = milliseconds(rows.column(time))
        early, behind = ~has_passed(times, clock.watermark), has_passed(times, clock.previous)
        waiting = self._waiting()
        waiting.add(state, rows.filter(pa.array(early)), times[early])
        parts = [waiting.take(state, clock.watermark), rows.filter(pa.array(~early & ~behind))]
        parts = [weigh(part, 1) if WEIGHT not in part.column_names else part for part in parts]
        due = pa.concat_tables([part.select([*self.left.names, WEIGHT]) for part in parts]).combine_chunks()
        due_rows = _Rows(*in_order(due, milliseconds(due.column(time))))
        return due_rows, _Rows(rows.filter(pa.array(behind)), times[behind])

    def _answers(
        self, rows: pa.Table, versions: pa.Table, places: Positions, clock: Clock, sql: Sql, dead: dict[int, pa.Table]
    ) -> pa.Table:
        """Each row beside the version at its place, -1 being none; a row that meets one perhaps is not shown."""
        meets: Mask = places >= 0
        shown: Mask = np.ones(len(meets), dtype=np.bool_)
        if self.residual is not None and meets.any():
            pairs = self._beside(rows.filter(pa.array(meets)), versions.take(pa.array(places[meets])))
            matches = holding(sql, self.residual, pairs, clock.now)
            asked = rows.filter(pa.array(meets))
            undecided = UndecidedPairs(self.kind, dead)
            came: Mask = asked.column(WEIGHT).to_numpy()[matches.failed.left] > 0
            undecided.add(matches, asked.select(self.left.names), None, came)
            dead |= undecided.dead()
            shown[np.flatnonzero(meets)[matches.failed.left]] = False
            held = np.zeros(len(pairs), dtype=np.bool_)
            held[matches.pairs.left] = True
            meets[meets] = held
        if self.kind is JoinKind.INNER:
            shown = meets
        rows, places, meets = rows.filter(pa.array(shown)), places[shown], meets[shown]
        table = self._beside(rows, versions.take(pa.array(places, mask=~meets)))
        return as_changes(table.append_column(WEIGHT, rows.column(WEIGHT)), self.output)

    def _beside(self, rows: pa.Table, versions: pa.Table) -> pa.Table:
        return pa.table(
            [*rows.select(self.left.names).columns, *versions.select(self.right.names).columns], names=self.output.names
        )


def _at_once(rows: pa.Table) -> _Rows:
    """Rows that wait for nothing: versions in processing time are all of one time."""
    return _Rows(rows, np.zeros(rows.num_rows, dtype=np.int64))
