"""Put the partials of closing windows together, those of values as distinct values."""

from __future__ import annotations

from collections.abc import Sequence

from operators.aggregates.layout import AccumulatorLayout
from operators.names import TAG, TIMES, VALUE, WEIGHT, value_of
from operators.sql_text import inner, named, select, total, union_all


def totals(layout: AccumulatorLayout, by: Sequence[str], rows: str) -> str:
    """Return the statement that puts the partials of each window and key together, those of values as distinct
    values."""
    if not layout.sets:
        return select([*by, *layout.combined()], rows, group_by=by)
    parts = [select([*by, *layout.plain], "rows", where=f"{TAG} = 0")]
    others = []
    for i, values in enumerate(layout.sets):
        items = [text for placed in values.accumulators for text in placed.create()]
        items += [named(f"{extreme.function}({VALUE})", extreme.name) for extreme in values.extremes]
        items += [named(each.text, each.name) for each in values.lists]
        others += [named(f"{extreme.function}({extreme.name})", extreme.name) for extreme in values.extremes]
        others += [named(f"ANY_VALUE({each.name})", each.name) for each in values.lists]
        value = value_of(i)
        distinct = select(
            [*by, named(value, VALUE), total(TIMES), named("CAST(1 AS BIGINT)", WEIGHT)],
            "rows",
            where=f"{TAG} = {i + 1}",
            group_by=[*by, value],
            having=f"SUM({TIMES}) > 0",
        )
        parts.append(select([*by, *items], values.ranked(by, inner(distinct)), group_by=by))
    union = inner(union_all(parts, by_name=True))
    return f"WITH rows AS {rows} {select([*by, *layout.combined(), *others], union, group_by=by)}"
