"""Put the partials of closing windows together, those of values as distinct values."""

from __future__ import annotations

from collections.abc import Sequence

from operators.aggregates.layout import AccumulatorLayout
from operators.kernel import WEIGHT


def totals(layout: AccumulatorLayout, by: Sequence[str], rows: str) -> str:
    """The statement that puts the partials of each window and key together, those of values as distinct values."""
    keys = ", ".join(by)
    if not layout.sets:
        return f"SELECT {keys}, {', '.join(layout.combined())} FROM {rows} GROUP BY {keys}"
    parts = [f"SELECT {', '.join([*by, *layout.plain])} FROM rows WHERE tag = 0"]
    others = []
    for i, values in enumerate(layout.sets):
        items = [text for placed in values.accumulators for text in placed.create()]
        items += [f"{extreme.function}(v) AS {extreme.name}" for extreme in values.extremes]
        items += [f"{each.text} AS {each.name}" for each in values.lists]
        others += [f"{extreme.function}({extreme.name}) AS {extreme.name}" for extreme in values.extremes]
        others += [f"ANY_VALUE({each.name}) AS {each.name}" for each in values.lists]
        distinct = (
            f"SELECT {keys}, v{i} AS v, CAST(SUM(n) AS BIGINT) AS n, CAST(1 AS BIGINT) AS {WEIGHT}"
            f" FROM rows WHERE tag = {i + 1}"
            f" GROUP BY {keys}, v{i} HAVING SUM(n) > 0"
        )
        parts.append(f"SELECT {', '.join([*by, *items])} FROM {values.ranked(by, f'({distinct})')} GROUP BY {keys}")
    union = " UNION ALL BY NAME ".join(parts)
    gathered = ", ".join([*layout.combined(), *others])
    return f"WITH rows AS {rows} SELECT {keys}, {gathered} FROM ({union}) GROUP BY {keys}"
