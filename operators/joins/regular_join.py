"""A regular join: the change of a ⋈ b is Δa ⋈ b + a ⋈ Δb + Δa ⋈ Δb, and every row of both sides is kept.

A pair (l, r) was there l.old · r.old times and is there l.new · r.new times; only pairs with a changed row are looked
at. A row of an outer side stands alone, padded with NULLs, as long as it matches nothing, so each row is kept with its
degree, the number of its matches, and one whose degree leaves or becomes zero loses or gets back its padded form. A
semi join has the left rows that match, an anti join those that do not, a mark join both, and says which are which.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from operators.base import KernelDefaults
from operators.columns import as_changes, no_changes, positional
from operators.joins.keys import joined_types, split_matchable
from operators.joins.kinds import JoinKind
from operators.joins.matching import Pairs, condition, match_in_pieces, taken
from operators.joins.side import Numbers, Side, Touched
from operators.kernel import WEIGHT, Step, together
from operators.pieces import gathered
from operators.sql import Sql
from operators.state.operator_state import State, TraceSpec
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
        return positional(joined_types(self.kind, self.left, self.right))

    def traces(self) -> Mapping[str, TraceSpec]:
        return {side.name: side.spec() for side in self._sides()}

    def _sides(self) -> tuple[Side, Side]:
        left = Side(
            name="left",
            schema=self.left,
            keys=self.left_keys,
            null_safe=self.null_safe,
            append=self.append[0],
            tracks_degree=self.kind in (JoinKind.LEFT, JoinKind.FULL) or not self.kind.shows_right,
            ttl=self.ttl[0],
        )
        right = Side(
            name="right",
            schema=self.right,
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
            if side.ttl:
                state[side.name].expire(clock.now - side.ttl)
        if not any(rows.num_rows for rows in inputs):
            yield Step(changes=no_changes(self.output))
            return
        split = [split_matchable(rows, side.keys, self.null_safe) for side, rows in zip(sides, inputs, strict=True)]
        left_changed, right_changed = (
            side.changed(state, rows, sql) for side, (rows, _) in zip(sides, split, strict=True)
        )
        left_matching, right_matching = (
            left.matching(state, right.hashes(state, right_changed), left_changed),
            right.matching(state, left.hashes(state, left_changed), right_changed),
        )
        touched = (
            _Both(left_changed, left_matching, counted=left.tracks_degree),
            _Both(right_changed, right_matching, counted=right.tracks_degree),
        )
        failed: list[pa.Table] = []
        held: list[pa.Table] = []
        for tables in gathered(self._pairs(touched, clock.now, sql, failed)):
            if held:
                yield Step(changes=pa.concat_tables(held))
            held = tables
        padded: list[pa.Table] = []
        for side, both, (_, unmatched) in zip(sides, touched, split, strict=True):
            side.keep(state, both.changed, both.matching, both.gained, clock.now)
            padded += self._padded_changes(side, both, unmatched)
        last = sorted([*padded, *held], key=_first_weight)
        yield Step(
            changes=pa.concat_tables([no_changes(self.output), *last]),
            dead={0: pa.concat_tables(failed)} if failed else {},
            unmatched_retractions=left_changed.unmatched_retractions + right_changed.unmatched_retractions,
        )

    def _pairs(self, touched: tuple[_Both, _Both], now: int, sql: Sql, failed: list[pa.Table]) -> Iterator[pa.Table]:
        """The changes of pairs, in pieces. Meanwhile the rows of `touched` gain their matches, and rows whose condition
        cannot be computed are added to `failed`."""
        left, right = touched
        width, split = len(self.left), left.changed.rows.num_rows
        parts = [
            (left.changed.rows, right.rows, 0, 0),
            (left.matching.rows, right.changed.rows, split, 0),
        ]
        on = condition(self.left_keys, self.right_keys, self.null_safe, width)
        keys = (self.left_keys, self.right_keys)
        for matches in match_in_pieces(sql, on, self.residual, parts, keys, width, now):
            pairs = matches.pairs
            left.gain(pairs.left, right.old[pairs.right], right.new[pairs.right])
            right.gain(pairs.right, left.old[pairs.left], left.new[pairs.left])
            if self.kind.shows_right:
                yield from self._together(left, right, pairs)
            came = (left.new[matches.failed.left] > 0) & (right.new[matches.failed.right] > 0)
            dead = matches.dead(left.rows, came)
            if dead is not None:
                failed.append(dead)

    def _together(self, left: _Both, right: _Both, pairs: Pairs) -> Iterator[pa.Table]:
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

    def _padded_changes(self, side: Side, both: _Both, unmatched: pa.Table) -> list[pa.Table]:
        """The changes of rows that stand for themselves: padded rows, and those of a semi, anti or mark join.

        `unmatched` are changes of rows that can match nothing, whatever comes.
        """
        if not side.tracks_degree:
            return []
        old, new, split = both.old, both.new, len(both.changed.sort_keys)
        had = np.concatenate([both.changed.degrees, both.matching.degrees])
        has = np.where(old > 0, had, 0) + both.gained
        refreshed = np.arange(len(old)) < split
        rows = both.rows
        tables: list[pa.Table] = []
        for shown in _SHOWN.get(self.kind, (False,)):
            before, after = old * ((had > 0) == shown), new * ((has > 0) == shown)
            weights = after - before
            emitted = (weights != 0) | refreshed & (after > 0) & (before == after)
            gone, come = emitted & (weights < 0), emitted & (weights >= 0)
            tables += [
                self._padded(side, rows.filter(pa.array(mask)), weights[mask], shown=shown) for mask in (gone, come)
            ]
        if self.kind is not JoinKind.SEMI and unmatched.num_rows:
            weights = unmatched.column(WEIGHT).to_numpy()
            tables.append(self._padded(side, unmatched.select(side.schema.names), weights, shown=False))
        return tables

    def _padded(self, side: Side, rows: pa.Table, weights: Numbers, *, shown: bool) -> pa.Table:
        """Rows that match, which are `shown`, or rows that do not."""
        if self.kind is JoinKind.MARK:
            return self._weighed([*rows.columns, pa.array(np.full(rows.num_rows, shown))], weights)
        if not self.kind.shows_right:
            return self._weighed(rows.columns, weights)
        other = self.right if side.name == "left" else self.left
        nulls = [pa.nulls(rows.num_rows, type_) for type_ in other.types]
        columns = [*rows.columns, *nulls] if side.name == "left" else [*nulls, *rows.columns]
        return self._weighed(columns, weights)


class _Both:
    """The rows of one side that a batch touches, those that it changes first, and how many matches each has gained
    where they are counted: of a row that was there, the change of its partners; of a new one, all of them."""

    def __init__(self, changed: Touched, matching: Touched, *, counted: bool) -> None:
        self.changed, self.matching = changed, matching
        self.rows = pa.concat_tables([changed.rows, matching.rows])
        self.old = np.concatenate([changed.old, matching.old])
        self.new = np.concatenate([changed.new, matching.new])
        self.gained = np.zeros(len(self.old), dtype=np.int64)
        self._counted = counted

    def gain(self, places: Numbers, other_old: Numbers, other_new: Numbers) -> None:
        """Count matches of the rows at `places` with rows of the other side that were and are there so often."""
        if self._counted:
            np.add.at(self.gained, places, other_new - np.where(self.old[places] > 0, other_old, 0))


def _first_weight(table: pa.Table) -> int:
    """What is taken back goes first."""
    return int(table.column(WEIGHT)[0].as_py()) if table.num_rows else 0
