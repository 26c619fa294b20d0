"""The multisets of values behind DISTINCT aggregates, percentiles, and MIN, MAX, lists and bits of retracting rows.

A value counts from when it first comes until the last of its rows has gone: these two moments, and no others, are
folded into the group, as an insertion and a retraction of the distinct value. A list or a percentile is recomputed from
all values of a group whenever one of them comes or goes. The sets of one column, which differ in their filters, are one
table: a value, and how often it is in each of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from operators.aggregates.layout import AccumulatorLayout
from operators.aggregates.value_sets import ValueSet
from operators.columns import duckdb_type, numbered
from operators.names import AT, PREVIOUS, TAG, TIMES, VALUE, WEIGHT
from operators.sql import Sql
from operators.sql_text import (
    all_named,
    comma,
    either,
    every,
    inner,
    join,
    named,
    of,
    of_those,
    same,
    select,
    union_all,
)
from operators.state.operator_state import State
from operators.state.tables.keyed import KeyedTable


class Moved(NamedTuple):
    """The changes of a batch to a set: `deltas` has a row of accumulators for each key; `combined` combines several."""

    deltas: pa.Table
    combined: list[str]


def value_columns(layout: AccumulatorLayout, group: Sequence[int]) -> dict[str, pa.DataType]:
    """Return the columns after the keys in the table of a group of sets: a value, and its count in each set."""
    return {VALUE: layout.sets[group[0]].type, **{layout.places[at].times: pa.int64() for at in group}}


def fold_values(
    keys: Sequence[str],
    layout: AccumulatorLayout,
    group: Sequence[int],
    state: State,
    table: KeyedTable,
    partials: pa.Table,
    now: int,
    sql: Sql,
) -> Moved:
    """Fold the value partials of a `group` of sets into its `table`, and find what that changes for each key."""
    place = layout.places[group[0]]
    times = [layout.places[at].times for at in group]
    by = [*keys, VALUE]
    counts = [named(f"CAST(SUM({name}) AS BIGINT)", name) for name in times]
    summed = [*keys, named(place.value, VALUE), *counts]
    there = every([f"{TAG} = {place.tag}", either(f"{name} <> 0" for name in times)])
    delta = sql(select(summed, "partials", where=there, group_by=by), {"partials": partials})
    pairs = table.read(state, delta, sql)
    before = [pc.fill_null(pairs.rows.column(PREVIOUS + name), 0).to_numpy() for name in times]
    # A value that is retracted more often than inserted does not exist, and leaves nothing behind.
    after = [np.maximum(b + pairs.rows.column(name).to_numpy(), 0) for b, name in zip(before, times, strict=True)]
    turns = [(a > 0).astype(np.int64) - (b > 0) for a, b in zip(after, before, strict=True)]
    kept = pairs.rows.select(by)
    for name, count in zip(times, after, strict=True):
        kept = kept.append_column(name, pa.array(count))
    stays = np.logical_or.reduce([count > 0 for count in after])
    # If rows are only added, another occurrence of a value changes nothing that is stored.
    silent = layout.append and not any(layout.sets[at].repeats for at in group)
    differs = np.logical_or.reduce([turn > 0 for turn in turns]) if silent else None
    table.write(state, pairs, kept, now, stays=stays, changed=differs)
    changes = {f"{WEIGHT}{i}": turn for i, turn in enumerate(turns)}
    # Few sets need the count of a value, and most values that come are there already.
    changes |= {f"{TIMES}{i}": after[i] - before[i] for i, at in enumerate(group) if layout.sets[at].repeats}
    moved = pa.table([*pairs.rows.select(by).columns, *map(pa.array, changes.values())], names=[*by, *changes])
    moved = moved.filter(pa.array(np.logical_or.reduce([change != 0 for change in changes.values()])))
    parts = [part for i, at in enumerate(group) for part in _deltas(keys, layout.sets[at], at, i)]
    items = [text for at in group for text in combined(layout.sets[at], at)]
    return Moved(sql(union_all(parts, by_name=True), {"moved": moved}), items)


def changed_column(at: int) -> str:
    """Return the name of the column (BOOLEAN) that says whether a value of set `at` has come or gone."""
    return f"changed{at}"


def left_column(extreme: str) -> str:
    """Return the name of the column with the best value that was removed, beside that of the best that was added."""
    return f"left_{extreme}"


def rescan_column(extreme: str) -> str:
    """Return the name of the column (BOOLEAN) that says that an extreme must be recomputed from all values."""
    return f"rescan_{extreme}"


def _deltas(keys: Sequence[str], values: ValueSet, at: int, place: int) -> list[str]:
    """The accumulators of the values that have `moved` in set `at`, number `place` of its group: queries with a row for
    each key."""
    weight, times = f"{WEIGHT}{place}", f"{TIMES}{place}"
    items = [text for placed in values.accumulators for text in placed.create()]
    for extreme in values.extremes:
        best = [of_those(extreme.function, VALUE, f"{WEIGHT} {sign} 0") for sign in (">", "<")]
        items += all_named(best, [extreme.name, left_column(extreme.name)])
    parts = []
    if items:
        turned = select([*keys, VALUE, named(weight, WEIGHT)], "moved", where=f"{weight} <> 0")
        parts.append(select([*keys, *items], inner(turned), group_by=keys))
    if values.lists:
        # Either the count of a value matters, or only that it exists.
        differs = times if values.repeats else weight
        flag = named("true", changed_column(at))
        parts.append(select([*keys, flag], "moved", where=f"{differs} <> 0", group_by=keys))
    return parts


def combined(values: ValueSet, at: int) -> list[str]:
    """Return the SELECT items that combine several rows of changes of set `at`."""
    names = [(e.function, name) for e in values.extremes for name in (e.name, left_column(e.name))]
    changed = changed_column(at)
    listed = [named(f"COALESCE(BOOL_OR({changed}), false)", changed)] if values.lists else []
    return [*(named(f"{function}({name})", name) for function, name in names), *listed]


def rescanned(
    keys: Sequence[str],
    layout: AccumulatorLayout,
    state: State,
    tables: Sequence[KeyedTable],
    kept: pa.Table,
    sql: Sql,
) -> pa.Table:
    """Return `kept` with the columns that must be recomputed from all values of its key: each extreme whose value was
    removed, each list. `tables` are those of the groups of sets."""
    for group, table in zip(layout.groups, tables, strict=True):
        for at in group:
            values, times = layout.sets[at], layout.places[at].times
            found = "found"
            if len(group) > 1:
                found = inner(select([*keys, VALUE, named(times, TIMES)], "found", where=f"{times} > 0"))
            for extreme in values.extremes:
                flag = rescan_column(extreme.name)
                kept = _reread(keys, state, table, kept, flag, {extreme.name: extreme.text}, found, sql)
            if values.lists:
                again_each = {each.name: each.text for each in values.lists}
                ranked = values.ranked(keys, found)
                kept = _reread(keys, state, table, kept, changed_column(at), again_each, ranked, sql)
    return kept


def _reread(
    keys: Sequence[str],
    state: State,
    table: KeyedTable,
    kept: pa.Table,
    flag: str,
    texts: Mapping[str, str],
    source: str,
    sql: Sql,
) -> pa.Table:
    """`kept` with the columns `texts` computed from the values of each key in whose row `flag` is true.

    `source` is the relation to compute them from, over the values that are `found`.
    """
    mask = kept.column(flag)
    if not pc.any(mask).as_py():
        return kept
    rows = kept.filter(mask)
    found = table.read_groups(state, rows)
    again = {name: f"again_{name}" for name in texts}
    recomputed = select([*keys, *all_named(texts.values(), again.values())], source, group_by=keys)
    replaced = []
    for name in texts:
        type_ = duckdb_type(kept.schema.field(name).type)
        replaced.append(named(f"CAST(CASE WHEN {flag} THEN {again[name]} ELSE {name} END AS {type_})", name))
    source = join("kept", inner(recomputed, "recomputed"), same(of("kept", keys), of("recomputed", keys)), "LEFT JOIN")
    statement = select([f"kept.* REPLACE ({comma(replaced)})"], source, order_by=of("kept", [AT]))
    return sql(statement, {"kept": numbered(kept), "found": found}).drop_columns([AT])
