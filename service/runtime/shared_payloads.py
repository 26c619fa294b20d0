"""One payload for the few rows that several Kafka partitions have for a shard.

An envelope has a price of its own: a stream of eight rows takes as long to write and to read as one of a thousand, and
Spark moves a row for each. A task that reads 32 partitions would send 32 of them to each shard. The shard takes the
payload apart again, so it sees the same rows in the same order whichever partitions a task has read.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import pyarrow as pa

_PARTS = b"tailrace.parts"
"""The key of the metadata in the schema of such a payload: a list of channel and number of rows, in JSON."""


class Part(NamedTuple):
    """Rows of one channel."""

    channel: str
    rows: pa.Table


def joined(parts: Sequence[Part]) -> pa.Table:
    """Return one table of `parts`, one or more, whose tables have one schema; `parted` takes it apart."""
    sizes = json.dumps([[part.channel, part.rows.num_rows] for part in parts])
    whole = pa.concat_tables([part.rows for part in parts]).combine_chunks()
    return whole.replace_schema_metadata({_PARTS: sizes.encode()})


def parted(whole: pa.Table) -> Iterator[Part]:
    """Yield the parts that `joined` has put together. Raises ValueError if `whole` is none of its tables."""
    if whole.schema.metadata is None or _PARTS not in whole.schema.metadata:
        raise ValueError("the rows of this payload do not tell which channels they are from")
    rows = whole.replace_schema_metadata(None)
    at = 0
    for channel, size in json.loads(whole.schema.metadata[_PARTS]):
        yield Part(channel, rows.slice(at, size))
        at += size
