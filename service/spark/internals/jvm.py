"""The private members of PySpark's objects that lead into the JVM, and the classes of Spark that are used there.

Each function is one thing that this service relies on; a test calls each against a real JVM.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

KAFKA_SOURCE = "tailrace.kafka.KafkaStream"
"""The class of the source of a Kafka table in a running query; it is ours, around that of Spark."""

READ_LIMIT = "org.apache.spark.sql.connector.read.streaming.ReadLimit"


REPORTS = "tailrace.reports.Reports"
"""Our class that runs the tasks of a batch."""

_LENGTH = struct.Struct(">i")
"""Stands before each report of a task."""


def java_class(session: SparkSession, name: str) -> Any:
    """Return py4j's view of a class of the JVM by its full name.

    For `jvm.java.lang.Object`, py4j first asks the JVM for classes named `java` and `java.lang`, and Java looks for
    these in all archives of Spark, each time. By its full name a class is found at once.
    """
    view = session._jvm
    assert view is not None
    return getattr(view, name)


def elements(collection: Any) -> list[Any]:
    """Return the elements of a Java `Collection`.

    Python's own loop ends with an exception in the JVM, about which PySpark asks sixty questions.
    """
    return list(collection.toArray())


def hadoop_configuration(session: SparkSession) -> Any:
    """Return the Hadoop `Configuration` of the session, with the settings of object stores."""
    return session.sparkContext._jsc.hadoopConfiguration()


def java_query(query: StreamingQuery) -> Any:
    """Return the JVM's `StreamingQuery`, whose progress can be read without JSON."""
    return query._jsq


def active_executors(session: SparkSession) -> dict[str, str]:
    """Return the `host:port` of each active executor by its name, and that of the driver."""
    active = session.sparkContext._jsc.sc().statusStore().executorList(True)
    found = (active.apply(i) for i in range(active.size()))
    # The address is not known between an executor's connection and its first message.
    return {str(each.id()): str(each.hostPort() or "") for each in found}


def collected(reports: DataFrame, query: str) -> list[bytes]:
    """Run the tasks of a batch of the query of that name, and return the one column of each task's row.

    The rows are computed as planned. With `reports.collect()` Spark would plan them as a query of its own, notify its
    listeners, and serve them at a port.
    """
    packed = memoryview(bytes(java_class(reports.sparkSession, REPORTS).collect(reports._jdf, query)))
    found: list[bytes] = []
    at = 0
    while at < len(packed):
        (length,) = _LENGTH.unpack_from(packed, at)
        at += _LENGTH.size
        found.append(bytes(packed[at : at + length]))
        at += length
    return found


def set_read_limits(session: SparkSession, query: StreamingQuery, records: Mapping[int, int]) -> int:
    """Set the `records` that each Kafka source of a running query reads in a batch, by its number, from the next batch
    on. Return the number of sources.

    The execution stores a limit by source, and passes it to the source when it asks for the end of the next batch.
    """
    limit = java_class(session, READ_LIMIT)
    execution = java_query(query).streamingQuery()
    limits = execution.uniqueSources()
    sources = limits.keysIterator()
    limited = 0
    while sources.hasNext():
        source = sources.next()
        if source.getClass().getName() == KAFKA_SOURCE:
            limits = limits.updated(source, limit.maxRows(records[source.source()]))
            limited += 1
    getattr(execution, "uniqueSources_$eq")(limits)  # Scala's name for an assignment
    return limited
