"""A regular join: the change of a ⋈ b is Δa ⋈ b + a ⋈ Δb + Δa ⋈ Δb, and every row of both sides is kept.

A pair (l, r) was there l.old · r.old times and is there l.new · r.new times; only pairs with a changed row are looked
at. A row of an outer side stands alone, padded with NULLs, as long as it matches nothing, so each row is kept with its
degree, the number of its matches, and one whose degree leaves or becomes zero loses or gets back its padded form. A
semi join has the left rows that match, an anti join those that do not, a mark join both, and says which are which.
Where these three compare keys alone, it matters whether there is a right row of a key, not how many there are: right
rows are counted by key, and left rows are looked at when the first right row of their key comes or the last one goes.
A pair whose condition cannot be computed counts as one that perhaps matches (`undecided.py`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from operators.arrays import Numbers
from operators.columns import as_changes, no_changes
from operators.fingerprint import DUCKDB_TEXT
from operators.joins.kinds import JoinKind
from operators.joins.matching import Pairs, condition, taken
from operators.joins.side import Side, Touched, TouchedRows, matches_of
from operators.joins.two_inputs import JoinDefaults
from operators.joins.undecided import UndecidedPairs
from operators.kernel import Step, in_steps
from operators.names import WEIGHT
from operators.sql import Sql
from operators.state.operator_state import State, TraceSpec
from operators.state.tables.table import specs_of
from operators.time import Clock

_SHOWN = {JoinKind.SEMI: (True,), JoinKind.MARK: (True, False)}
"""Whether a join shows the rows of a side that match, or those that do not, as most do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RegularJoin(JoinDefaults):
    """Rows of `left` with the rows of `right` whose keys are equal and for which `residual` is true.

    `null_safe[i]` makes NULL equal to NULL on key i. `residual` is DuckDB text over the columns of left, then right.
    `append` says of each side that its input never retracts. Rows that have not been written for `ttl` ms of processing
    time are forgotten (0 = never), a side each; that the number of its matches changes counts as a write. Port 0 is
    left, port 1 is right. The output has left's columns, then right's; of a semi or anti join left's only, of a mark
    join left's and a BOOLEAN. `doubts` says that `residual` may fail, and that rows without a match are shown.

    >>> from tests.operators.properties import Batch, Change, Run
    >>> numbers = pa.schema([("c0", pa.int64())])
    >>> run = Run([RegularJoin(
    ...     left=numbers, right=numbers, kind=JoinKind.LEFT, left_keys=(0,), right_keys=(0,), null_safe=(False,))])
    >>> for port in (0, 1):  # a row of the left input, then its match
    ...     changes = run(Batch([Change((7,), port=port)]))
    >>> run.log  # rows and their weights
    [((7, None), 1), ((7, None), -1), ((7, 7), 1)]
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
    doubts: bool = field(default=False, metadata=DUCKDB_TEXT)

    def __post_init__(self) -> None:
        # Arrow tables without columns forget how many rows they have when they are put together.
        if not len(self.left) or not len(self.right):
            raise ValueError("an input of a join needs a column, or its rows cannot be counted")

    @property
    def version(self) -> int:
        """2 where right rows are counted by key, which were kept whole. 3 where degrees count pairs whose condition
        cannot be computed: in version 1 such pairs matched nothing, in version 2 there were more of them."""
        return 3 if self.doubts else 2 if self._asks_keys else 1

    def traces(self) -> Mapping[str, TraceSpec]:
        return specs_of(*(side.table for side in self._sides()))

    @property
    def _asks_keys(self) -> bool:
        """Whether nothing but its key is asked of a right row. Without a key rows are counted by a column of NULLs."""
        return self.residual is None and not self.kind.shows_right

    @property
    def _asked(self) -> tuple[int, ...]:
        """The columns of right that are kept."""
        if self._asks_keys:
            return tuple(sorted(set(self.right_keys))) or (0,)
        return tuple(range(len(self.right)))

    @property
    def _asked_keys(self) -> tuple[int, ...]:
        """The places of the keys among the columns of right that are kept."""
        return tuple(map(self._asked.index, self.right_keys))

    def _sides(self) -> tuple[Side, Side]:
        left = Side(
            port=0,
            kind=self.kind,
            schema=self.left,
            other=self.right,
            keys=self.left_keys,
            null_safe=self.null_safe,
            append=self.append[0],
            tracks_degree=self.kind is JoinKind.SEMI or self.kind.shows_alone[0],
            tracks_doubts=self.kind is JoinKind.MARK and self.doubts,
            ttl=self.ttl[0],
        )
        right = Side(
            port=1,
            kind=self.kind,
            schema=pa.schema([self.right.field(place) for place in self._asked]),
            other=self.left,
            keys=self._asked_keys,
            null_safe=self.null_safe,
            append=self.append[1] and not self._asks_keys,
            tracks_degree=self.kind.shows_alone[1],
            ttl=self.ttl[1],
        )
        return left, right

    def steps(self, state: State, inputs: Sequence[pa.Table], clock: Clock, sql: Sql) -> Iterator[Step]:
        left, right = sides = self._sides()
        for side in sides:
            side.table.expire(state, clock.now)
        if not any(rows.num_rows for rows in inputs):
            yield Step(changes=no_changes(self.output))
            return
        inputs = (inputs[0], self._asked_rows(inputs[1]))
        split = [side.split(rows) for side, rows in zip(sides, inputs, strict=True)]
        left_changed, right_changed = (
            side.changed(state, rows, sql) for side, (rows, _) in zip(sides, split, strict=True)
        )
        left_matching, right_matching = (
            left.matching(state, right.hashes(state, self._affecting_left(right_changed)), left_changed),
            right.matching(state, left.hashes(state, left_changed.rows), right_changed),
        )
        touched = (
            TouchedRows(left_changed, left_matching, counted=left.tracks_degree),
            TouchedRows(right_changed, right_matching, counted=right.tracks_degree),
        )
        undecided = UndecidedPairs(self.kind)
        held = yield from in_steps(self._pairs(touched, clock.now, sql, undecided))
        padded: list[pa.Table] = []
        for side, both, (_, unmatched) in zip(sides, touched, split, strict=True):
            side.keep(state, both, clock.now)
            padded += self._padded_changes(side, both, unmatched)
        last = sorted([*padded, *held], key=_first_weight)
        yield Step(
            changes=pa.concat_tables([no_changes(self.output), *last]),
            dead=undecided.dead(),
            unmatched_retractions=left_changed.unmatched_retractions + right_changed.unmatched_retractions,
        )

    def _asked_rows(self, right: pa.Table) -> pa.Table:
        """The columns of `right` that are kept, and those that say how the rows change."""
        if not self._asks_keys:
            return right
        hidden = [name for name in right.column_names if name not in self.right.names]
        rows = right.select([*(self.right.field(place).name for place in self._asked), *hidden])
        if self.right_keys:
            return rows
        return rows.set_column(0, rows.schema.field(0), pa.nulls(rows.num_rows, rows.schema.field(0).type))

    def _affecting_left(self, right: Touched) -> pa.Table:
        """The changed right rows that may change what left rows show; under a TTL all of them, since each keeps left
        rows alive."""
        if not self._asks_keys or self.ttl[0]:
            return right.rows
        return right.rows.filter(pa.array((right.old > 0) != (right.new > 0)))

    def _pairs(
        self, touched: tuple[TouchedRows, TouchedRows], now: int, sql: Sql, undecided: UndecidedPairs
    ) -> Iterator[pa.Table]:
        """The changes of pairs, in pieces. Meanwhile the rows of `touched` gain their matches, and those of `undecided`
        pairs their doubts."""
        left, right = touched
        keys = self.left_keys, self._asked_keys
        on = condition(*keys, self.null_safe, len(self.left))
        present = self._asks_keys and not self.ttl[0]
        for matches in matches_of(sql, on, self.residual, touched, keys, now):
            pairs = matches.pairs
            old, new = right.old[pairs.right], right.new[pairs.right]
            left.gain(pairs.left, np.sign(old) if present else old, np.sign(new) if present else new)
            right.gain(pairs.right, left.old[pairs.left], left.new[pairs.left])
            if self.kind.shows_right:
                yield from self._together(left, right, pairs)
            self._doubt(left, right, matches.failed)
            before, after = _times(left.old, right.old, matches.failed), _times(left.new, right.new, matches.failed)
            undecided.add(matches, left.rows, right.rows, (before == 0) & (after > 0))

    def _doubt(self, left: TouchedRows, right: TouchedRows, pairs: Pairs) -> None:
        """Count pairs whose condition cannot be computed: they match nothing in a semi join, in a mark join they say
        neither, and in all others their rows are not alone."""
        match self.kind:
            case JoinKind.SEMI:
                return
            case JoinKind.MARK:
                left.doubt(pairs.left, right.old[pairs.right], right.new[pairs.right])
            case _:
                left.gain(pairs.left, right.old[pairs.right], right.new[pairs.right])
                right.gain(pairs.right, left.old[pairs.left], left.new[pairs.left])

    def _together(self, left: TouchedRows, right: TouchedRows, pairs: Pairs) -> Iterator[pa.Table]:
        """The pairs whose number has changed, and those written again unchanged."""
        before, after = _times(left.old, right.old, pairs), _times(left.new, right.new, pairs)
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
        old, new = both.old, both.new
        had, has = both.degrees > 0, both.degrees_after > 0
        doubted, doubts = both.doubts > 0, both.doubts_after > 0
        refreshed = np.arange(len(old)) < both.split
        rows = both.rows
        tables: list[pa.Table] = []
        for shown in _SHOWN.get(self.kind, (False,)):
            before, after = (old * had, new * has) if shown else (old * ~(had | doubted), new * ~(has | doubts))
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


def _times(left: Numbers, right: Numbers, pairs: Pairs) -> Numbers:
    """How often each pair is there, where rows of left and right are there so often."""
    times: Numbers = left[pairs.left] * right[pairs.right]
    return times


def _first_weight(table: pa.Table) -> int:
    """What is retracted goes first."""
    return int(table.column(WEIGHT)[0].as_py()) if table.num_rows else 0
