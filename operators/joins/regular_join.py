"""A regular join: the change of a ⋈ b is Δa ⋈ b + a ⋈ Δb + Δa ⋈ Δb, and every row of both sides is kept.

A pair (l, r) was there l.old · r.old times and is there l.new · r.new times; only pairs with a changed row are looked
at. A row of an outer side stands alone, padded with NULLs, as long as it matches nothing, so each row is kept with its
degree, the number of its matches, and one whose degree leaves or becomes zero loses or gets back its padded form. A
semi join has the left rows that match, an anti join those that do not, a mark join both, and says which are which.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from operators.arrays import Numbers
from operators.base import KernelDefaults
from operators.columns import as_changes, no_changes, positional
from operators.fingerprint import DUCKDB_TEXT
from operators.joins.kinds import JoinKind
from operators.joins.matching import Pairs, condition, taken
from operators.joins.shown import joined_types
from operators.joins.side import Side, TouchedRows, matches_of
from operators.kernel import Step, in_steps, together
from operators.names import WEIGHT
from operators.sql import Sql
from operators.state.operator_state import State, TraceSpec
from operators.state.tables.table import specs_of
from operators.time import Clock

_SHOWN = {JoinKind.SEMI: (True,), JoinKind.MARK: (True, False)}
"""Whether a join shows the rows of a side that match, or those that do not, as most do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RegularJoin(KernelDefaults):
    """Rows of `left` with the rows of `right` whose keys are equal and for which `residual` is true.

    `null_safe[i]` makes NULL equal to NULL on key i. `residual` is DuckDB text over the columns of left, then right.
    `append` says of each side that its input never retracts. Rows that have not been written for `ttl` ms of processing
    time are forgotten (0 = never), a side each; that the number of its matches changes counts as a write. Port 0 is
    left, port 1 is right. The output has left's columns, then right's; of a semi or anti join left's only, of a mark
    join left's and a BOOLEAN.
    """

    left: pa.Schema
    right: pa.Schema
    kind: JoinKind
    left_keys: tuple[int, ...]
    right_keys: tuple[int, ...]
    null_safe: tuple[bool, ...]
    residual: str | None = field(default=None, metadata=DUCKDB_TEXT)
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
        return positional(joined_types(self.kind, self.left, self.right))

    def traces(self) -> Mapping[str, TraceSpec]:
        return specs_of(*(side.table for side in self._sides()))

    def _sides(self) -> tuple[Side, Side]:
        left = Side(
            port=0,
            kind=self.kind,
            schema=self.left,
            other=self.right,
            keys=self.left_keys,
            null_safe=self.null_safe,
            append=self.append[0],
            tracks_degree=self.kind in (JoinKind.LEFT, JoinKind.FULL) or not self.kind.shows_right,
            ttl=self.ttl[0],
        )
        right = Side(
            port=1,
            kind=self.kind,
            schema=self.right,
            other=self.left,
            keys=self.right_keys,
            null_safe=self.null_safe,
            append=self.append[1],
            tracks_degree=self.kind in (JoinKind.RIGHT, JoinKind.FULL),
            ttl=self.ttl[1],
        )
        return left, right

    def advance(self, state: State, inputs: Sequence[pa.Table], clock: Clock, sql: Sql) -> Step:
        return together(self.steps(state, inputs, clock, sql), no_changes(self.output))

    def steps(self, state: State, inputs: Sequence[pa.Table], clock: Clock, sql: Sql) -> Iterator[Step]:
        left, right = sides = self._sides()
        for side in sides:
            side.table.expire(state, clock.now)
        if not any(rows.num_rows for rows in inputs):
            yield Step(changes=no_changes(self.output))
            return
        split = [side.split(rows) for side, rows in zip(sides, inputs, strict=True)]
        left_changed, right_changed = (
            side.changed(state, rows, sql) for side, (rows, _) in zip(sides, split, strict=True)
        )
        left_matching, right_matching = (
            left.matching(state, right.hashes(state, right_changed.rows), left_changed),
            right.matching(state, left.hashes(state, left_changed.rows), right_changed),
        )
        touched = (
            TouchedRows(left_changed, left_matching, counted=left.tracks_degree),
            TouchedRows(right_changed, right_matching, counted=right.tracks_degree),
        )
        failed: list[pa.Table] = []
        held = yield from in_steps(self._pairs(touched, clock.now, sql, failed))
        padded: list[pa.Table] = []
        for side, both, (_, unmatched) in zip(sides, touched, split, strict=True):
            side.keep(state, both, clock.now)
            padded += self._padded_changes(side, both, unmatched)
        last = sorted([*padded, *held], key=_first_weight)
        yield Step(
            changes=pa.concat_tables([no_changes(self.output), *last]),
            dead={0: pa.concat_tables(failed)} if failed else {},
            unmatched_retractions=left_changed.unmatched_retractions + right_changed.unmatched_retractions,
        )

    def _pairs(
        self, touched: tuple[TouchedRows, TouchedRows], now: int, sql: Sql, failed: list[pa.Table]
    ) -> Iterator[pa.Table]:
        """The changes of pairs, in pieces. Meanwhile the rows of `touched` gain their matches, and rows whose condition
        cannot be computed are added to `failed`."""
        left, right = touched
        on = condition(self.left_keys, self.right_keys, self.null_safe, len(self.left))
        for matches in matches_of(sql, on, self.residual, touched, (self.left_keys, self.right_keys), now):
            pairs = matches.pairs
            left.gain(pairs.left, right.old[pairs.right], right.new[pairs.right])
            right.gain(pairs.right, left.old[pairs.left], left.new[pairs.left])
            if self.kind.shows_right:
                yield from self._together(left, right, pairs)
            came = (left.new[matches.failed.left] > 0) & (right.new[matches.failed.right] > 0)
            dead = matches.dead(left.rows, came)
            if dead is not None:
                failed.append(dead)

    def _together(self, left: TouchedRows, right: TouchedRows, pairs: Pairs) -> Iterator[pa.Table]:
        """The pairs whose number has changed, and those written again unchanged."""
        before = left.old[pairs.left] * right.old[pairs.right]
        after = left.new[pairs.left] * right.new[pairs.right]
        weights = after - before
        emitted = (weights != 0) | (after > 0) & (before == after)
        weights = weights[emitted]
        for run, mine, others in taken(left.rows, right.rows, Pairs(pairs.left[emitted], pairs.right[emitted])):
            yield self._weighed([*mine.columns, *others.columns], weights[run])

    def _weighed(self, columns: Sequence[pa.ChunkedArray | pa.Array], weights: Numbers) -> pa.Table:
        table = pa.table([*columns, pa.array(weights)], names=[*self.output.names, WEIGHT])
        return as_changes(table, self.output)

    def _padded_changes(self, side: Side, both: TouchedRows, unmatched: pa.Table) -> list[pa.Table]:
        """The changes of rows that stand for themselves: padded rows, and those of a semi, anti or mark join.

        `unmatched` are changes of rows that can match nothing, whatever comes.
        """
        if not side.tracks_degree:
            return []
        old, new, had, has = both.old, both.new, both.degrees, both.degrees_after
        refreshed = np.arange(len(old)) < both.split
        rows = both.rows
        tables: list[pa.Table] = []
        for shown in _SHOWN.get(self.kind, (False,)):
            before, after = old * ((had > 0) == shown), new * ((has > 0) == shown)
            weights = after - before
            emitted = (weights != 0) | refreshed & (after > 0) & (before == after)
            gone, come = emitted & (weights < 0), emitted & (weights >= 0)
            tables += [
                self._weighed(side.alone(rows.filter(pa.array(mask)), shown=shown), weights[mask])
                for mask in (gone, come)
            ]
        if self.kind is not JoinKind.SEMI and unmatched.num_rows:
            weights = unmatched.column(WEIGHT).to_numpy()
            tables.append(self._weighed(side.alone(unmatched.select(side.schema.names)), weights))
        return tables


def _first_weight(table: pa.Table) -> int:
    """What is taken back goes first."""
    return int(table.column(WEIGHT)[0].as_py()) if table.num_rows else 0
