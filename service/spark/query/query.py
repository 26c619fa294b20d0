"""A program as one streaming query: sources, levels, sink."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import reduce
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from service.formats import datagen
from service.plan.program import Program, Source
from service.runtime.topology import Topology
from service.spark.query.heartbeat import SPARK_SCHEMA
from service.spark.query.job_spec import JobSpec, packed
from service.spark.query.read_limits import OPTION
from service.spark.query.source import POSITION, IngestTask
from service.spark.query.stateful import LevelTask

FETCH: Mapping[str, str] = {
    "kafka.max.poll.records": "10000",
    "kafka.max.partition.fetch.bytes": str(8 << 20),
    "kafka.fetch.max.bytes": str(64 << 20),
    "kafka.receive.buffer.bytes": str(4 << 20),
    "kafka.isolation.level": "read_committed",
    # A broker that is away is told of within minutes, though a task is tried often (see `tries`).
    "kafkaConsumer.pollTimeoutMs": "30000",
    # Spark asks for the ends of a partition after each read, on the connection on which the client fetches ahead: the
    # broker answers only when more records have come, or this time has passed. With 0 it need not start a timer for it.
    # What a batch reads is there already: nothing is waited for.
    "kafka.fetch.max.wait.ms": "0",
}
"""Options that made Spark's Kafka source read twice as fast, and what exactly-once and patience ask for."""


@dataclass(frozen=True, slots=True)
class SourceOptions:
    """The options of one source: Java client properties, the start offsets of a first run, the cap of the first
    batch."""

    properties: Mapping[str, str]
    starting_offsets: str
    batch_rows: int


class QueryBuilder:
    """Builds and starts the query of one shipped job."""

    def __init__(self, session: SparkSession, spec: JobSpec, source_options: Mapping[int, SourceOptions]) -> None:
        self._session = session
        self._spec = spec
        self._blob = packed(spec)
        self._source_options = source_options
        self._topology = Topology(spec.program)

    def start(
        self, *, checkpoint: str, tick_ms: int, trigger_ms: int, topics: Mapping[int, Any], once: bool = False
    ) -> StreamingQuery:
        """Start it. `topics` gives, by source, topics and librdkafka properties for the tick to find partitions. With
        `once` it ends after one batch, which is planned already."""
        program = self._spec.program
        branches = [self._ingested(source) for source in program.sources]
        levels = sorted({level for s in program.sources for level in self._topology.levels_heard_by(s.id)})
        branches.append(self._ticks(tick_ms, levels, topics))
        envelopes = reduce(DataFrame.union, branches)
        envelopes = envelopes.selectExpr(*(STAMP if name == "now" else name for name in envelopes.columns))
        for level in range(1, program.levels + 1):
            envelopes = self._exchanged(envelopes).mapInArrow(LevelTask(self._blob, level), SPARK_SCHEMA)
        writer = (
            envelopes.writeStream.format("tailrace")
            .queryName(program.name)
            .outputMode("append")
            .option("job", base64.b64encode(self._blob).decode())
            .option("checkpointLocation", checkpoint)
        )
        trigger = {"once": True} if once else {"processingTime": f"{trigger_ms} milliseconds"}
        return writer.trigger(**trigger).start()

    def _exchanged(self, envelopes: DataFrame) -> DataFrame:
        """Each envelope in the partition of its shard."""
        return envelopes.repartitionById(self._spec.layout.shards, "shard")

    def _ingested(self, source: Source) -> DataFrame:
        rows = self._made(source) if source.table.connector.kind == "datagen" else self._read(source)
        return rows.mapInArrow(IngestTask(self._blob, source.id), SPARK_SCHEMA)

    def _made(self, source: Source) -> DataFrame:
        """The numbers and times of the rows of a 'datagen' table, in one partition, the same on a replay."""
        numbers = self._session.readStream.format("rate").option("numPartitions", "1")
        columns = ["value AS position", "timestamp"] + ([NOW] if needs_now(self._spec.program) else [])
        return numbers.option("rowsPerSecond", str(datagen.rate(source.table))).load().selectExpr(*columns)

    def _read(self, source: Source) -> DataFrame:
        options = self._source_options[source.id]
        needs = self._spec.decoders[source.id].needs()
        reader = (
            self._session.readStream.format("kafka")
            .option("subscribe", ",".join(source.table.connector.topics))
            .option("startingOffsets", options.starting_offsets)
            .option(OPTION, str(options.batch_rows))
            .option("failOnDataLoss", "true")
            .option("includeHeaders", str("headers" in needs).lower())
        )
        for key, value in {**FETCH, **{f"kafka.{k}": v for k, v in options.properties.items()}}.items():
            reader = reader.option(key, value)
        columns = [_NAMED[name] for name in needs if name not in ("topic", "partition", "offset")] + [POSITION]
        if len(source.table.connector.topics) > 1:
            columns.append("topic")
        if needs_now(self._spec.program):
            columns.append(NOW)
        rows = reader.load().selectExpr(*columns)
        return rows.coalesce(self._spec.readers) if self._spec.readers else rows

    def _ticks(self, tick_ms: int, levels: list[int], topics: Mapping[int, Any]) -> DataFrame:
        return (
            self._session.readStream.format("tailrace-tick")
            .option("interval", str(tick_ms))
            .option("shards", str(self._spec.layout.shards))
            .option("levels", json.dumps(levels))
            .option("topics", json.dumps({str(k): v for k, v in topics.items()}))
            .option("ended", str(Path(self._spec.scratch) / self._spec.run / "ended.json"))
            .load()
        )


NOW = "unix_millis(current_timestamp()) AS now"
"""The batch's own time: it is kept in Spark's offset log, so it is the same on a replay."""

STAMP = "transform(array(unix_millis(current_timestamp())), now -> now)[0] AS now"
"""The same for envelopes. Spark writes the time as a number into the Java code of a projection, which it then compiles
anew in every batch; a function with a lambda is not compiled, and there are few envelopes."""

_NAMED = {
    "key": "key",
    "value": "value",
    "timestamp": "timestamp",
    "timestamp_type": "timestampType AS timestamp_type",
    "headers": "headers",
}


def needs_now(program: Program) -> bool:
    """Whether an operator of level 0 asks for the time of the batch."""
    return any(o.kernel.reads_now for o in program.operators if o.level == 0)
