"""Whether Spark compiles the projections of a running query to Java code, or interprets them.

Spark makes the Java text of four projections anew for each Kafka partition of a batch, only to find that it has
compiled them before. That is worth its time where a partition gives many records. The rows are the same either way.
"""

from __future__ import annotations

from pyspark.sql.streaming.query import StreamingQuery

from service.spark.internals.jvm import set_session_option

OPTION = "spark.sql.codegen.factoryMode"
COMPILED = "FALLBACK"
INTERPRETED = "NO_CODEGEN"

WORTH_COMPILING = 5_000
"""Records of a partition in a batch. Measured: compiled projections cost 2.3 ms of CPU a partition and batch,
interpreted ones 0.4 microseconds a record."""


def worth_interpreting(records: int, partitions: int) -> bool:
    """Return whether a batch of `records` of so many Kafka partitions is read for less without compiled projections."""
    return records < WORTH_COMPILING * partitions


def interpret(query: StreamingQuery, yes: bool) -> None:
    """From the next batch on, interpret projections or compile them."""
    set_session_option(query, OPTION, INTERPRETED if yes else COMPILED)
