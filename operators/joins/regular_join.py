"""A regular join: the change of a ⋈ b is Δa ⋈ b + a ⋈ Δb + Δa ⋈ Δb, and every row of both sides is kept.

A pair (l, r) was there l.old · r.old times and is there l.new · r.new times; only pairs with a changed row are looked
at. A row of an outer side stands alone, padded with NULLs, as long as it matches nothing, so each row is kept with its
degree, the number of its matches, and one whose degree leaves or becomes zero loses or gets back its padded form. A
semi join has the left rows that match, an anti join those that do not.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from operators.base import KernelDefaults
from operators.columns import as_changes, no_changes, positional
from operators.joins.keys import split_matchable
from operators.joins.kinds import JoinKind
from operators.joins.matching import Pairs, condition, match_where_computable
from operators.joins.side import Numbers, Side, Touched
from operators.kernel import WEIGHT, Step
from operators.sql import Sql
from operators.state.operator_state import State, TraceSpec
from operators.time import Clock


@dataclass(frozen=True, slots=True, kw_only=True)
class RegularJoin(KernelDefaults):
    """Rows of `left` with the rows of `right` whose keys are equal and for which `residual` is true.

    `null_safe[i]` makes NULL equal to NULL on key i. `residual` is DuckDB text over the columns of left, then right.
    `append` says of each side that its input never retracts. Rows that have not been written for `ttl` ms of processing
    time are forgotten (0 = never), a side each; that the number of its matches changes counts as a write. Port 0 is
    left, port 1 is right. The output has left's columns, then right's; of a semi or anti join left's only.
    """

    left: pa.Schema
    right: pa.Schema
    kind: JoinKind
    left_keys: tuple[int, ...]
    right_keys: tuple[int, ...]
    null_safe: tuple[bool, ...]
    residual: str | None = None
    append: tuple[bool, bool] = (False, False)
    ttl: tuple[int, int] = (0, 0)

    def __post_init__(self) -> None:
        # Arrow tables without columns forget how many rows they have when they are put together.
        if not len(self.left) or not len(self.right):
            raise ValueError("an input of a join needs a column, or its rows cannot be counted")

    @property
    def inputs(self) -> tuple[pa.Schema, ...]:
        return (self.left, self.right)

    @property
    def output(self) -> pa.Schema:
        return positional([*self.left.types, *(() if self.kind in ("semi", "anti") else self.right.types)])

    def traces(self) -> Mapping[str, TraceSpec]:
        return {side.name: side.spec() for side in self._sides()}

    def _sides(self) -> tuple[Side, Side]:
        left = Side(
            name="left",
            schema=self.left,
            keys=self.left_keys,
            null_safe=self.null_safe,
            append=self.append[0],
            tracks_degree=self.kind in ("left", "full", "semi", "anti"),
            ttl=self.ttl[0],
        )
        right = Side(
            name="right",
            schema=self.right,
            keys=self.right_keys,
            null_safe=self.null_safe,
            append=self.append[1],
            tracks_degree=self.kind in ("right", "full"),
            ttl=self.ttl[1],
        )
        return left, right

    def advance(self, state: State, inputs: Sequence[pa.Table], clock: Clock, sql: Sql) -> Step:
        sides = self._sides()
        for side in sides:
            if side.ttl:
                state[side.name].expire(clock.now - side.ttl)
        if not any(rows.num_rows for rows in inputs):
            return Step(changes=no_changes(self.output))
        split = [split_matchable(rows, side.keys, self.null_safe) for side, rows in zip(sides, inputs, strict=True)]
        left, right = sides
        left_changed, right_changed = (
            side.changed(state, rows, sql) for side, (rows, _) in zip(sides, split, strict=True)
        )
        left_matching, right_matching = (
            left.matching(state, right.hashes(right_changed), left_changed),
            right.matching(state, left.hashes(left_changed), right_changed),
        )
        width = len(self.left)
        on = condition(self.left_keys, self.right_keys, self.null_safe, width)
        right_rows = pa.concat_tables([right_changed.rows, right_matching.rows])
        parts = [
            (left_changed.rows, right_rows, 0, 0),
            (left_matching.rows, right_changed.rows, left_changed.rows.num_rows, 0),
        ]
        matches = match_where_computable(sql, on, self.residual, parts, width, clock.now)
        pairs = matches.pairs
        old, new = _joined(left_changed.old, left_matching.old), _joined(left_changed.new, left_matching.new)
        other_old, other_new = (
            _joined(right_changed.old, right_matching.old),
            _joined(right_changed.new, right_matching.new),
        )
        degree_deltas = (
            _degree_deltas(pairs.left, old, other_old[pairs.right], other_new[pairs.right]),
            _degree_deltas(pairs.right, other_old, old[pairs.left], new[pairs.left]),
        )
        left.keep(state, left_changed, left_matching, degree_deltas[0], clock.now)
        right.keep(state, right_changed, right_matching, degree_deltas[1], clock.now)
        tables = self._padded_changes(
            left, left_changed, left_matching, degree_deltas[0], split[0][1]
        ) + self._padded_changes(right, right_changed, right_matching, degree_deltas[1], split[1][1])
        if self.kind not in ("semi", "anti"):
            before, after = old[pairs.left] * other_old[pairs.right], new[pairs.left] * other_new[pairs.right]
            rows = (pa.concat_tables([left_changed.rows, left_matching.rows]), right_rows)
            tables.append(self._together(rows, pairs, before, after))
        tables.sort(key=_first_weight)
        came = (new[matches.failed.left] > 0) & (other_new[matches.failed.right] > 0)
        dead = matches.dead(pa.concat_tables([left_changed.rows, left_matching.rows]), came)
        return Step(
            changes=pa.concat_tables([no_changes(self.output), *tables]),
            dead={} if dead is None else {0: dead},
            unmatched_retractions=left_changed.unmatched_retractions + right_changed.unmatched_retractions,
        )

    def _together(self, rows: tuple[pa.Table, pa.Table], pairs: Pairs, before: Numbers, after: Numbers) -> pa.Table:
        """The pairs whose number has changed, and those written again unchanged."""
        weights = after - before
        emitted = (weights != 0) | (after > 0) & (before == after)
        left, right = rows[0].take(pa.array(pairs.left[emitted])), rows[1].take(pa.array(pairs.right[emitted]))
        return self._weighed([*left.columns, *right.columns], weights[emitted])

    def _weighed(self, columns: Sequence[pa.ChunkedArray], weights: Numbers) -> pa.Table:
        table = pa.table([*columns, pa.array(weights)], names=[*self.output.names, WEIGHT])
        return as_changes(table, self.output)

    def _padded_changes(
        self, side: Side, changed: Touched, matching: Touched, degree_deltas: Numbers, unmatched: pa.Table
    ) -> list[pa.Table]:
        """The changes of rows that stand for themselves: padded rows, and those of a semi or anti join.

        `unmatched` are changes of rows that can match nothing, whatever comes.
        """
        if not side.tracks_degree:
            return []
        split = len(changed.sort_keys)
        count = [
            (t.old, t.new, t.degrees, t.degrees_after(g))
            for t, g in ((changed, degree_deltas[:split]), (matching, degree_deltas[split:]))
        ]
        old, new, had, has = (np.concatenate(numbers) for numbers in zip(*count, strict=True))
        semi = self.kind == "semi"
        before, after = old * ((had > 0) == semi), new * ((has > 0) == semi)
        refreshed = np.arange(len(old)) < split
        weights = after - before
        emitted = (weights != 0) | refreshed & (after > 0) & (before == after)
        rows = pa.concat_tables([changed.rows, matching.rows])
        gone, come = emitted & (weights < 0), emitted & (weights >= 0)
        tables = [self._padded(side, rows.filter(pa.array(mask)), weights[mask]) for mask in (gone, come)]
        if not semi and unmatched.num_rows:
            weights = unmatched.column(WEIGHT).to_numpy()
            tables.append(self._padded(side, unmatched.select(side.schema.names), weights))
        return tables

    def _padded(self, side: Side, rows: pa.Table, weights: Numbers) -> pa.Table:
        if self.kind in ("semi", "anti"):
            return self._weighed(rows.columns, weights)
        other = self.right if side.name == "left" else self.left
        nulls = [pa.nulls(rows.num_rows, type_) for type_ in other.types]
        columns = [*rows.columns, *nulls] if side.name == "left" else [*nulls, *rows.columns]
        return self._weighed(columns, weights)


def _joined(first: Numbers, second: Numbers) -> Numbers:
    return np.concatenate([first, second])


def _degree_deltas(places: Numbers, old: Numbers, other_old: Numbers, other_new: Numbers) -> Numbers:
    """How many matches each row gains: of one that was there, the change of its partners; of a new one, all of them."""
    degree_deltas = np.zeros(len(old), dtype=np.int64)
    np.add.at(degree_deltas, places, other_new - np.where(old[places] > 0, other_old, 0))
    return degree_deltas


def _first_weight(table: pa.Table) -> int:
    """What is taken back goes first."""
    return int(table.column(WEIGHT)[0].as_py()) if table.num_rows else 0
