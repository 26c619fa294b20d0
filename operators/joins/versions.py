"""The versions of a table's rows: from an upsert stream with times to the version in force at a time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from operators.arrays import Mask, Positions, Times, repeated
from operators.hashing import Hashes
from operators.names import AT, GONE, TIME, WEIGHT, columns, key_columns
from operators.sql import Sql
from operators.sql_text import every, of, over, window
from operators.state.operator_state import State
from operators.state.tables.grouped import GroupedTable, places_of
from operators.state.tables.timed import TimedTable
from operators.time import Clock
from operators.windows.event_time import milliseconds


class KnownVersions(NamedTuple):
    """Versions of some keys: first those that were current, then those that have just come due.

    `valid` leaves out what another version of the same time has replaced; `last` marks the newest version of each key.
    `before` are the versions that were current, and `late` says which of those that came were replaced before they
    came.
    """

    rows: pa.Table
    times: Times
    gone: Mask
    valid: Mask
    last: Mask
    before: pa.Table
    late: Mask


@dataclass(frozen=True, slots=True, kw_only=True)
class Versions:
    """A table whose rows are known by the columns at `keys`, and the versions of a row by the time at `time`; without a
    `time` all versions are of one, so that the last in arrival counts."""

    schema: pa.Schema
    keys: tuple[int, ...]
    time: int | None

    @property
    def current(self) -> GroupedTable:
        """The last version of each key; a row that has ended is not in it."""
        return GroupedTable(name="current", schema=self.schema, group=self.keys)

    @property
    def ahead(self) -> TimedTable:
        """The versions that wait for their time."""
        schema = self.schema.append(pa.field(GONE, pa.bool_()))
        return TimedTable(name="ahead", schema=schema, key=tuple(columns(self.keys)))

    def final(self, state: State, changes: pa.Table, clock: Clock) -> pa.Table:
        """Return the versions that the watermark has reached, of one time in the order of arrival; newer ones wait."""
        times = self._times(changes)
        gone = changes.column(WEIGHT).to_numpy() < 0
        rows = changes.select(self.schema.names).append_column(GONE, pa.array(gone))
        if self.time is None:
            return rows
        early = times > clock.watermark
        due = self.ahead.take(state, clock.watermark)
        self.ahead.add(state, rows.filter(pa.array(early)), times[early])
        return pa.concat_tables([due, rows.filter(pa.array(~early))]).combine_chunks()

    def _times(self, rows: pa.Table) -> Times:
        return np.zeros(rows.num_rows, dtype=np.int64) if self.time is None else milliseconds(rows.column(self.time))

    def known(self, state: State, final: pa.Table, others: Hashes, previous: int, sql: Sql) -> KnownVersions:
        """Return the versions of the keys of `final`, and of the keys with the hashes `others`."""
        arrived = self.current.placed(state, final)
        before = self.current.read(state, np.concatenate([places_of(arrived), others]))
        there = np.zeros(before.num_rows, dtype=np.bool_)
        rows = pa.concat_tables(
            [before.append_column(GONE, pa.array(there)).select(arrived.column_names), arrived]
        ).combine_chunks()
        times = self._times(rows)
        late = np.zeros(final.num_rows, dtype=np.bool_)
        valid, last = np.ones(rows.num_rows, dtype=np.bool_), np.ones(rows.num_rows, dtype=np.bool_)
        # A version whose place no other has is the only one of its key.
        shared = np.flatnonzero(repeated(places_of(rows)))
        if final.num_rows and len(shared):
            keys = columns(self.keys)
            asked = rows.select(keys).take(pa.array(shared))
            asked = asked.append_column(TIME, pa.array(times[shared])).append_column(AT, pa.array(shared))
            statement = (
                f"SELECT {AT}, LEAD({TIME}) OVER w AS next,"
                f" MAX({TIME}) FILTER (WHERE {TIME} <= {previous}) {over(keys)} AS reached"
                f" FROM versions WINDOW w AS {window(keys, [TIME, AT])} ORDER BY {AT}"
            )
            answer = sql(statement, {"versions": asked})
            last[shared] = answer.column("next").is_null().to_numpy()
            valid[shared] = last[shared] | (answer.column("next").fill_null(0).to_numpy() != times[shared])
            reached = np.minimum(answer.column("reached").fill_null(previous).to_numpy(), previous + 1)
            replaced = shared[times[shared] < reached]
            late[replaced[replaced >= before.num_rows] - before.num_rows] = True
        gone = rows.column(GONE).to_numpy()
        return KnownVersions(rows, times, gone, valid, last, before, late)

    def keep(self, state: State, known: KnownVersions) -> None:
        """Put the newest versions in place of those that were current, where any came."""
        came = np.arange(known.rows.num_rows) >= known.before.num_rows
        if came.any():
            self.current.write(state, known.before, known.rows, stays=known.last & ~known.gone, changed=came)


def asof(
    sql: Sql, rows: pa.Table, times: Times, keys: Sequence[int], known: KnownVersions, version_keys: Sequence[int]
) -> Positions:
    """Return the place in `known` of the version that is in force for each row at its time; -1 for none."""
    places = np.full(rows.num_rows, -1, dtype=np.int64)
    if rows.num_rows == 0 or known.rows.num_rows == 0:
        return places
    left = _keyed(rows, keys, times, "li")
    right = _keyed(known.rows, version_keys, known.times, "ri").filter(pa.array(known.valid))
    names = key_columns(len(keys))
    equal = every(f"{mine} = {theirs}" for mine, theirs in zip(of("l", names), of("r", names), strict=True))
    met = sql(
        f"SELECT li, ri FROM l ASOF JOIN r ON {equal} AND l.{TIME} >= r.{TIME}",
        {"l": left, "r": right},
    )
    found = met.column("ri").to_numpy()
    places[met.column("li").to_numpy()] = np.where(known.gone[found], -1, found)
    return places


def _keyed(rows: pa.Table, keys: Sequence[int], times: Times, name: str) -> pa.Table:
    """The keys as k0, k1, ..., the time, and the number of each row."""
    chosen = [rows.column(k) for k in keys]
    names = [*key_columns(len(keys)), TIME, name]
    return pa.table([*chosen, pa.array(times), pa.array(_count(times))], names=names)


def _count(times: Times) -> Positions:
    return np.arange(len(times), dtype=np.int64)
