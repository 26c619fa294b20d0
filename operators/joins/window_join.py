"""A window join: rows of the same window whose keys are equal, answered when the window closes; state ends with it.

Rows wait by their window's time, which is its last millisecond, and are joined once, all of a window together: nothing
is taken back, and a row without a partner is known to have none. That two rows are of one window is said by the keys,
of which the window's start and end are two.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from operators.base import KernelDefaults
from operators.changes import Mask, weigh
from operators.columns import as_changes, no_changes, positional
from operators.joins.kinds import JoinKind
from operators.joins.matching import Matches, Pairs, condition, match_where_computable
from operators.kernel import WEIGHT, Step
from operators.sql import Sql
from operators.state.block import distinct
from operators.state.operator_state import State, TableKind, TraceSpec
from operators.state.trace import Trace
from operators.time import Clock
from operators.windows.event_time import milliseconds, running_clock, timed

_SIDES = ("left", "right")


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowJoinOperator(KernelDefaults):
    """Keys, `null_safe`, `residual`, ports and output as in `RegularJoinOperator`; both inputs only insert.

    `left_time` and `right_time` are the positions of window_time, `processing` says that the windows are of processing
    time. A row whose window has closed is late; one without a window is dead.
    """

    left: pa.Schema
    right: pa.Schema
    kind: JoinKind
    left_keys: tuple[int, ...]
    right_keys: tuple[int, ...]
    null_safe: tuple[bool, ...]
    left_time: int
    right_time: int
    residual: str | None = None
    processing: bool = False

    @property
    def inputs(self) -> tuple[pa.Schema, ...]:
        return (self.left, self.right)

    @property
    def output(self) -> pa.Schema:
        return positional(
            [*self.left.types, *(() if self.kind in (JoinKind.SEMI, JoinKind.ANTI) else self.right.types)]
        )

    def traces(self) -> Mapping[str, TraceSpec]:
        return {
            name: TraceSpec(schema=schema, kind=TableKind.TIME_ORDERED)
            for name, schema in zip(_SIDES, self.inputs, strict=True)
        }

    def advance(self, state: State, inputs: Sequence[pa.Table], clock: Clock, sql: Sql) -> Step:
        clock = running_clock(state, clock, self.processing)
        dead: dict[int, pa.Table] = {}
        late: dict[int, pa.Table] = {}
        closed: list[pa.Table] = []
        for port, (name, rows, time) in enumerate(zip(_SIDES, inputs, (self.left_time, self.right_time), strict=True)):
            rows, without = timed(rows, time)
            if without:
                dead[port] = without[0]
            rows, behind = self._closed(state[name], rows, time, clock)
            closed.append(rows)
            if behind.num_rows:
                late[port] = behind
        matches = self._matches(closed[0], closed[1], clock, sql)
        failed = matches.dead(closed[0], np.ones(len(matches.failed.left), dtype=np.bool_))
        if failed is not None:
            dead[0] = pa.concat_tables([dead[0], failed]) if 0 in dead else failed
        changes = self._joined(closed[0], closed[1], matches.pairs)
        return Step(changes=changes, late=late, late_count=sum(t.num_rows for t in late.values()), dead=dead)

    def _closed(self, waiting: Trace, rows: pa.Table, time: int, clock: Clock) -> tuple[pa.Table, pa.Table]:
        """The rows of the windows that close in this batch, and those that come after their window has closed."""
        times = milliseconds(rows.column(time))
        early, behind = times > clock.watermark, times <= clock.previous
        if self.processing:
            behind = np.zeros_like(behind)
        names = rows.drop_columns([WEIGHT]).column_names
        waiting.add(rows.filter(pa.array(early)), times[early])
        parts = [waiting.between(clock.previous, clock.watermark), rows.filter(pa.array(~early & ~behind))]
        waiting.expire(clock.watermark)
        return pa.concat_tables([part.select(names) for part in parts]).combine_chunks(), rows.filter(pa.array(behind))

    def _matches(self, left: pa.Table, right: pa.Table, clock: Clock, sql: Sql) -> Matches:
        width = len(self.left)
        on = condition(self.left_keys, self.right_keys, self.null_safe, width)
        return match_where_computable(sql, on, self.residual, [(left, right, 0, 0)], width, clock.now)

    def _joined(self, left: pa.Table, right: pa.Table, pairs: Pairs) -> pa.Table:
        """The whole answer of the windows that have closed."""
        if left.num_rows == 0 and (right.num_rows == 0 or self.kind not in (JoinKind.RIGHT, JoinKind.FULL)):
            return no_changes(self.output)
        if self.kind is JoinKind.SEMI:
            return self._weighed(left.take(pa.array(distinct(pairs.left))).columns)
        if self.kind is JoinKind.ANTI:
            return self._weighed(left.filter(pa.array(_unmatched(pairs.left, left))).columns)
        # The order in which DuckDB finds pairs is its own: that of the rows is theirs.
        order = np.lexsort((pairs.right, pairs.left))
        rows = left.take(pa.array(pairs.left[order])), right.take(pa.array(pairs.right[order]))
        tables = [self._weighed([*rows[0].columns, *rows[1].columns])]
        if self.kind in (JoinKind.LEFT, JoinKind.FULL):
            alone = left.filter(pa.array(_unmatched(pairs.left, left)))
            tables.append(self._weighed([*alone.columns, *_nulls(alone.num_rows, self.right)]))
        if self.kind in (JoinKind.RIGHT, JoinKind.FULL):
            alone = right.filter(pa.array(_unmatched(pairs.right, right)))
            tables.append(self._weighed([*_nulls(alone.num_rows, self.left), *alone.columns]))
        return pa.concat_tables(tables)

    def _weighed(self, columns: Sequence[pa.ChunkedArray | pa.Array]) -> pa.Table:
        return as_changes(weigh(pa.table(list(columns), names=self.output.names), 1), self.output)


def _unmatched(places: np.ndarray, rows: pa.Table) -> Mask:
    """Which rows are at none of the `places`."""
    alone = np.ones(rows.num_rows, dtype=np.bool_)
    alone[places] = False
    return alone


def _nulls(count: int, schema: pa.Schema) -> list[pa.Array]:
    return [pa.nulls(count, type_) for type_ in schema.types]
