"""The multisets of values behind DISTINCT aggregates, percentiles, and MIN, MAX, lists and bits of retracting rows.

A value counts from when it first comes until the last of its rows has gone: these two moments, and no others, are
folded into the group, as an insertion and a retraction of the distinct value. A list or a percentile is recomputed from
all values of a group whenever one of them comes or goes.
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
from operators.sql_text import all_named, comma, every, inner, join, named, of, same, select, union_all
from operators.state.operator_state import State
from operators.state.tables.keyed import KeyedTable


class Moved(NamedTuple):
    """The changes of a batch to a set: `deltas` has a row of accumulators a key; `combined` puts several together."""

    deltas: pa.Table
    combined: list[str]


def value_columns(values: ValueSet) -> dict[str, pa.DataType]:
    """Return the columns behind the keys in the table of a set: a value, and how often it is there."""
    return {VALUE: values.type, TIMES: pa.int64()}


def fold_values(
    keys: Sequence[str],
    layout: AccumulatorLayout,
    at: int,
    state: State,
    table: KeyedTable,
    partials: pa.Table,
    now: int,
    sql: Sql,
) -> Moved:
    """Fold the value partials of set `at` into its `table`, and tell what that changes for each key."""
    values, place = layout.sets[at], layout.places[at]
    by = [*keys, VALUE]
    summed = [*keys, named(place.value, VALUE), named(f"CAST(SUM({place.times}) AS BIGINT)", TIMES)]
    there = every([f"{TAG} = {place.tag}", f"{place.times} <> 0"])
    statement = select(summed, "partials", where=there, group_by=by)
    delta = sql(statement, {"partials": partials})
    pairs = table.read(state, delta, sql)
    before = pc.fill_null(pairs.rows.column(PREVIOUS + TIMES), 0).to_numpy()
    after = before + pairs.rows.column(TIMES).to_numpy()
    stays = after > 0
    turn = stays.astype(np.int64) - (before > 0)
    kept = pairs.rows.select(by).append_column(TIMES, pa.array(after))
    # Where rows only come, that a value has come once more changes nothing that is kept.
    differs = turn > 0 if layout.append and not values.repeats else None
    table.write(state, pairs, kept, now, stays=stays, changed=differs)
    turned = pairs.rows.select(by).append_column(WEIGHT, pa.array(turn)).filter(pa.array(turn != 0))
    changed = turned
    if values.repeats:
        changed = pairs.rows.select(by).filter(pa.array(np.maximum(after, 0) != before))
    return Moved(sql(_deltas(keys, values, at), {"turned": turned, "changed": changed}), combined(values, at))


def changed_column(at: int) -> str:
    """Return the name of the column (BOOLEAN) that says that some value of set `at` has come or gone."""
    return f"changed{at}"


def left_column(extreme: str) -> str:
    """Return the name of the column that holds the best value that has left, beside that of the best that came."""
    return f"left_{extreme}"


def rescan_column(extreme: str) -> str:
    """Return the name of the column (BOOLEAN) that says that an extreme must be recomputed from all values."""
    return f"rescan_{extreme}"


def _deltas(keys: Sequence[str], values: ValueSet, at: int) -> str:
    items = [text for placed in values.accumulators for text in placed.create()]
    for extreme in values.extremes:
        best = f"{extreme.function}({VALUE}) FILTER (WHERE {WEIGHT}"
        items += all_named([f"{best} > 0)", f"{best} < 0)"], [extreme.name, left_column(extreme.name)])
    parts = [select([*keys, *items], "turned", group_by=keys)] if items else []
    if values.lists:
        changed = named("COUNT(*) > 0", changed_column(at))
        parts.append(select([*keys, changed], "changed", group_by=keys))
    return union_all(parts, by_name=True)


def combined(values: ValueSet, at: int) -> list[str]:
    """Return the SELECT items that put several rows of what is changed in set `at` together."""
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
    """Return `kept` with what must be recomputed from all values of its key: each extreme whose value has left, each
    list. `tables` are those of the sets."""
    for i, (values, table) in enumerate(zip(layout.sets, tables, strict=True)):
        for extreme in values.extremes:
            flag = rescan_column(extreme.name)
            kept = _read_anew(keys, state, table, kept, flag, {extreme.name: extreme.text}, "found", sql)
        if values.lists:
            again_each = {each.name: each.text for each in values.lists}
            ranked = values.ranked(keys, "found")
            kept = _read_anew(keys, state, table, kept, changed_column(i), again_each, ranked, sql)
    return kept


def _read_anew(
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
    anew = select([*keys, *all_named(texts.values(), again.values())], source, group_by=keys)
    replaced = []
    for name in texts:
        type_ = duckdb_type(kept.schema.field(name).type)
        replaced.append(named(f"CAST(CASE WHEN {flag} THEN {again[name]} ELSE {name} END AS {type_})", name))
    source = join("kept", inner(anew, "anew"), same(of("kept", keys), of("anew", keys)), "LEFT JOIN")
    statement = select([f"kept.* REPLACE ({comma(replaced)})"], source, order_by=of("kept", [AT]))
    return sql(statement, {"kept": numbered(kept), "found": found}).drop_columns([AT])
