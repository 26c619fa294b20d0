"""The multisets of values behind DISTINCT aggregates, percentiles, and MIN, MAX, lists and bits of retracting rows.

A value counts from when it first comes until the last of its rows has gone: these two moments, and no others, are
folded into the group, as an insertion and a retraction of the distinct value. A list or a percentile is made anew of
all values of a group whenever one of them comes or goes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from operators.aggregates.layout import AccumulatorLayout, ValueSet
from operators.columns import duckdb_type
from operators.hashing import bucket_hash
from operators.kernel import WEIGHT
from operators.sql import Sql
from operators.state.block import among
from operators.state.lookup import find_groups, nested
from operators.state.operator_state import State, TableKind, TraceSpec
from operators.state.pairing import PREVIOUS, read_keyed, restrict_to, write
from operators.state.trace import Trace


class Moved(NamedTuple):
    """What a batch changes in a set: `deltas` has a row of accumulators a key; `combined` puts several together."""

    deltas: pa.Table
    combined: list[str]


def value_trace(
    keys: dict[str, pa.DataType], values: ValueSet, timestamp: str | None, placing: int | None = None
) -> TraceSpec:
    """How often each value of each key is there, found by key and value, or by key alone."""
    timestamps = {timestamp: pa.int64()} if timestamp is not None else {}
    schema = pa.schema(list((keys | {"v": values.type, "n": pa.int64()} | timestamps).items()))
    return TraceSpec(schema=schema, kind=TableKind.KEYED, timestamp=timestamp, placing=placing)


def fold_values(
    keys: Sequence[str],
    layout: AccumulatorLayout,
    at: int,
    state: State,
    partials: pa.Table,
    timestamp: int | None,
    gone: int,
    sql: Sql,
) -> Moved:
    """Fold the value partials of set `at` into its trace, and tell what that changes for each key.

    `timestamp` is when a row is written, where rows expire by that; `gone` is what a deletion expires by.
    """
    values, trace = layout.sets[at], state[f"values{at}"]
    by = ", ".join([*keys, "v"])
    delta = sql(
        f"SELECT {', '.join([*keys, f'v{at} AS v'])}, CAST(SUM(n) AS BIGINT) AS n FROM partials WHERE tag = {at + 1}"
        f" GROUP BY {by}",
        {"partials": partials},
    )
    places = range(len(keys))
    sort_keys = nested(trace.key_hash(delta, places), bucket_hash(delta, range(len(keys) + 1)))
    pairs = read_keyed(sql, trace, delta, sort_keys, len(keys) + 1)
    before = pc.fill_null(pairs.rows.column(PREVIOUS + "n"), 0).to_numpy()
    after = before + pairs.rows.column("n").to_numpy()
    stays = after > 0
    turn = stays.astype(np.int64) - (before > 0)
    if layout.append and timestamp is None and not values.repeats:
        # That a value has come once more changes nothing that is kept.
        stays = among(pairs.sort_keys, pairs.sort_keys[turn > 0])
        pairs = restrict_to(pairs, pairs.sort_keys[stays])
    kept = pairs.rows.select([*keys, "v"]).append_column("n", pa.array(after)).filter(pa.array(stays))
    if timestamp is not None and trace.spec.timestamp is not None:
        kept = kept.append_column(trace.spec.timestamp, pa.array(np.full(kept.num_rows, timestamp)))
    write(trace, pairs, kept, pairs.sort_keys[stays], gone)
    turned = pairs.rows.select([*keys, "v"]).append_column(WEIGHT, pa.array(turn)).filter(pa.array(turn != 0))
    changed = turned
    if values.repeats:
        changed = pairs.rows.select([*keys, "v"]).filter(pa.array(np.maximum(after, 0) != before))
    return Moved(sql(_deltas(keys, values, at), {"turned": turned, "changed": changed}), combined(values, at))


def changed_column(at: int) -> str:
    """The column (BOOLEAN) that says that some value of set `at` has come or gone."""
    return f"changed{at}"


def _deltas(keys: Sequence[str], values: ValueSet, at: int) -> str:
    items = [text for placed in values.accumulators for text in placed.create()]
    for extreme in values.extremes:
        items.append(f"{extreme.function}(v) FILTER (WHERE {WEIGHT} > 0) AS {extreme.name}")
        items.append(f"{extreme.function}(v) FILTER (WHERE {WEIGHT} < 0) AS left_{extreme.name}")
    by = ", ".join(keys) or "()"
    parts = [f"SELECT {', '.join([*keys, *items])} FROM turned GROUP BY {by}"] if items else []
    if values.lists:
        changed = f"COUNT(*) > 0 AS {changed_column(at)}"
        parts.append(f"SELECT {', '.join([*keys, changed])} FROM changed GROUP BY {by}")
    return " UNION ALL BY NAME ".join(parts)


def combined(values: ValueSet, at: int) -> list[str]:
    """SELECT items that put several rows of what is changed in set `at` together."""
    names = [(e.function, name) for e in values.extremes for name in (e.name, f"left_{e.name}")]
    listed = [f"COALESCE(BOOL_OR({changed_column(at)}), false) AS {changed_column(at)}"] if values.lists else []
    return [*(f"{function}({name}) AS {name}" for function, name in names), *listed]


def rescanned(keys: Sequence[str], layout: AccumulatorLayout, state: State, kept: pa.Table, sql: Sql) -> pa.Table:
    """`kept` with what has to be read anew of all values of its key: each extreme whose value has left, each list."""
    for i, values in enumerate(layout.sets):
        for extreme in values.extremes:
            flag = f"rescan_{extreme.name}"
            kept = _read_anew(keys, state[f"values{i}"], kept, flag, {extreme.name: extreme.text}, "found", sql)
        if values.lists:
            again_each = {each.name: each.text for each in values.lists}
            ranked = values.ranked(keys, "found")
            kept = _read_anew(keys, state[f"values{i}"], kept, changed_column(i), again_each, ranked, sql)
    return kept


def _read_anew(
    keys: Sequence[str], trace: Trace, kept: pa.Table, flag: str, texts: Mapping[str, str], source: str, sql: Sql
) -> pa.Table:
    """`kept` with the columns `texts` computed from the values of each key in whose row `flag` is true.

    `source` is the relation to compute them from, over the values that are `found`.
    """
    mask = kept.column(flag)
    if not pc.any(mask).as_py():
        return kept
    rows = kept.filter(mask)
    found = find_groups(trace, trace.key_hash(rows, range(len(keys))))
    on = " AND ".join(f"kept.{k} IS NOT DISTINCT FROM anew.{k}" for k in keys) or "true"
    items = ", ".join([*keys, *(f"{text} AS again_{name}" for name, text in texts.items())])
    anew = f"SELECT {items} FROM {source} GROUP BY {', '.join(keys) or '()'}"
    replaced = ", ".join(
        f"CAST(CASE WHEN {flag} THEN again_{name} ELSE {name} END"
        f" AS {duckdb_type(kept.schema.field(name).type)}) AS {name}"
        for name in texts
    )
    statement = f"SELECT kept.* REPLACE ({replaced}) FROM kept LEFT JOIN ({anew}) AS anew ON {on} ORDER BY kept._at"
    numbered = kept.append_column("_at", pa.array(np.arange(kept.num_rows)))
    return sql(statement, {"kept": numbered, "found": found}).drop_columns(["_at"])
