"""The values of a group in the order in which their rows arrived, behind FIRST_VALUE and LAST_VALUE of retracting rows.

Each row that comes has a number in its group. A value keeps the numbers of its rows, the oldest first; a row that is
retracted takes the oldest number of its value with it, as in Flink. So the answer follows from the order of the
changes alone, not from how they were cut into batches.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from operators.aggregates.distinct_values import Moved, combined, left_column
from operators.aggregates.layout import AccumulatorLayout
from operators.aggregates.value_sets import ValueSet
from operators.columns import numbered
from operators.names import AT, NUMBERS, PREVIOUS, TAG, TIMES, VALUE
from operators.sql import Sql
from operators.sql_text import inner, join, named, of, of_those, over, same, select
from operators.state.operator_state import State
from operators.state.tables.keyed import KeyedTable


def arrival_columns(values: ValueSet) -> dict[str, pa.DataType]:
    """Return the columns after the keys in the table of a set: a value, and the numbers of its arrivals."""
    return {VALUE: values.type, NUMBERS: pa.list_(pa.int64())}


def fold_arrivals(
    keys: Sequence[str],
    layout: AccumulatorLayout,
    at: int,
    state: State,
    tables: tuple[KeyedTable, KeyedTable],
    partials: pa.Table,
    now: int,
    sql: Sql,
) -> Moved:
    """Fold the rows of set `at` into its table, and find which first and last values came and left.

    `tables` are that of the groups and that of the set; the other parameters are those of `fold_values`.
    """
    values, (groups, table) = layout.sets[at], tables
    delta = _numbered(keys, layout, at, state, groups, partials, sql)
    pairs = table.read(state, delta, sql)
    before = PREVIOUS + NUMBERS
    after = f"list_concat(COALESCE({before}, []), came)[gone + 1:]"
    statement = select([*keys, VALUE, named(before, "before"), named(after, NUMBERS)], "pairs")
    rows = sql(statement, {"pairs": pairs.rows})
    stays = pc.greater(pc.list_value_length(rows.column(NUMBERS)), 0).to_numpy()
    table.write(state, pairs, rows, now, stays=stays)
    items = []
    for extreme in values.extremes:
        place = 1 if extreme.function == "MIN" else -1
        for name, numbers in ((extreme.name, NUMBERS), (left_column(extreme.name), "before")):
            moved = f"{NUMBERS}[{place}] IS DISTINCT FROM before[{place}] AND {numbers}[{place}] IS NOT NULL"
            end = f"struct_pack(s := {numbers}[{place}], v := {VALUE})"
            items.append(named(of_those(extreme.function, end, moved), name))
    return Moved(sql(select([*keys, *items], "rows", group_by=keys), {"rows": rows}), combined(values, at))


def _numbered(
    keys: Sequence[str],
    layout: AccumulatorLayout,
    at: int,
    state: State,
    groups: KeyedTable,
    partials: pa.Table,
    sql: Sql,
) -> pa.Table:
    """For each key and value: the numbers of the rows that came, and the count of those that were retracted."""
    place = layout.places[at]
    rows = partials.filter(pc.equal(partials.column(TAG), place.tag)).select([*keys, place.value, place.times])
    rows = numbered(rows.rename_columns([*keys, VALUE, TIMES]))
    touched = sql(select([*keys, "COUNT(*) AS rows"], "rows", group_by=keys), {"rows": rows})
    found = groups.read(state, touched, sql).rows
    ours, theirs = of("r", keys), of("k", keys)
    number = f"CAST(COALESCE(known, 0) + SUM(GREATEST({TIMES}, 0)) {over(ours, [AT])} AS BIGINT)"
    both = join("rows r", "known k", same(ours, theirs))
    each = select([*ours, VALUE, TIMES, AT, named(number, "s")], both)
    came = f"FLATTEN(LIST(LIST_RESIZE([s], GREATEST({TIMES}, 0), s) ORDER BY {AT}) FILTER (WHERE {TIMES} > 0))"
    gone = f"CAST(COALESCE({of_those('SUM', f'-{TIMES}', f'{TIMES} < 0')}, 0) AS BIGINT)"
    items = [*keys, VALUE, named(f"COALESCE({came}, [])", "came"), named(gone, "gone")]
    statement = select(items, inner(each), group_by=[*keys, VALUE])
    before = found.column(PREVIOUS + layout.arrivals)
    known = pa.table([*found.select(list(keys)).columns, before], names=[*keys, "known"])
    return sql(statement, {"rows": rows, "known": known})
