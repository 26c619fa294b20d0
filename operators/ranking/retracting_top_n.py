"""The top N rows of each group of an input that takes rows back.

Any row may come back into the top when those before it go, so all rows are kept: those near the top in the `head` of
their group, the others in its `rest`. A row of the rest is behind every row of the head, and the rest is empty unless
the head holds N ranks, so that a batch reads the heads of the groups that it touches and, beside them, only the rows
that it changes. The rest of a group is read when its head has become too short.

Such an input has no order of arrival that every way of cutting it into batches agrees on: rows that tie are ordered by
their columns.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from operators.arrays import Numbers
from operators.changes import weigh
from operators.columns import as_changes, no_changes
from operators.kernel import Step
from operators.names import COUNT, PLACE, WEIGHT, WRITTEN, columns
from operators.ranking.rank_changes import NOWHERE, RankingDefaults, net
from operators.ranking.ranking import RankFunction, Ranking
from operators.sql import Sql
from operators.sql_text import comma, over, total
from operators.state.operator_state import State, TraceSpec
from operators.state.tables.grouped import GroupedTable, united
from operators.state.tables.table import specs_of
from operators.time import Clock

SPARE = 64
"""A head that is filled again gets this many ranks beyond N, or N more; it removes rows when it has twice as many."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RetractingTopNOperator(RankingDefaults):
    """The rows that `ranking` asks for, at all times.

    A row that has not been written for `ttl` ms of processing time is forgotten (0 = never), without a retraction.
    """

    input: pa.Schema
    ranking: Ranking
    ttl: int = 0

    def traces(self) -> Mapping[str, TraceSpec]:
        return specs_of(self._table("head"), self._table("rest"))

    def _table(self, name: str) -> GroupedTable:
        """The rows of each group that are near the top, or all others, with their counts."""
        hidden = [COUNT, *([PLACE] if self.ttl else [])]
        return GroupedTable(
            name=name,
            schema=pa.schema([*self.input, *(pa.field(column, pa.int64()) for column in hidden)]),
            group=self.ranking.partition,
            members=len(self.input),
            ttl=self.ttl,
        )

    def advance(self, state: State, inputs: Sequence[pa.Table], clock: Clock, sql: Sql) -> Step:
        (changes,) = inputs
        head_table, rest_table = self._table("head"), self._table("rest")
        for table in (head_table, rest_table):
            table.expire(state, clock.now)
        if changes.num_rows == 0:
            return Step(changes=no_changes(self.output))
        head = head_table.read(state, head_table.hashes(state, changes))
        rest = rest_table.read_members(state, changes)
        rows = self._ranked(changes, head, rest, changes.slice(0, 0), sql)
        short = rows.filter(rows.column("short"))
        more = self._more(state, rest_table, rows, short, rest)
        if more.num_rows > rest.num_rows or not pc.all(short.column("in_head"), min_count=0).as_py():
            rest = more
            rows = self._ranked(changes, head, rest, short, sql)
        now = rows.column("now").to_numpy()
        in_head = rows.column("in_head").to_numpy()
        self._keep(state, head_table, head, rows, np.where(in_head, now, 0), clock.now)
        self._keep(state, rest_table, rest, rows, np.where(in_head, 0, now), clock.now)
        missing = -int(rows.column("missing").to_numpy().sum())
        return Step(changes=self._changes(rows, sql), unmatched_retractions=missing)

    def _more(self, state: State, rest: GroupedTable, rows: pa.Table, short: pa.Table, known: pa.Table) -> pa.Table:
        """What was read of the rest with what else is needed: all of the groups of `short` rows, and what is in the
        place of a row that leaves its head."""
        leaves = (rows.column("head").to_numpy() > 0) & ~rows.column("in_head").to_numpy()
        if short.num_rows:
            known = united(known, rest.read(state, rest.hashes(state, short)))
        if leaves.any():
            known = united(known, rest.read_members(state, rows.filter(pa.array(leaves))))
        return known

    def _keep(
        self, state: State, table: GroupedTable, kept: pa.Table, rows: pa.Table, counts: Numbers, now: int
    ) -> None:
        """Write the rows of one table whose count is another now, or that were written again."""
        written = rows.column("written_now").to_numpy()
        touched = counts != rows.column(table.name).to_numpy()
        if self.ttl:
            touched |= (counts > 0) & (written | (rows.column("before").to_numpy() != rows.column("after").to_numpy()))
        if not touched.any():
            return
        counted = rows.select(self.input.names).append_column(COUNT, pa.array(counts))
        if self.ttl:
            counted = counted.append_column(PLACE, rows.column("after")).append_column(WRITTEN, rows.column("stamp"))
        table.write(state, kept, counted, now, stays=counts > 0, changed=touched, renewed=written)

    def _changes(self, rows: pa.Table, sql: Sql) -> pa.Table:
        """The difference of the ranks that are asked for, before and after."""
        ranking = self.ranking
        was, now = rows.column("head").to_numpy(), rows.column("now").to_numpy()
        places = rows.column("place").fill_null(NOWHERE) if self.ttl else rows.column("before")
        before, after = places.to_numpy(), rows.column("after").to_numpy()
        old, new = _wanted(ranking, before, was), _wanted(ranking, after, now)
        refreshed = rows.column("refreshed").to_numpy() if self.ttl else np.zeros(len(was), dtype=np.bool_)
        if not ranking.shown:
            weights = new - old
            touched = pa.array((weights != 0) | (refreshed & (new > 0)))
            shown = rows.select(self.input.names).append_column(WEIGHT, pa.array(weights)).filter(touched)
            order = np.argsort(shown.column(WEIGHT).to_numpy(), kind="stable")
            return as_changes(shown.take(pa.array(order)), self.output)
        moved = (old != new) | (before != after) | refreshed
        parts = []
        for first, counts, weight in ((before, old, -1), (after, new, 1)):
            repeats = np.where(moved, counts, 0)
            at = np.repeat(np.arange(len(repeats)), repeats)
            ranks = first[at]
            if ranking.function is RankFunction.ROW_NUMBER:
                start = np.maximum(first, ranking.first)[at]
                ranks = start + np.arange(len(at)) - np.repeat(np.cumsum(repeats) - repeats, repeats)
            table = rows.select(self.input.names).take(pa.array(at))
            parts.append(weigh(table.append_column(self.output.names[-1], pa.array(ranks)), weight))
        both = pa.concat_tables(parts)
        if parts[0].num_rows and parts[1].num_rows:
            both = net(both, self.output, refreshes=bool(refreshed.any()), sql=sql)
        return as_changes(both, self.output)

    def _ranked(self, changes: pa.Table, head: pa.Table, rest: pa.Table, whole: pa.Table, sql: Sql) -> pa.Table:
        """Every row that was read or changes: how often it is there, its rank before and after, and where it is kept.

        Of the groups of the `whole` rows all of the rest was read. A row belongs to the head if a row of the head is
        behind it or its equal, or if the head is not full.
        """
        ranking = self.ranking
        group, names = columns(ranking.partition), comma(columns(range(len(self.input))))
        last, spare = ranking.last, max(ranking.last, SPARE)
        peers = [key.text for key in ranking.order]
        everything = [*peers, *(f"{name} NULLS FIRST" for name in self._ties())]
        unit, order = ("ROWS", everything) if ranking.function is RankFunction.ROW_NUMBER else ("RANGE", peers)
        behind = f"SUM(head) {over(group, order, f'{unit} BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING')}"
        stamp = f", CAST(MAX({WRITTEN}) AS BIGINT) AS stamp, MAX({PLACE}) AS place" if self.ttl else ""
        written = f", {PLACE}, {WRITTEN}" if self.ttl else ""
        missing = ", NULL, NULL" if self.ttl else ""
        # With a TTL a head may have lost rows while its rest has not.
        short = "size < {0} OR now_size < {0}" if self.ttl else "size >= {0} AND now_size < {0}"
        statement = f"""
            WITH together AS (
                SELECT {names}, {COUNT} AS head, 0 AS rest, 0 AS change, false AS refreshed, false AS changed,
                    false AS all_of_it{written} FROM head
                UNION ALL
                SELECT {names}, 0, {COUNT}, 0, false, false, false{written} FROM rest
                UNION ALL
                SELECT {names}, 0, 0, {WEIGHT}, {WEIGHT} = 0, true, false{missing} FROM changes
                UNION ALL
                SELECT {names}, 0, 0, 0, false, false, true{missing} FROM whole
            ), totals AS (
                SELECT {names}, {total("head")}, {total("rest")},
                    CAST(SUM(head + rest + change) AS BIGINT) AS total, bool_or(refreshed) AS refreshed,
                    bool_or(changed) AS written_now, bool_or(all_of_it) AS all_of_it{stamp}
                FROM together GROUP BY {names}
            ), counted AS (
                SELECT *, greatest(total, 0) AS now, least(total, 0) AS missing FROM totals
            ), placed AS (
                SELECT *, {self._position("head", group, peers, everything)} AS before,
                    {self._position("now", group, peers, everything)} AS after,
                    {behind} > 0 AS inside, bool_or(all_of_it) {over(group)} AS all_read
                FROM counted
            ), sized AS (
                SELECT *, {self._size("head", "before", "true", group)} AS size FROM placed
            ), zoned AS (
                SELECT *, inside OR size < {last} AS in_zone FROM sized
            ), resized AS (
                SELECT *, {self._size("now", "after", "in_zone", group)} AS now_size FROM zoned
            )
            SELECT * EXCLUDE (all_of_it, total, inside, size, now_size, in_zone, all_read),
                CASE WHEN all_read THEN after <= {last + spare}
                    WHEN NOT in_zone THEN false
                    WHEN now_size > {last + 2 * spare} THEN after <= {last + spare}
                    ELSE true END AS in_head,
                {short.format(last)} AS short
            FROM resized ORDER BY {comma([*group, *everything])}
        """
        return sql(statement, {"changes": changes, "head": head, "rest": rest, "whole": whole})

    def _ties(self) -> list[str]:
        """The columns by which rows that tie are ordered: all that are not ordered or partitioned by."""
        known = {*self.ranking.partition, *(key.column for key in self.ranking.order)}
        return columns(i for i in range(len(self.input)) if i not in known)

    def _position(self, count: str, group: list[str], peers: list[str], everything: list[str]) -> str:
        """The text of the rank at which a row begins, where each row is there `count` times."""
        match self.ranking.function:
            case RankFunction.ROW_NUMBER:
                before = over(group, everything, "ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING")
            case RankFunction.RANK:
                before = over(group, peers, "RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW EXCLUDE GROUP")
            case RankFunction.DENSE_RANK:
                return f"dense_rank() {over([*group, f'{count} > 0'], peers)}"
        return f"CAST(coalesce(SUM({count}) {before}, 0) + 1 AS BIGINT)"

    def _size(self, count: str, position: str, condition: str, group: list[str]) -> str:
        """The text of how many ranks the rows of a group with `condition` have."""
        if self.ranking.function is RankFunction.DENSE_RANK:
            return f"coalesce(MAX({position}) FILTER (WHERE {count} > 0 AND {condition}) {over(group)}, 0)"
        return f"coalesce(SUM({count}) FILTER (WHERE {condition}) {over(group)}, 0)"


def _wanted(ranking: Ranking, positions: Numbers, counts: Numbers) -> Numbers:
    """How many of the `counts` equal rows that begin at each rank have one that is asked for."""
    if ranking.function is not RankFunction.ROW_NUMBER:
        return np.where((ranking.first <= positions) & (positions <= ranking.last), counts, 0)
    ends = np.minimum(positions + counts, ranking.last + 1)
    wanted: Numbers = np.maximum(ends - np.maximum(positions, ranking.first), 0)
    return wanted
