"""Aggregates per key without a window: fold partials into each group they touch, and emit the difference.

A group lives while its rows outnumber their retractions, so the number of its rows is kept beside the totals: a total
of zero does not mean an empty group. Accumulators are kept by replacement, the newest wins, and both the answer taken
back and the new one are read from them, so that what is retracted is bit by bit what was emitted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from operators.aggregates.distinct_values import Moved, changed_column, fold_values, rescanned, value_trace
from operators.aggregates.functions import AggregateSpec
from operators.aggregates.layout import ROWS, AccumulatorLayout
from operators.base import KernelDefaults
from operators.changes import difference, weigh
from operators.columns import as_changes, no_changes, positional
from operators.kernel import WEIGHT, PerBlock, Step, tag_of
from operators.sql import Sql
from operators.state.operator_state import WRITTEN, State, TableKind, TraceSpec
from operators.state.pairing import FOUND, PREVIOUS, read_keyed, write
from operators.time import Clock


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupPartial(KernelDefaults):
    """Pre-aggregate a block by `keys`: a stateless step, before the exchange or just before `GroupBy`.

    `append` says that the input never retracts (all weights are 1), which lets more aggregates be folded. The output is
    private to `GroupBy`; its first columns are the keys, so the exchange hashes positions 0 to len(keys) - 1.
    """

    input: pa.Schema
    keys: tuple[int, ...]
    aggregates: tuple[AggregateSpec, ...]
    append: bool

    @property
    def inputs(self) -> tuple[pa.Schema, ...]:
        return (self.input,)

    @property
    def output(self) -> pa.Schema:
        return positional(partial_types(self).values())

    @property
    def piecewise(self) -> bool:
        return True

    def per_block(self) -> PerBlock:
        tagged = replace(self, input=self.input.append(tag_of(self.input)), keys=(*self.keys, len(self.input)))
        return PerBlock(tagged, len(self.keys))

    def advance(self, state: State, inputs: Sequence[pa.Table], clock: Clock, sql: Sql) -> Step:
        (rows,) = inputs
        if rows.num_rows == 0:
            return Step(changes=no_changes(self.output))
        keys = [(f"c{position}", f"k{i}") for i, position in enumerate(self.keys)]
        partials = sql(layout_of(self).partials(keys, "changes"), {"changes": rows})
        return Step(changes=as_changes(weigh(partials.rename_columns(self.output.names), 1), self.output))


@lru_cache(maxsize=64)
def layout_of(partial: GroupPartial) -> AccumulatorLayout:
    """The accumulators of a grouping."""
    return AccumulatorLayout(partial.input, partial.aggregates, partial.append)


def partial_types(partial: GroupPartial) -> dict[str, pa.DataType]:
    """The columns of a partial, by name: the keys k0, k1, ..., then what the layout keeps."""
    keys = {f"k{i}": partial.input.field(position).type for i, position in enumerate(partial.keys)}
    return keys | layout_of(partial).partial_types()


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupBy(KernelDefaults):
    """Keep the aggregates of each group; the input is the output of `partial`.

    `output` has the keys, then the aggregates, with the types that the query gives them. A group that has not been
    written for `ttl` ms of processing time is forgotten (0 = never); with a TTL a group that is touched without
    changing comes out with weight 0: written again, unchanged. `ends` is the position of a key (BIGINT) by which groups
    are forgotten instead: whoever owns this state expires its traces up to a value of that key. Rows are spread by the
    first `placing` keys (None = all).
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
    def _expires_by(self) -> str | None:
        if self.ends is not None:
            return f"k{self.ends}"
        return WRITTEN if self.ttl else None

    def traces(self) -> Mapping[str, TraceSpec]:
        layout, keys = layout_of(self.partial), self._key_types()
        timestamp = {WRITTEN: pa.int64()} if self.ttl else {}
        groups = pa.schema(list((keys | layout.types | timestamp).items()))
        traces = {
            "groups": TraceSpec(schema=groups, kind=TableKind.KEYED, timestamp=self._expires_by, placing=self.placing)
        }
        for i, values in enumerate(layout.sets):
            traces[f"values{i}"] = value_trace(keys, values, self._expires_by, self.placing)
        return traces

    def advance(self, state: State, inputs: Sequence[pa.Table], clock: Clock, sql: Sql) -> Step:
        (partials,) = inputs
        layout = layout_of(self.partial)
        if self.ttl:
            for name in self.traces():
                state[name].expire(clock.now - self.ttl)
        if partials.num_rows == 0:
            return Step(changes=no_changes(self.output))
        partials = partials.drop_columns([WEIGHT]).rename_columns(list(partial_types(self.partial)))
        moved = [
            fold_values(
                self._key_names(), layout, i, state, partials, self._timestamp(clock), self._gone(partials, clock), sql
            )
            for i in range(len(layout.sets))
        ]
        return self._merge_groups(self._combined(layout, partials, moved, sql), layout, state, clock, sql)

    def _key_names(self) -> list[str]:
        return [f"k{i}" for i in range(len(self.partial.keys))]

    def _key_types(self) -> dict[str, pa.DataType]:
        types = [self.partial.input.field(position).type for position in self.partial.keys]
        return dict(zip(self._key_names(), types, strict=True))

    def _timestamp(self, clock: Clock) -> int | None:
        return clock.now if self.ttl else None

    def _gone(self, rows: pa.Table, clock: Clock) -> int:
        """What a deletion expires by, no earlier than the rows that it hides."""
        return clock.now if self.ends is None else int(pc.max(rows.column(f"k{self.ends}")).as_py() or 0)

    def _combined(self, layout: AccumulatorLayout, partials: pa.Table, moved: Sequence[Moved], sql: Sql) -> pa.Table:
        """What the batch adds to each group: one row a key."""
        sources = {"partials": partials, **{f"moved{i}": m.deltas for i, m in enumerate(moved)}}
        plain = "SELECT * FROM partials WHERE tag = 0" if layout.sets else "SELECT * FROM partials"
        union = " UNION ALL BY NAME ".join([plain, *(f"SELECT * FROM moved{i}" for i in range(len(moved)))])
        others = [text for m in moved for text in m.combined]
        items = ", ".join([*self._key_names(), *layout.combined(), *others])
        group = ", ".join(self._key_names()) or "()"
        return sql(f"SELECT {items} FROM ({union}) GROUP BY {group}", sources)

    def _merge_groups(self, delta: pa.Table, layout: AccumulatorLayout, state: State, clock: Clock, sql: Sql) -> Step:
        keys = self._key_names()
        groups = state["groups"]
        hashes = groups.key_hash(delta, range(len(keys)))
        pairs = read_keyed(sql, groups, delta, hashes, len(keys))
        after = [text for placed in layout.all_accumulators() for text in placed.merge(PREVIOUS)]
        known = [PREVIOUS + name for name in layout.types]
        first = [_as_first_seen(name, type_) for name, type_ in self._key_types().items()]
        if any(values.extremes or values.lists for values in layout.sets):
            for i, values in enumerate(layout.sets):
                after += [text for e in values.extremes for text in _contested(e.function, e.name)]
                after += [f"{PREVIOUS}{each.name} AS {each.name}" for each in values.lists]
                after += [changed_column(i)] if values.lists else []
            kept = sql(f"SELECT {', '.join([*first, *after, *known, FOUND])} FROM pairs", {"pairs": pairs.rows})
            kept = rescanned(keys, layout, state, kept, sql)
            source, tables = "kept", {"kept": kept}
        else:
            source = f"(SELECT {', '.join([*first, *after, *known, FOUND])} FROM pairs)"
            tables = {"pairs": pairs.rows}
        types = self.output.types[len(keys) :]
        olds, news = [f"o{i}" for i in range(len(types))], [f"n{i}" for i in range(len(types))]
        differs = " OR ".join(f"{o} IS DISTINCT FROM {n}" for o, n in zip(olds, news, strict=True)) or "false"
        items = [*keys, *layout.types, FOUND, *layout.read(PREVIOUS, olds, types), *layout.read("", news, types)]
        answers = sql(
            f"SELECT *, {ROWS} > 0 AS alive, {differs} AS differs FROM (SELECT {', '.join(items)} FROM {source})",
            tables,
        )
        alive = answers.column("alive")
        kept_rows = answers.filter(alive).select([*keys, *layout.types])
        if self.ttl:
            kept_rows = kept_rows.append_column(WRITTEN, pa.array(np.full(kept_rows.num_rows, clock.now)))
        write(groups, pairs, kept_rows, pairs.sort_keys[alive.to_numpy()], self._gone(delta, clock))
        was, is_, differ = (answers.column(name).to_numpy() for name in (FOUND, "alive", "differs"))
        old, new = [*keys, *olds], [*keys, *news]
        changes = difference(answers, old, new, was, is_, differ, self.output, refresh=self.ttl > 0)
        return Step(changes=changes, unmatched_retractions=_unmatched_retractions(answers))


def _as_first_seen(key: str, type_: pa.DataType) -> str:
    """The key of a group as its rows have come out so far: 0.0 equals -0.0, but one does not take the other back."""
    if not (pa.types.is_floating(type_) or pa.types.is_nested(type_)):
        return key
    return f"CASE WHEN {FOUND} THEN {PREVIOUS}{key} ELSE {key} END AS {key}"


def _unmatched_retractions(answers: pa.Table) -> int:
    """How many retractions found no row to take back."""
    return -int(pc.sum(pc.min_element_wise(answers.column(ROWS), 0)).as_py() or 0)


def _contested(function: str, name: str) -> list[str]:
    """What is kept of an extreme: the old or a new one; `rescan` where the old has left and no arrival beats it."""
    before, left, best = PREVIOUS + name, f"left_{name}", "LEAST" if function == "MIN" else "GREATEST"
    lost = f"{before} IS NOT NULL AND {left} IS NOT DISTINCT FROM {before}"
    beaten = f"{name} IS NOT NULL AND {best}({name}, {before}) = {name}"
    return [
        f"CASE WHEN {lost} THEN {name} ELSE {best}({before}, {name}) END AS {name}",
        f"{lost} AND NOT ({beaten}) AS rescan_{name}",
    ]
