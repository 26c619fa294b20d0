"""A window join: rows of the same window whose keys are equal, answered when the window closes; state ends with it.

Rows wait by their window's time, which is its last millisecond, and are joined once, all of a window together: nothing
is retracted, and a row without a partner is known to have none. That two rows are of one window follows from the
keys, of which the window's start and end are two.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from operators.arrays import Mask
from operators.changes import weigh
from operators.columns import as_changes, no_changes
from operators.fingerprint import DUCKDB_TEXT
from operators.joins.kinds import JoinKind
from operators.joins.matching import Pairs, condition, match_in_pieces, taken
from operators.joins.shown import beside_nulls
from operators.joins.two_inputs import JoinDefaults
from operators.joins.undecided import UndecidedPairs
from operators.kernel import Step, count_late, in_steps
from operators.lateness import has_passed
from operators.names import WEIGHT, columns
from operators.sql import Sql
from operators.state.operator_state import State, TraceSpec
from operators.state.tables.table import specs_of
from operators.state.tables.timed import TimedTable
from operators.time import Clock
from operators.windows.event_time import milliseconds, running_clock, timed


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowJoinOperator(JoinDefaults):
    """Joins rows of the same key and the same window, once the window closes; both inputs only insert.

    Keys, `null_safe`, `residual`, ports and output are those of `RegularJoin`. `left_time` and `right_time` are the
    positions of window_time, `processing` says that the windows are of processing time. A row whose window
    has closed is late; one without a window is dead.
    """

    left: pa.Schema
    right: pa.Schema
    kind: JoinKind
    left_keys: tuple[int, ...]
    right_keys: tuple[int, ...]
    null_safe: tuple[bool, ...]
    left_time: int
    right_time: int
    residual: str | None = field(default=None, metadata=DUCKDB_TEXT)
    processing: bool = False

    def traces(self) -> Mapping[str, TraceSpec]:
        return specs_of(*self._waiting())

    def _waiting(self) -> tuple[TimedTable, TimedTable]:
        """The rows of both sides that wait for the end of their windows."""
        left = TimedTable(name="left", schema=self.left, key=tuple(columns(self.left_keys)))
        return left, TimedTable(name="right", schema=self.right, key=tuple(columns(self.right_keys)))

    def steps(self, state: State, inputs: Sequence[pa.Table], clock: Clock, sql: Sql) -> Iterator[Step]:
        clock = running_clock(state, clock, self.processing)
        dead: dict[int, pa.Table] = {}
        late: dict[int, pa.Table] = {}
        closed: list[pa.Table] = []
        each = zip(self._waiting(), inputs, (self.left_time, self.right_time), strict=True)
        for port, (waiting, rows, time) in enumerate(each):
            rows, without = timed(rows, time)
            if without:
                dead[port] = without[0]
            rows, behind = self._closed(state, waiting, rows, time, clock)
            closed.append(rows)
            if behind.num_rows:
                late[port] = behind
        met, doubtful = ([np.zeros(rows.num_rows, dtype=np.bool_) for rows in closed] for _ in range(2))
        undecided = UndecidedPairs(self.kind, dead)
        pairs = self._together(closed[0], closed[1], met, doubtful, undecided, clock.now, sql)
        held = yield from in_steps(pairs)
        alone = [~(mine | doubts) for mine, doubts in zip(met, doubtful, strict=True)]
        changes = pa.concat_tables([no_changes(self.output), *held, *self._alone(closed[0], closed[1], met[0], alone)])
        yield Step(changes=changes, late=late, late_count=count_late(late), dead=undecided.dead())

    def _closed(
        self, state: State, waiting: TimedTable, rows: pa.Table, time: int, clock: Clock
    ) -> tuple[pa.Table, pa.Table]:
        """The rows of the windows that close in this batch, and those that come after their window has closed."""
        times = milliseconds(rows.column(time))
        early, behind = ~has_passed(times, clock.watermark), has_passed(times, clock.previous)
        if self.processing:
            behind = np.zeros_like(behind)
        names = rows.drop_columns([WEIGHT]).column_names
        waiting.add(state, rows.filter(pa.array(early)), times[early])
        parts = [waiting.take(state, clock.watermark), rows.filter(pa.array(~early & ~behind))]
        return pa.concat_tables([part.select(names) for part in parts]).combine_chunks(), rows.filter(pa.array(behind))

    def _together(
        self,
        left: pa.Table,
        right: pa.Table,
        met: Sequence[Mask],
        doubtful: Sequence[Mask],
        undecided: UndecidedPairs,
        now: int,
        sql: Sql,
    ) -> Iterator[pa.Table]:
        """The pairs of the windows that have closed, in pieces. Meanwhile the rows that have `met` a partner are
        marked, and those of `undecided` pairs, which are `doubtful`."""
        width, keys = len(self.left), (self.left_keys, self.right_keys)
        on = condition(self.left_keys, self.right_keys, self.null_safe, width)
        for matches in match_in_pieces(sql, on, self.residual, [(left, right, 0, 0)], keys, width, now):
            pairs = matches.pairs
            for found, marked in ((pairs, met), (matches.failed, doubtful)):
                for places, mine in zip(found, marked, strict=True):
                    mine[places] = True
            undecided.add(matches, left, right)
            if not self.kind.shows_right:
                continue
            # The order in which DuckDB finds pairs is its own: that of the rows is theirs.
            order = np.lexsort((pairs.right, pairs.left))
            for _, mine_rows, others in taken(left, right, Pairs(pairs.left[order], pairs.right[order])):
                yield self._weighed([*mine_rows.columns, *others.columns])

    def _alone(self, left: pa.Table, right: pa.Table, met: Mask, alone: Sequence[Mask]) -> list[pa.Table]:
        """What is shown of rows by themselves: of an outer join those that are `alone`, of a semi join the left rows
        that have `met` a partner."""
        if self.kind is JoinKind.SEMI:
            return [self._weighed(left.filter(pa.array(met)).columns)]
        if self.kind is JoinKind.ANTI:
            return [self._weighed(left.filter(pa.array(alone[0])).columns)]
        if self.kind is JoinKind.MARK:
            known = pa.array(met | alone[0])
            return [self._weighed([*left.filter(known).columns, pa.array(met).filter(known)])]
        tables: list[pa.Table] = []
        padded_left, padded_right = self.kind.shows_alone
        if padded_left:
            tables.append(self._weighed(beside_nulls(left.filter(pa.array(alone[0])), self.right)))
        if padded_right:
            tables.append(self._weighed(beside_nulls(right.filter(pa.array(alone[1])), self.left, port=1)))
        return tables

    def _weighed(self, columns: Sequence[pa.ChunkedArray | pa.Array]) -> pa.Table:
        return as_changes(weigh(pa.table(list(columns), names=self.output.names), 1), self.output)
