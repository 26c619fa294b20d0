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

from operators.arrow_stream import stream_of
from operators.hashing import bucket_hash
from operators.names import SORT_KEY
from operators.pieces import pieces
from operators.slots import first_hash, slots_of
from operators.state.mapped import MappedBytes

SortKeys = npt.NDArray[Any]

Fetch = Callable[[str], pa.Buffer | MappedBytes]
"""What gives the bytes of a block."""

BLOCK = 16 << 20
"""The most bytes of a block: while it is made its rows are in memory three times, and while they are searched all of
its pages may be mapped."""

WRITTEN_EARLY = 4 << 20
"""Bytes from which on a block need not wait for the end of the batch to be written: it would be held in memory."""

SEARCHED = 1024
"""Keys that have been searched for when the pages of blocks are given back. Each maps some pages of every column, and
the system as many beside each: a few keys map a block whole. Once for that many keys costs little."""

KEPT_MAPPED = 32 << 20
"""Bytes of blocks of a state whose pages stay, however often they are searched."""


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
    """The blocks of one state: fetched once when first read, written with ids that are never used twice.

    `write_early` may write a large block at once, and says whether it has: then `fetch` has it from now on.
    """

    def __init__(
        self, fetch: Fetch, next_id: int, write_early: Callable[[str, pa.Buffer], bool] = lambda name, data: False
    ) -> None:
        self._fetch = fetch
        self._write_early = write_early
        self._loaded: dict[str, Loaded] = {}
        self._mapped: dict[str, MappedBytes] = {}
        self._touched: dict[str, int] = {}
        self._searched = 0
        self._quiet = True
        self._early: set[str] = set()
        self.next_id = next_id
        self.added: dict[str, pa.Buffer] = {}
        self.removed: list[str] = []
        self.rows_read = 0
        """How many rows lookups have taken out of blocks; those that merges move are not counted."""

    def load(self, block: Block) -> Loaded:
        """Return the rows of `block`, without a copy."""
        self._quiet = False
        loaded = self.peek(block)
        self._touch(block)
        return loaded

    def peek(self, block: Block) -> Loaded:
        """Return the rows of `block` to find a place among them: a few pages, which do not count as read. How far a
        merge is, is asked for in every batch."""
        loaded = self._loaded.get(block.id)
        if loaded is None:
            buffer = self.added[block.id] if block.id in self.added else self._fetch(block.id)
            if isinstance(buffer, MappedBytes):
                self._mapped[block.id] = buffer
                buffer = buffer.data
            loaded = _read(buffer)
            if block.clip is not None:
                loaded = _clipped(loaded, block.clip)
                self._touch(block)
            self._loaded[block.id] = loaded
        return loaded

    def _touch(self, block: Block) -> None:
        if block.id in self._mapped:
            self._touched[block.id] = block.bytes

    def searched(self, keys: int) -> None:
        """Note that this number of `keys` has been searched for in a block, and that what was found has been copied."""
        self._searched += keys
        if self._searched >= SEARCHED and sum(self._touched.values()) > KEPT_MAPPED:
            self._give_all_back()

    def read_through(self, block: Block) -> None:
        """Note that the rows of `block` have been read one after the other: its pages are given back."""
        self._give_back(block.id)

    def _give_all_back(self) -> None:
        for name in list(self._touched):
            self._give_back(name)
        self._searched = 0

    def _give_back(self, name: str) -> None:
        if self._touched.pop(name, None) is not None:
            self._mapped[name].give_back()

    def write(self, rows: pa.Table, timestamp: str | None, largest: int = BLOCK) -> tuple[Block, ...]:
        """Write `rows`, which are sorted by `_sort_key` and at least one, as new blocks of at most `largest` bytes;
        `timestamp` names the column of timestamps."""
        return tuple(self._write(piece.combine_chunks(), timestamp) for piece in pieces(rows, largest))

    def _write(self, rows: pa.Table, timestamp: str | None) -> Block:
        buffer = stream_of(rows)
        name = block_name(self.next_id)
        self.next_id += 1
        loaded = _read(buffer)
        oldest, newest = _bounds(loaded.rows, timestamp)
        low, high = int(loaded.sort_keys[0]), int(loaded.sort_keys[-1])
        if buffer.size >= WRITTEN_EARLY and self._write_early(name, buffer):
            self._early.add(name)
        else:
            self.added[name] = buffer
            self._loaded[name] = loaded
        return Block(name, rows.num_rows, buffer.size, low, high, oldest, newest, low)

    def drop(self, block: Block) -> None:
        """Forget `block`; one that was written since the last seal leaves no trace."""
        self._loaded.pop(block.id, None)
        self._mapped.pop(block.id, None)
        self._touched.pop(block.id, None)
        if self.added.pop(block.id, None) is None and block.id not in self._early:
            self.removed.append(block.id)
        self._early.discard(block.id)

    def seal(self) -> tuple[dict[str, pa.Buffer], tuple[str, ...], tuple[str, ...]]:
        """Return what was written and dropped since the last seal, and which blocks were written early and are there
        still.

        Blocks just written are let go: when next read they are fetched again, from where the caller keeps them. Where
        nothing has been read since the last seal, all pages are given back.
        """
        added, removed, early = self.added, tuple(self.removed), tuple(sorted(self._early))
        self.added, self.removed, self._early = {}, [], set()
        for name in added:
            self._loaded.pop(name, None)
        if self._quiet:
            self._give_all_back()
        self._quiet = True
        return added, removed, early


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
