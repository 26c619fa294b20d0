"""A lookup join: each row meets the rows that a table outside has for its key when the row comes.

Law: what a row has met is what it is retracted with. The kernel never asks the table: whoever runs it asks for the
keys of `asked`, and hands in what was found. Where left only inserts, nothing is kept. Where it may take rows back,
each left row is kept beside what it has met, and with how many of it there are: equal rows that are there at the same
time share one answer.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from operators.arrays import Mask, Numbers
from operators.changes import net
from operators.columns import as_changes, no_changes, numbered, positional
from operators.fingerprint import DUCKDB_TEXT
from operators.joins.keys import split_matchable
from operators.joins.kinds import JoinKind
from operators.joins.matching import condition, match, match_in_pieces, taken
from operators.joins.shown import beside_nulls
from operators.joins.two_inputs import JoinDefaults
from operators.joins.undecided import UndecidedPairs
from operators.kernel import Step
from operators.names import AT, COUNT, MATCHES, REASON, WEIGHT, columns
from operators.sql import Sql
from operators.sql_text import all_named, comma, every, named, select
from operators.state.operator_state import State, TraceSpec
from operators.state.tables.grouped import GroupedTable
from operators.state.tables.table import specs_of
from operators.time import Clock


@dataclass(frozen=True, slots=True, kw_only=True)
class LookupJoinOperator(JoinDefaults):
    """Rows of `left` with the rows of a table outside, INNER or LEFT, whose keys are equal and for which `residual`, a
    DuckDB text over the columns of left, then right, is true.

    `advance` takes two tables: the changes of left, and what was found for the keys of `asked`: rows with the columns
    of `right`, and REASON. A left row that meets a row which cannot be read is dead.

    `append` says that left only inserts. If it does not, what a row has met is forgotten when it has not been written
    for `ttl` ms of processing time (0 = never), and a row that is retracted after that is an unmatched retraction.
    """

    left: pa.Schema
    right: pa.Schema
    kind: JoinKind
    left_keys: tuple[int, ...]
    right_keys: tuple[int, ...]
    residual: str | None = field(default=None, metadata=DUCKDB_TEXT)
    append: bool = True
    ttl: int = 0

    @property
    def inputs(self) -> tuple[pa.Schema, ...]:
        return (self.left,)

    @property
    def found(self) -> pa.Schema:
        """The columns of what is handed in beside the changes."""
        return self.right.append(pa.field(REASON, pa.string()))

    def traces(self) -> Mapping[str, TraceSpec]:
        return {} if self.append else specs_of(self._table())

    def _table(self) -> GroupedTable:
        """What left rows have met: joined rows, in the place of their left row within that of its key."""
        hidden = (pa.field(name, pa.int64()) for name in (MATCHES, COUNT))
        schema = pa.schema([*self.output, *hidden])
        return GroupedTable(name="met", schema=schema, group=self.left_keys, members=len(self.left), ttl=self.ttl)

    def asked(self, changes: pa.Table, sql: Sql) -> pa.Table:
        """Return the keys (columns c0, c1, ... in the order of `left_keys`) whose rows must be known for these changes,
        each once; none has a NULL."""
        mine = columns(self.left_keys)
        shown = comma(all_named(mine, columns(range(len(mine)))))
        known = every([f"{WEIGHT} > 0", *(f"{name} IS NOT NULL" for name in mine)])
        statement = f"SELECT DISTINCT {shown} FROM changes WHERE {known} ORDER BY ALL"
        keys = positional(self.left.field(key).type for key in self.left_keys)
        if not changes.num_rows:
            return keys.empty_table()
        return sql(statement, {"changes": changes}).cast(keys)

    def steps(self, state: State, inputs: Sequence[pa.Table], clock: Clock, sql: Sql) -> Iterator[Step]:
        changes, found = inputs
        if not self.append:
            self._table().expire(state, clock.now)
        rows, unmatchable = split_matchable(changes, self.left_keys, (False,) * len(self.left_keys))
        if self.append:
            yield from self._added(rows, found, clock, sql)
        elif rows.num_rows:
            yield self._changed(state, rows, found, clock, sql)
        # A NULL equals nothing, whatever the table has, so there is nothing to remember of such a row.
        yield Step(changes=self._padded(unmatchable) if self.kind is JoinKind.LEFT else no_changes(self.output))

    def _added(self, rows: pa.Table, found: pa.Table, clock: Clock, sql: Sql) -> Iterator[Step]:
        """The answers to rows of which none is ever retracted."""
        rows, dead = self._readable(rows, found, clock.now, sql)
        if dead is not None:
            yield Step(changes=no_changes(self.output), dead={0: dead})
        weights = rows.column(WEIGHT).to_numpy()
        alone: Mask = np.ones(rows.num_rows, dtype=np.bool_)
        undecided = UndecidedPairs(self.kind)
        for joined, places, doubtful in self._joined(rows, found, undecided, clock.now, sql):
            alone[places] = alone[doubtful] = False
            table = joined.append_column(WEIGHT, pa.array(weights[places]))
            yield Step(changes=as_changes(table, self.output))
        padded = self.kind is JoinKind.LEFT and alone.any()
        changes = self._padded(rows.filter(pa.array(alone))) if padded else no_changes(self.output)
        yield Step(changes=changes, dead=undecided.dead())

    def _readable(self, rows: pa.Table, found: pa.Table, now: int, sql: Sql) -> tuple[pa.Table, pa.Table | None]:
        """The left rows that meet no row which cannot be read, and the others, for the dead letters."""
        unreadable = found.filter(found.column(REASON).is_valid())
        if not unreadable.num_rows or not rows.num_rows:
            return rows, None
        pairs = match(sql, self._equal(), [(self._left(rows), self._right(unreadable), 0, 0)], len(self.left), now)
        places, first = np.unique(pairs.left, return_index=True)
        came: Mask = rows.column(WEIGHT).to_numpy()[places] > 0
        stay: Mask = np.ones(rows.num_rows, dtype=np.bool_)
        stay[places[came]] = False
        if not came.any():
            return rows, None
        dead = self._left(rows).take(pa.array(places[came]))
        dead = dead.append_column(WEIGHT, pa.array(np.ones(dead.num_rows, dtype=np.int64)))
        reasons = unreadable.column(REASON).take(pa.array(pairs.right[first[came]]))
        return rows.filter(pa.array(stay)), dead.append_column(REASON, reasons)

    def _joined(
        self, rows: pa.Table, found: pa.Table, undecided: UndecidedPairs, now: int, sql: Sql
    ) -> Iterator[tuple[pa.Table, Numbers, Numbers]]:
        """Left rows beside what they meet, with the places of the left rows, in pieces; and the places of left rows of
        `undecided` pairs."""
        left, right = self._left(rows), self._right(found.filter(found.column(REASON).is_null()))
        if not left.num_rows or not right.num_rows:
            return
        parts, keys = [(left, right, 0, 0)], (self.left_keys, self.right_keys)
        for matches in match_in_pieces(sql, self._equal(), self.residual, parts, keys, len(self.left), now):
            undecided.add(matches, left, None)
            doubtful = matches.failed.left
            if len(doubtful):
                yield self.output.empty_table(), np.empty(0, dtype=np.int64), doubtful
            for run, mine, theirs in taken(left, right, matches.pairs):
                yield pa.table([*mine.columns, *theirs.columns], schema=self.output), matches.pairs.left[run], doubtful

    def _changed(self, state: State, rows: pa.Table, found: pa.Table, clock: Clock, sql: Sql) -> Step:
        """The answers to rows that come and go, and what is kept of them from now on."""
        rows, table, width = net(sql, rows, self.left.names).cast(rows.schema), self._table(), len(self.left)
        known = table.read_members(state, rows)
        same = condition(range(width), range(width), (True,) * width, width)
        pairs = match(sql, same, [(self._left(rows), self._left(known), 0, 0)], width, clock.now)
        weights, counts = rows.column(WEIGHT).to_numpy(), known.column(COUNT).to_numpy()
        before = np.zeros(rows.num_rows, dtype=np.int64)
        before[pairs.left] = counts[pairs.right]
        after = np.maximum(before + weights, 0)
        unmatched = int((after - before - weights).sum())
        fresh, dead = self._fresh(rows, (before == 0) & (after > 0), found, clock, sql)
        # Of a kept row the left row, by its place; -1 of one that is merely kept in the same place.
        left_of = np.full(known.num_rows, -1, dtype=np.int64)
        left_of[pairs.right] = pairs.left
        mine: Mask = left_of >= 0
        counted, times = np.where(mine, after[left_of], counts), known.column(MATCHES).to_numpy()
        deltas = np.where(mine, times * (counted - counts), 0)
        again = mine & (deltas == 0) & (counted > 0) & (times > 0)
        shown = self._weighed(known, deltas, (deltas != 0) | again)
        added = self._weighed(fresh.rows, fresh.times * after[fresh.places], fresh.times > 0)
        old = known.set_column(known.column_names.index(COUNT), COUNT, pa.array(counted))
        new = fresh.rows.append_column(MATCHES, pa.array(fresh.times))
        new = table.placed(state, new.append_column(COUNT, pa.array(after[fresh.places])))
        everything = np.ones(new.num_rows, dtype=np.bool_)
        table.write(
            state,
            known,
            pa.concat_tables([old, new], promote_options="default"),
            clock.now,
            stays=np.concatenate([counted > 0, everything]),
            changed=np.concatenate([mine, everything]),
            renewed=np.concatenate([mine, everything]),
        )
        going = pc.less(shown.column(WEIGHT), 0)
        changes = pa.concat_tables([shown.filter(going), shown.filter(pc.invert(going)), added])
        return Step(changes=changes, dead=dead, unmatched_retractions=unmatched)

    def _fresh(
        self, rows: pa.Table, new: Mask, found: pa.Table, clock: Clock, sql: Sql
    ) -> tuple[_Met, dict[int, pa.Table]]:
        """What those rows that are `new` meet; a row that meets nothing is kept as such, or would be unknown when it
        is retracted."""
        chosen, dead = self._readable(numbered(rows).filter(pa.array(new)), found, clock.now, sql)
        at = chosen.column(AT).to_numpy()
        undecided = UndecidedPairs(self.kind, {} if dead is None else {0: dead})
        parts = [self.output.empty_table().append_column(AT, pa.array([], pa.int64()))]
        met, doubts = (np.zeros(len(at), dtype=np.bool_) for _ in range(2))
        for joined, places, doubtful in self._joined(chosen, found, undecided, clock.now, sql):
            met[places], doubts[doubtful] = True, True
            parts.append(joined.append_column(AT, pa.array(at[places])))
        by = [*self.output.names, AT]
        matches = named("CAST(COUNT(*) AS BIGINT)", MATCHES)
        pairs = sql(
            select([*by, matches], "pairs", group_by=by, order_by=[AT]),
            {"pairs": pa.concat_tables(parts)},
        )
        alone = chosen.filter(pa.array(~met))
        padded = self._beside_nothing(alone).append_column(AT, alone.column(AT))
        times = (~doubts[~met] & (self.kind is JoinKind.LEFT)).astype(np.int64)
        padded = padded.append_column(MATCHES, pa.array(times))
        whole = pa.concat_tables([pairs.cast(padded.schema), padded]).combine_chunks()
        places, times = whole.column(AT).to_numpy(), whole.column(MATCHES).to_numpy()
        return _Met(whole.select(self.output.names), places, times), undecided.dead()

    def _weighed(self, rows: pa.Table, weights: Numbers, chosen: Mask) -> pa.Table:
        table = rows.select(self.output.names).append_column(WEIGHT, pa.array(weights)).filter(pa.array(chosen))
        return as_changes(table, self.output)

    def _padded(self, rows: pa.Table) -> pa.Table:
        """Left rows that meet nothing, with their weights."""
        return as_changes(self._beside_nothing(rows).append_column(WEIGHT, rows.column(WEIGHT)), self.output)

    def _beside_nothing(self, rows: pa.Table) -> pa.Table:
        return pa.table(beside_nulls(self._left(rows), self.right), schema=self.output)

    def _equal(self) -> str:
        return condition(self.left_keys, self.right_keys, (False,) * len(self.left_keys), len(self.left))

    def _left(self, rows: pa.Table) -> pa.Table:
        return rows.select(self.left.names)

    def _right(self, rows: pa.Table) -> pa.Table:
        return rows.select(self.right.names)


@dataclass(frozen=True, slots=True)
class _Met:
    """Joined rows, each once: the places of their left rows, and how often a left row meets them (0: it meets none, and
    the row is padded)."""

    rows: pa.Table
    places: Numbers
    times: Numbers
