"""Deletes that do not say when: a tombstone has a key, and no columns that a time could be in.

As in Flink such a delete has the time of the row that it deletes, which is therefore kept for each key.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from operators.columns import numbered
from operators.names import AT, WEIGHT, column, columns
from operators.sql import Sql
from operators.sql_text import comma, over
from operators.state.operator_state import State
from operators.state.tables.grouped import GroupedTable


class Filled(NamedTuple):
    """The changes with a time in each delete; `dropped` counts those that had nothing to delete."""

    rows: pa.Table
    dropped: int


@dataclass(frozen=True, slots=True, kw_only=True)
class UntimedDeletes:
    """An upsert stream by the columns at `keys` with the time in the column at `time`."""

    schema: pa.Schema
    keys: tuple[int, ...]
    time: int

    @property
    def table(self) -> GroupedTable:
        """The greatest time of each key that is there."""
        schema = pa.schema([self.schema.field(k) for k in (*self.keys, self.time)])
        return GroupedTable(name="times", schema=schema, group=tuple(range(len(self.keys))))

    def filled(self, state: State, rows: pa.Table, sql: Sql) -> Filled:
        """Give each delete without a time the greatest time of its key so far, in the order of arrival."""
        if rows.num_rows == 0:
            return Filled(rows, 0)
        table, time = self.table, column(self.time)
        names = columns(self.keys)
        keys = comma(names)
        arrived = numbered(rows.select([*names, time, WEIGHT]))
        known = table.read(state, table.hashes(state, arrived))
        earlier = over(names, [AT], "ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING")
        answer = sql(
            f"WITH every AS (SELECT {keys}, {time}, 1 AS w, -1 AS {AT} FROM known"
            f" UNION ALL SELECT {keys}, {time}, {WEIGHT}, {AT} FROM arrived),"
            # A row that comes after a delete is another row: its time is its own.
            f" lives AS (SELECT *, SUM(CAST(w < 0 AS INTEGER)) {earlier} AS life FROM every)"
            f" SELECT {keys}, MAX({time}) {over([*names, 'COALESCE(life, 0)'], [AT])} AS {time}, {AT},"
            f" w >= 0 AND ROW_NUMBER() {over(names, [f'{AT} DESC'])} = 1 AS stays FROM lives ORDER BY {AT}",
            {"known": known, "arrived": arrived},
        )
        stays = answer.filter(answer.column("stays")).select(table.schema.names).cast(table.schema)
        table.write(state, known, stays.filter(stays.column(time).is_valid()))
        times = answer.filter(pc.greater_equal(answer.column(AT), 0)).column(time)
        own = rows.column(time)
        untimed = pc.and_(own.is_null(), pc.less(rows.column(WEIGHT), 0))
        rows = rows.set_column(self.time, time, pc.if_else(untimed, times.cast(own.type), own))
        nothing = pc.and_(untimed, times.is_null())
        return Filled(rows.filter(pc.invert(nothing)), pc.sum(nothing).as_py() or 0)
