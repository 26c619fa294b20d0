"""The options of each connector, by Flink's names. docs/options.md is made from this table."""

from __future__ import annotations

from collections.abc import Mapping

from service.sql.options.known import (
    ANY,
    BOOLEAN,
    COUNT,
    DATABASE_URL,
    DURATION,
    INTEGER,
    LIST,
    OFFSETS,
    TEXT,
    TOPIC_PATTERN,
    OptionSpec,
    flag,
    ignored,
    refused,
    words,
)

HEADERS = flag("whether written records have row kind, event time and query in headers", default="false")
BAD_INPUT = words("what to do with a record that cannot be decoded", "dead-letter", "skip", "fail")

_WATERMARK: Mapping[str, OptionSpec] = {
    "scan.watermark.idle-timeout": OptionSpec(
        DURATION, "a partition without rows for this long no longer holds the watermark back"
    ),
    "scan.watermark.emit.strategy": ignored("the watermark is computed for every batch"),
    "scan.watermark.emit.on-event.gap": ignored("the watermark is computed for every batch"),
    "scan.watermark.alignment.group": refused("watermarks of different tables are not aligned"),
    "scan.watermark.alignment.max-drift": refused("watermarks of different tables are not aligned"),
    "scan.watermark.alignment.update-interval": refused("watermarks of different tables are not aligned"),
}

_PARALLELISM: Mapping[str, OptionSpec] = {
    "scan.parallelism": ignored("one task reads one partition", INTEGER),
    "sink.parallelism": ignored("the number of tasks is a setting of the service", INTEGER),
}

_DELIVERY: Mapping[str, OptionSpec] = {
    "sink.delivery-guarantee": words(
        "rows are written exactly once, whatever the value", "exactly-once", "at-least-once", "none"
    ),
    "sink.semantic": words("the older name of sink.delivery-guarantee", "exactly-once", "at-least-once", "none"),
    "sink.transactional-id-prefix": ignored("transactional ids are made from the checkpoint", TEXT),
    "sink.transaction-naming-strategy": ignored("transactions are named after the checkpoint"),
}

_BOUNDS: Mapping[str, OptionSpec] = {
    "scan.bounded.mode": words(
        "where reading ends", "unbounded", "latest-offset", "group-offsets", "timestamp", "specific-offsets"
    ),
    "scan.bounded.specific-offsets": OptionSpec(OFFSETS, "the offset to stop at, by partition"),
    "scan.bounded.timestamp-millis": OptionSpec(INTEGER, "the time to stop at, in milliseconds since 1970"),
}

_TOPICS: Mapping[str, OptionSpec] = {
    "topic": OptionSpec(LIST, "the topic; to read several, separate them by semicolons"),
    "topic-pattern": OptionSpec(
        TOPIC_PATTERN,
        "the topics to read, instead of topic: a Java regular expression for whole names; it is resolved when the"
        " service starts",
    ),
    "scan.topic-partition-discovery.interval": ignored(
        "new partitions are discovered before each batch, and new topics of a pattern when the service starts", DURATION
    ),
    "properties.*": OptionSpec(TEXT, "a property of Kafka's Java client; translated for other clients"),
}

KAFKA: Mapping[str, OptionSpec] = {
    **_TOPICS,
    "format": OptionSpec(TEXT, "the format of the value"),
    "key.format": OptionSpec(TEXT, "the format of the key"),
    "key.fields": OptionSpec(LIST, "the columns that the key holds"),
    "key.fields-prefix": OptionSpec(
        TEXT, "the prefix of the names of the key's columns, which the key's fields do not have"
    ),
    "value.format": OptionSpec(TEXT, "the format of the value; the same as 'format'"),
    "value.fields-include": words("whether the value holds the key's columns too", "ALL", "EXCEPT_KEY"),
    "scan.startup.mode": words(
        "where reading starts; group-offsets needs 'properties.group.id', and for a group without offsets"
        " 'properties.auto.offset.reset'",
        "group-offsets",
        "earliest-offset",
        "latest-offset",
        "timestamp",
        "specific-offsets",
    ),
    "scan.startup.specific-offsets": OptionSpec(OFFSETS, "the offset to start at, by partition"),
    "scan.startup.timestamp-millis": OptionSpec(INTEGER, "the time to start at, in milliseconds since 1970"),
    **_BOUNDS,
    **_WATERMARK,
    **_PARALLELISM,
    **_DELIVERY,
    "sink.partitioner": words(
        "rows of one key stay in one partition, in order, whatever the value", "default", "fixed", "round-robin"
    ),
    "tailrace.bad-input": BAD_INPUT,
    "tailrace.headers": HEADERS,
}

UPSERT_KAFKA: Mapping[str, OptionSpec] = {
    **_TOPICS,
    "key.format": OptionSpec(TEXT, "the format of the key"),
    "key.fields-prefix": KAFKA["key.fields-prefix"],
    "value.format": OptionSpec(TEXT, "the format of the value"),
    "value.fields-include": KAFKA["value.fields-include"],
    **_BOUNDS,
    **_WATERMARK,
    **_PARALLELISM,
    **_DELIVERY,
    "sink.buffer-flush.max-rows": ignored("a batch is consolidated as a whole before it is written"),
    "sink.buffer-flush.interval": ignored("a batch is consolidated as a whole before it is written"),
    "tailrace.bad-input": BAD_INPUT,
    "tailrace.headers": HEADERS,
}

