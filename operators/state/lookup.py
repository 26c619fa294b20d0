"""Finding the rows of a trace by the hash of their key: a binary search a block, newest first."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from operators.arrays import Numbers, Positions, distinct, spread
from operators.hashing import Hashes
from operators.names import SORT_KEY
from operators.state.block import Block, SortKeys
from operators.state.compaction import newest
from operators.state.contents import TableKind
from operators.state.trace import Trace

PREFIX_BITS = np.uint64(32)
LOW_HALF = np.uint64(0xFFFFFFFF)
"""The bits of a sort key that tell the members of a group apart, the other half being those of the group."""


def nested(prefix: Hashes, key: Hashes) -> Hashes:
    """Sort keys by which rows are found by `prefix` as a group and by `key` alone: half of each hash."""
    return (prefix & ~LOW_HALF) | (key >> PREFIX_BITS)


def find(trace: Trace, wanted: Hashes) -> pa.Table:
    """Return the rows of `trace` with a sort key among `wanted`, which is sorted and without repetitions."""
    parts: list[pa.RecordBatch] = []
    replacing = trace.spec.kind is TableKind.KEYED
    for run in trace.contents.runs.values():
        found = [hit for block in run for hit in _in_block(trace, block, wanted)]
        parts += [rows for rows, _ in found]
        if replacing and found:
            seen = np.concatenate([hits for _, hits in found])
            keep = np.ones(len(wanted), dtype=np.bool_)
            keep[seen] = False
            wanted = wanted[keep]
            if len(wanted) == 0:
                break
    if not parts:
        return trace.nothing()
    rows = pa.Table.from_batches(parts).combine_chunks()
    trace.note_read(rows.num_rows)
    return trace.visible(rows)


def _in_block(trace: Trace, block: Block, wanted: Hashes) -> list[tuple[pa.RecordBatch, Positions]]:
    """The rows of `block` with a wanted sort key, and which of the wanted ones they have."""
    first, last = np.searchsorted(wanted, np.array([max(block.low, block.start), block.high], np.uint64))
    if last < len(wanted) and wanted[last] == block.high:
        last += 1
    if first >= last:
        return []
    rows, sort_keys = trace.load(block)
    needles = wanted[first:last]
    if len(sort_keys) < len(needles):
        at = np.minimum(np.searchsorted(needles, sort_keys), len(needles) - 1)
        positions = np.flatnonzero((needles[at] == sort_keys) & (sort_keys >= np.uint64(block.start)))
        hits = at[positions]
    else:
        starts = np.searchsorted(sort_keys, needles)
        hits = np.flatnonzero(sort_keys[np.minimum(starts, len(sort_keys) - 1)] == needles)
        starts = starts[hits]
        ends = np.searchsorted(sort_keys, needles[hits], "right")
        positions = spread(starts, ends - starts)
    found = [(rows.take(pa.array(positions)), hits + first)] if len(positions) else []
    trace.note_searched(len(needles))
    return found


def find_groups(trace: Trace, prefixes: Hashes) -> pa.Table:
    """Return the rows of `trace` whose prefix hash has the upper half of one of `prefixes`."""
    uppers = distinct(prefixes & ~LOW_HALF)
    return find_between(trace, uppers, uppers | LOW_HALF)


def find_between(trace: Trace, lows: Hashes, highs: Hashes) -> pa.Table:
    """Return the rows of `trace` with a sort key from `lows[i]` to `highs[i]`, both included; no two of these overlap.

    Rows that are only added come out oldest first, as far as they have the same sort key.
    """
    parts: list[pa.RecordBatch] = []
    ages: list[Numbers] = []
    lowest, highest = (int(lows.min()), int(highs.max())) if len(lows) else (1, 0)
    runs = list(enumerate(trace.contents.runs.values()))
    for age, run in runs if trace.spec.kind is TableKind.KEYED else reversed(runs):
        for block in run:
            if block.high < lowest or block.low > highest:
                continue
            rows, sort_keys = trace.load(block)
            # The first key of a clipped block is the first that is seen, behind others that have been merged.
            moved = block.start > block.low or block.clip is not None
            base = int(np.searchsorted(sort_keys, np.uint64(block.start))) if moved else 0
            starts = np.maximum(np.searchsorted(sort_keys, lows), base)
            counts = np.maximum(np.searchsorted(sort_keys, highs, "right") - starts, 0)
            positions = spread(starts, counts)
            if len(positions):
                parts.append(rows.take(pa.array(positions)))
                ages.append(np.full(len(positions), age))
            trace.note_searched(max(len(lows), len(positions)))
    if not parts:
        return trace.nothing()
    table = pa.Table.from_batches(parts).combine_chunks()
    trace.note_read(table.num_rows)
    if trace.spec.kind is TableKind.KEYED and len(parts) > 1:
        table = table.take(pa.array(newest(sort_keys_of(table), np.concatenate(ages))))
    return trace.visible(table)


def sort_keys_of(rows: pa.Table) -> SortKeys:
    """Return the sort keys of rows that were found."""
    column = rows.column(SORT_KEY)
    if column.num_chunks == 1:
        sort_keys: SortKeys = column.chunk(0).to_numpy(zero_copy_only=True)
        return sort_keys
    return column.to_numpy()  # type: ignore[no-any-return]
