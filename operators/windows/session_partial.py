"""Pre-aggregate rows by key and session, as far as the sessions are known from the rows of one block."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from operators.aggregates.functions import AggregateSpec
from operators.aggregates.partial import PartialAggregate, key_names
from operators.columns import no_changes
from operators.kernel import Step
from operators.names import END, START
from operators.sql import Sql
from operators.state.operator_state import State
from operators.time import Clock
from operators.windows.event_time import milliseconds, timed
from operators.windows.sessions import Extents, extents


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionPartial(PartialAggregate):
    """Aggregates the rows of a batch by piece of a session and key, without state: before the exchange, or just before
    `SessionAggregate`.

    `time` is the position of the time attribute and `gap` the length in ms after which a session ends; `zone` is as in
    `WindowRows`. The output has the keys first, then the first and the last time of a piece of a session. Where rows
    may be retracted (not `append`) a piece has the rows of one time only, since a row that goes may part a session.
    """

    input: pa.Schema
    time: int
    gap: int
    keys: tuple[int, ...]
    aggregates: tuple[AggregateSpec, ...]
    append: bool = True
    processing: bool = False
    zone: str | None = None

    def times(self) -> tuple[str, ...]:
        """Return `s` and `e`, the first and the last time of a piece, in ms."""
        return (START, END)

    def advance(self, state: State, inputs: Sequence[pa.Table], clock: Clock, sql: Sql) -> Step:
        rows, dead = timed(inputs[0], self.time)
        if rows.num_rows == 0:
            return Step(changes=no_changes(self.output), dead=dead)
        times = milliseconds(rows.column(self.time))
        names = key_names(self)
        found = Extents(times, times)
        if self.append:
            keyed = pa.table([*(rows.column(k) for k in self.keys), times, times], names=[*names, START, END])
            found = extents(keyed, names, self.gap, sql)
        rows = rows.append_column(START, pa.array(found.firsts)).append_column(END, pa.array(found.lasts))
        return Step(changes=self.partials(rows, (START, END), sql), dead=dead)
