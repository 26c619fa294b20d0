"""When a window answers that answers more than once: early, when it closes, and again for rows that are late.

Each window and key has a row that it answers and a row that it has shown. While the window is open it shows its answer
every n ms of processing time, counted from its first row; when the watermark passes its end, at once; after that,
until the lateness is over, again every n ms, counted from the first late row; and at the end of the lateness.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from operators.arrays import Mask, Times
from operators.changes import weigh
from operators.names import SORT_KEY, WEIGHT, new_answers, old_answers
from operators.sql import Sql
from operators.sql_text import differ, inner, named, of_those, select, union_all
from operators.state.operator_state import State, TraceSpec
from operators.state.tables.grouped import GroupedTable, places_of
from operators.state.tables.table import specs_of
from operators.state.tables.timed import HashQueue
from operators.time import MIN_TIME, Clock
from operators.windows.slices import instants

_NONE = MIN_TIME
"""A time that stands for none."""

_ENDS, _TIMERS = HashQueue(name="ends"), HashQueue(name="timers")
"""When windows are looked at again: by event time, and by processing time."""


@dataclass(frozen=True, slots=True)
class Firing:
    """The times at which a window answers: every `early` ms while it is open, every `late` ms in the `lateness` ms
    after it.

    0 is with every batch that changes the answer, None is never.
    """

    early: int | None
    late: int | None
    lateness: int

    @property
    def at_once(self) -> bool:
        """Whether every change is shown with the batch that makes it."""
        return self.early == 0 and self.late in (0, None)


AT_CLOSE = Firing(early=None, late=None, lateness=0)
"""A window answers once, as it closes."""


class _Phases(NamedTuple):
    """Which windows are open, which close with this batch, and of which the lateness is over."""

    open: Mask
    closing: Mask
    over: Mask


@dataclass(frozen=True, slots=True)
class Firings:
    """Holds the answers of windows back until they are to be shown.

    Answers have the columns `keys`, the last two of which are the start and the end of the window (wall clock of
    `zone`, in ms), then the columns `values`.
    """

    keys: pa.Schema
    values: pa.Schema
    firing: Firing
    zone: str | None

    def traces(self) -> Mapping[str, TraceSpec]:
        """Return what is shown and what is to be, and two queues of hashes of keys: by event time and by processing
        time."""
        return specs_of(self._held, _ENDS, _TIMERS)

    @property
    def _held(self) -> GroupedTable:
        """What each window and key answers and has shown."""
        count = len(self.values)
        held = pa.schema(
            [
                *self.keys,
                *(pa.field(name, f.type) for name, f in zip(new_answers(count), self.values, strict=True)),
                *(pa.field(name, f.type) for name, f in zip(old_answers(count), self.values, strict=True)),
                pa.field("is_there", pa.bool_()),
                pa.field("is_shown", pa.bool_()),
                pa.field("due", pa.int64()),
                pa.field("since", pa.int64()),
            ]
        )
        return GroupedTable(
            name="held",
            schema=held,
            group=tuple(range(len(self.keys))),
            expires_by=self.keys.names[-1],
            placing=len(self.keys) - 2,
        )

    def fire(self, state: State, answers: pa.Table, clock: Clock, sql: Sql) -> pa.Table:
        """Take in the changed `answers`, and return the changes that are to be shown with this batch."""
        woken = [_ENDS.pop(state, clock.watermark), _TIMERS.pop(state, clock.now)]
        keys, values = self.keys.names, new_answers(len(self.values))
        answers = answers.rename_columns([*keys, *values, WEIGHT])
        held = self._held
        known = held.read(state, np.concatenate([held.hashes(state, answers), *woken]))
        if answers.num_rows == 0 and known.num_rows == 0:
            return weigh(pa.schema([*self.keys, *self.values]).empty_table(), 1)
        rows = self._together(answers, known, sql)
        rows = held.placed(state, rows)
        closes = instants(rows.column(keys[-1]).to_numpy(), self.zone) - 1
        phases = _Phases(
            closes > clock.watermark,
            (closes > clock.previous) & (closes <= clock.watermark),
            closes + self.firing.lateness <= clock.watermark,
        )
        differs = rows.column("differs").to_numpy()
        due, since = (rows.column(name).fill_null(_NONE).to_numpy() for name in ("due", "since"))
        shows = differs & (phases.over | phases.closing | self._ripe(phases, due, clock.now))
        due, since = self._scheduled(phases, differs & ~shows, np.where(shows, _NONE, due), since, clock.now)
        self._queue(state, rows, due, phases, closes)
        self._keep(state, rows, shows, due, since, ~phases.over, known)
        return self._shown(rows.filter(pa.array(shows)), sql)

    def forget(self, state: State, upto: int) -> None:
        """Forget what is held of the windows that end (wall clock) at `upto` or before."""
        self._held.expire_upto(state, upto)

    def _together(self, answers: pa.Table, known: pa.Table, sql: Sql) -> pa.Table:
        """A row for each key: its answer now, the one shown, whether they differ, and when it is due."""
        keys, count = self.keys.names, len(self.values)
        news, olds = new_answers(count), old_answers(count)
        came = select([*keys, *news, f"{WEIGHT} > 0 AS is_there", "true AS fresh"], "answers")
        held = select([f"* EXCLUDE ({SORT_KEY})", "false AS fresh"], "known")
        current = [
            named(
                f"CASE WHEN BOOL_OR(fresh) THEN {of_those('ANY_VALUE', name, 'fresh AND is_there')}"
                f" ELSE {of_those('ANY_VALUE', name, 'NOT fresh')} END",
                name,
            )
            for name in news
        ]
        there = (
            f"CASE WHEN BOOL_OR(fresh) THEN {of_those('BOOL_OR', 'is_there', 'fresh')}"
            f" ELSE {of_those('BOOL_OR', 'is_there', 'NOT fresh')} END AS is_there"
        )
        before = [named(of_those("ANY_VALUE", name, "NOT fresh"), name) for name in [*olds, "due", "since"]]
        was_shown = of_those("BOOL_OR", "is_shown", "NOT fresh")
        shown = f"BOOL_OR(NOT fresh) AS is_known, COALESCE({was_shown}, false) AS is_shown"
        together = inner(union_all([came, held], by_name=True))
        grouped = select([*keys, *current, there, *before, shown], together, group_by=keys)
        differs = f"is_there <> is_shown OR (is_there AND ({differ(news, olds)})) AS differs"
        return sql(select(["*", differs], inner(grouped)), {"answers": answers, "known": known})

    def _ripe(self, phases: _Phases, due: Times, now: int) -> Mask:
        """Whose turn it is, in windows that stay open or that have been closed before."""
        ripe = np.zeros(len(due), dtype=np.bool_)
        for which, every in ((phases.open, self.firing.early), (~phases.open, self.firing.late)):
            if every is not None:
                ripe |= which & ((due > _NONE) & (due <= now) if every else True)
        return ripe

    def _scheduled(self, phases: _Phases, waits: Mask, due: Times, since: Times, now: int) -> tuple[Times, Times]:
        """When those that wait are due, and since when their firings are counted: restarted once a window is closed."""
        since = np.where(phases.closing, _NONE, since)
        for which, every in ((phases.open, self.firing.early), (~phases.open, self.firing.late)):
            if every:
                starting = which & waits & (due == _NONE)
                since = np.where(starting & (since == _NONE), now, since)
                due = np.where(starting, since + ((now - since) // every + 1) * every, due)
        return due, since

    def _queue(self, state: State, rows: pa.Table, due: Times, phases: _Phases, closes: Times) -> None:
        """Note when rows are looked at again: at their turn, when their window closes, at the end of its lateness."""
        before = rows.column("due").fill_null(_NONE).to_numpy()
        hashes, turns = places_of(rows), (due > _NONE) & (due != before)
        _TIMERS.push(state, hashes[turns], due[turns])
        if self.firing.early != 0:
            fresh = phases.open & ~rows.column("is_known").to_numpy()
            _ENDS.push(state, hashes[fresh], closes[fresh])
        ends = turns & ~phases.open
        _ENDS.push(state, hashes[ends], closes[ends] + self.firing.lateness)

    def _keep(
        self,
        state: State,
        rows: pa.Table,
        shows: Mask,
        due: Times,
        since: Times,
        stays: Mask,
        known: pa.Table,
    ) -> None:
        """Write what is shown now and what waits; forget windows of which the lateness is over."""
        shown = pa.array(shows)
        for old, new in zip(old_answers(len(self.values)), new_answers(len(self.values)), strict=True):
            rows = _chosen(rows, old, shown, new)
        rows = _chosen(rows, "is_shown", shown, "is_there")
        rows = rows.set_column(rows.column_names.index("due"), "due", pa.array(due, mask=due == _NONE))
        rows = rows.set_column(rows.column_names.index("since"), "since", pa.array(since, mask=since == _NONE))
        exists = rows.column("is_there").to_numpy() | rows.column("is_shown").to_numpy()
        self._held.write(state, known, rows, stays=stays & exists)

    def _shown(self, rows: pa.Table, sql: Sql) -> pa.Table:
        """The changes that bring what was shown of `rows` to what they answer."""
        keys, names = self.keys.names, [*self.keys.names, *self.values.names]
        parts = []
        count = len(self.values)
        for answers, flag, weight in ((old_answers(count), "is_shown", -1), (new_answers(count), "is_there", 1)):
            part = rows.filter(rows.column(flag))
            values = [part.column(name) for name in answers]
            columns = [*(part.column(key) for key in keys), *values]
            parts.append(weigh(pa.table(columns, names=names), weight))
        return pa.concat_tables(parts)


def _chosen(rows: pa.Table, name: str, mask: pa.Array, other: str) -> pa.Table:
    """`rows` with the column `other` in place of `name` where `mask` says so."""
    count = rows.num_rows
    both = pa.concat_tables([rows.select([name]), rows.select([other]).rename_columns([name])]).combine_chunks()
    at = np.arange(count) + np.where(mask.to_numpy(zero_copy_only=False), count, 0)
    return rows.set_column(rows.column_names.index(name), name, both.take(pa.array(at)).column(0))
