"""Sessions that may grow only so long: they end after a pause, and at a tick once they are longer than the ticks are
apart.

Ticks are the multiples of `longest`. A tick ends the sessions whose first row is more than `longest` before it; a row
that comes after it, without a pause, is in a session that begins at the tick. So a session with a first row at t ends
at the second tick after t at the latest, and the sessions of a partition follow from its rows in the order of time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from operators.arrays import Mask, Positions, Times
from operators.kernel import Step, count_late
from operators.sql import Sql
from operators.state.operator_state import State, TraceSpec
from operators.time import MIN_TIME, Clock
from operators.windows.event_time import running_clock
from operators.windows.slices import instants, walls
from operators.windows.stream.partitions import Arrivals, Closed, Partitions
from operators.windows.stream.ranges import following, orbit, places_of
from operators.windows.stream.time_order import released, waiting
from operators.windows.stream.window_output import StreamWindowDefaults, WindowOutput

_REMEMBERED = ("open", "first", "last", "start", "wakes")


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionWindow(StreamWindowDefaults):
    """Sessions with a pause of more than `timeout` ms between them, checked every `longest` ms by the clock of `zone`.

    Rows are taken by time once the watermark reaches it; where `time` is None, at once and with the time of the batch.
    A session lasts from its first row, or the tick that ended the one before, to its last row plus the timeout, or the
    tick that ends it.

    >>> from tests.operators.drawn_windows import windows_of
    >>> windows_of(
    ...     lambda r: SessionWindow(result=r, partition=(), time=0, longest=100, timeout=10), times=[1, 5, 30]
    ... )
    {(1, 15): [1, 5], (30, 40): [30]}
    """

    result: WindowOutput
    partition: tuple[int, ...]
    time: int | None
    longest: int
    timeout: int
    zone: str | None = None

    @property
    def _partitions(self) -> Partitions:
        return Partitions(self.result.input, self.partition, _REMEMBERED, wakes=True)

    def traces(self) -> Mapping[str, TraceSpec]:
        return {**self._partitions.traces(), **waiting(self.result.input, self.time, self.partition)}

    def advance(self, state: State, inputs: Sequence[pa.Table], clock: Clock, sql: Sql) -> Step:
        clock = running_clock(state, clock, self.time is None)
        due, late, dead = released(state, inputs[0], self.time, clock)
        close = partial(self._close, clock.watermark, sql)
        ordered, windows = self._partitions.advance(state, due, clock, close, sql)
        changes = self.result.changes(ordered, windows, sql)
        return Step(changes=changes, late=late, late_count=count_late(late), dead=dead)

    def _last_ticks(self, times: Times, sql: Sql) -> Times:
        """The tick that ends a session whose first row has each of `times`, if no pause does before."""
        local = walls(times, self.zone, sql)
        return instants(local - local % self.longest + 2 * self.longest, self.zone)

    def _close(self, watermark: int, sql: Sql, arrivals: Arrivals) -> Closed:
        sessions = self._sessions(arrivals, sql)
        paused = sessions.last_time + self.timeout
        final = np.minimum(paused, sessions.tick - 1)
        over = sessions.followed | (watermark >= final)
        # A tick has ended the session, but a row that may come still goes on from there.
        ticked = over & ~sessions.followed & (watermark < paused)
        record = {name: arrivals.record[name].copy() for name in _REMEMBERED}
        low = arrivals.record["low"].copy()
        until = record["last"] + self.timeout
        alive = arrivals.found & (record["open"] == 0) & (arrivals.counts == 0) & (watermark < until)
        for staying, open_ in ((~over, 1), (ticked, 0)):
            owners = sessions.owners[staying]
            alive[owners] = True
            record["open"][owners] = open_
            record["first"][owners] = sessions.first_time[staying]
            record["last"][owners] = sessions.last_time[staying]
            record["start"][owners] = (sessions.start if open_ else sessions.tick)[staying]
            low[owners] = sessions.first[staying] if open_ else arrivals.seen[owners] + 1
            until[owners] = (final if open_ else paused)[staying]
        # A timer that is still to come does, where it is early enough: the end of an open session only moves away.
        waits = arrivals.found & (record["wakes"] > watermark) & (record["wakes"] <= until)
        record["wakes"] = np.where(waits, record["wakes"], until)
        wake = np.where(alive & ~waits, until, MIN_TIME)
        at = np.lexsort((sessions.first, sessions.owners))
        at = at[over[at]]
        ends = np.minimum(paused, sessions.tick)
        return Closed(
            owners=sessions.owners[at],
            first=sessions.first[at],
            last=sessions.end[at],
            starts=sessions.start[at],
            ends=ends[at],
            low=low,
            alive=alive,
            record=record,
            wake=wake,
        )

    def _sessions(self, arrivals: Arrivals, sql: Sql) -> _Sessions:
        """The sessions that were open, and those that begin with a row of the batch."""
        times, owners, record, count = arrivals.times, arrivals.owners, arrivals.record, len(arrivals.times)
        ends = arrivals.ends[owners]
        touched = np.flatnonzero(arrivals.counts)
        heads = arrivals.starts[touched]
        known = np.where(arrivals.found, record["last"], MIN_TIME)
        before = np.roll(times, 1)
        before[heads] = known[touched]
        paused = times - before > self.timeout
        ticks = self._last_ticks(times, sql)
        pauses = following(paused, ends)
        next_pause = np.where(np.arange(count) + 1 < ends, np.append(pauses, count)[1:], count)
        next_tick = places_of(owners, times, owners, ticks, after_equal=False)
        jump = np.minimum(next_pause, np.where(next_tick < ends, next_tick, count))

        # An open session goes on with the first row, unless a pause or its tick is between them.
        is_open = arrivals.found & (record["open"] == 1)
        open_ticks = self._last_ticks(record["first"], sql)
        until = places_of(owners, times, touched, open_ticks[touched], after_equal=False)
        until = np.where(until < arrivals.ends[touched], until, count)
        goes_on = is_open[touched] & ~paused[heads] & (until > heads)
        begun = orbit(jump, np.where(goes_on, np.minimum(pauses[heads], until), heads))
        first_begun = np.full(len(arrivals.counts), count)
        np.minimum.at(first_begun, owners[begun], begun)

        # Behind each row with which a session begins, the end of its rows.
        following_begun = np.append(begun, count)[1:]
        end = np.where(following_begun < ends[begun], following_begun, ends[begun])
        previous_tick = np.append(ticks[begun], 0)[np.arange(len(begun)) - 1]
        from_record = np.where(is_open, open_ticks, record["start"])[owners[begun]]
        tick_before = np.where(first_begun[owners[begun]] == begun, from_record, previous_tick)
        new = _Sessions(
            owners=owners[begun],
            first=arrivals.numbers[begun],
            end=arrivals.numbers[end - 1] + 1 if count else begun,
            first_time=times[begun],
            last_time=times[end - 1] if count else begun,
            start=np.where(paused[begun], times[begun], tick_before),
            tick=ticks[begun],
            followed=following_begun < ends[begun],
        )
        opened = np.flatnonzero(is_open)
        rows = np.minimum(first_begun[opened], arrivals.ends[opened]) - arrivals.starts[opened]
        last = record["last"][opened]
        if count:
            last = np.where(rows > 0, times[np.maximum(arrivals.starts[opened] + rows - 1, 0) % count], last)
        old = _Sessions(
            owners=opened,
            first=record["low"][opened],
            end=record["seen"][opened] + rows + 1,
            first_time=record["first"][opened],
            last_time=last,
            start=record["start"][opened],
            tick=open_ticks[opened],
            followed=first_begun[opened] < count,
        )
        return _Sessions(*(np.concatenate(pair) for pair in zip(old, new, strict=True)))


class _Sessions(NamedTuple):
    """Sessions of some partitions: the numbers of their first row and of the row behind their last, the times of the
    first and the last, when they start, the tick that ends them at the latest, and whether a later session is known."""

    owners: Positions
    first: Times
    end: Times
    first_time: Times
    last_time: Times
    start: Times
    tick: Times
    followed: Mask
