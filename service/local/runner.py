"""A program run in this process, batch by batch: the same ingest, shards and kernels as on Spark.

There is nothing around them: no Kafka, no recovery. State lives in memory and is reopened in every batch, so that a
kernel which keeps anything outside it is found out; and each batch has another number of shards.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import repeat
from typing import NamedTuple

import pyarrow as pa

from operators.sql import Sql
from operators.time import MIN_TIME
from service.formats.contract import Decoder
from service.plan.program import Program
from service.runtime.envelope import EGRESS, Envelope, Kind, table_of
from service.runtime.ingest import Ingest
from service.runtime.layout import Layout
from service.runtime.shard import Shard
from service.runtime.shard_operators import Ask, ShardOperators, ShardPart, clipped_shard
from service.runtime.task_metrics import TaskMetrics
from service.runtime.topology import Topology
from service.runtime.watermarks import Tick


@dataclass(slots=True)
class BatchOutput:
    """The rows that left the program in one batch. Tables are by id: of the output, of the operator (late and dead
    rows, a table a port), of the source (records that could not be decoded)."""

    outputs: dict[int, pa.Table] = field(default_factory=dict)
    late: dict[int, list[pa.Table]] = field(default_factory=dict)
    dead: dict[int, list[pa.Table]] = field(default_factory=dict)
    dead_records: dict[int, pa.Table] = field(default_factory=dict)
    metrics: TaskMetrics = field(default_factory=TaskMetrics)


class _Store(NamedTuple):
    """The manifest and blocks of one shard, as a checkpoint would hold them."""

    manifest: bytes
    blocks: dict[str, pa.Buffer]


class _Level:
    """The state of one level, as a checkpoint would hold it."""

    def __init__(self, topology: Topology, level: int, sql: Sql, ask: Ask | None) -> None:
        self._ask = ask
        self._topology = topology
        self._level = level
        self._sql = sql
        self._stores: list[_Store] = []
        self._clocks: str | None = None
        self.sealed = 0

    def advance(self, envelopes: Sequence[Envelope], layout: Layout) -> list[Envelope]:
        """Run one batch of all shards."""
        clocks = json.loads(self._clocks) if self._clocks else None
        answer: list[Envelope] = []
        stores: list[_Store] = []
        for number in range(layout.shards):
            shard = Shard(self._topology, self._level, number, layout, clocks)
            before = self._before(number, layout)
            operators = self._open(number, layout, before)
            here = [e for e in envelopes if e.shard == number]
            answer.extend(shard.advance(here, repeat(operators).__next__))
            stores.append(self._sealed(operators, before))
            self._clocks = json.dumps(shard.save(), sort_keys=True)
        self._stores = stores
        self.sealed += len(self._clocks or "")
        return answer

    def _before(self, number: int, layout: Layout) -> _Store | None:
        """The state of a shard, combined from the shards of the previous batch; None at the start."""
        if not self._stores:
            return None
        had, slots = Layout(len(self._stores)), layout.slots_of(number)
        if had == layout:
            return self._stores[number]
        shards = had.sharing(slots)
        parts = [ShardPart(had.slots_of(shard), self._stores[shard].manifest) for shard in shards]
        found = clipped_shard(self._topology, self._level, parts, slots)
        blocks = {new: self._stores[shards[part]].blocks[old] for new, (part, old) in found.blocks.items()}
        return _Store(found.manifest, blocks)

    def _open(self, number: int, layout: Layout, store: _Store | None) -> ShardOperators:
        """The operators of a shard, reopened."""
        manifest, blocks = (None, {}) if store is None else store
        place = (self._topology, self._level, number, layout, self._sql)
        operators = ShardOperators(*place, manifest, blocks.__getitem__)
        if self._ask is not None:
            operators.ask_with(self._ask)
        return operators

    def _sealed(self, operators: ShardOperators, before: _Store | None) -> _Store:
        """The state to store."""
        saved = operators.seal()
        if before is None or saved.manifest != before.manifest:
            self.sealed += len(saved.manifest)
        self.sealed += sum(block.size for block in saved.added.values())
        blocks = {} if before is None else dict(before.blocks)
        for block in saved.removed:
            del blocks[block]
        return _Store(saved.manifest, blocks | dict(saved.added))


class LocalRunner:
    """Runs `program` over batches of records. Every batch sees the state that the one before it sealed.

    Each batch has another number of shards than the one before, up to `shards`. `sealed` are the bytes of all manifests
    and blocks that were sealed so far: what a checkpoint is handed. `ask` answers lookups.
    """

    def __init__(
        self, program: Program, decoders: Mapping[int, Decoder], shards: int, sql: Sql, ask: Ask | None = None
    ) -> None:
        self._program = program
        self._topology = Topology(program)
        self._decoders = decoders
        self._most = shards
        self._sql = sql
        self._levels = {level: _Level(self._topology, level, sql, ask) for level in range(1, program.levels + 1)}
        self._shards = 0
        self.sealed = 0

    def batch(self, records: Mapping[int, Sequence[pa.Table]], tick: Tick, now: int) -> BatchOutput:
        """Run one batch: for each source the records of its partitions, one table a partition, in offset order."""
        self._shards = self._shards % self._most + 1
        layout = Layout.of(self._shards)
        waiting = self.entering(records, tick, now, layout)
        for number, level in self._levels.items():
            here = [e for e in waiting if e.level == number]
            waiting = [e for e in waiting if e.level != number]
            waiting.extend(level.advance(here, layout))
        self.sealed = sum(level.sealed for level in self._levels.values())
        return gathered(waiting)

    def entering(
        self, records: Mapping[int, Sequence[pa.Table]], tick: Tick, now: int, layout: Layout
    ) -> list[Envelope]:
        """Return the envelopes of a batch for the levels and for the sinks: the rows that enter, and the time."""
        waiting: list[Envelope] = []
        for source in self._program.sources:
            ingest = Ingest(self._topology, source, self._decoders[source.id], layout, self._sql)
            waiting.extend(ingest.run(records.get(source.id, ()), now))
        waiting.extend(self._ticks(tick, layout, now))
        return waiting

    def state_rows(self, answer: BatchOutput) -> int:
        """Return the number of rows in the state of all operators after the batch of `answer`."""
        return int(sum(v for name, v in answer.metrics.levels.items() if name.startswith("state_rows{")))

    def _ticks(self, tick: Tick, layout: Layout, now: int) -> Iterable[Envelope]:
        payload = tick.to_bytes()
        for level in self._levels:
            for shard in range(layout.shards):
                yield Envelope(shard, level, Kind.TICK, 0, "tick", 0, now, MIN_TIME, False, payload)


def gathered(envelopes: Iterable[Envelope]) -> BatchOutput:
    """Return the rows of a batch that leave the program."""
    answer = BatchOutput()
    outputs: dict[int, list[pa.Table]] = defaultdict(list)
    dead_records: dict[int, list[pa.Table]] = defaultdict(list)
    leaving = (e for e in envelopes if e.level == EGRESS)
    for e in sorted(leaving, key=lambda e: (e.channel, e.sequence)):
        match Kind(e.kind):
            case Kind.OUTPUT:
                outputs[e.address].append(table_of(e))
            case Kind.LATE:
                answer.late.setdefault(e.address, []).append(table_of(e))
            case Kind.DEAD_ROWS:
                answer.dead.setdefault(e.address, []).append(table_of(e))
            case Kind.DEAD_RECORDS:
                dead_records[e.address].append(table_of(e))
            case Kind.METRICS:
                answer.metrics.absorb(e.payload)
            case _:
                pass
    answer.outputs = {k: pa.concat_tables(v) for k, v in outputs.items()}
    answer.dead_records = {k: pa.concat_tables(v) for k, v in dead_records.items()}
    return answer
