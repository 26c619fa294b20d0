"""The top N rows of each window and key, emitted once when the window closes.

Rows wait by the time of their window. Of each batch, and of blocks that are merged, only the rows that may still be in
the top are kept; a window is ranked when it closes, and never before.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from operators.changes import weigh
from operators.columns import as_changes, no_changes, numbered
from operators.kernel import Step, count_late
from operators.lateness import split_late
from operators.names import AT, column, columns
from operators.ranking.rank_changes import RankingDefaults
from operators.ranking.ranking import Ranking
from operators.ranking.top_n_partial import top_rows
from operators.sql import Sql
from operators.sql_text import inner, named, over, select
from operators.state.operator_state import State, TraceSpec
from operators.state.tables.table import specs_of
from operators.state.tables.timed import TimedTable
from operators.time import Clock
from operators.windows.event_time import milliseconds, running_clock, with_times


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowTopNOperator(RankingDefaults):
    """The rows that `ranking` asks for, whose partitions are windows; all rows of the input have weight 1.

    `time` is the position of the windows' time, their end - 1 ms: a window closes when the watermark reaches it, and a
    row that comes after that is late. Windows come out in the order of their ends.
    """

    input: pa.Schema
    ranking: Ranking
    time: int
    processing: bool = False

    def traces(self) -> Mapping[str, TraceSpec]:
        return specs_of(self._waiting)

    @property
    def _waiting(self) -> TimedTable:
        """The rows of windows that are open."""
        return TimedTable(name="rows", schema=self.input, key=tuple(columns(self.ranking.partition)))

    def advance(self, state: State, inputs: Sequence[pa.Table], clock: Clock, sql: Sql) -> Step:
        waiting = self._waiting
        clock = running_clock(state, clock, self.processing)
        rows, times, dead = with_times(inputs[0], self.time, clock.now)
        rows, _, late = split_late(rows, times, clock.previous)
        if rows.num_rows:
            rows = top_rows(rows, self.ranking, sql)
            waiting.add(state, rows, milliseconds(rows.column(self.time)))
        waiting.combine(state, lambda merged: top_rows(merged, self.ranking, sql))
        changes = no_changes(self.output)
        if clock.watermark > clock.previous:
            due = waiting.take(state, clock.watermark)
            if due.num_rows:
                changes = self._answered(due, sql)
        return Step(changes=changes, late=late, late_count=count_late(late), dead=dead)

    def _answered(self, due: pa.Table, sql: Sql) -> pa.Table:
        """The ranks that are asked for of the windows that close, a group at a time, each in its order."""
        ranking = self.ranking
        rank = ranking.over(f"{AT} {'DESC' if ranking.latest_first else 'ASC'}")
        first = f"MIN({AT}) {over(columns(ranking.partition))}"
        ranked = inner(select(["*", named(rank, "rank"), named(first, "first")], "due"))
        statement = select(
            [*columns(range(len(self.input))), *(["rank"] if ranking.shown else [])],
            ranked,
            where="" if ranking.function.of_all else f"rank BETWEEN {ranking.first} AND {ranking.last}",
            order_by=[column(self.time), "first", "rank", AT],
        )
        answers = sql(statement, {"due": numbered(due)})
        return as_changes(weigh(answers.rename_columns(self.output.names), 1), self.output)
