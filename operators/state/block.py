"""Blocks: immutable tables of rows sorted by one whole number, the `_order`, kept as Arrow IPC and memory-mapped.

The order is a hash of the row's key (uint64) or its time (int64).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

ORDER = "_order"
"""The hidden column that a block is sorted by."""

Orders = npt.NDArray[Any]
Positions = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Block:
    """What the manifest knows of a block.

    Its orders lie in `low` to `high`, its stamps in `oldest` to `newest` (both inclusive). Rows whose order is below
    `start` have moved on into a merged block and are not seen.
    """

    id: str
    rows: int
    bytes: int
    low: int
    high: int
    oldest: int
    newest: int
    start: int

    def seen_from(self, start: int) -> Block:
        """The same block, seen only from the order `start` on."""
        return replace(self, start=start)


class Loaded(NamedTuple):
    """A block in memory: its rows and, as numpy sees it, the column they are sorted by."""

    rows: pa.RecordBatch
    orders: Orders


class Store:
    """The blocks of one state: fetched once when first read, written with ids that are never used twice."""

    def __init__(self, fetch: Callable[[str], pa.Buffer], next_id: int) -> None:
        self._fetch = fetch
        self._loaded: dict[str, Loaded] = {}
        self.next_id = next_id
        self.added: dict[str, pa.Buffer] = {}
        self.removed: list[str] = []

    def load(self, block: Block) -> Loaded:
        """The rows of `block`, without a copy."""
        loaded = self._loaded.get(block.id)
        if loaded is None:
            buffer = self.added[block.id] if block.id in self.added else self._fetch(block.id)
            loaded = self._loaded[block.id] = _read(buffer)
        return loaded

    def write(self, rows: pa.Table, stamp: str | None) -> Block:
        """A new block of `rows`, which are sorted by `_order` and at least one; `stamp` names the column of stamps."""
        rows = rows.combine_chunks()
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, rows.schema) as writer:
            writer.write_table(rows)
        buffer = sink.getvalue()
        name = np.base_repr(self.next_id, 36).lower()
        self.next_id += 1
        self.added[name] = buffer
        loaded = self._loaded[name] = _read(buffer)
        oldest, newest = _bounds(loaded.rows, stamp)
        low = int(loaded.orders[0])
        return Block(name, rows.num_rows, buffer.size, low, int(loaded.orders[-1]), oldest, newest, low)

    def drop(self, block: Block) -> None:
        """Forget `block`; one that was written since the last seal leaves no trace."""
        self._loaded.pop(block.id, None)
        if self.added.pop(block.id, None) is None:
            self.removed.append(block.id)

    def seal(self) -> tuple[dict[str, pa.Buffer], tuple[str, ...]]:
        """What was written and dropped since the last seal.

        Blocks just written are let go: when next read they are fetched again, from where the caller keeps them.
        """
        added, removed = self.added, tuple(self.removed)
        self.added, self.removed = {}, []
        for name in added:
            self._loaded.pop(name, None)
        return added, removed


def _read(buffer: pa.Buffer) -> Loaded:
    with pa.ipc.open_stream(pa.BufferReader(buffer)) as reader:
        rows = reader.read_next_batch()
    return Loaded(rows, rows.column(ORDER).to_numpy(zero_copy_only=True))


def _bounds(rows: pa.RecordBatch, stamp: str | None) -> tuple[int, int]:
    if stamp is None:
        return 0, 0
    stamps = rows.column(stamp).to_numpy(zero_copy_only=True)
    return int(stamps.min()), int(stamps.max())


def slice_between(loaded: Loaded, low: int, high: int | None) -> tuple[int, int]:
    """The positions of the rows with low <= order < high (None = no upper bound)."""
    kind = loaded.orders.dtype.type
    first = int(np.searchsorted(loaded.orders, kind(low), "left"))
    last = len(loaded.orders) if high is None else int(np.searchsorted(loaded.orders, kind(high), "left"))
    return first, max(first, last)


def spread(starts: Positions, counts: Positions) -> Positions:
    """The positions starts[i], starts[i] + 1, ..., counts[i] of them for each i, one after the other."""
    total = int(counts.sum())
    if total == len(counts) and bool((counts == 1).all()):
        return starts
    ends = np.cumsum(counts)
    return np.arange(total, dtype=np.int64) + np.repeat(starts - ends + counts, counts)


def distinct(orders: Orders) -> Orders:
    """The different ones among `orders`, sorted: numpy's own `unique` hashes, which takes ten times as long."""
    ordered: Orders = np.sort(orders)
    if len(ordered) < 2:
        return ordered
    different: Orders = ordered[np.concatenate([[True], ordered[1:] != ordered[:-1]])]
    return different


def among(orders: Orders, wanted: Orders) -> npt.NDArray[np.bool_]:
    """Which of `orders` are among the `wanted`: numpy's own `isin` is as slow as its `unique`."""
    if len(wanted) == 0:
        return np.zeros(len(orders), dtype=np.bool_)
    ordered = np.sort(wanted)
    at = np.minimum(np.searchsorted(ordered, orders), len(ordered) - 1)
    found: npt.NDArray[np.bool_] = ordered[at] == orders
    return found
