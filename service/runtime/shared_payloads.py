"""One payload for the few rows that several Kafka partitions have for a shard.

An envelope has a price of its own: a stream of eight rows takes as long to write and to read as one of a thousand, and
Spark moves a row for each. A task that reads 32 partitions would send 32 of them to each shard. The shard takes the
payload apart again, so it sees the same rows in the same order whichever partitions a task has read.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import pyarrow as pa

from service.runtime.envelope import Envelope, Kind, table_of

_PARTS = b"tailrace.parts"
"""The key of the metadata in the schema of such a payload: a list of channel and number of rows, in JSON."""


class ChannelRows(NamedTuple):
    """Rows of one channel."""

    channel: str
    rows: pa.Table


def joined(parts: Sequence[ChannelRows]) -> pa.Table:
    """Return one table of `parts`, one or more, whose tables have one schema; `parted` takes it apart."""
    sizes = json.dumps([[part.channel, part.rows.num_rows] for part in parts])
    whole = pa.concat_tables([part.rows for part in parts]).combine_chunks()
    return whole.replace_schema_metadata({_PARTS: sizes.encode()})


def parted(whole: pa.Table) -> Iterator[ChannelRows]:
    """Yield the parts that `joined` has put together. Raises ValueError if `whole` is none of its tables."""
    if whole.schema.metadata is None or _PARTS not in whole.schema.metadata:
        raise ValueError("the rows of this payload do not tell which channels they are from")
    rows = whole.replace_schema_metadata(None)
    at = 0
    for channel, size in json.loads(whole.schema.metadata[_PARTS]):
        yield ChannelRows(channel, rows.slice(at, size))
        at += size


def rows_by_exchange(envelopes: Iterable[Envelope]) -> dict[int, list[pa.Table]]:
    """Return the rows that have come over each exchange, by its address, in the order of channels and sequences."""
    found: dict[int, list[tuple[str, int, pa.Table]]] = {}
    for e in envelopes:
        if e.kind == Kind.ROWS:
            found.setdefault(e.address, []).append((e.channel, e.sequence, table_of(e)))
        elif e.kind == Kind.SHARED_ROWS:
            # A channel that shares a payload has no other rows for this address: its sequence does not matter.
            found.setdefault(e.address, []).extend((part.channel, 0, part.rows) for part in parted(table_of(e)))
    return {
        address: [rows for _, _, rows in sorted(parts, key=lambda part: part[:2])] for address, parts in found.items()
    }
