"""A program run in this process, batch by batch: the same ingest, buckets and kernels as on Spark.

There is nothing around them: no Kafka, no recovery. State lives in memory and is opened anew in every batch, so that a
kernel which keeps anything outside it is found out; and each batch has another number of shards.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow as pa

from operators.sql import Sql
from operators.time import MIN_TIME
from service.formats.contract import Decoder
from service.plan.program import Program
from service.runtime.bucket import Bucket, SealedBucket
from service.runtime.envelope import EGRESS, Envelope, Kind, table_of
from service.runtime.ingest import Ingest
from service.runtime.layout import Layout
from service.runtime.shard import Shard
from service.runtime.task_metrics import TaskMetrics
from service.runtime.topology import Topology
from service.runtime.watermarks import Tick


@dataclass(slots=True)
class BatchOutput:
    """What left the program in one batch. Tables are by id: of the output, of the operator (late and dead rows, a table
    a port), of the source (records that could not be decoded)."""

    outputs: dict[int, pa.Table] = field(default_factory=dict)
    late: dict[int, list[pa.Table]] = field(default_factory=dict)
    dead: dict[int, list[pa.Table]] = field(default_factory=dict)
    rejected: dict[int, pa.Table] = field(default_factory=dict)
    metrics: TaskMetrics = field(default_factory=TaskMetrics)


class _Store:
    """The manifest and blocks of one bucket, as a checkpoint would hold them."""

    def __init__(self) -> None:
        self.manifest: bytes | None = None
        self.blocks: dict[str, pa.Buffer] = {}


class _Level:
    """The state of one level, as a checkpoint would hold it; the keeper of its buckets."""

    def __init__(self, topology: Topology, level: int, buckets: int, sql: Sql) -> None:
        self._topology = topology
        self._level = level
        self._buckets = buckets
        self._sql = sql
        self._stores: dict[int, _Store] = defaultdict(_Store)
        self._clocks: str | None = None
        self.sealed = 0

    def advance(self, envelopes: Sequence[Envelope], layout: Layout) -> list[Envelope]:
        """Run one batch of all shards."""
        clocks = json.loads(self._clocks) if self._clocks else None
        answer: list[Envelope] = []
        for number in range(layout.shards):
            shard = Shard(self._topology, self._level, number, layout, clocks)
            mine = [e for e in envelopes if layout.shard_of(e.bucket) == number]
            answer.extend(shard.advance(mine, self))
            self._clocks = json.dumps(shard.save(), sort_keys=True)
        self.sealed += len(self._clocks or "")
        return answer

    def take(self, number: int) -> Bucket:
        """The bucket, opened anew."""
        store = self._stores[number]
        return Bucket(
            *(self._topology, self._level, number, self._buckets, self._sql, store.manifest, store.blocks.__getitem__)
        )

    def keep(self, number: int, bucket: Bucket, saved: SealedBucket) -> None:
        """Remember what the bucket has sealed."""
        store = self._stores[number]
        if saved.manifest != store.manifest:
            self.sealed += len(saved.manifest)
        store.manifest = saved.manifest
        store.blocks.update(saved.added)
        self.sealed += sum(block.size for block in saved.added.values())
        for block in saved.removed:
            store.blocks.pop(block, None)


class LocalRunner:
    """Runs `program` over batches of records. Every batch sees the state that the one before it sealed.

    `sealed` are the bytes of all manifests and blocks that were sealed so far: what a checkpoint is handed.
    """

    def __init__(self, program: Program, decoders: Mapping[int, Decoder], buckets: int, sql: Sql) -> None:
        self._program = program
        self._topology = Topology(program)
        self._decoders = decoders
        self._buckets = buckets
        self._sql = sql
        self._levels = {level: _Level(self._topology, level, buckets, sql) for level in range(1, program.levels + 1)}
        self._shards = 0
        self.sealed = 0

    def batch(self, records: Mapping[int, Sequence[pa.Table]], tick: Tick, now: int) -> BatchOutput:
        """Run one batch: for each source the records of its partitions, one table a partition, in offset order."""
        waiting: list[Envelope] = []
        self._shards = self._shards % self._buckets + 1
        layout = Layout.of(self._buckets, self._shards)
        for source in self._program.sources:
            ingest = Ingest(self._topology, source, self._decoders[source.id], layout, self._sql)
            waiting.extend(ingest.run(records.get(source.id, ()), now))
        waiting.extend(self._ticks(tick, layout, now))
        for number, level in self._levels.items():
            here = [e for e in waiting if e.level == number]
            waiting = [e for e in waiting if e.level != number]
            waiting.extend(level.advance(here, layout))
        self.sealed = sum(level.sealed for level in self._levels.values())
        return _gathered(e for e in waiting if e.level == EGRESS)

    def state_rows(self, answer: BatchOutput) -> int:
        """How many rows all operators kept after the batch of `answer`."""
        return int(sum(v for name, v in answer.metrics.levels.items() if name.startswith("state_rows{")))

    def _ticks(self, tick: Tick, layout: Layout, now: int) -> Iterable[Envelope]:
        payload = tick.to_json()
        for level in self._levels:
            for bucket in layout.heads():
                yield Envelope(bucket, level, Kind.TICK, 0, "tick", 0, now, MIN_TIME, False, payload)


def _gathered(envelopes: Iterable[Envelope]) -> BatchOutput:
    answer = BatchOutput()
    outputs: dict[int, list[pa.Table]] = defaultdict(list)
    rejected: dict[int, list[pa.Table]] = defaultdict(list)
    for e in sorted(envelopes, key=lambda e: (e.channel, e.sequence)):
        match Kind(e.kind):
            case Kind.OUTPUT:
                outputs[e.address].append(table_of(e))
            case Kind.LATE:
                answer.late.setdefault(e.address, []).append(table_of(e))
            case Kind.DEAD:
                answer.dead.setdefault(e.address, []).append(table_of(e))
            case Kind.REJECTED:
                rejected[e.address].append(table_of(e))
            case Kind.METRICS:
                answer.metrics.absorb(e.payload)
            case _:
                pass
    answer.outputs = {k: pa.concat_tables(v) for k, v in outputs.items()}
    answer.rejected = {k: pa.concat_tables(v) for k, v in rejected.items()}
    return answer
