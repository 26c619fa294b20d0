"""The sessions that are open: found by key, put together with what comes, taken out when they close.

The trace "sessions" holds the pieces of open sessions by the hash of their key: one a session where rows are only
added, one a time where they may be retracted. The trace "due" is a queue by time of the hashes of keys of which a
session may close. A piece has one entry there, `due`, which is never later than the end of its session: where the
session has grown meanwhile, it queues again. So a batch reads the keys that it touches, and those whose time has come.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from operators.aggregates.layout import ROWS
from operators.aggregates.partial import key_names, layout_of, partial_types
from operators.arrays import Mask
from operators.columns import numbered
from operators.lateness import out_of_reach
from operators.names import AT, END, FIRST, LAST, SORT_KEY, START, TAG, TIMES, WEIGHT, value_of
from operators.sql import Sql
from operators.sql_text import all_named, named, over, select, total
from operators.state.operator_state import State, TraceSpec
from operators.state.tables.grouped import GroupedTable, places_of
from operators.state.tables.table import specs_of
from operators.state.tables.timed import HashQueue
from operators.time import MIN_TIME, Clock
from operators.windows.session_partial import SessionPartial
from operators.windows.sessions import extents


class SessionUpdate(NamedTuple):
    """The pieces of sessions that close with this batch, and those of sessions that had closed before it, which are
    late; both with FIRST and LAST. `unmatched` counts rows retracted that no session has."""

    closing: pa.Table
    late: pa.Table
    unmatched: int


def session_traces(partial: SessionPartial) -> Mapping[str, TraceSpec]:
    """Return the state of open sessions."""
    return specs_of(_sessions(partial), _DUE)


_DUE = HashQueue(name="due")


def _sessions(partial: SessionPartial) -> GroupedTable:
    """The pieces of the open sessions of each key."""
    schema = pa.schema([*partial_types(partial).items(), ("due", pa.int64())])
    return GroupedTable(name="sessions", schema=schema, group=tuple(range(len(partial.keys))))


def update_sessions(partial: SessionPartial, state: State, changes: pa.Table, clock: Clock, sql: Sql) -> SessionUpdate:
    """Add the pieces of `changes`, which `partial` has emitted, to the open sessions, and remove those that close."""
    arrived = changes.drop_columns([WEIGHT]).rename_columns(list(partial_types(partial)))
    sessions = _sessions(partial)
    fresh = sessions.placed(state, arrived.append_column("due", pa.nulls(arrived.num_rows, pa.int64())))
    known = sessions.read(state, np.concatenate([places_of(fresh), _DUE.pop(state, clock.watermark)]))
    pieces = pa.concat_tables([known, fresh.select(known.column_names)])
    dead, unmatched = pieces.slice(0, 0), 0
    if not partial.append:
        pieces, dead, unmatched = _by_time(partial, pieces, clock, sql)
    pieces = _with_sessions(partial, pieces, sql)
    if partial.append:
        pieces = _merged(partial, pieces, sql)
    lasts = pieces.column(LAST).to_numpy()
    closing = out_of_reach(lasts, partial.gap - 1, clock.watermark)
    late = out_of_reach(lasts, partial.gap - 1, MIN_TIME if partial.processing else clock.previous)
    queued = _queue(partial, state, pieces, closing, clock.watermark)
    sessions.write(state, known, queued.pieces, stays=~closing, changed=closing | queued.moved, came=fresh)
    late_pieces = pa.concat_tables([pieces.filter(pa.array(late)), _with_own_times(dead)], promote_options="default")
    return SessionUpdate(pieces.filter(pa.array(closing & ~late)), late_pieces, unmatched)


class _Queued(NamedTuple):
    """The pieces with their place in the queue, and which of them were given another."""

    pieces: pa.Table
    moved: Mask


def _queue(
    partial: SessionPartial,
    state: State,
    pieces: pa.Table,
    closing: Mask,
    watermark: int,
) -> _Queued:
    """Queue the pieces that stay and are not in the queue, or have come to their turn while their session grew."""
    own = pieces.column(END).to_numpy() + (partial.gap - 1)
    due = pc.fill_null(pieces.column("due"), MIN_TIME).to_numpy()
    moved = ~closing & (due <= watermark) & (own > due)
    if layout_of(partial).sets:
        moved &= pc.equal(pieces.column(TAG), 0).to_numpy()
    waits = moved & (own > watermark)
    _DUE.push(state, places_of(pieces)[waits], own[waits])
    place = pieces.column_names.index("due")
    return _Queued(pieces.set_column(place, "due", pa.array(np.where(moved, own, due))), moved)


def _with_sessions(partial: SessionPartial, pieces: pa.Table, sql: Sql) -> pa.Table:
    found = extents(pieces, key_names(partial), partial.gap, sql)
    return pieces.append_column(FIRST, pa.array(found.firsts)).append_column(LAST, pa.array(found.lasts))


def _with_own_times(pieces: pa.Table) -> pa.Table:
    return pieces.append_column(FIRST, pieces.column(START)).append_column(LAST, pieces.column(END))


def _merged(partial: SessionPartial, pieces: pa.Table, sql: Sql) -> pa.Table:
    """One piece a session, and one a value of a session where the values are kept."""
    by = [*key_names(partial), FIRST, LAST, *_values(partial)]
    replaced = {START: FIRST, END: LAST, "due": "MIN(due)", SORT_KEY: f"MIN({SORT_KEY})"}
    return _gathered(partial, pieces, by, replaced, "", sql)


def _by_time(partial: SessionPartial, pieces: pa.Table, clock: Clock, sql: Sql) -> tuple[pa.Table, pa.Table, int]:
    """One piece a time of which rows are left; what arrived late for a time of which none are; and the rows retracted
    that were not there."""
    layout, keys = layout_of(partial), key_names(partial)
    by = [*keys, START, END, *_values(partial)]
    replaced = {"due": "MIN(due)", SORT_KEY: f"MIN({SORT_KEY})"}
    having = f"{TAG} = 0 OR SUM({TIMES}) <> 0" if layout.sets else ""
    summed = _gathered(partial, pieces, by, replaced, having, sql)
    rows = summed.column(ROWS)
    if layout.sets:
        # The partials of values stand beside the one that counts the rows of their time.
        count = named(f"MAX({ROWS}) {over(['true', *keys, START])}", "rows")
        rows = sql(select([AT, count], "summed", order_by=[AT]), {"summed": numbered(summed)}).column("rows")
    counts = pc.fill_null(rows, 0).to_numpy()
    gone = summed.filter(pa.array(counts <= 0))
    late = out_of_reach(gone.column(END).to_numpy(), partial.gap - 1, clock.previous)
    late &= gone.column("due").is_null().to_numpy()
    lost = gone.filter(pa.array(~late)).column(ROWS)
    unmatched = -int(pc.sum(pc.min_element_wise(pc.fill_null(lost, 0), 0)).as_py() or 0)
    return summed.filter(pa.array(counts > 0)), gone.filter(pa.array(late)), unmatched


def _values(partial: SessionPartial) -> list[str]:
    """The columns that tell the partials of values apart."""
    sets = layout_of(partial).sets
    return [TAG, *(value_of(i) for i in range(len(sets)))] if sets else []


def _gathered(
    partial: SessionPartial, pieces: pa.Table, by: list[str], replaced: Mapping[str, str], having: str, sql: Sql
) -> pa.Table:
    """The pieces of equal `by` put together, in the columns that they have."""
    layout = layout_of(partial)
    items = [text for placed in layout.accumulators for text in placed.combine()]
    items += [total(TIMES)] if layout.sets else []
    items += all_named(replaced.values(), replaced)
    statement = select([*by, *items], "pieces", group_by=by, having=having)
    return sql(statement, {"pieces": pieces}).select(pieces.column_names).cast(pieces.schema)
