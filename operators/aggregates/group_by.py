"""Aggregates per key without a window: fold partials into each group they touch, and emit the difference.

A group lives while its rows outnumber their retractions, so the number of its rows is kept beside the totals: a total
of zero does not mean an empty group. Accumulators are kept by replacement, the newest wins, and both the answer taken
back and the new one are read from them, so that what is retracted is bit by bit what was emitted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from operators.aggregates.arrivals import arrival_columns, fold_arrivals
from operators.aggregates.distinct_values import (
    Moved,
    changed_column,
    fold_values,
    left_column,
    rescan_column,
    rescanned,
    value_columns,
)
from operators.aggregates.functions import AggregateSpec
from operators.aggregates.layout import ROWS, AccumulatorLayout
from operators.aggregates.partial import PartialAggregate, key_names, key_types, layout_of, partial_types
from operators.base import KernelDefaults
from operators.changes import difference
from operators.columns import no_changes
from operators.kernel import Step
from operators.names import FOUND, PREVIOUS, SEQUENCE, TAG, WEIGHT, new_answers, old_answers
from operators.sql import Sql
from operators.sql_text import differ, inner, join, named, of, same, select, union_all
from operators.state.operator_state import State, TraceSpec
from operators.state.tables.keyed import KeyedTable
from operators.state.tables.table import specs_of
from operators.time import Clock


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupPartial(PartialAggregate):
    """Pre-aggregate a block by `keys`: a stateless step, before the exchange or just before `GroupBy`.

    `numbered` partials are those of `WindowPartial`.
    """

    input: pa.Schema
    keys: tuple[int, ...]
    aggregates: tuple[AggregateSpec, ...]
    append: bool
    numbered: bool = False

    @property
    def windowed(self) -> bool:
        return False

    @property
    def number(self) -> str:
        return SEQUENCE if self.numbered else ""

    def advance(self, state: State, inputs: Sequence[pa.Table], clock: Clock, sql: Sql) -> Step:
        (rows,) = inputs
        return Step(changes=self.partials(rows, (), sql) if rows.num_rows else no_changes(self.output))


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupBy(KernelDefaults):
    """Keep the aggregates of each group; the input is the output of `partial`.

    `output` has the keys, then the aggregates, with the types that the query gives them. A group that has not been
    written for `ttl` ms of processing time is forgotten (0 = never); with a TTL a group that is touched without
    changing comes out with weight 0: written again, unchanged. `ends` is the position of a key (BIGINT) by which groups
    are forgotten instead, by `forget`. Rows are spread by the first `placing` keys (None = all).
    """

    partial: GroupPartial
    output: pa.Schema
    ttl: int = 0
    ends: int | None = None
    placing: int | None = None

    @property
    def inputs(self) -> tuple[pa.Schema, ...]:
        return (self.partial.output,)

    @property
    def version(self) -> int:
        """2 since values are stored once for several filters; before, each filter had a table."""
        return 2 if any(len(group) > 1 for group in layout_of(self.partial).groups) else 1

    def traces(self) -> Mapping[str, TraceSpec]:
        return specs_of(*self.tables())

    def tables(self) -> tuple[KeyedTable, ...]:
        """Return the table of the groups, then one for the values of each group of sets, named by the first of them."""
        layout = layout_of(self.partial)
        tables = [self._table("groups", layout.types)]
        for group in layout.groups:
            values = layout.sets[group[0]]
            columns = arrival_columns(values) if values.ordered else value_columns(layout, group)
            tables.append(self._table(f"values{group[0]}", columns, by_value=True))
        return tuple(tables)

    def _table(self, name: str, columns: Mapping[str, pa.DataType], *, by_value: bool = False) -> KeyedTable:
        """A table with one row a group, or one a group and value; the group's keys come before `columns`."""
        keys = key_types(self.partial)
        return KeyedTable(
            name=name,
            schema=pa.schema([*keys.items(), *columns.items()]),
            keys=len(keys) + by_value,
            group=tuple(range(len(keys))) if by_value else None,
            ttl=self.ttl,
            expires_by=None if self.ends is None else key_names(self.partial)[self.ends],
            placing=self.placing,
        )

    def advance(self, state: State, inputs: Sequence[pa.Table], clock: Clock, sql: Sql) -> Step:
        (partials,) = inputs
        layout = layout_of(self.partial)
        groups, *sets = self.tables()
        for table in (groups, *sets):
            table.expire(state, clock.now)
        if partials.num_rows == 0:
            return Step(changes=no_changes(self.output))
        partials = partials.drop_columns([WEIGHT]).rename_columns(list(partial_types(self.partial)))
        keys = key_names(self.partial)
        moved = [
            fold_arrivals(keys, layout, group[0], state, (groups, table), partials, clock.now, sql)
            if layout.sets[group[0]].ordered
            else fold_values(keys, layout, group, state, table, partials, clock.now, sql)
            for group, table in zip(layout.groups, sets, strict=True)
        ]
        return self._merge_groups(self._combined(layout, partials, moved, sql), layout, state, clock, sql)

    def _forget_values(self, state: State, sets: Sequence[KeyedTable], ended: pa.Table, now: int, sql: Sql) -> None:
        """Forget the values that groups without rows still have, which is so where a retraction met no row."""
        keys = ended.column_names
        for table in sets if ended.num_rows else ():
            kept = table.read_groups(state, ended)
            if keys and kept.num_rows:
                belongs = join("kept", "ended", same(of("kept", keys), of("ended", keys)), "SEMI JOIN")
                kept = sql(select(["*"], belongs), {"kept": kept, "ended": ended})
            if kept.num_rows:
                pairs = table.read(state, kept, sql)
                stays = np.zeros(kept.num_rows, dtype=np.bool_)
                table.write(state, pairs, pairs.rows.select(table.schema.names), now, stays=stays)

    def forget(self, state: State, upto: int) -> None:
        """Forget the groups whose key `ends` is `upto` or less."""
        for table in self.tables():
            table.expire_upto(state, upto)

    def _combined(self, layout: AccumulatorLayout, partials: pa.Table, moved: Sequence[Moved], sql: Sql) -> pa.Table:
        """The change of each group in the batch: one row for each key."""
        sources = {"partials": partials, **{f"moved{i}": m.deltas for i, m in enumerate(moved)}}
        plain = select(["*"], "partials", where=f"{TAG} = 0" if layout.sets else "")
        union = union_all([plain, *(select(["*"], f"moved{i}") for i in range(len(moved)))], by_name=True)
        keys, others = key_names(self.partial), [text for m in moved for text in m.combined]
        return sql(select([*keys, *layout.combined(), *others], inner(union), group_by=keys), sources)

    def _merge_groups(self, delta: pa.Table, layout: AccumulatorLayout, state: State, clock: Clock, sql: Sql) -> Step:
        keys = key_names(self.partial)
        groups, *sets = self.tables()
        pairs = groups.read(state, delta, sql)
        after = [text for placed in layout.all_accumulators() for text in placed.merge(PREVIOUS)]
        known = [PREVIOUS + name for name in layout.types]
        first = [_as_first_seen(name, type_) for name, type_ in key_types(self.partial).items()]
        if any(values.extremes or values.lists for values in layout.sets):
            for i, values in enumerate(layout.sets):
                after += [text for e in values.extremes for text in _contested(e.function, e.name)]
                after += [named(PREVIOUS + each.name, each.name) for each in values.lists]
                after += [changed_column(i)] if values.lists else []
            kept = sql(select([*first, *after, *known, FOUND], "pairs"), {"pairs": pairs.rows})
            kept = rescanned(keys, layout, state, sets, kept, sql)
            source, tables = "kept", {"kept": kept}
        else:
            source = inner(select([*first, *after, *known, FOUND], "pairs"))
            tables = {"pairs": pairs.rows}
        types = self.output.types[len(keys) :]
        olds, news = old_answers(len(types)), new_answers(len(types))
        items = [*keys, *layout.types, FOUND, *layout.read(PREVIOUS, olds, types), *layout.read("", news, types)]
        verdicts = [named(f"{ROWS} > 0", "alive"), named(differ(olds, news), "differs")]
        answers = sql(select(["*", *verdicts], inner(select(items, source))), tables)
        was, is_, differs = (answers.column(name).to_numpy() for name in (FOUND, "alive", "differs"))
        groups.write(state, pairs, answers, clock.now, stays=is_)
        if sets:
            self._forget_values(state, sets, answers.filter(pa.array(~is_)).select(keys), clock.now, sql)
        old, new = [*keys, *olds], [*keys, *news]
        changes = difference(answers, old, new, was, is_, differs, self.output, refresh=self.ttl > 0)
        return Step(changes=changes, unmatched_retractions=_unmatched_retractions(answers))


