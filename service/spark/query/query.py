"""A program as one streaming query: sources and levels; the last level writes to Kafka."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import reduce
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from service.formats import datagen
from service.plan.program import Source
from service.runtime.record_runs import LARGEST
from service.runtime.topology import Topology
from service.spark.query.heartbeat import SPARK_SCHEMA
from service.spark.query.job_spec import JobSpec, packed
from service.spark.query.read_limits import OPTION
from service.spark.query.source import IngestTask
from service.spark.query.stateful import LevelTask
from service.spark.query.task_output import SPARK_REPORTS

KAFKA = "tailrace.kafka.KafkaSource"
"""The format of a Kafka source: Spark's, read by our own Java classes (`service/spark/java`)."""

FETCH: Mapping[str, str] = {
    "kafka.receive.buffer.bytes": str(4 << 20),
    "kafka.isolation.level": "read_committed",
    # An unreachable broker is reported within minutes, although a task has many attempts (see `attempts`).
    "kafkaConsumer.pollTimeoutMs": "30000",
    # Spark asks for the ends of a partition after each read, on the connection on which the client fetches ahead: the
    # broker answers only when more records have come, or this time has passed. With 0 it need not start a timer for it.
    # What a batch reads is there already: nothing is waited for.
    "kafka.fetch.max.wait.ms": "0",
}
"""Options that make Spark's Kafka source read twice as fast, and those that exactly-once and unreachable brokers
need."""


SEARCH_MS = 25
"""Milliseconds that a search for rows waits for them, over all Kafka sources of a query, if the one before it found
none. A row ends the search of its source; anything else, such as a tick, is noticed after it. As long again Spark
pauses (`pollingDelay`): an orderly stop looks for a moment in which nothing is searched for."""


@dataclass(frozen=True, slots=True)
class SourceOptions:
    """The options of one source: Java client properties, the start offsets of a first run, and the record limit of the
    first batch, 0 for a source that waits. `ends` is a file of the driver with the offsets up to which batches read for
    now, empty for no limit."""

    properties: Mapping[str, str]
    starting_offsets: str
    batch_rows: int
    ends: str = ""


class QueryBuilder:
    """The query of one shipped job, from its sources to its start."""

    def __init__(self, session: SparkSession, spec: JobSpec, source_options: Mapping[int, SourceOptions]) -> None:
        self._session = session
        self._spec = spec
        self._blob = packed(spec)
        self._source_options = source_options
        self._topology = Topology(spec.program)

    def start(
        self,
        end_batch: Callable[[DataFrame, int], None],
        *,
        checkpoint: str,
        tick_ms: int,
        trigger_ms: int,
        topics: Mapping[int, Any],
        once: bool = False,
    ) -> StreamingQuery:
        """Start the query.

        `end_batch` is called with the reports of each batch; the batch runs when it reads them. `topics` gives, by
        source, topics and librdkafka properties, with which the tick finds partitions. With `once` the query ends after
        one batch, which is planned already.
        """
        program = self._spec.program
        branches = [self._ingested(source) for source in program.sources]
        receiving = [self._topology.levels_receiving(s.id) for s in program.sources]
        levels = sorted({level for each in receiving for level in each})
        always = any(each != levels for each in receiving)
        ticks = self._ticks(tick_ms, levels, topics, always=always)
        # Without levels nothing reads a tick, so none has rows: its source only makes batches run.
        branches.append(ticks if program.levels else ticks.selectExpr("payload AS report"))
        rows = reduce(DataFrame.union, branches)
        for level in range(1, program.levels + 1):
            answer = SPARK_SCHEMA if level < program.levels else SPARK_REPORTS
            rows = self._exchanged(rows).mapInArrow(LevelTask(self._blob, level), answer)
        writer = (
            rows.writeStream.foreachBatch(end_batch)
            .queryName(program.name)
            .outputMode("append")
            .option("checkpointLocation", checkpoint)
        )
        trigger = {"once": True} if once else {"processingTime": f"{trigger_ms} milliseconds"}
        return writer.trigger(**trigger).start()

    def _exchanged(self, envelopes: DataFrame) -> DataFrame:
        """Each envelope in the Spark partition of its shard."""
        return envelopes.repartitionById(self._spec.layout.shards, "shard")

    def _ingested(self, source: Source) -> DataFrame:
        rows = self._made(source) if source.table.connector.kind == "datagen" else self._read(source)
        answer = SPARK_SCHEMA if self._spec.program.levels else SPARK_REPORTS
        return rows.mapInArrow(IngestTask(self._blob, source.id), answer)

    def _made(self, source: Source) -> DataFrame:
        """The numbers and times of the rows of a 'datagen' table, in one partition, the same in a replay."""
        numbers = self._session.readStream.format("rate").option("numPartitions", "1")
        rows = numbers.option("rowsPerSecond", str(datagen.rate(source.table))).load()
        return rows.selectExpr("value AS number", "timestamp")

    def _read(self, source: Source) -> DataFrame:
        options = self._source_options[source.id]
        needs = self._spec.decoders[source.id].needs()
        reader = (
            self._session.readStream.format(KAFKA)
            .option("readers", str(self._spec.readers))
            .option("columns", ",".join(needs))
            .option("records", str(self._spec.block_rows))
            .option("bytes", str(LARGEST))
            .option("source", str(source.id))
            .option("subscribe", ",".join(source.table.connector.topics))
            .option("startingOffsets", options.starting_offsets)
            .option(OPTION, str(options.batch_rows))
            .option("failOnDataLoss", "true")
            .option("ends", options.ends)
            .option("pause", str(max(1, SEARCH_MS // len(self._source_options))))
        )
        for key, value in {**FETCH, **{f"kafka.{k}": v for k, v in options.properties.items()}}.items():
            reader = reader.option(key, value)
        return reader.load()

    def _ticks(self, tick_ms: int, levels: list[int], topics: Mapping[int, Any], *, always: bool) -> DataFrame:
        return (
            self._session.readStream.format("tailrace-tick")
            .option("interval", str(tick_ms))
            .option("shards", str(self._spec.layout.shards))
            .option("levels", json.dumps(levels))
            .option("always", str(always).lower())
            .option("topics", json.dumps({str(k): v for k, v in topics.items()}))
            .option("folder", str(Path(self._spec.scratch) / self._spec.run))
            .load()
        )
