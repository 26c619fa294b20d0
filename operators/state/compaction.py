"""Compaction: sorted runs of blocks are merged a step at a time, so that no batch pays for a large merge."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from operators.arrays import Numbers, Positions, heads
from operators.names import SORT_KEY, TOMBSTONE
from operators.state.block import Block, BlockStore, SortKeys, slice_between

Run = tuple[Block, ...]
"""Blocks whose seen sort keys do not overlap, ascending."""

FAN = 4
"""The number of runs of one size that make a run of the next size: a row is read by one merge for each power of it, and
a lookup looks into fewer runs of each size than this."""

_SMALLEST = 1024
"""Runs of fewer rows than FAN times this are of one size: what it costs to merge them is a statement, whatever they
hold, and more sizes would be more runs to look into."""


def tier(rows: int) -> int:
    """Return the size class of a run of `rows`."""
    size, bound = 0, _SMALLEST * FAN
    while rows >= bound:
        size, bound = size + 1, bound * FAN
    return size


def mergeable(sizes: list[int]) -> tuple[int, int] | None:
    """Return which neighbours (first, last + 1) of runs of these sizes in rows, newest first, to merge; the smallest
    first.

    A small run behind a larger one counts as large, so that classes never fall from new to old.
    """
    tiers = np.maximum.accumulate(np.array([tier(n) for n in sizes], dtype=np.int64)) if sizes else np.empty(0)
    for kind in np.unique(tiers):
        members = np.flatnonzero(tiers == kind)
        if len(members) >= FAN:
            return int(members[0]), int(members[-1]) + 1
    return None


def rows_left(run: Run, store: BlockStore) -> int:
    """Return the rows of `run` that are still seen."""
    return sum(b.rows if b.start <= b.low and b.clip is None else _seen(b, store) for b in run)


def _seen(block: Block, store: BlockStore) -> int:
    first, last = slice_between(store.peek(block), block.start, None)
    return last - first


def boundary(sources: list[Run], rows: int, store: BlockStore) -> int | None:
    """Return a sort key below which the runs hold about `rows` seen rows, at least one; None if that is all they
    hold."""
    left = [rows_left(run, store) for run in sources]
    if sum(left) <= rows:
        return None
    run = sources[left.index(max(left))]
    wanted = rows * max(left) // sum(left)
    lowest: int | None = None
    for block in run:
        sort_keys = store.load(block).sort_keys
        first = int(np.searchsorted(sort_keys, sort_keys.dtype.type(block.start), "left"))
        if first == len(sort_keys):
            continue
        lowest = int(sort_keys[first]) if lowest is None else lowest
        if first + wanted < len(sort_keys):
            bound = max(int(sort_keys[first + wanted]), lowest + 1)
            return bound if bound <= np.iinfo(sort_keys.dtype).max else None
        wanted -= len(sort_keys) - first
    return None


def taken(run: Run, below: int | None, store: BlockStore) -> tuple[list[pa.RecordBatch], Run, list[Block]]:
    """Return the seen rows of `run` with a sort key under `below`, what is left of the run, and the blocks used up."""
    slices: list[pa.RecordBatch] = []
    left: list[Block] = []
    used: list[Block] = []
    for block in run:
        # A block that another merge has already taken further, before slots changed, must not be seen again from here.
        if below is not None and max(block.low, block.start) >= below:
            left.append(block)
            continue
        loaded = store.load(block)
        first, last = slice_between(loaded, block.start, below)
        if last > first:
            slices.append(loaded.rows.slice(first, last - first))
        if last >= len(loaded.sort_keys) or below is None:
            used.append(block)
        else:
            left.append(block.seen_from(below))
    return slices, tuple(left), used


def newest(sort_keys: SortKeys, ages: Numbers) -> Positions:
    """Return the positions, in sort-key order, of the newest rows of each sort key; `ages` count up from the newest."""
    sequence = np.argsort(sort_keys, kind="stable")
    ordered, ages = sort_keys[sequence], ages[sequence]
    starts = heads(ordered)
    if len(starts) == len(ordered):
        return sequence
    youngest = np.repeat(ages[starts], np.diff(np.append(starts, len(ordered))))
    kept: Positions = sequence[ages == youngest]
    return kept


def merged(parts: list[list[pa.RecordBatch]], *, replacing: bool, oldest: bool) -> pa.Table:
    """Return the rows of `parts` (newest run first) in one sorted table.

    Where rows are `replacing` others only the newest of each sort key stay, and where this is the `oldest` run,
    tombstones go too. Otherwise all rows stay, those of one sort key in the order of arrival.
    """
    flat = [(age, batch) for age, run in enumerate(parts) for batch in run]
    if not replacing:
        flat.sort(key=lambda entry: -entry[0])
    table = pa.Table.from_batches([batch for _, batch in flat]).combine_chunks()
    sort_keys = table.column(SORT_KEY).chunk(0).to_numpy(zero_copy_only=True)
    if not replacing:
        return table.take(pa.array(np.argsort(sort_keys, kind="stable")))
    ages = np.repeat([age for age, _ in flat], [batch.num_rows for _, batch in flat])
    table = table.take(pa.array(newest(sort_keys, ages)))
    return table.filter(pc.invert(table.column(TOMBSTONE))) if oldest else table
