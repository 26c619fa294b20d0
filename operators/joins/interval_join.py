"""An interval join: rows of two streams whose keys are equal and whose times are near; state ends with the watermark.

A left row l can meet right rows from l.time - upper to l.time - lower, so it is kept until the watermark passes the
latter. Where the join pads or withholds left rows, each also waits until then: if none of the right rows kept so far
matches it, it has none, and right rows are kept as long as such a question may come. The same holds with sides swapped.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from operators.base import KernelDefaults
from operators.changes import Mask, weigh
from operators.columns import as_changes, no_changes, positional
from operators.joins.keys import joined_types, split_matchable
from operators.joins.kinds import JoinKind
from operators.joins.matching import Matches, Pairs, Parts, condition, match_in_pieces, taken
from operators.kernel import WEIGHT, Step, together
from operators.pieces import gathered
from operators.sql import Sql
from operators.state.block import distinct
from operators.state.lookup import find
from operators.state.operator_state import State, TableKind, TraceSpec
from operators.time import MIN_TIME, Clock
from operators.windows.event_time import milliseconds, running_clock, timed
from operators.windows.lateness import has_passed, out_of_reach
from operators.windows.slices import Times

TIME = "_time"
"""The hidden column of a kept row's time, in ms."""


@dataclass(frozen=True, slots=True)
class _Rows:
    """Rows of one side with their times; the first `fresh` of them have just come."""

    rows: pa.Table
    times: Times
    fresh: int


