"""The multisets of values behind DISTINCT aggregates, and behind MIN and MAX where rows are taken back.

A value counts from when it first comes until the last of its rows has gone: these two moments, and no others, are
folded into the group, as an insertion and a retraction of the distinct value.
"""

from __future__ import annotations

from collections.abc import Sequence
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


class Moved(NamedTuple):
    """What a batch changes in a set: `deltas` has a row of accumulators a key; `combined` puts several together."""

    deltas: pa.Table
    combined: list[str]


def value_trace(keys: dict[str, pa.DataType], values: ValueSet, timestamp: str | None) -> TraceSpec:
    """How often each value of each key is there, found by key and value, or by key alone."""
    timestamps = {timestamp: pa.int64()} if timestamp is not None else {}
    schema = pa.schema(list((keys | {"v": values.type, "n": pa.int64()} | timestamps).items()))
    return TraceSpec(schema=schema, kind=TableKind.KEYED, timestamp=timestamp)


def fold_values(
    keys: Sequence[str],
    layout: AccumulatorLayout,
    at: int,
    state: State,
    partials: pa.Table,
    timestamp: int | None,
    sql: Sql,
) -> Moved:
    """Fold the value partials of set `at` into its trace, and tell what that changes for each key."""
    values, trace = layout.sets[at], state[f"values{at}"]
    by = ", ".join([*keys, "v"])
    delta = sql(
        f"SELECT {', '.join([*keys, f'v{at} AS v'])}, CAST(SUM(n) AS BIGINT) AS n FROM partials WHERE tag = {at + 1}"
        f" GROUP BY {by}",
        {"partials": partials},
    )
    places = range(len(keys))
    sort_keys = nested(bucket_hash(delta, places), bucket_hash(delta, range(len(keys) + 1)))
    pairs = read_keyed(sql, trace, delta, sort_keys, len(keys) + 1)
    before = pc.fill_null(pairs.rows.column(PREVIOUS + "n"), 0).to_numpy()
    after = before + pairs.rows.column("n").to_numpy()
    stays = after > 0
    turn = stays.astype(np.int64) - (before > 0)
    if layout.append and timestamp is None:  # that a value has come once more changes nothing that is kept
        stays = among(pairs.sort_keys, pairs.sort_keys[turn > 0])
        pairs = restrict_to(pairs, pairs.sort_keys[stays])
    kept = pairs.rows.select([*keys, "v"]).append_column("n", pa.array(after)).filter(pa.array(stays))
    if timestamp is not None and trace.spec.timestamp is not None:
        kept = kept.append_column(trace.spec.timestamp, pa.array(np.full(kept.num_rows, timestamp)))
    write(trace, pairs, kept, pairs.sort_keys[stays], timestamp or 0)
    turned = pairs.rows.select([*keys, "v"]).append_column(WEIGHT, pa.array(turn)).filter(pa.array(turn != 0))
    return Moved(sql(_deltas(keys, values), {"turned": turned}), _combined(values))


def _deltas(keys: Sequence[str], values: ValueSet) -> str:
    items = [text for placed in values.accumulators for text in placed.create()]
    for extreme in values.extremes:
        items.append(f"{extreme.function}(v) FILTER (WHERE {WEIGHT} > 0) AS {extreme.name}")
        items.append(f"{extreme.function}(v) FILTER (WHERE {WEIGHT} < 0) AS left_{extreme.name}")
    return f"SELECT {', '.join([*keys, *items])} FROM turned GROUP BY {', '.join(keys) or '()'}"


def _combined(values: ValueSet) -> list[str]:
    names = [(e.function, name) for e in values.extremes for name in (e.name, f"left_{e.name}")]
    return [f"{function}({name}) AS {name}" for function, name in names]


def rescanned(keys: Sequence[str], layout: AccumulatorLayout, state: State, kept: pa.Table, sql: Sql) -> pa.Table:
    """`kept` with each extreme whose value has left found anew among all values of its key."""
    for i, values in enumerate(layout.sets):
        for extreme in values.extremes:
            mask = kept.column(f"rescan_{extreme.name}")
            if not pc.any(mask).as_py():
                continue
            rows = kept.filter(mask)
            found = find_groups(state[f"values{i}"], bucket_hash(rows, range(len(keys))))
            on = " AND ".join(f"kept.{k} IS NOT DISTINCT FROM best.{k}" for k in keys) or "true"
            items, group = ", ".join([*keys, f"{extreme.function}(v) AS best"]), ", ".join(keys) or "()"
            best = f"SELECT {items} FROM found GROUP BY {group}"
            statement = (
                f"SELECT kept.* REPLACE (CAST(CASE WHEN rescan_{extreme.name} THEN best ELSE {extreme.name} END"
                f" AS {duckdb_type(values.type)}) AS {extreme.name})"
                f" FROM kept LEFT JOIN ({best}) AS best ON {on} ORDER BY kept._at"
            )
            numbered = kept.append_column("_at", pa.array(np.arange(kept.num_rows)))
            kept = sql(statement, {"kept": numbered, "found": found}).drop_columns(["_at"])
    return kept
