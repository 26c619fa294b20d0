"""Pre-aggregate rows by slice and key: a slice is the longest stretch of time that no window cuts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields

import pyarrow as pa

from operators.aggregates.functions import AggregateSpec, follows_arrival
from operators.aggregates.partial import PartialAggregate, layout_of
from operators.arrays import Times
from operators.columns import no_changes
from operators.kernel import Step
from operators.names import ATTACHED_START, START, column
from operators.sql import Sql
from operators.sql_text import inner, named, select
from operators.state.operator_state import State
from operators.time import MIN_TIME, Clock
from operators.windows.closing import closed_at, split_closed
from operators.windows.event_time import event_clock, milliseconds, timed
from operators.windows.shapes import Attached, Cumulate, Hop, SlicedWindow
from operators.windows.slices import InWindows, last_ends, local, rows_in_windows, slice_text

MOST_COPIES = 500_000
"""Rows that are aggregated at a time where each is copied for all windows that it is in."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowPartial(PartialAggregate):
    """A stateless step, before the exchange or just before `WindowAggregateOperator`.

    `time` is the position of the time attribute and `zone` as in `WindowRowsOperator`; with `Attached` windows `time`
    is not read. `processing` says that the time attribute is PROCTIME(). A row all of whose windows had been closed for
    `lateness` ms as of `clock.previous` comes out on `late`; where rows enter, before the exchange, pass a clock whose
    `previous` is MIN_TIME, and the operator behind counts what is late. The first columns of the output are the keys.

    The rows of two slices are put together in the order of the slices. Where that of arrival is asked for, a partial is
    of `each_window` instead, and the step stands behind the exchange, where it tells which rows are late.
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
    each_window: bool = False

    def times(self) -> tuple[str, ...]:
        """Return `s`, the start of a slice in ms; of attached windows `s`, the end, and `w`, the start."""
        return (START, ATTACHED_START) if isinstance(self.carried, Attached) else (START,)

    @property
    def carried(self) -> SlicedWindow:
        """The windows as the partials carry them: with start and end where each window has partials of its own."""
        return Attached(len(self.keys) + 1, len(self.keys)) if self.each_window else self.window

    @property
    def in_order(self) -> bool:
        """Whether an answer depends on the order of the partials."""
        return any(follows_arrival(a.function, distinct=a.distinct, append=self.append) for a in self.aggregates)

    def advance(self, state: State, inputs: Sequence[pa.Table], clock: Clock, sql: Sql) -> Step:
        rows, dead = timed(inputs[0], self.window.end if isinstance(self.window, Attached) else self.time)
        previous = event_clock(clock, self.processing).previous
        rows, late = self.split_late(rows, previous, sql)
        if rows.num_rows == 0:
            return Step(changes=no_changes(self.output), late=late, late_count=_count(late), dead=dead)
        source = "changes"
        if isinstance(self.window, Attached):
            times = [f"epoch_ms({column(place)})" for place in (self.window.end, self.window.start)]
        elif self.each_window:
            changes = self._of_each_window(rows, self.window, previous, sql)
            return Step(changes=changes, late=late, late_count=_count(late), dead=dead)
        else:
            start, inside = slice_text(self.window, local(column(self.time), self.zone))
            times = [start]
            if inside is not None:
                source = inner(select(["*"], "changes", where=inside))
        changes = self.partials(rows, times, sql, source)
        return Step(changes=changes, late=late, late_count=_count(late), dead=dead)

    def split_late(self, rows: pa.Table, previous: int, sql: Sql) -> tuple[pa.Table, dict[int, pa.Table]]:
        """Split `rows` into those in a window still open at `previous`, and late ones, by port."""
        if previous == MIN_TIME or rows.num_rows == 0:
            return rows, {}
        rows, late = split_closed(rows, self._last_ends(rows, sql), previous - self.lateness, self.zone)
        return rows, {0: late} if late.num_rows else {}

    def _of_each_window(self, rows: pa.Table, window: Hop | Cumulate, previous: int, sql: Sql) -> pa.Table:
        """The partials of each window, of so few rows at a time that their copies for all windows fit."""
        step = window.slide if isinstance(window, Hop) else window.step
        few = max(1, MOST_COPIES * step // window.size)
        pieces = (rows.slice(start, few) for start in range(0, rows.num_rows, few))
        times = self.times()
        return pa.concat_tables(
            self.partials(self._in_windows(piece, window, previous, sql), times, sql) for piece in pieces
        )

    def _in_windows(self, rows: pa.Table, window: Hop | Cumulate, previous: int, sql: Sql) -> pa.Table:
        """Each row once a window that it is in and that takes rows yet."""
        found = rows_in_windows(window, self._slices(rows, window, sql))
        if previous > MIN_TIME:
            open_ = ~closed_at(previous - self.lateness, found.ends, self.zone)
            found = InWindows(found.rows[open_], found.starts[open_], found.ends[open_])
        rows = rows.take(pa.array(found.rows))
        for name, bounds in zip(self.times(), (found.ends, found.starts), strict=True):
            rows = rows.append_column(name, pa.array(bounds))
        return rows

    def _slices(self, rows: pa.Table, window: Hop | Cumulate, sql: Sql) -> Times:
        start, _ = slice_text(window, local(column(self.time), self.zone))
        slices: Times = sql(select([named(start, START)], "changes"), {"changes": rows}).column(START).to_numpy()
        return slices

    def _last_ends(self, rows: pa.Table, sql: Sql) -> Times:
        if isinstance(self.window, Attached):
            return milliseconds(rows.column(self.window.end))
        return last_ends(self.window, self._slices(rows, self.window, sql))


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


def _count(late: dict[int, pa.Table]) -> int:
    return sum(rows.num_rows for rows in late.values())