@dataclass(frozen=True, slots=True, kw_only=True)
class IntervalJoinOperator(KernelDefaults):
    """Pairs with `lower` <= left time - right time <= `upper`, in ms, both inclusive; append-only on all sides.

    Keys, `null_safe`, `residual`, ports and output as in `RegularJoin`. `processing` says that the times are
    PROCTIME(). A row behind the watermark still joins what is kept; one whose last partner has passed and that finds
    none is late, unless the join pads it. A row without a time is dead.
    """

    left: pa.Schema
    right: pa.Schema
    kind: JoinKind
    left_keys: tuple[int, ...]
    right_keys: tuple[int, ...]
    null_safe: tuple[bool, ...]
    left_time: int
    right_time: int
    lower: int
    upper: int
    residual: str | None = None
    processing: bool = False

    @property
    def inputs(self) -> tuple[pa.Schema, ...]:
        return (self.left, self.right)

    @property
    def output(self) -> pa.Schema:
        return positional(joined_types(self.kind, self.left, self.right))

    def output_watermark(self, watermark: int) -> int:
        """Held back by the larger bound: a row may still be joined that much after its time has passed."""
        return watermark - max(self.upper, -self.lower, 0)

    def traces(self) -> Mapping[str, TraceSpec]:
        traces = {}
        each = zip(("left", "right"), self.inputs, (self.left_keys, self.right_keys), self._asks(), strict=True)
        for name, schema, keys, asks in each:
            kept = pa.schema([*schema, pa.field(TIME, pa.int64())])
            traces[name] = TraceSpec(schema=kept, kind=TableKind.MULTISET, timestamp=TIME)
            if asks:
                traces[f"{name}_open"] = TraceSpec(
                    schema=schema, kind=TableKind.TIME_ORDERED, key=tuple(f"c{k}" for k in keys)
                )
        return traces

    def _asks(self) -> tuple[bool, bool]:
        """Whether left and right rows wait to learn that nothing matched them."""
        return self.kind in ("left", "full", "anti"), self.kind in ("right", "full")

    def _reach(self) -> tuple[int, int]:
        """How long after its time a left and a right row can meet a new partner."""
        return -self.lower, self.upper

    def advance(self, state: State, inputs: Sequence[pa.Table], clock: Clock, sql: Sql) -> Step:
        return together(self.steps(state, inputs, clock, sql), no_changes(self.output))

    def steps(self, state: State, inputs: Sequence[pa.Table], clock: Clock, sql: Sql) -> Iterator[Step]:
        clock = running_clock(state, clock, self.processing)
        sides: list[_Rows] = []
        dead: dict[int, pa.Table] = {}
        unmatched: list[pa.Table] = []
        keys, places = (self.left_keys, self.right_keys), (self.left_time, self.right_time)
        for port, (rows, place) in enumerate(zip(inputs, places, strict=True)):
            rows, without = timed(rows, place)
            if without:
                dead[port] = without[0]
            rows, unmatchable = split_matchable(rows.drop_columns([WEIGHT]), keys[port], self.null_safe)
            unmatched.append(unmatchable)
            sides.append(_Rows(rows, milliseconds(rows.column(place)), rows.num_rows))
        known = [
            self._known(state, name, mine, sides[1 - port], keys[1 - port])
            for port, (name, mine) in enumerate(zip(("left", "right"), sides, strict=True))
        ]
        met = [np.zeros(side.fresh, dtype=np.bool_) for side in sides]
        failed: list[pa.Table] = [] if 0 not in dead else [dead[0]]
        held: list[pa.Table] = []
        for found in gathered(self._together(known, met, failed, state, clock.now, sql)):
            if held:
                yield Step(changes=pa.concat_tables(held))
            held = found
        if failed:
            dead[0] = pa.concat_tables(failed)
        tables = list(held)
        late: dict[int, pa.Table] = {}
        for port, name in enumerate(("left", "right")):
            closed = out_of_reach(sides[port].times, self._reach()[port], clock.previous)
            if self._asks()[port]:
                tables.append(self._padded(port, unmatched[port]))
                tables.append(self._padded(port, sides[port].rows.filter(pa.array(closed & ~met[port]))))
            elif (hopeless := closed & ~met[port] & has_passed(sides[port].times, clock.previous)).any():
                late[port] = weigh(sides[port].rows.filter(pa.array(hopeless)), 1)
            self._keep(state, port, name, sides[port], closed)
        for port, name in enumerate(("left", "right")):
            if self._asks()[port]:
                tables.append(self._expired(state, port, name, clock.watermark, sql))
        self._forget(state, clock.watermark)
        changes = pa.concat_tables([no_changes(self.output), *tables])
        yield Step(changes=changes, late=late, late_count=sum(t.num_rows for t in late.values()), dead=dead)

    def _known(self, state: State, name: str, mine: _Rows, other: _Rows, other_keys: Sequence[int]) -> _Rows:
        """The new rows of one side, then those kept that have a key of the other's new rows."""
        kept = find(state[name], distinct(state[name].key_hash(other.rows, other_keys)))
        rows = pa.concat_tables([mine.rows, kept.select(mine.rows.column_names)]).combine_chunks()
        return _Rows(rows, np.concatenate([mine.times, kept.column(TIME).to_numpy()]), mine.fresh)

    def _near(self) -> str:
        width = len(self.left)
        difference = f"epoch_ms(c{self.left_time}) - epoch_ms(c{width + self.right_time})"
        near = f"{difference} BETWEEN {self.lower} AND {self.upper}"
        equal = condition(self.left_keys, self.right_keys, self.null_safe, width)
        return near if equal == "true" else f"{equal} AND {near}"

    def _pairs(self, left: _Rows, right: _Rows, sql: Sql, now: int) -> Iterator[Matches]:
        """All pairs of which one row at least has just come."""
        parts = [
            (left.rows.slice(0, left.fresh), right.rows, 0, 0),
            (left.rows.slice(left.fresh), right.rows.slice(0, right.fresh), left.fresh, 0),
        ]
        return self._matches(parts, sql, now)

    def _matches(self, parts: Parts, sql: Sql, now: int) -> Iterator[Matches]:
        if self.lower > self.upper:
            return iter(())
        keys = (self.left_keys, self.right_keys)
        return match_in_pieces(sql, self._near(), self.residual, parts, keys, len(self.left), now)

    def _together(
        self, known: Sequence[_Rows], met: Sequence[Mask], failed: list[pa.Table], state: State, now: int, sql: Sql
    ) -> Iterator[pa.Table]:
        """The pairs, in pieces. Meanwhile the fresh rows that have `met` a partner are marked, and rows whose condition
        cannot be computed are added to `failed`."""
        left, right = known
        for matches in self._pairs(left, right, sql, now):
            pairs = matches.pairs
            for places, mine in zip(pairs, met, strict=True):
                mine[places[places < len(mine)]] = True
            dead = matches.dead(left.rows, np.ones(len(matches.failed.left), dtype=np.bool_))
            if dead is not None:
                failed.append(dead)
            if self.kind == "semi":
                yield self._weighed(left.rows.take(pa.array(self._first(left, pairs, state, sql))).columns)
            elif self.kind != "anti":
                for _, mine_rows, others in taken(left.rows, right.rows, pairs):
                    yield self._weighed([*mine_rows.columns, *others.columns])

    def _first(self, left: _Rows, pairs: Pairs, state: State, sql: Sql) -> np.ndarray:
        """The rows of left that match for the first time."""
        first = distinct(pairs.left)
        before = first[first >= left.fresh]
        if len(before):
            had = self._matched(left.rows.take(pa.array(before)), state, sql)
            first = np.concatenate([first[first < left.fresh], before[~had]])
        return first

    def _matched(self, rows: pa.Table, state: State, sql: Sql, port: int = 0) -> Mask:
        """Which `rows` of the side `port` match a row that is kept of the other side."""
        keys = (self.left_keys, self.right_keys)[port]
        trace = state[("right", "left")[port]]
        kept = find(trace, distinct(trace.key_hash(rows, keys)))
        others = kept.select(self.inputs[1 - port].names)
        parts = [(rows, others, 0, 0)] if port == 0 else [(others, rows, 0, 0)]
        matched = np.zeros(rows.num_rows, dtype=np.bool_)
        # Of inner joins alone a condition asks for the time, and they do not come here.
        for found in self._matches(parts, sql, 0):
            matched[found.pairs[port]] = True
        return matched

    def _expired(self, state: State, port: int, name: str, watermark: int, sql: Sql) -> pa.Table:
        """The rows whose last possible partner has passed and that have met none."""
        waiting = state[f"{name}_open"]
        rows = waiting.between(MIN_TIME, watermark).select(self.inputs[port].names)
        waiting.expire(watermark)
        if rows.num_rows:
            rows = rows.filter(pa.array(~self._matched(rows, state, sql, port)))
        return self._padded(port, rows)

    def _keep(self, state: State, port: int, name: str, side: _Rows, closed: Mask) -> None:
        keys = (self.left_keys, self.right_keys)[port]
        trace = state[name]
        trace.add(side.rows.append_column(TIME, pa.array(side.times)), trace.key_hash(side.rows, keys))
        if self._asks()[port]:
            rows, times = side.rows.filter(pa.array(~closed)), side.times[~closed]
            state[f"{name}_open"].add(rows, times + self._reach()[port])

    def _forget(self, state: State, watermark: int) -> None:
        """Rows go when no new partner can come, and, where the other side asks for its matches, nobody can ask."""
        asks, span = self._asks(), max(self.upper - self.lower, 0)
        asked = asks[1], asks[0] or self.kind == "semi"
        for port, name in enumerate(("left", "right")):
            reach = self._reach()[port]
            state[name].expire(watermark - (max(reach, span) if asked[port] else reach))

    def _padded(self, port: int, rows: pa.Table) -> pa.Table:
        if self.kind == "anti":
            return self._weighed(rows.columns)
        nulls = [pa.nulls(rows.num_rows, type_) for type_ in self.inputs[1 - port].types]
        return self._weighed([*rows.columns, *nulls] if port == 0 else [*nulls, *rows.columns])

    def _weighed(self, columns: Sequence[pa.ChunkedArray]) -> pa.Table:
        return as_changes(weigh(pa.table(list(columns), names=self.output.names), 1), self.output)