def _as_first_seen(key: str, type_: pa.DataType) -> str:
    """The key of a group as its rows were emitted first: 0.0 equals -0.0, but a row with the one does not retract a row
    with the other."""
    if not (pa.types.is_floating(type_) or pa.types.is_nested(type_)):
        return key
    return named(f"CASE WHEN {FOUND} THEN {PREVIOUS}{key} ELSE {key} END", key)


def _unmatched_retractions(answers: pa.Table) -> int:
    """How many retractions found no row to take back."""
    return -int(pc.sum(pc.min_element_wise(answers.column(ROWS), 0)).as_py() or 0)


def _contested(function: str, name: str) -> list[str]:
    """SQL for the new MIN or MAX, and `rescan`: the old value was retracted and no inserted value replaces it."""
    before, left, best = PREVIOUS + name, left_column(name), "LEAST" if function == "MIN" else "GREATEST"
    lost = f"{before} IS NOT NULL AND {left} IS NOT DISTINCT FROM {before}"
    beaten = f"{name} IS NOT NULL AND {best}({name}, {before}) = {name}"
    return [
        named(f"CASE WHEN {lost} THEN {name} ELSE {best}({before}, {name}) END", name),
        named(f"{lost} AND NOT ({beaten})", rescan_column(name)),
    ]
