"""Merging sorted runs of blocks, a stretch at a time, so that no batch pays for a large merge."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from operators.state.block import ORDER, Block, Orders, Store, slice_between

GONE = "_gone"
"""The hidden column (BOOLEAN) that marks a key of which nothing is left."""

Run = tuple[Block, ...]
"""Blocks whose seen orders do not overlap, ascending."""

FAN = 4
"""So many runs of one size make a run of the next size."""

_SMALLEST = 1024


def tier(rows: int) -> int:
    """The size class of a run of `rows`."""
    size, bound = 0, _SMALLEST * FAN
    while rows >= bound:
        size, bound = size + 1, bound * FAN
    return size


def mergeable(sizes: list[int]) -> tuple[int, int] | None:
    """Which neighbours (first, last + 1) of runs with so many rows, newest first, are to be merged; the smallest first.

    A small run behind a larger one counts as large, so that classes never fall from new to old.
    """
    tiers = np.maximum.accumulate(np.array([tier(n) for n in sizes], dtype=np.int64)) if sizes else np.empty(0)
    for kind in np.unique(tiers):
        members = np.flatnonzero(tiers == kind)
        if len(members) >= FAN:
            return int(members[0]), int(members[-1]) + 1
    return None


def rows_left(run: Run, store: Store) -> int:
    """The rows of `run` that are still seen."""
    return sum(b.rows if b.start <= b.low else b.rows - slice_between(store.load(b), b.start, None)[0] for b in run)


def boundary(sources: list[Run], rows: int, store: Store) -> int | None:
    """An order below which the runs hold about `rows` seen rows, at least one; None if that is all they hold."""
    left = [rows_left(run, store) for run in sources]
    if sum(left) <= rows:
        return None
    run = sources[left.index(max(left))]
    wanted = rows * max(left) // sum(left)
    lowest: int | None = None
    for block in run:
        orders = store.load(block).orders
        first = int(np.searchsorted(orders, orders.dtype.type(block.start), "left"))
        lowest = int(orders[first]) if lowest is None else lowest
        if first + wanted < block.rows:
            bound = max(int(orders[first + wanted]), lowest + 1)
            return bound if bound <= np.iinfo(orders.dtype).max else None
        wanted -= block.rows - first
    return None


def taken(run: Run, below: int | None, store: Store) -> tuple[list[pa.RecordBatch], Run, list[Block]]:
    """The seen rows of `run` with an order under `below`, what is left of the run, and the blocks used up."""
    slices: list[pa.RecordBatch] = []
    left: list[Block] = []
    used: list[Block] = []
    for block in run:
        if below is not None and block.low >= below:
            left.append(block)
            continue
        loaded = store.load(block)
        first, last = slice_between(loaded, block.start, below)
        if last > first:
            slices.append(loaded.rows.slice(first, last - first))
        if last >= block.rows or below is None:
            used.append(block)
        else:
            left.append(block.seen_from(below))
    return slices, tuple(left), used


def newest(orders: Orders, ages: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """The positions, sorted by order, of the newest rows of each order; `ages` count up from the newest."""
    sequence = np.argsort(orders, kind="stable")
    ordered, ages = orders[sequence], ages[sequence]
    starts = np.flatnonzero(np.concatenate([[True], ordered[1:] != ordered[:-1]]))
    if len(starts) == len(ordered):
        return sequence
    youngest = np.repeat(ages[starts], np.diff(np.append(starts, len(ordered))))
    kept: npt.NDArray[np.int64] = sequence[ages == youngest]
    return kept


def merged(parts: list[list[pa.RecordBatch]], *, replacing: bool, oldest: bool) -> pa.Table:
    """The rows of `parts` (newest run first) in one sorted table.

    Where rows are `replacing` others only the newest of each order stay, and where nothing `oldest` lies beneath, marks
    of what is gone go too. Otherwise all rows stay, those of one order in the order of arrival.
    """
    flat = [(age, batch) for age, run in enumerate(parts) for batch in run]
    if not replacing:
        flat.sort(key=lambda entry: -entry[0])
    table = pa.Table.from_batches([batch for _, batch in flat]).combine_chunks()
    orders = table.column(ORDER).chunk(0).to_numpy(zero_copy_only=True)
    if not replacing:
        return table.take(pa.array(np.argsort(orders, kind="stable")))
    ages = np.repeat([age for age, _ in flat], [batch.num_rows for _, batch in flat])
    table = table.take(pa.array(newest(orders, ages)))
    return table.filter(pc.invert(table.column(GONE))) if oldest else table
