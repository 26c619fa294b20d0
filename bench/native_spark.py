"""The cases that Spark can express with its own operators: `python -m bench.native_spark SQL CHECKPOINT`.

The SQL file names the case; topics and group are read from its WITH options, so that all engines are pointed the same
way. Kafka to Kafka, RocksDB with changelog checkpoints, the source options that Tailrace uses too. Its sink is at least
once, and an update is written without the row that it replaces, because there is no other way.
"""

from __future__ import annotations

import json
import re
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from confluent_kafka import Consumer, TopicPartition
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f
from pyspark.sql.streaming.query import StreamingQuery

from service.archives import ensure, load

SETTINGS = {
    "spark.master": "local[2]",
    "spark.driver.memory": "2g",
    "spark.ui.enabled": "false",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.streaming.stateStore.providerClass": (
        "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
    ),
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
    "spark.sql.streaming.checkpointFileManagerClass": (
        "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
    ),
}
SOURCE = {
    "startingOffsets": "earliest",
    "maxOffsetsPerTrigger": "1000000",
    "kafka.isolation.level": "read_committed",
    "kafka.max.poll.records": "50000",
    "kafka.max.partition.fetch.bytes": "16777216",
    "kafka.fetch.max.bytes": "67108864",
    "kafka.receive.buffer.bytes": "4194304",
}
PAYMENT = "id BIGINT, account BIGINT, amount DOUBLE, ms BIGINT"
SHIPMENT = "order_id BIGINT, carrier BIGINT, ms BIGINT"
DELAY = "5 seconds"

Read = Callable[[str, str], DataFrame]


def tumble(read: Read) -> tuple[DataFrame, str]:
    payments = read("payments", PAYMENT).withWatermark("ts", DELAY)
    groups = payments.groupBy("account", f.window("ts", "10 seconds").alias("w"))
    totals = groups.agg(f.count("*").alias("n"), f.sum("amount").alias("total"))
    return totals.select("account", "n", "total", "w.start", "w.end"), "append"


def group_by(read: Read) -> tuple[DataFrame, str]:
    groups = read("payments", PAYMENT).groupBy("account")
    return groups.agg(f.count("*").alias("n"), f.sum("amount").alias("total")), "update"


def interval_join(read: Read) -> tuple[DataFrame, str]:
    orders = read("orders", PAYMENT).withWatermark("ts", DELAY).alias("o")
    shipments = read("shipments", SHIPMENT).withWatermark("ts", DELAY).alias("s")
    condition = "o.id = s.order_id AND s.ts BETWEEN o.ts AND o.ts + INTERVAL 5 SECONDS"
    return orders.join(shipments, f.expr(condition)).select("o.id", "o.account", "o.amount", "s.carrier"), "append"


QUERIES: dict[str, Callable[[Read], tuple[DataFrame, str]]] = {
    "tumble": tumble,
    "group_by": group_by,
    "interval_join": interval_join,
}


class Options:
    """What the WITH options of the SQL file say about each of its tables."""

    def __init__(self, sql: str) -> None:
        self._tables = {
            match[1]: dict(re.findall(r"'([^']+)' = '([^']*)'", match[2]))
            for match in re.finditer(r"CREATE TABLE (\w+) \(.*?\) WITH \((.*?)\n\);", sql, re.DOTALL)
        }

    def __getitem__(self, table: str) -> dict[str, str]:
        return self._tables[table]

    @property
    def group(self) -> str:
        return next(options["properties.group.id"] for options in self._sources())

    @property
    def topics(self) -> list[str]:
        return [options["topic"] for options in self._sources()]

    def _sources(self) -> Iterator[dict[str, str]]:
        return (options for options in self._tables.values() if "properties.group.id" in options)


def main(sql: Path, checkpoint: str) -> None:
    options = Options(sql.read_text())
    builder = SparkSession.builder.config("spark.jars", ",".join(map(str, ensure(load("spark")))))
    for name, value in SETTINGS.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")

    def read(table: str, schema: str) -> DataFrame:
        source = spark.readStream.format("kafka").options(**SOURCE, subscribe=options[table]["topic"])
        rows = source.option("kafka.bootstrap.servers", options[table]["properties.bootstrap.servers"]).load()
        values = rows.select(f.from_json(f.col("value").cast("string"), schema).alias("v")).select("v.*")
        return values.withColumn("ts", f.timestamp_millis("ms"))

    result, mode = QUERIES[sql.stem](read)
    sink = result.select(f.to_json(f.struct("*")).alias("value")).writeStream.format("kafka").outputMode(mode)
    target = options["results"]
    query = (
        sink.option("kafka.bootstrap.servers", target["properties.bootstrap.servers"])
        .option("topic", target["topic"])
        .option("checkpointLocation", checkpoint)
        .trigger(availableNow=True)
        .start()
    )
    _follow(query, options, target["properties.bootstrap.servers"])


def _follow(query: StreamingQuery, options: Options, bootstrap: str) -> None:
    """Commit to the group what each finished batch has read, as the other engines do, until the query ends."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": options.group, "enable.auto.commit": False})
    done = -1
    while query.isActive:
        done = _commit(consumer, query, done)
        time.sleep(0.05)
    _commit(consumer, query, done)
    consumer.close()
    query.awaitTermination()


def _commit(consumer: Consumer, query: StreamingQuery, done: int) -> int:
    last: Any = query.lastProgress
    if last is None or last.batchId == done:
        return done
    places = [
        TopicPartition(topic, int(partition), offset)
        for source in last.sources
        for topic, partitions in json.loads(source.endOffset).items()
        for partition, offset in partitions.items()
    ]
    consumer.commit(offsets=places, asynchronous=False)
    return int(last.batchId)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