DATAGEN: Mapping[str, OptionSpec] = {
    "rows-per-second": OptionSpec(COUNT, "rows generated per second", default="10000"),
    "number-of-rows": OptionSpec(COUNT, "total number of rows; unbounded without it"),
    "fields.*": OptionSpec(
        TEXT, "how the values of a column are generated: .kind, .min, .max, .length, .start, .end, ..."
    ),
    **_WATERMARK,
    "scan.parallelism": _PARALLELISM["scan.parallelism"],
}

PRINT: Mapping[str, OptionSpec] = {
    "print-identifier": OptionSpec(TEXT, "a text at the start of each line"),
    "standard-error": words("lines go to standard output", "false"),
    "sink.parallelism": _PARALLELISM["sink.parallelism"],
}

_LOOKED_UP = "the table is only used for lookups by key, and never scanned"
_NOT_WRITTEN = "the table cannot be written"

JDBC: Mapping[str, OptionSpec] = {
    "url": OptionSpec(DATABASE_URL, "the database: 'jdbc:postgresql://...', 'jdbc:sqlite:...', or an SQLAlchemy URL"),
    "table-name": OptionSpec(TEXT, "the table or view in the database, with its schema if it needs one"),
    "username": OptionSpec(TEXT, "the user of the database"),
    "password": OptionSpec(ANY, "the password of that user"),
    "driver": ignored("the driver follows from the URL"),
    "lookup.cache": words("whether a worker caches lookup results", "NONE", "PARTIAL"),
    "lookup.partial-cache.max-rows": OptionSpec(
        COUNT, "most rows that a worker caches; a key without rows counts as one", default="100000"
    ),
    "lookup.partial-cache.expire-after-write": OptionSpec(
        DURATION, "how long a row is cached after it was read; without it until it is evicted"
    ),
    "lookup.partial-cache.expire-after-access": OptionSpec(
        DURATION, "how long a row is cached after it was last used; without it until it is evicted"
    ),
    "lookup.partial-cache.cache-missing-key": flag("whether to cache that a key has no row", "true"),
    "lookup.cache.max-rows": OptionSpec(
        COUNT, "the older name of lookup.partial-cache.max-rows; it turns the cache on"
    ),
    "lookup.cache.ttl": OptionSpec(
        DURATION, "the older name of lookup.partial-cache.expire-after-write; it turns the cache on"
    ),
    "lookup.cache.caching-missing-key": flag("the older name of lookup.partial-cache.cache-missing-key", "true"),
    "lookup.max-retries": OptionSpec(
        INTEGER, "how often a worker retries a lookup before the whole batch fails and is retried", default="3"
    ),
    "lookup.async": ignored("keys are looked up in several parallel statements", BOOLEAN),
    "connection.max-retry-timeout": OptionSpec(DURATION, "longest total time of a worker's retries", default="60 s"),
    "tailrace.lookup.batch-keys": OptionSpec(COUNT, "number of keys in one statement", default="1000"),
    "tailrace.lookup.connections": OptionSpec(
        COUNT, "number of parallel statements of a worker, each over its own connection", default="4"
    ),
    **dict.fromkeys(
        (
            *(
                "scan.partition.column",
                "scan.partition.num",
                "scan.partition.lower-bound",
                "scan.partition.upper-bound",
            ),
            *("scan.fetch-size", "scan.auto-commit", "filter.handling.policy"),
        ),
        ignored(_LOOKED_UP),
    ),
    **dict.fromkeys(
        ("sink.buffer-flush.max-rows", "sink.buffer-flush.interval", "sink.max-retries", "sink.parallelism"),
        ignored(_NOT_WRITTEN),
    ),
}

CONNECTORS: Mapping[str, Mapping[str, OptionSpec]] = {
    "kafka": KAFKA,
    "upsert-kafka": UPSERT_KAFKA,
    "datagen": DATAGEN,
    "jdbc": JDBC,
    "print": PRINT,
    "blackhole": {},
}

_THROUGH_KAFKA = "move the rows through a topic, with Kafka Connect for example"

FLINK_CONNECTORS: Mapping[str, str] = {
    **dict.fromkeys(("filesystem", "hive", "hbase-1.4", "hbase-2.2", "mongodb", "dynamodb", "socket"), _THROUGH_KAFKA),
    **dict.fromkeys(("elasticsearch-6", "elasticsearch-7", "opensearch"), _THROUGH_KAFKA),
    **dict.fromkeys(("kinesis", "firehose", "pulsar", "upsert-jdbc"), _THROUGH_KAFKA),
    "dynamic-kafka": "name the topics of one cluster, with 'connector' = 'kafka'",
    "faker": "write 'connector' = 'datagen'",
    **dict.fromkeys(
        (
            *("mysql-cdc", "postgres-cdc", "oracle-cdc", "sqlserver-cdc", "mongodb-cdc", "tidb-cdc", "db2-cdc"),
            *("oceanbase-cdc", "vitess-cdc"),
        ),
        "write the changes to a topic, with Debezium for example, and read it with 'format' = 'debezium-json'",
    ),
}
"""Flink connectors that are not supported here, and what to do instead."""
