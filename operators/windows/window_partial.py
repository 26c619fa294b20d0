"""Pre-aggregate rows by slice and key: a slice is the longest stretch of time that no window cuts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import pyarrow as pa

from operators.aggregates.functions import AggregateSpec
from operators.aggregates.layout import AccumulatorLayout
from operators.base import KernelDefaults
from operators.changes import weigh
from operators.columns import as_changes, no_changes, positional
from operators.kernel import PerBlock, Step, tag_of
from operators.sql import Sql
from operators.state.operator_state import State
from operators.time import MIN_TIME, Clock
from operators.windows.event_time import event_clock, milliseconds, timed
from operators.windows.lateness import split_closed
from operators.windows.shapes import Attached, Window
from operators.windows.slices import Times, last_ends, local, slice_text


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowPartial(KernelDefaults):
    """A stateless step, before the exchange or just before `WindowAggregateOperator`.

    `time` is the position of the time attribute and `zone` as in `WindowRowsOperator`; with `Attached` windows `time`
    is not read. `processing` says that the time attribute is PROCTIME(). A row all of whose windows had been closed for
    `lateness` ms as of `clock.previous` comes out on `late`; where rows enter, before the exchange, pass a clock whose
    `previous` is MIN_TIME, and the operator behind counts what is late. The first columns of the output are the keys.
    """

    input: pa.Schema
    time: int
    window: Window
    keys: tuple[int, ...]
    aggregates: tuple[AggregateSpec, ...]
    append: bool = True
    processing: bool = False
    zone: str | None = None
    lateness: int = 0

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
        rows, dead = timed(inputs[0], self.window.end if isinstance(self.window, Attached) else self.time)
        rows, late = self.split_late(rows, event_clock(clock, self.processing).previous, sql)
        if rows.num_rows == 0:
            return Step(changes=no_changes(self.output), late=late, late_count=_count(late), dead=dead)
        source = "changes"
        if isinstance(self.window, Attached):
            slices = [(f"epoch_ms(c{self.window.end})", "s"), (f"epoch_ms(c{self.window.start})", "w")]
        else:
            start, inside = slice_text(self.window, local(f"c{self.time}", self.zone))
            slices = [(start, "s")]
            if inside is not None:
                source = f"(SELECT * FROM changes WHERE {inside})"
        keys = [(f"c{position}", f"k{i}") for i, position in enumerate(self.keys)]
        partials = sql(layout_of(self).partials([*keys, *slices], source), {"changes": rows})
        table = weigh(partials.rename_columns(self.output.names), 1)
        return Step(changes=as_changes(table, self.output), late=late, late_count=_count(late), dead=dead)

    def split_late(self, rows: pa.Table, previous: int, sql: Sql) -> tuple[pa.Table, dict[int, pa.Table]]:
        """Split `rows` into those in a window still open at `previous`, and late ones, by port."""
        if previous == MIN_TIME or rows.num_rows == 0:
            return rows, {}
        rows, late = split_closed(rows, self._last_ends(rows, sql), previous - self.lateness, self.zone)
        return rows, {0: late} if late.num_rows else {}

    def _last_ends(self, rows: pa.Table, sql: Sql) -> Times:
        if isinstance(self.window, Attached):
            return milliseconds(rows.column(self.window.end))
        start, _ = slice_text(self.window, local(f"c{self.time}", self.zone))
        slices: Times = sql(f"SELECT {start} AS s FROM changes", {"changes": rows}).column("s").to_numpy()
        return last_ends(self.window, slices)


def _count(late: dict[int, pa.Table]) -> int:
    return sum(rows.num_rows for rows in late.values())


@lru_cache(maxsize=64)
def layout_of(partial: WindowPartial) -> AccumulatorLayout:
    """The accumulators of a windowed grouping."""
    return AccumulatorLayout(partial.input, partial.aggregates, partial.append)


def key_names(partial: WindowPartial) -> list[str]:
    """The names of the keys: k0, k1, ..."""
    return [f"k{i}" for i in range(len(partial.keys))]


def partial_types(partial: WindowPartial) -> dict[str, pa.DataType]:
    """The columns of a partial, by name: the keys, the slice `s` (of attached windows the end, and `w`, the start), and
    what the layout keeps."""
    keys = {
        name: partial.input.field(position).type
        for name, position in zip(key_names(partial), partial.keys, strict=True)
    }
    slices = {"s": pa.int64()} | ({"w": pa.int64()} if isinstance(partial.window, Attached) else {})
    return keys | slices | layout_of(partial).partial_types()
