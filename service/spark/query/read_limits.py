"""How many records a running query takes from Kafka in a batch.

Spark reads 'maxOffsetsPerTrigger' once, when the query starts. The execution then keeps a limit by source, and hands it
to the source whenever it asks for the end of the next batch: there it can be set while the query runs.
"""

from __future__ import annotations

from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

OPTION = "maxOffsetsPerTrigger"
"""The limit that a query starts with; a source that has none is not limited later either."""

_SOURCE = "org.apache.spark.sql.kafka010.KafkaMicroBatchStream"


def limit_reads(session: SparkSession, query: StreamingQuery, records: int) -> None:
    """From the next batch that is planned on, take at most `records` of each table."""
    jvm = session._jvm
    assert jvm is not None
    limit = getattr(jvm, "org.apache.spark.sql.connector.read.streaming.ReadLimit").maxRows(records)
    execution = query._jsq.streamingQuery()
    limits = execution.uniqueSources()
    sources = limits.keysIterator()
    while sources.hasNext():
        source = sources.next()
        if source.getClass().getName() == _SOURCE:
            limits = limits.updated(source, limit)
    getattr(execution, "uniqueSources_$eq")(limits)
