"""The values of a group in the order in which their rows arrived, behind FIRST_VALUE and LAST_VALUE of retracting rows.

Each row that comes has a number in its group. A value keeps the numbers of its rows, the oldest first; a row that is
taken back takes the oldest number of its value with it, as in Flink. So the answer follows from the order of the
changes alone, not from how they were cut into batches.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from operators.aggregates.distinct_values import Moved, combined
from operators.aggregates.layout import AccumulatorLayout, ValueSet
from operators.hashing import bucket_hash
from operators.sql import Sql
from operators.state.lookup import nested
from operators.state.operator_state import State, TableKind, TraceSpec
from operators.state.pairing import PREVIOUS, read_keyed, write


def arrival_trace(
    keys: dict[str, pa.DataType], values: ValueSet, timestamp: str | None, placing: int | None = None
) -> TraceSpec:
    """The numbers of the arrivals of each value of each key, found by key and value, or by key alone."""
    timestamps = {timestamp: pa.int64()} if timestamp is not None else {}
    schema = pa.schema(list((keys | {"v": values.type, "numbers": pa.list_(pa.int64())} | timestamps).items()))
    return TraceSpec(schema=schema, kind=TableKind.KEYED, timestamp=timestamp, placing=placing)


def fold_arrivals(
    keys: Sequence[str],
    layout: AccumulatorLayout,
    at: int,
    state: State,
    partials: pa.Table,
    timestamp: int | None,
    gone: int,
    sql: Sql,
) -> Moved:
    """Fold the rows of set `at` into its trace, and tell which first and last values came and left; the parameters are
    those of `fold_values`."""
    values, trace = layout.sets[at], state[f"values{at}"]
    delta = _numbered(keys, layout, at, state, partials, sql)
    sort_keys = nested(trace.key_hash(delta, range(len(keys))), bucket_hash(delta, range(len(keys) + 1)))
    pairs = read_keyed(sql, trace, delta, sort_keys, len(keys) + 1)
    statement = (
        f"SELECT {', '.join([*keys, 'v'])}, {PREVIOUS}numbers AS before,"
        f" list_concat(COALESCE({PREVIOUS}numbers, []), came)[gone + 1:] AS numbers FROM pairs"
    )
    rows = sql(statement, {"pairs": pairs.rows})
    stays = pc.greater(pc.list_value_length(rows.column("numbers")), 0)
    kept = rows.drop_columns(["before"]).filter(stays)
    if timestamp is not None and trace.spec.timestamp is not None:
        kept = kept.append_column(trace.spec.timestamp, pa.array(np.full(kept.num_rows, timestamp)))
    write(trace, pairs, kept, pairs.sort_keys[stays.to_numpy()], gone)
    items = []
    for extreme in values.extremes:
        place = 1 if extreme.function == "MIN" else -1
        for name, numbers in ((extreme.name, "numbers"), (f"left_{extreme.name}", "before")):
            moved = f"numbers[{place}] IS DISTINCT FROM before[{place}] AND {numbers}[{place}] IS NOT NULL"
            items.append(
                f"{extreme.function}(struct_pack(s := {numbers}[{place}], v := v)) FILTER (WHERE {moved}) AS {name}"
            )
    by = ", ".join(keys) or "()"
    return Moved(
        sql(f"SELECT {', '.join([*keys, *items])} FROM rows GROUP BY {by}", {"rows": rows}), combined(values, at)
    )


def _numbered(
    keys: Sequence[str], layout: AccumulatorLayout, at: int, state: State, partials: pa.Table, sql: Sql
) -> pa.Table:
    """For each key and value: the numbers of the rows that came, and how many have gone."""
    rows = partials.filter(pc.equal(partials.column("tag"), at + 1)).select([*keys, f"v{at}", "n"])
    rows = rows.rename_columns([*keys, "v", "n"]).append_column("_at", pa.array(np.arange(rows.num_rows)))
    by = ", ".join(keys) or "()"
    touched = sql(f"SELECT {', '.join([*keys, 'COUNT(*) AS rows'])} FROM rows GROUP BY {by}", {"rows": rows})
    groups = state["groups"]
    found = read_keyed(sql, groups, touched, groups.key_hash(touched, range(len(keys))), len(keys)).rows
    on = " AND ".join(f"r.{key} IS NOT DISTINCT FROM k.{key}" for key in keys) or "true"
    group = f"PARTITION BY {', '.join(f'r.{key}' for key in keys)} " if keys else ""
    number = f"COALESCE(known, 0) + SUM(GREATEST(n, 0)) OVER ({group}ORDER BY _at)"
    numbered = (
        f"SELECT {', '.join([*(f'r.{key}' for key in keys), 'v', 'n', '_at'])}, CAST({number} AS BIGINT) AS s"
        f" FROM rows r JOIN known k ON {on}"
    )
    came = "FLATTEN(LIST(LIST_RESIZE([s], GREATEST(n, 0), s) ORDER BY _at) FILTER (WHERE n > 0))"
    statement = (
        f"SELECT {', '.join([*keys, 'v'])}, COALESCE({came}, []) AS came,"
        f" CAST(COALESCE(SUM(-n) FILTER (WHERE n < 0), 0) AS BIGINT) AS gone"
        f" FROM ({numbered}) GROUP BY {', '.join([*keys, 'v'])}"
    )
    before = found.column(PREVIOUS + layout.arrivals)
    known = pa.table([*found.select(list(keys)).columns, before], names=[*keys, "known"])
    return sql(statement, {"rows": rows, "known": known})
