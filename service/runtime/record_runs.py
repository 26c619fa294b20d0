"""The input of a task, cut into runs: records of one Kafka partition, in offset order.

A task reads several partitions, one after another, and which ones share it may differ between a batch and its replay.
The rows computed from a partition must not differ: the last digits of DOUBLE sums depend on where rows are cut. So the
records of a partition alone determine where a run ends, counted from the first one of the batch, whatever blocks they
came in.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

LARGEST = 32 << 20
"""The bytes of values at which a run ends. A worker holds a run twice and its decoded rows; larger runs save no time
per row."""

TOGETHER = 200_000
"""Records of small runs that are computed together: ten records cost almost as much as a thousand, and 60,000 a sixth
more than three times as many at once."""


class Run(NamedTuple):
    """Records (formats.contract.RECORD) of one partition, with `size` bytes of values; they stand in `block` from row
    `start` on, unless they are from several blocks."""

    topic: str
    partition: int
    records: pa.Table
    size: int
    block: pa.Table | None
    start: int


def runs(blocks: Iterable[pa.Table], rows: int, largest: int = LARGEST) -> Iterator[Run]:
    """Cut `blocks` into runs of `rows` records, or as many as have `largest` bytes, but for the last one of each
    partition. As `java/tailrace/kafka/KafkaReader.java` cuts blocks: one that is a run is not copied."""
    place: tuple[str, int] | None = None
    held: list[tuple[pa.Table, int, int]] = []
    count = size = 0
    for block in blocks:
        ends = _ends(block)
        for found, first, until in _by_partition(block):
            if found != place:
                if place is not None and held:
                    yield _run(place, held, size)
                place, held, count, size = found, [], 0, 0
            while first < until:
                before = int(ends[first - 1]) if first else 0
                full = int(np.searchsorted(ends, before + largest - size)) + 1
                last = min(first + rows - count, full, until)
                held.append((block, first, last - first))
                count, size = count + last - first, size + int(ends[last - 1]) - before
                if count == rows or size >= largest:
                    yield _run(found, held, size)
                    held, count, size = [], 0, 0
                first = last
        del block  # what has been yielded is not held while waiting for the next block
    if place is not None and held:
        yield _run(place, held, size)


def gathered(found: Iterable[Run], rows: int = TOGETHER, largest: int = LARGEST) -> Iterator[list[Run]]:
    """Put runs together while they have at most `rows` records and `largest` bytes in all; those of a block by
    themselves if they have half of `rows`, since `whole` need not copy them."""
    held: list[Run] = []
    count = size = 0
    for run in found:
        full = count + run.records.num_rows > rows or size + run.size > largest
        if held and (full or (2 * count >= rows and run.block is not held[-1].block)):
            yield held
            held, count, size = [], 0, 0
        held.append(run)
        count, size = count + run.records.num_rows, size + run.size
        del run
        if count >= rows or size >= largest:  # at once: otherwise this run would be held while waiting for the next one
            yield held
            held, count, size = [], 0, 0
    if held:
        yield held


def whole(group: Sequence[Run]) -> pa.Table:
    """Return the records of runs, one or more, in one table: not copied if they stand in a block one after another."""
    first, place = group[0], group[0].start
    for run in group:
        if run.block is None or run.block is not first.block or run.start != place:
            return pa.concat_tables([run.records for run in group]).combine_chunks()
        place += run.records.num_rows
    assert first.block is not None
    return _part(first.block, first.start, place - first.start)


def _run(place: tuple[str, int], held: list[tuple[pa.Table, int, int]], size: int) -> Run:
    if len(held) == 1:
        block, start, count = held[0]
        return Run(*place, _part(block, start, count), size, block, start)
    parts = [_part(*each) for each in held]
    return Run(*place, pa.concat_tables(parts).combine_chunks(), size, None, 0)


def _part(block: pa.Table, start: int, count: int) -> pa.Table:
    return block if count == block.num_rows else block.slice(start, count)


def _by_partition(block: pa.Table) -> Iterator[tuple[tuple[str, int], int, int]]:
    """The parts of a block that belong to one partition each: which, the first row and the one after the last."""
    if not block.num_rows:
        return
    partitions = block["partition"].to_numpy()
    differs = np.diff(partitions) != 0
    topics = block["topic"]
    only = topics[0].as_py() if pc.count_distinct(topics).as_py() == 1 else None
    if only is None:
        differs |= pc.not_equal(topics.slice(1), topics.slice(0, block.num_rows - 1)).to_numpy()
    starts = [0, *(np.flatnonzero(differs) + 1).tolist(), block.num_rows]
    for first, until in pairwise(starts):
        yield (only or topics[first].as_py(), int(partitions[first])), first, until


def _ends(records: pa.Table) -> np.ndarray:
    """Where each record's value ends, in bytes from the first one's start."""
    if "value" not in records.column_names:
        return np.zeros(records.num_rows, np.int64)
    return np.cumsum(pc.fill_null(pc.binary_length(records["value"]), 0).to_numpy().astype(np.int64))
