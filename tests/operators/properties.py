"""The properties that every kernel has, in one place.

*oracle*: after every batch the applied changes equal a batch query over all rows so far. *cut*: how a log is cut into
batches does not change the applied result. *undo*: retracting everything leaves no rows and no state. *bound*: state is
no larger than what may still matter. *restart*: a state opened again from its blocks gives bit-identical answers.
*clip*: over how many states keys are spread, and that it is another number from batch to batch, changes no answer.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from operators.columns import weighted
from operators.hashing import bucket_hash
from operators.kernel import Kernel, Step
from operators.names import REASON, WEIGHT
from operators.slots import SLOTS, slots_of
from operators.sql import Sql
from operators.state.clipping import StatePart, clipped
from operators.state.operator_state import State
from operators.time import END_OF_TIME, MIN_TIME, Clock

Row = tuple[Any, ...]
SQL = Sql()


@dataclass(frozen=True)
class Change:
    """A row that comes (+1) or goes (-1) on a port."""

    row: Row
    weight: int = 1
    port: int = 0


@dataclass(frozen=True)
class Batch:
    """The changes of one batch and what time it is afterwards."""

    changes: Sequence[Change]
    now: int = 0
    watermark: int = MIN_TIME


def no_state() -> State:
    """The state of a stateless kernel."""
    return State.open({}, None, lambda name: pa.py_buffer(b""))


def block(schema: pa.Schema, changes: Iterable[Change], port: int = 0) -> pa.Table:
    """The changes of `port` as a block."""
    mine = [c for c in changes if c.port == port]
    columns = [pa.array([c.row[i] for c in mine], f.type) for i, f in enumerate(schema)]
    return pa.table([*columns, pa.array([c.weight for c in mine], pa.int64())], schema=weighted(schema))


def plain(value: Any) -> Any:
    """A value that can be compared and counted: floating-point numbers to ten digits."""
    if isinstance(value, float):
        if math.isnan(value):
            return "NaN"
        return float(f"{value:.9g}") + 0.0
    return tuple(map(plain, value)) if isinstance(value, list) else value


def rows_of(table: pa.Table) -> list[Row]:
    """The rows of a table as tuples."""
    return [tuple(map(plain, row)) for row in zip(*(c.to_pylist() for c in table.columns), strict=True)]


@dataclass
class Run:
    """A chain of kernels, each the only input of the next, driven batch by batch.

    With `restart` every state is written and opened again between batches.
    """

    kernels: Sequence[Kernel]
    restart: bool = False
    sql: Sql = SQL
    applied: Counter[Row] = field(default_factory=Counter)
    log: list[tuple[Row, int]] = field(default_factory=list)
    late: list[Row] = field(default_factory=list)
    late_count: int = 0
    unmatched_retractions: int = 0
    dead: list[tuple[int, Row]] = field(default_factory=list)
    """Rows that could not be computed, with their weights, by port."""

    def __post_init__(self) -> None:
        self._blocks: list[dict[str, pa.Buffer]] = [{} for _ in self.kernels]
        self._manifests: list[bytes | None] = [None] * len(self.kernels)
        self.states = [self._open(i) for i in range(len(self.kernels))]
        self._watermark = MIN_TIME

    def _open(self, at: int) -> State:
        return State.open(self.kernels[at].traces(), self._manifests[at], self._blocks[at].__getitem__)

    def __call__(self, batch: Batch) -> pa.Table:
        """Run one batch; returns the changes that came out."""
        watermark = max(batch.watermark, self._watermark)
        clock = Clock(now=batch.now, watermark=watermark, previous=self._watermark)
        self._watermark = watermark
        inputs = [block(schema, batch.changes, port) for port, schema in enumerate(self.kernels[0].inputs)]
        for at, kernel in enumerate(self.kernels):
            step = kernel.advance(self.states[at], inputs, clock, self.sql)
            assert step.changes.schema == weighted(kernel.output)
            self._note(step)
            self._seal(at)
            inputs = [step.changes]
        for *row, weight in rows_of(inputs[0]):
            self.log.append((tuple(row), weight))
            self.applied[tuple(row)] += weight
        assert min(self.applied.values(), default=0) >= 0, "a row was retracted that was not there"
        self.applied = +self.applied
        return inputs[0]

    def _note(self, step: Step) -> None:
        self.unmatched_retractions += step.unmatched_retractions
        self.late_count += step.late_count
        for rows in step.late.values():
            self.late += [row[:-1] for row in rows_of(rows)]
        for port, rows in sorted(step.dead.items()):
            self.dead += [(port, row) for row in rows_of(rows.drop_columns([REASON]))]

    def _seal(self, at: int) -> None:
        saved = self.states[at].seal()
        self._blocks[at] |= saved.added
        for name in saved.removed:
            del self._blocks[at][name]
        self._manifests[at] = saved.manifest
        if self.restart:
            self.states[at] = self._open(at)

    def state_rows(self) -> int:
        """How many rows all traces keep."""
        return sum(figures.rows for state in self.states for figures in state.table_sizes().values())


def accumulated(kernel: Kernel, batches: Sequence[Batch], port: int = 0) -> pa.Table:
    """All rows of `port` that are there after `batches`, each as often as it is."""
    there: Counter[Row] = Counter()
    for batch in batches:
        for change in batch.changes:
            if change.port == port:
                there[change.row] += change.weight
    changes = [Change(row, 1, port) for row in (+there).elements()]
    return block(kernel.inputs[port], changes, port).drop_columns([WEIGHT])


def holds_oracle(
    kernels: Sequence[Kernel], batches: Sequence[Batch], query: str | Callable[[Batch], str], restart: bool = False
) -> Run:
    """After every batch the applied changes are the answer of `query` over the accumulated tables t0, t1, ...

    The query may depend on the batch, for its watermark.
    """
    run = Run(kernels, restart)
    for at, batch in enumerate(batches):
        run(batch)
        ports = range(len(kernels[0].inputs))
        tables = {f"t{port}": accumulated(kernels[0], batches[: at + 1], port) for port in ports}
        text = query if isinstance(query, str) else query(batch)
        assert run.applied == Counter(rows_of(SQL(text, tables))), f"after batch {at}"
    return run


def answer_of(kernel: Kernel, query: str | Callable[[Batch], str]) -> Callable[[Sequence[Batch]], Counter[Row]]:
    """The answer of `query` over all rows so far, in tables t0, t1, ...; it may depend on the last batch."""

    def answer(batches: Sequence[Batch]) -> Counter[Row]:
        tables = {f"t{port}": accumulated(kernel, batches, port) for port in range(len(kernel.inputs))}
        return Counter(rows_of(SQL(query if isinstance(query, str) else query(batches[-1]), tables)))

    return answer


@dataclass(frozen=True)
class Outcome:
    """What a run has come to with one batch."""

    changes: pa.Table
    applied: Counter[Row]
    state_rows: int


@dataclass(frozen=True)
class Replay:
    """A run that is over: its batches, the outcome of each, and the run after the last. Several properties may be asked
    of one."""

    batches: Sequence[Batch]
    outcomes: Sequence[Outcome]
    run: Run


def replay(kernels: Sequence[Kernel], batches: Sequence[Batch]) -> Replay:
    """Run `kernels` over all `batches`; their states live on from one to the next."""
    run = Run(kernels)
    outcomes = []
    for batch in batches:
        changes = run(batch)
        outcomes.append(Outcome(changes, Counter(run.applied), run.state_rows()))
    return Replay(batches, outcomes, run)


def holds_expected(found: Replay, count: int, expected: Callable[[Sequence[Batch]], Counter[Row]]) -> None:
    """After each of the first `count` batches the applied changes are what is `expected` of the batches so far."""
    for at, outcome in enumerate(found.outcomes[:count]):
        assert outcome.applied == expected(found.batches[: at + 1]), f"after batch {at}"


def holds_bound(found: Replay, count: int, bound: Callable[[Sequence[Batch]], int]) -> None:
    """After each of the first `count` batches the state has no more rows than `bound` allows after those so far."""
    outcomes = found.outcomes[:count]
    for at, outcome in enumerate(outcomes):
        assert outcome.state_rows <= bound(found.batches[: at + 1]), f"after batch {at}"
    most = max(outcome.state_rows for outcome in outcomes)
    assert (most > 0) == any(kernel.traces() for kernel in found.run.kernels), (
        "a case that keeps nothing shows no bound"
    )


def holds_end(found: Replay, *, undone: bool) -> None:
    """After the last batch no state is left; where everything was `undone`, no rows either."""
    assert found.run.state_rows() == 0
    assert found.run.unmatched_retractions == 0
    assert bool(found.run.applied) is not undone


def holds_restart(kernels: Sequence[Kernel], batches: Sequence[Batch]) -> None:
    """States that live on and states that are opened again from their blocks answer the same, bit by bit."""
    holds_opened(replay(kernels, batches))


def holds_opened(lasting: Replay) -> None:
    """States that are opened again from their blocks answer as those of `lasting`, which lived on, bit by bit."""
    opened = Run(lasting.run.kernels, restart=True)
    for batch, outcome in zip(lasting.batches, lasting.outcomes, strict=True):
        assert _bits(outcome.changes) == _bits(opened(batch))
    assert lasting.run._manifests == opened._manifests


def _bits(table: pa.Table) -> tuple[pa.Schema, str]:
    """The values of a table, distinguished by their bits; what stands in a buffer in place of a NULL is no value."""
    return table.schema, repr(table.to_pylist())


@dataclass
class ClippedRun:
    """A kernel whose keys are spread over a number of states, which is another in each batch: `counts`, in turn.

    `keys` are the positions of the key in the inputs of the kernel, by port, and `order` which of them choose the slot.
    """

    kernel: Kernel
    keys: Sequence[Sequence[int]]
    order: tuple[int, ...] | None
    counts: Sequence[int]
    applied: Counter[Row] = field(default_factory=Counter)
    late_count: int = 0
    unmatched_retractions: int = 0

    def __post_init__(self) -> None:
        self._parts = [StatePart(range(SLOTS), None)]
        self._blocks: list[dict[str, pa.Buffer]] = [{}]
        self._batch = 0

    def __call__(self, inputs: Sequence[pa.Table], clock: Clock) -> None:
        """Run one batch of changes, by port."""
        count = self.counts[self._batch % len(self.counts)]
        self._batch += 1
        parts, stores = [], []
        slots = [
            slots_of(bucket_hash(rows, [key[i] for i in self.order] if self.order is not None else key))
            for rows, key in zip(inputs, self.keys, strict=True)
        ]
        for shard in range(count):
            mine = slots_of_shard(shard, count)
            state, stored = self._open(mine)
            here = [
                rows.filter(pa.array((at >= mine.start) & (at < mine.stop)))
                for rows, at in zip(inputs, slots, strict=True)
            ]
            step = self.kernel.advance(state, here, clock, SQL)
            saved = state.seal()
            stored |= saved.added
            for name in saved.removed:
                del stored[name]
            assert stored.keys() == {b.id for name in self.kernel.traces() for b in state[name].blocks()}
            parts.append(StatePart(mine, saved.manifest))
            stores.append(stored)
            self._note(step)
        self._parts, self._blocks = parts, stores
        assert min(self.applied.values(), default=0) >= 0, "a row was retracted that was not there"
        self.applied = +self.applied

    def _open(self, mine: range) -> tuple[State, dict[str, pa.Buffer]]:
        overlapping = [
            i for i, part in enumerate(self._parts) if part.slots.start < mine.stop and part.slots.stop > mine.start
        ]
        parts = [self._parts[i] for i in overlapping]
        if len(parts) == 1 and parts[0].slots == mine:
            manifest, stored = parts[0].manifest, dict(self._blocks[overlapping[0]])
        else:
            found = clipped(self.kernel.traces(), self.order, parts, mine)
            manifest = found.manifest
            stored = {name: self._blocks[overlapping[part]][old] for name, (part, old) in found.blocks.items()}
        return State.open(self.kernel.traces(), manifest, stored.__getitem__, self.order), stored

    def _note(self, step: Step) -> None:
        for *row, weight in rows_of(step.changes):
            self.applied[tuple(row)] += weight
        self.late_count += step.late_count
        self.unmatched_retractions += step.unmatched_retractions


def slots_of_shard(shard: int, count: int) -> range:
    """The slots of one of `count` shards."""
    return range(-(-shard * SLOTS // count), -(-(shard + 1) * SLOTS // count))


def holds_clip(
    kernels: Sequence[Kernel],
    batches: Sequence[Batch],
    keys: Sequence[Sequence[int]],
    order: tuple[int, ...] | None,
    counts: Sequence[int],
) -> None:
    """The last of `kernels` answers the same however many states it is spread over; those before it keep none."""
    holds_spread(replay(kernels, batches), keys, order, counts)


def holds_spread(
    lasting: Replay, keys: Sequence[Sequence[int]], order: tuple[int, ...] | None, counts: Sequence[int]
) -> None:
    """The last kernel answers as in `lasting`, where it has one state, however many it is spread over; those before it
    keep none."""
    *before, last = lasting.run.kernels
    spread = ClippedRun(last, keys, order, counts)
    watermark = MIN_TIME
    for at, (batch, outcome) in enumerate(zip(lasting.batches, lasting.outcomes, strict=True)):
        clock = Clock(now=batch.now, watermark=max(batch.watermark, watermark), previous=watermark)
        watermark = clock.watermark
        inputs = [block(schema, batch.changes, port) for port, schema in enumerate(lasting.run.kernels[0].inputs)]
        for kernel in before:
            inputs = [kernel.advance(no_state(), inputs, clock, SQL).changes]
        spread(inputs, clock)
        assert spread.applied == outcome.applied, f"after batch {at}"
    assert spread.late_count == lasting.run.late_count
    assert spread.unmatched_retractions == lasting.run.unmatched_retractions


def holds_cut(
    kernels: Sequence[Kernel],
    changes: Sequence[Change],
    cuts: Sequence[Callable[[Sequence[Change]], list[Batch]]],
    uncut: Callable[[Counter[Row]], object] = Counter,
) -> object:
    """However `changes` are cut into batches, the applied result is the same, or what `uncut` takes of it. Return
    that."""
    results = []
    for cut in cuts:
        run = Run(kernels)
        for batch in cut(changes):
            run(batch)
        results.append(uncut(run.applied))
    assert all(result == results[0] for result in results)
    return results[0]


def holds_undo(kernels: Sequence[Kernel], batches: Sequence[Batch]) -> None:
    """When every change is retracted, the last first, no rows and no state are left."""
    run = Run(kernels)
    for batch in batches:
        run(batch)
    for batch in reversed(batches):
        undone = [Change(c.row, -c.weight, c.port) for c in reversed(batch.changes)]
        run(Batch(undone, batch.now, batch.watermark))
    assert run.applied == Counter()
    assert run.state_rows() == 0
    assert run.unmatched_retractions == 0


def every(
    size: int, clock: Callable[[Sequence[Change]], int] | None = None
) -> Callable[[Sequence[Change]], list[Batch]]:
    """Cut a log every `size` changes; `clock` tells the watermark after all changes so far."""

    def cut(changes: Sequence[Change]) -> list[Batch]:
        batches = []
        for start in range(0, len(changes), size):
            watermark = clock(changes[: start + size]) if clock else MIN_TIME
            batches.append(Batch(changes[start : start + size], watermark=watermark))
        return [*batches, Batch([], watermark=END_OF_TIME)] if clock else batches

    return cut
