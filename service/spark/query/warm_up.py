"""The first tasks of a session: they start the Python workers while the query is still planned.

A worker imports the module of each function that is sent to it: this one imports nothing that it has not.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import Any

from pyspark.sql import SparkSession


def warm_up(session: SparkSession, partitions: int) -> None:
    """Start the Python workers, and load what the JVM needs to reach them."""
    with suppress(Exception):  # the query will report the error better
        session.range(0, partitions, 1, partitions).mapInArrow(same, "id long").repartition(partitions).collect()


def same(blocks: Iterator[Any]) -> Iterator[Any]:
    """Return the blocks as they came."""
    return blocks
