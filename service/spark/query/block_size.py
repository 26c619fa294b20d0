"""The size of the blocks that Spark passes to Python.

The JVM holds a block three times while it hands it over, in pieces that only grow. So a block has few records: what it
costs beside them is little, and Python puts blocks together again (`runtime.record_runs`). Blocks are cut by rows.
Spark can cut them by bytes too, but then it adds up the size of the block after every row: a quarter of the time of
handing rows over. So it is told to only where records are large.
"""

from __future__ import annotations

from pyspark.sql import SparkSession

ROWS = 20_000
"""Records of a block."""

BYTES = 64 << 20
"""The size of a block that is large: such blocks are cut."""

PIECE = 16 << 20
"""Bytes of a block that is cut."""

NO_LIMIT = 2**31 - 1
"""What Spark takes for no limit at all."""

_SETTING = "spark.sql.execution.arrow.maxBytesPerBatch"


def limit_blocks(session: SparkSession, record: float, *, careful: bool) -> None:
    """Set the limit for blocks of records of `record` bytes each, 0 where that is not known.

    `careful` after a failure: records may have become larger than they were.
    """
    session.conf.set(_SETTING, str(limit(record, careful=careful)))


def limit(record: float, *, careful: bool) -> int:
    """Return the limit in bytes."""
    return PIECE if careful or record * ROWS > BYTES else NO_LIMIT
