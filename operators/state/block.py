"""Blocks: immutable tables of rows sorted by one whole number, the `_sort_key`, kept as Arrow IPC and memory-mapped.

The sort key is a hash of the row's key (uint64) or its time (int64).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from operators.hashing import bucket_hash
from operators.names import SORT_KEY
from operators.pieces import LARGEST, pieces
from operators.slots import first_hash, slots_of

SortKeys = npt.NDArray[Any]


class Clip(NamedTuple):
    """The rows of a block that belong to a state: those in the slots from `first` on, before `stop`.

    A row's slot is that of the hash of its `columns`, by position; where `hashed`, of the one column as it is.
    """

    first: int
    stop: int
    columns: tuple[int, ...]
    hashed: bool


@dataclass(frozen=True, slots=True)
class Block:
    """A block as the manifest knows it.

    Its sort keys lie in `low` to `high`, its timestamps in `oldest` to `newest` (both inclusive). Rows whose sort key
    is below `start` have moved on into a merged block and are not seen. Of a block that was written by a state of other
    slots only what its `clip` leaves is seen, and `rows` and `bytes` are estimates of that.
    """

    id: str
    rows: int
    bytes: int
    low: int
    high: int
    oldest: int
    newest: int
    start: int
    clip: Clip | None = None

    def seen_from(self, start: int) -> Block:
        """Return the same block, seen only from the sort key `start` on."""
        return replace(self, start=start)


class Loaded(NamedTuple):
    """A block in memory: its rows and, as numpy sees it, the column they are sorted by."""

    rows: pa.RecordBatch
    sort_keys: SortKeys


def block_name(number: int) -> str:
    """Return the name, within a state, of its block of that number."""
    return np.base_repr(number, 36).lower()


class BlockStore:
    """The blocks of one state: fetched once when first read, written with ids that are never used twice."""

    def __init__(self, fetch: Callable[[str], pa.Buffer], next_id: int) -> None:
        self._fetch = fetch
        self._loaded: dict[str, Loaded] = {}
        self.next_id = next_id
        self.added: dict[str, pa.Buffer] = {}
        self.removed: list[str] = []
        self.rows_read = 0
        """How many rows lookups have taken out of blocks; those that merges move are not counted."""

    def load(self, block: Block) -> Loaded:
        """Return the rows of `block`, without a copy."""
        loaded = self._loaded.get(block.id)
        if loaded is None:
            buffer = self.added[block.id] if block.id in self.added else self._fetch(block.id)
            loaded = _read(buffer)
            if block.clip is not None:
                loaded = _clipped(loaded, block.clip)
            self._loaded[block.id] = loaded
        return loaded

    def write(self, rows: pa.Table, timestamp: str | None, largest: int = LARGEST) -> tuple[Block, ...]:
        """Write `rows`, which are sorted by `_sort_key` and at least one, as new blocks of at most `largest` bytes;
        `timestamp` names the column of timestamps."""
        return tuple(self._write(piece.combine_chunks(), timestamp) for piece in pieces(rows, largest))

    def _write(self, rows: pa.Table, timestamp: str | None) -> Block:
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, rows.schema) as writer:
            writer.write_table(rows)
        buffer = sink.getvalue()
        name = block_name(self.next_id)
        self.next_id += 1
        self.added[name] = buffer
        loaded = self._loaded[name] = _read(buffer)
        oldest, newest = _bounds(loaded.rows, timestamp)
        low = int(loaded.sort_keys[0])
        return Block(name, rows.num_rows, buffer.size, low, int(loaded.sort_keys[-1]), oldest, newest, low)

    def drop(self, block: Block) -> None:
        """Forget `block`; one that was written since the last seal leaves no trace."""
        self._loaded.pop(block.id, None)
        if self.added.pop(block.id, None) is None:
            self.removed.append(block.id)

    def seal(self) -> tuple[dict[str, pa.Buffer], tuple[str, ...]]:
        """Return what was written and dropped since the last seal.

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
        if next(reader, None) is not None:
            raise ValueError("a block of state holds more than one batch of rows")
    return Loaded(rows, rows.column(SORT_KEY).to_numpy(zero_copy_only=True))


def _clipped(loaded: Loaded, clip: Clip) -> Loaded:
    """What is left of a block: a slice of it where the column that it is sorted by tells the slots."""
    rows, sort_keys = loaded
    if clip.hashed and rows.schema.names[clip.columns[0]] == SORT_KEY:
        first = int(np.searchsorted(sort_keys, np.uint64(first_hash(clip.first)), "left"))
        stop = int(np.searchsorted(sort_keys, np.uint64(first_hash(clip.stop) - 1), "right"))
        return Loaded(rows.slice(first, stop - first), sort_keys[first:stop])
    if clip.hashed:
        hashes = rows.column(clip.columns[0]).to_numpy(zero_copy_only=False)
    else:
        hashes = bucket_hash(pa.Table.from_batches([rows]), clip.columns)
    slots = slots_of(hashes)
    ours = (slots >= clip.first) & (slots < clip.stop)
    return Loaded(rows.filter(pa.array(ours)), sort_keys[ours])


def _bounds(rows: pa.RecordBatch, timestamp: str | None) -> tuple[int, int]:
    if timestamp is None:
        return 0, 0
    timestamps = rows.column(timestamp).to_numpy(zero_copy_only=True)
    return int(timestamps.min()), int(timestamps.max())


def slice_between(loaded: Loaded, low: int, high: int | None) -> tuple[int, int]:
    """Return the positions of the rows with low <= sort key < high (None = no upper bound)."""
    kind = loaded.sort_keys.dtype.type
    first = int(np.searchsorted(loaded.sort_keys, kind(low), "left"))
    last = len(loaded.sort_keys) if high is None else int(np.searchsorted(loaded.sort_keys, kind(high), "left"))
    return first, max(first, last)
