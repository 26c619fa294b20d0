"""A temporal join in event time: each row meets the version of a table that was in force at the row's own time.

Law: a left row at time t meets, of the versions of its key, the one with the greatest time <= t. It waits until the
watermark reaches t, for then no version at or before t is missing; what comes later corrects nothing that was answered.

Of each key the last version at or before the watermark is kept (`current`), and all newer ones by time (`ahead`). A
batch reads the rows and versions that become due and the current versions of their keys, whatever else is kept.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from operators.base import Operator
from operators.changes import Mask, weigh
from operators.columns import as_changes, no_changes, positional
from operators.hashing import bucket_hash
from operators.joins.matching import holds
from operators.joins.versions import GONE, Versions, asof
from operators.kernel import Step
from operators.sql import Sql
from operators.state.operator_state import State, TableKind, TraceSpec
from operators.time import Clock
from operators.windows.event_time import milliseconds, timed
from operators.windows.slices import Times

TemporalKind = Literal["inner", "left"]

Places = npt.NDArray[np.int64]


class _Due(NamedTuple):
    """Left rows that are answered in this batch, by time, and the times."""

    rows: pa.Table
    times: Times


@dataclass(frozen=True, slots=True, kw_only=True)
class TemporalJoinOperator(Operator):
    """Left rows with the version of the right row of the same key at their time, if `residual` is true of both.

    Right changes are an upsert stream: a weight of 0 or more is a version from its time on, -1 ends the row from its
    time on; of two versions at one time the later in arrival counts. `left_time` and `right_time` are the positions of
    the time attributes. A left row behind the watermark is late, and so is a version that a newer one had replaced by
    then. A row without a time is dead.
    """

    left: pa.Schema
    right: pa.Schema
    kind: TemporalKind
    left_keys: tuple[int, ...]
    right_keys: tuple[int, ...]
    left_time: int
    right_time: int
    residual: str | None = None

    @property
    def inputs(self) -> tuple[pa.Schema, ...]:
        return (self.left, self.right)

    @property
    def output(self) -> pa.Schema:
        return positional([*self.left.types, *self.right.types])

    def traces(self) -> Mapping[str, TraceSpec]:
        ahead = self.right.append(pa.field(GONE, pa.bool_()))
        return {
            "waiting": TraceSpec(schema=self.left, kind=TableKind.TIME_ORDERED),
            "ahead": TraceSpec(schema=ahead, kind=TableKind.TIME_ORDERED),
            "current": self._versions().spec(),
        }

    def _versions(self) -> Versions:
        return Versions(schema=self.right, keys=self.right_keys, time=self.right_time)

    def advance(self, state: State, inputs: Sequence[pa.Table], clock: Clock, sql: Sql) -> Step:
        dead: dict[int, pa.Table] = {}
        late: dict[int, pa.Table] = {}
        sides: list[pa.Table] = []
        for port, (rows, time) in enumerate(zip(inputs, (self.left_time, self.right_time), strict=True)):
            rows, without = timed(rows, time)
            sides.append(rows)
            if without:
                dead[port] = without[0]
        versions = self._versions()
        settled = versions.settled(state["ahead"], sides[1], clock)
        due, behind = self._due(state, sides[0], clock)
        if behind.num_rows:
            late[0] = behind
        changes = no_changes(self.output)
        if due.rows.num_rows or settled.num_rows:
            known = versions.known(
                state["current"], settled, bucket_hash(due.rows, self.left_keys), clock.previous, sql
            )
            if known.late.any():
                late[1] = weigh(settled.select(self.right.names).filter(pa.array(known.late)), 1)
            places = asof(sql, due.rows, due.times, self.left_keys, known, self.right_keys)
            changes = self._answers(due.rows, known.rows, places, sql)
            versions.keep(state["current"], settled, known)
        return Step(changes=changes, late=late, late_count=sum(t.num_rows for t in late.values()), dead=dead)

    def _due(self, state: State, rows: pa.Table, clock: Clock) -> tuple[_Due, pa.Table]:
        """The left rows that the watermark has reached in this batch, and those that it had reached before."""
        times = milliseconds(rows.column(self.left_time))
        early, late = times > clock.watermark, times <= clock.previous
        waiting, bare = state["waiting"], rows.select(self.left.names)
        waiting.add(bare.filter(pa.array(early)), times[early])
        now = ~early & ~late
        due = waiting.between(clock.previous, clock.watermark).select(self.left.names)
        due = pa.concat_tables([due, bare.filter(pa.array(now))]).combine_chunks()
        waiting.expire(clock.watermark)
        times = milliseconds(due.column(self.left_time))
        if len(times) > 1 and not bool((times[1:] >= times[:-1]).all()):
            order = np.argsort(times, kind="stable")
            due, times = due.take(pa.array(order)), times[order]
        return _Due(due, times), rows.filter(pa.array(late))

    def _answers(self, rows: pa.Table, versions: pa.Table, places: Places, sql: Sql) -> pa.Table:
        """Each row beside the version at its place, -1 being none."""
        meets: Mask = places >= 0
        if self.residual is not None and meets.any():
            pairs = self._beside(rows.filter(pa.array(meets)), versions.take(pa.array(places[meets])))
            meets[meets] = holds(sql, self.residual, pairs)
        if self.kind == "inner":
            rows, places, meets = rows.filter(pa.array(meets)), places[meets], meets[meets]
        table = self._beside(rows, versions.take(pa.array(places, mask=~meets)))
        return as_changes(weigh(table, 1), self.output)

    def _beside(self, rows: pa.Table, versions: pa.Table) -> pa.Table:
        return pa.table([*rows.columns, *versions.select(self.right.names).columns], names=self.output.names)
