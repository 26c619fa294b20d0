"""The number of records that a running query reads from Kafka in a batch.

Spark reads 'maxOffsetsPerTrigger' once, when the query starts. The execution then stores a limit by source, and passes
it to the source whenever it asks for the end of the next batch: there it can be changed while the query runs.
"""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from service.spark.internals.jvm import set_read_limits

OPTION = "maxOffsetsPerTrigger"
"""The limit with which a query starts; a source that starts without one never gets one."""


def limit_reads(session: SparkSession, query: StreamingQuery, records: Mapping[int, int]) -> None:
    """Read at most `records` of each source, by its id, from the next planned batch on; 0 reads none."""
    set_read_limits(session, query, records)
