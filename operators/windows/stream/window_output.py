"""The output of a closed window: its rows, or the aggregates of its groups.

A window is a range of rows that are in order. The rows of the windows that close are written out, once for each window
that a row is in, a portion of windows at a time, and grouped within their window: nothing is kept of a window.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import pyarrow as pa

from operators.aggregates.functions import AggregateSpec
from operators.aggregates.layout import AccumulatorLayout
from operators.arrays import Positions, in_order, spread
from operators.base import KernelDefaults
from operators.changes import weigh
from operators.columns import as_changes, no_changes
from operators.names import WINDOW, columns, key_columns, old_answers
from operators.sql import Sql
from operators.sql_text import inner, select
from operators.windows.stream.ranges import Ordered, Ranges
from operators.windows.window_totals import totals


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowOutput:
    """The columns of `output`: the keys, of rows (where `keys` is None) those of the input; the aggregates, of the
    window and its `keys`, or of the window; the start and the end of the window, and the time of the row (of a group:
    the end of the window), in ms.

    `seen` is the position of a BOOLEAN column: of a window only the rows come out, and are aggregated, for which it is
    true.
    """

    input: pa.Schema
    output: pa.Schema
    seen: int | None = None
    keys: tuple[int, ...] | None = None
    aggregates: tuple[AggregateSpec, ...] = ()

    def changes(self, ordered: Ordered, windows: Ranges, sql: Sql) -> pa.Table:
        """Return the answers of `windows`, one after the other."""
        parts = [no_changes(self.output)]
        parts += [self._portion(ordered, portion, sql) for portion in windows.portions()]
        return pa.concat_tables(parts)

    def _portion(self, ordered: Ordered, windows: Ranges, sql: Sql) -> pa.Table:
        counts = windows.last - windows.first
        at = spread(windows.first, counts)
        owner = np.repeat(np.arange(len(counts)), counts)
        if self.seen is not None:
            visible = ordered.rows.column(self.seen).fill_null(False).to_numpy()[at]
            at, owner = at[visible], owner[visible]
        rows = ordered.rows.select(self.input.names).take(pa.array(at))
        shown, times = rows.columns, ordered.times[at]
        if self.keys is not None:
            shown, owner = self._grouped(self.keys, rows, owner, sql)
            times = windows.ends[owner]
        elif self.aggregates:
            answers, answered = self._grouped((), rows, owner, sql)
            of = pa.array(np.searchsorted(answered, owner))
            shown = [*shown, *(answer.take(of) for answer in answers)]
        shown = [*shown, pa.array(windows.starts[owner]), pa.array(windows.ends[owner]), pa.array(times)]
        return as_changes(weigh(pa.table(shown, names=self.output.names), 1), self.output)

    def _grouped(
        self, keys: tuple[int, ...], rows: pa.Table, owner: Positions, sql: Sql
    ) -> tuple[list[pa.ChunkedArray], Positions]:
        """The keys and the aggregates of each group, in the order of the windows, and the window of each."""
        layout = _layout(self.input, self.aggregates)
        names = key_columns(len(keys))
        by = zip(columns(keys), names, strict=True)
        statement = layout.partials([*by, (WINDOW, WINDOW)], "changes")
        partials = sql(statement, {"changes": rows.append_column(WINDOW, pa.array(owner))})
        types = self.output.types[-3 - len(self.aggregates) : -3]
        whole = "partials"
        if layout.sets:
            whole = inner(totals(layout, [*names, WINDOW], inner(select(["*"], "partials"))))
        items = [*names, *layout.read("", old_answers(len(types)), types), WINDOW]
        groups = sql(select(items, whole), {"partials": partials})
        groups, windows = in_order(groups, groups.column(WINDOW).to_numpy())
        return groups.drop_columns([WINDOW]).columns, windows


@lru_cache(maxsize=64)
def _layout(input: pa.Schema, aggregates: tuple[AggregateSpec, ...]) -> AccumulatorLayout:
    return AccumulatorLayout(input, aggregates, append=True)


class StreamWindowDefaults(KernelDefaults):
    """The defaults of a kernel whose windows come out as `result` says."""

    __slots__ = ()

    result: WindowOutput

    @property
    def inputs(self) -> tuple[pa.Schema, ...]:
        """The only input."""
        return (self.result.input,)

    @property
    def output(self) -> pa.Schema:
        """The columns of the result."""
        return self.result.output
