"""Pre-aggregate rows by key and session, as far as the sessions are known from the rows of one block."""

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
from operators.time import Clock
from operators.windows.event_time import milliseconds, timed
from operators.windows.sessions import Extents, extents


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionPartial(KernelDefaults):
    """A stateless step, before the exchange or just before `SessionAggregate`.

    `time` is the position of the time attribute and `gap` the length in ms after which a session ends; `zone` is as in
    `WindowRows`. The output has the keys first, then the first and the last time of a piece of a session. Where rows
    may be taken back (not `append`) a piece has the rows of one time only, since a row that goes may part a session.
    """

    input: pa.Schema
    time: int
    gap: int
    keys: tuple[int, ...]
    aggregates: tuple[AggregateSpec, ...]
    append: bool = True
    processing: bool = False
    zone: str | None = None

    @property
    def inputs(self) -> tuple[pa.Schema, ...]:
        return (self.input,)

    @property
    def output(self) -> pa.Schema:
        return positional(piece_types(self).values())

    @property
    def piecewise(self) -> bool:
        return True

    def per_block(self) -> PerBlock:
        tagged = replace(self, input=self.input.append(tag_of(self.input)), keys=(*self.keys, len(self.input)))
        return PerBlock(tagged, len(self.keys))

    def advance(self, state: State, inputs: Sequence[pa.Table], clock: Clock, sql: Sql) -> Step:
        rows, dead = timed(inputs[0], self.time)
        if rows.num_rows == 0:
            return Step(changes=no_changes(self.output), dead=dead)
        times = milliseconds(rows.column(self.time))
        names = key_names(self)
        found = Extents(times, times)
        if self.append:
            keyed = pa.table([*(rows.column(k) for k in self.keys), times, times], names=[*names, "s", "e"])
            found = extents(keyed, names, self.gap, sql)
        rows = rows.append_column("s", pa.array(found.firsts)).append_column("e", pa.array(found.lasts))
        keys = [(f"c{position}", name) for position, name in zip(self.keys, names, strict=True)]
        pieces = sql(layout_of(self).partials([*keys, ("s", "s"), ("e", "e")], "changes"), {"changes": rows})
        return Step(changes=as_changes(weigh(pieces.rename_columns(self.output.names), 1), self.output), dead=dead)


@lru_cache(maxsize=64)
def layout_of(partial: SessionPartial) -> AccumulatorLayout:
    """The accumulators of an aggregate by sessions."""
    return AccumulatorLayout(partial.input, partial.aggregates, partial.append)


def key_names(partial: SessionPartial) -> list[str]:
    """The names of the keys: k0, k1, ..."""
    return [f"k{i}" for i in range(len(partial.keys))]


def piece_types(partial: SessionPartial) -> dict[str, pa.DataType]:
    """The columns of a piece, by name: the keys, its first time `s` and its last `e`, and what the layout keeps."""
    keys = {
        name: partial.input.field(position).type
        for name, position in zip(key_names(partial), partial.keys, strict=True)
    }
    return keys | {"s": pa.int64(), "e": pa.int64()} | layout_of(partial).partial_types()
