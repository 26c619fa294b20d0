"""The matches of emitted rows, kept if the left input of a temporal join may retract rows.

All rows of one key and one time meet the same version, so it is kept once for them, with how many of them there are. A
row that comes when the watermark has passed its time, to take another back or to stand in its place, meets that version
again, whatever the table has become.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from operators.arrays import Mask, Positions, Times
from operators.columns import numbered
from operators.lateness import has_passed
from operators.names import AT, COUNT, FOUND, GROUP, MET, PLACE, PREVIOUS, TIME, WEIGHT, key_columns
from operators.sql import Sql
from operators.sql_text import join, named, of, same, select, total
from operators.state.operator_state import State
from operators.state.tables.keyed import KeyedRows, KeyedTable


class Recalled(NamedTuple):
    """The rows that are `late`, for nothing is known of their key and time; for each of the others the place of its
    version, -1 for none, in `versions`: those that were given, then those that were kept."""

    late: Mask
    places: Positions
    versions: pa.Table


@dataclass(frozen=True, slots=True, kw_only=True)
class Answered:
    """Versions with the columns `schema`, kept by a left row's keys (of the types `keys`) and time.

    What has not been written for `ttl` ms of processing time is forgotten (0 = never).
    """

    schema: pa.Schema
    keys: tuple[pa.DataType, ...]
    ttl: int

    @property
    def table(self) -> KeyedTable:
        """Keys and time, the version's columns, whether there was one, how many rows met it."""
        keys = [pa.field(name, type_) for name, type_ in zip(key_columns(len(self.keys)), self.keys, strict=True)]
        counted = [pa.field(MET, pa.bool_()), pa.field(COUNT, pa.int64())]
        schema = pa.schema([*keys, pa.field(TIME, pa.int64()), *self.schema, *counted])
        group = tuple(range(len(keys)))
        return KeyedTable(name="answered", schema=schema, keys=len(keys) + 1, group=group, ttl=self.ttl)

    def recall(
        self,
        state: State,
        rows: pa.Table,
        keys: Sequence[int],
        times: Times,
        found: tuple[Positions, pa.Table],
        previous: int,
        now: int,
        sql: Sql,
    ) -> Recalled:
        """Look up `rows` behind the watermark `previous`, and keep what the others have `found`: places in a table."""
        table = self.table
        table.expire(state, now)
        places, versions = found
        names = key_columns(len(self.keys))
        columns = [*(rows.column(k) for k in keys), pa.array(times), rows.column(WEIGHT), pa.array(places)]
        changes = numbered(pa.table(columns, names=[*names, TIME, WEIGHT, PLACE]))
        by = [*names, TIME]
        groups = sql(
            select([*by, total(WEIGHT), named(f"MIN({PLACE})", PLACE)], "changes", group_by=by),
            {"changes": changes},
        )
        pairs = table.read(state, groups, sql)
        known: Mask = pairs.rows.column(FOUND).to_numpy()
        late = has_passed(pairs.rows.column(TIME).to_numpy(), previous) & ~known
        met = np.where(known, pairs.rows.column(PREVIOUS + MET).fill_null(False).to_numpy(), False)
        # The place of each group's version, among those given and then those kept.
        mine = np.where(known, -1, pairs.rows.column(PLACE).to_numpy())
        mine = np.where(met, versions.num_rows + np.arange(len(mine)), mine)
        kept = pairs.rows.select([PREVIOUS + name for name in self.schema.names]).rename_columns(self.schema.names)
        versions = pa.concat_tables([versions.select(self.schema.names), kept.cast(self.schema)]).combine_chunks()
        self._keep(state, pairs, versions, mine, late, now)
        group = self._groups(pairs.rows, changes, names, sql)
        return Recalled(late[group], mine[group], versions)

    def _groups(self, groups: pa.Table, changes: pa.Table, names: Sequence[str], sql: Sql) -> Positions:
        """The group of each row."""
        keyed = groups.select([*names, TIME]).append_column(GROUP, pa.array(np.arange(groups.num_rows)))
        by = [*names, TIME]
        answer = sql(select([AT, GROUP], join("r", "g", same(of("r", by), of("g", by)))), {"r": changes, "g": keyed})
        group = np.empty(changes.num_rows, dtype=np.int64)
        group[answer.column(AT).to_numpy()] = answer.column(GROUP).to_numpy()
        return group

    def _keep(
        self, state: State, pairs: KeyedRows, versions: pa.Table, places: Positions, late: Mask, now: int
    ) -> None:
        before = pairs.rows.column(PREVIOUS + COUNT).fill_null(0).to_numpy()
        count = before + pairs.rows.column(WEIGHT).to_numpy()
        names = key_columns(len(self.keys))
        columns = [
            *pairs.rows.select([*names, TIME]).columns,
            *versions.take(pa.array(places, mask=places < 0)).columns,
            pa.array(places >= 0),
            pa.array(count),
        ]
        table = self.table
        table.write(state, pairs, pa.table(columns, names=table.schema.names), now, stays=~late & (count > 0))
