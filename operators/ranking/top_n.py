"""The top N rows of each group of an input that only inserts.

A row that has fallen out of the top can never come back, so only the top is kept, and rows that do not enter it cost
no write. A batch reads the groups that it touches and writes those that it changes. Rows are ranked by the columns that
are compared; the other columns are copied of those alone that enter the top.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from operators.arrays import Mask, Positions
from operators.columns import no_changes, numbered
from operators.kernel import Step
from operators.names import AT, SEQUENCE, SORT_KEY, columns
from operators.ranking.rank_changes import NOWHERE, RankingDefaults, Ranks, rank_changes
from operators.ranking.ranking import Ranking
from operators.ranking.top_n_partial import top_rows
from operators.sql import Sql
from operators.sql_text import inner, named, over, select, union_all
from operators.state.operator_state import State, TraceSpec
from operators.state.tables.grouped import GroupedTable, places_of
from operators.state.tables.table import specs_of
from operators.time import Clock

ARRIVED = "arrived"
"""The note that counts rows, so that later ones get higher numbers."""

SPARED = 8192
"""Rows from which on a part of a batch is ranked by itself while the others are computed: to rank fewer costs more than
they take."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TopNOperator(RankingDefaults):
    """The rows that `ranking` asks for, at all times; all rows of the input have weight 1.

    A group to which no row has come for `ttl` ms of processing time is forgotten as a whole (0 = never), so that what
    was emitted of it is never half known. With a TTL the rows of a touched group that stay come out with weight 0.
    """

    input: pa.Schema
    ranking: Ranking
    ttl: int = 0

    def traces(self) -> Mapping[str, TraceSpec]:
        return specs_of(self._top)

    @property
    def _top(self) -> GroupedTable:
        """The top rows of each group."""
        schema = self.input.append(pa.field(SEQUENCE, pa.int64()))
        return GroupedTable(name="rows", schema=schema, group=self.ranking.partition, ttl=self.ttl)

    def needed(self, rows: pa.Table, sql: Sql) -> pa.Table:
        """Return those that are in the top of `rows`: no other row of the batch can bring the others into it."""
        return rows if rows.num_rows < SPARED else top_rows(rows, self.ranking, sql)

    def advance(self, state: State, inputs: Sequence[pa.Table], clock: Clock, sql: Sql) -> Step:
        (rows,) = inputs
        top = self._top
        top.expire(state, clock.now)
        if rows.num_rows == 0:
            return Step(changes=no_changes(self.output))
        arrived = top.placed(state, self._arrived(rows, state))
        kept = top.read(state, places_of(arrived))
        ranked = sql(self._statement(), {"kept": numbered(kept), "arrived": numbered(arrived)})
        was = ranked.column("was").to_numpy()
        rows = _rows_at(kept, arrived, was, ranked.column(AT).to_numpy())
        after: Ranks = ranked.column("after").to_numpy()
        stays = after <= self.ranking.last
        refreshed = ranked.column("touched").to_numpy() if self.ttl else np.zeros(len(was), dtype=np.bool_)
        top.write(state, kept, rows, clock.now, stays=stays, changed=(was != stays) | refreshed)
        before = np.where(was, ranked.column("before").to_numpy(), NOWHERE)
        return Step(changes=rank_changes(rows.select(self.input.names), before, after, refreshed, self.ranking, sql))

    def _arrived(self, rows: pa.Table, state: State) -> pa.Table:
        """The rows of the batch with their numbers."""
        first = state.notes.get(ARRIVED, 0)
        state.notes[ARRIVED] = first + rows.num_rows
        numbers = np.arange(first, first + rows.num_rows)
        return rows.select(self.input.names).append_column(SEQUENCE, pa.array(numbers))

    def _statement(self) -> str:
        """The numbers of kept and new rows, with the ranks `before` and `after`; of the new ones only those that enter
        the top."""
        ranking = self.ranking
        compared = dict.fromkeys([*ranking.partition, *(key.column for key in ranking.order)])
        names = [*columns(compared), SEQUENCE, SORT_KEY, AT]
        both = union_all([select([*names, "true AS was"], "kept"), select([*names, "false"], "arrived")])
        tie_break = f"{SEQUENCE} {'DESC' if ranking.latest_first else 'ASC'}"
        # Where only the membership counts, every row that is kept was shown.
        before = ranking.over(tie_break, "was") if ranking.reads_rank else "1"
        items = ["*", named(ranking.over(tie_break), "after"), named(f"CAST({before} AS BIGINT)", "before")]
        if self.ttl:
            items.append(named(f"NOT bool_and(was) {over(columns(ranking.partition))}", "touched"))
        wanted = f"was OR after <= {ranking.last}"
        return select(items, inner(both), qualify=wanted, order_by=[SORT_KEY, "after", SEQUENCE])


def _rows_at(kept: pa.Table, arrived: pa.Table, was: Mask, at: Positions) -> pa.Table:
    """Return row after row the one of the number `at` in `kept` where it `was` there, in `arrived` otherwise."""
    entering = np.zeros(arrived.num_rows, dtype=np.bool_)
    entering[at[~was]] = True
    places = np.cumsum(entering) - 1 + kept.num_rows
    rows = pa.concat_tables([kept.select(arrived.column_names), arrived.filter(pa.array(entering))]).combine_chunks()
    both = at.copy()
    both[~was] = places[at[~was]]
    return rows.take(pa.array(both))
