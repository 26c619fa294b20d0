"""Pre-aggregate rows by slice and key: a slice is the longest stretch of time that no window cuts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields

import pyarrow as pa

from operators.aggregates.functions import AggregateSpec, follows_arrival
from operators.aggregates.partial import PartialAggregate, layout_of
from operators.arrays import Times
from operators.columns import no_changes
from operators.kernel import Step, count_late
from operators.names import ATTACHED_START, SEQUENCE, START, WEIGHT, column
from operators.sql import Sql
from operators.sql_text import named, select
from operators.state.operator_state import State
from operators.time import MIN_TIME, Clock
from operators.windows.closing import split_closed
from operators.windows.event_time import event_clock, milliseconds, timed
from operators.windows.shapes import Attached, Hop, SlicedWindow
from operators.windows.slices import last_ends, local, slice_text


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowPartial(PartialAggregate):
    """Aggregates the rows of a batch by slice and key, without state: before the exchange, or just before
    `WindowAggregateOperator`.

    `time` is the position of the time attribute and `zone` as in `WindowRowsOperator`; with `Attached` windows `time`
    is not read. `processing` says that the time attribute is PROCTIME(). A row all of whose windows had been closed for
    `lateness` ms as of `clock.previous` comes out on `late`; where rows enter, before the exchange, pass a clock whose
    `previous` is MIN_TIME, and the operator behind counts what is late. The first columns of the output are the keys.

    The rows of two slices are put together in the order of the slices. Where that of arrival is asked for, rows are
    `numbered`: their numbers are the last column of the input, SEQUENCE, and values are kept beside them.
    """

    input: pa.Schema
    time: int
    window: SlicedWindow
    keys: tuple[int, ...]
    aggregates: tuple[AggregateSpec, ...]
    append: bool = True
    processing: bool = False
    zone: str | None = None
    lateness: int = 0
    numbered: bool = False

    @property
    def inputs(self) -> tuple[pa.Schema, ...]:
        return (self.input.append(pa.field(SEQUENCE, pa.int64())) if self.numbered else self.input,)

    @property
    def number(self) -> str:
        """SEQUENCE where rows are numbered."""
        return SEQUENCE if self.numbered else ""

    def times(self) -> tuple[str, ...]:
        """Return `s`, the start of a slice in ms; of attached windows `s`, the end, and `w`, the start."""
        return (START, ATTACHED_START) if isinstance(self.window, Attached) else (START,)

    @property
    def in_order(self) -> bool:
        """Whether an answer depends on the order of the partials."""
        ordered = (follows_arrival(a.function, distinct=a.distinct, append=self.append) for a in self.aggregates)
        return not self.numbered and any(ordered)

    def advance(self, state: State, inputs: Sequence[pa.Table], clock: Clock, sql: Sql) -> Step:
        rows, dead = timed(inputs[0], self.window.end if isinstance(self.window, Attached) else self.time)
        rows = self._in_windows(rows, sql)
        rows, late = self.split_late(rows, event_clock(clock, self.processing).previous, sql)
        if rows.num_rows == 0:
            return Step(changes=no_changes(self.output), late=late, late_count=count_late(late), dead=dead)
        if isinstance(self.window, Attached):
            times = [f"epoch_ms({column(place)})" for place in (self.window.end, self.window.start)]
        else:
            times = [slice_text(self.window, local(column(self.time), self.zone))[0]]
        return Step(changes=self.partials(rows, times, sql), late=late, late_count=count_late(late), dead=dead)

    def _in_windows(self, rows: pa.Table, sql: Sql) -> pa.Table:
        """The rows that are in a window: one in the gap between two is not late, whenever it comes."""
        if not isinstance(self.window, Hop) or self.window.slide <= self.window.size:
            return rows
        _, inside = slice_text(self.window, local(column(self.time), self.zone))
        return rows.filter(sql(select([named(inside or "true", "inside")], "changes"), {"changes": rows})["inside"])

    def split_late(self, rows: pa.Table, previous: int, sql: Sql) -> tuple[pa.Table, dict[int, pa.Table]]:
        """Split `rows` into those in a window still open at `previous`, and late ones, by port."""
        if previous == MIN_TIME or rows.num_rows == 0:
            return rows, {}
        rows, late = split_closed(rows, self._last_ends(rows, sql), previous - self.lateness, self.zone)
        return rows, {0: late.select([*self.input.names, WEIGHT])} if late.num_rows else {}

    def _last_ends(self, rows: pa.Table, sql: Sql) -> Times:
        if isinstance(self.window, Attached):
            return milliseconds(rows.column(self.window.end))
        start, _ = slice_text(self.window, local(column(self.time), self.zone))
        slices: Times = sql(select([named(start, START)], "changes"), {"changes": rows}).column(START).to_numpy()
        return last_ends(self.window, slices)


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupedWindowPartial(WindowPartial):
    """The partials are for groups by key and window, not for slices: `FiringAggregateOperator` keeps these."""

    @property
    def windowed(self) -> bool:
        return False


def for_groups(partial: WindowPartial) -> WindowPartial:
    """Return `partial` for `FiringAggregateOperator`: itself where its layout is that of groups, as checkpoints have
    it."""
    grouped = GroupedWindowPartial(**{each.name: getattr(partial, each.name) for each in fields(partial)})
    layout = layout_of(grouped)
    same = not layout.ordered and layout.partial_types() == layout_of(partial).partial_types()
    return partial if same else grouped
