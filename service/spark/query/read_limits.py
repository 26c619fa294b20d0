"""The number of records that a running query reads from Kafka in a batch.

Spark reads 'maxOffsetsPerTrigger' once, when the query starts. The execution then keeps a limit by source, and hands it
to the source whenever it asks for the end of the next batch: there it can be set while the query runs.
"""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from service.spark.internals.jvm import set_read_limits

OPTION = "maxOffsetsPerTrigger"
"""The limit that a query starts with; a source that has none is not limited later either."""


def limit_reads(session: SparkSession, query: StreamingQuery, records: Mapping[int, int]) -> None:
    """From the next batch that is planned on, take at most `records` of each source, by its id; 0 is none."""
    set_read_limits(session, query, records)
