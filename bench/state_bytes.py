"""What state takes in bytes: `python -m bench.state_bytes [KEYS,...]`.

It runs in this process, without Kafka and without a JVM, in a minute, and gives the same figures on every machine. One
row for each key makes the state; then rows come in small batches. What a batch seals is what Spark is handed for the
checkpoint.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from bench.cases import PARTITIONS
from bench.report import aligned
from bench.workloads import WORKLOADS, Value, Workload
from operators.sql import Sql
from service.formats.registry import decoder
from service.local.runner import LocalRunner
from service.plan.lowering.lower import compile_job
from service.plan.program import Source
from service.runtime.task_metrics import TaskMetrics
from service.runtime.watermarks import Tick, channel_name
from service.sql.pipeline import read

KEYS = (10_000, 100_000, 1_000_000)
LOADED = 250_000
"""Rows of a batch while the keys are loaded."""

BATCHES = {1_000: 60, 100: 60, 0: 5}
"""Batches that come afterwards: their number by their rows."""


@dataclass(frozen=True, slots=True)
class StateBytes:
    """The state over some keys: its rows, its bytes, and the bytes that a batch seals, by the rows of the batch."""

    workload: Workload
    keys: int
    rows: int
    bytes: int
    sealed: dict[int, float]


class _Fed:
    """A workload in a runner: `streams` are its sources in the order of the workload's streams."""

    def __init__(self, workload: Workload, keys: int) -> None:
        topics = tuple(stream.variable.lower() for stream in workload.streams)
        program = compile_job(read(workload.sql("broker", "group", "results", topics)).jobs[0])
        sources = {source.table.connector.topics[0]: source for source in program.sources}
        self._sources: Sequence[Source] = [sources[topic] for topic in topics]
        self._offsets = dict.fromkeys(topics, 0)
        self._now = 0
        self._later = [stream.later(keys) for stream in workload.streams]
        self._held = [stream.held for stream in workload.streams]
        decoders = {source.id: decoder(source.table, source.columns) for source in self._sources}
        self.runner = LocalRunner(program, decoders, PARTITIONS, Sql())

    def load(self, numbers: range) -> TaskMetrics:
        """A batch of the rows of keys."""
        return self._batch(self._held, numbers)

    def later(self, numbers: range) -> TaskMetrics:
        """A batch of rows that come on top of them."""
        return self._batch(self._later, numbers)

    def _batch(self, values: Sequence[Value], numbers: range) -> TaskMetrics:
        self._now += 500
        records, channels = {}, {}
        for source, value in zip(self._sources, values, strict=True):
            (topic,) = source.table.connector.topics
            channels[source.id] = tuple(channel_name(source.id, topic, n) for n in range(PARTITIONS))
            parts = [[value(n).encode() for n in numbers[part::PARTITIONS]] for part in range(PARTITIONS)]
            records[source.id] = [self._records(topic, n, part) for n, part in enumerate(parts) if part]
        return self.runner.batch(records, Tick(channels, ()), self._now).metrics

    def _records(self, topic: str, partition: int, values: Sequence[bytes]) -> pa.Table:
        first = self._offsets[topic]
        self._offsets[topic] += len(values)
        return pa.table(
            {
                "value": pa.array(values, pa.binary()),
                "topic": pa.array([topic] * len(values)),
                "partition": pa.array([partition] * len(values), pa.int32()),
                "offset": pa.array(range(first, first + len(values)), pa.int64()),
            }
        )


def measure(workload: Workload, keys: int, batches: Mapping[int, int] = BATCHES) -> StateBytes:
    """Load the keys, then run the `batches`: their number by their rows."""
    fed = _Fed(workload, keys)
    for start in range(0, keys, LOADED):
        fed.load(range(start, min(start + LOADED, keys)))
    sealed, sent = {}, 0
    for rows, number in batches.items():
        before = fed.runner.sealed
        share = rows // len(workload.streams)
        for _ in range(number):
            metrics = fed.later(range(sent, sent + share))
            sent += share
        sealed[rows] = (fed.runner.sealed - before) / number
    return StateBytes(workload, keys, int(_level(metrics, "rows")), int(_level(metrics, "bytes")), sealed)


def _level(metrics: TaskMetrics, what: str) -> float:
    return sum(value for name, value in metrics.levels.items() if name.startswith(f"state_{what}{{"))


def table(found: Sequence[StateBytes]) -> str:
    """A line for each."""
    head = ("state", "keys", "rows", "MiB", "bytes a row", *(f"KiB by {rows:,} rows" for rows in BATCHES))
    lines = [
        (
            each.workload.title,
            f"{each.keys:,}",
            f"{each.rows:,}",
            f"{each.bytes / 2**20:,.1f}",
            f"{each.bytes / each.rows:,.0f}",
            *(f"{each.sealed[rows] / 1024:,.0f}" for rows in BATCHES),
        )
        for each in found
    ]
    return aligned([head, *lines], texts=1)


if __name__ == "__main__":
    asked = tuple(int(number) for number in sys.argv[1].split(",")) if len(sys.argv) > 1 else KEYS
    print(table([measure(workload, keys) for workload in WORKLOADS for keys in asked]))
