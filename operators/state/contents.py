"""What a trace is and what it holds, as the manifest says it: the columns and the kind of its rows, its runs of blocks,
the merges under way."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

import pyarrow as pa

from operators.names import SORT_KEY, TOMBSTONE
from operators.state.block import Block
from operators.state.compaction import Run
from operators.time import MIN_TIME


class TableKind(Enum):
    """The kind of a trace: how its rows are found, and what writing a row means."""

    KEYED = "keyed"
    """By the hash of their key; what is written replaces what was there for that hash."""
    MULTISET = "multiset"
    """By the hash of their key; rows are only added, until they are too old."""
    TIME_ORDERED = "time-ordered"
    """By time; rows are only added, until they are consumed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceSpec:
    """Describe a state table: the columns of its rows, its kind, and the column by which rows expire.

    `timestamp` names a BIGINT column: rows whose timestamp is at or below the bound of `Trace.expire` are gone. The
    timestamp of a time-ordered row is its time.

    The slot of a row is the upper bits of its sort key, which `Trace.key_hash` makes; of a time-ordered row it follows
    from the columns `key`, those of the operator's key in their order. With `key_is_hash`, the one column is itself the
    result of `Trace.key_hash`. Where rows are found by more columns than the operator's key, it is the first `placing`
    of them. Raises ValueError for a time-ordered table without a `key`, which may be ().
    """

    schema: pa.Schema
    kind: TableKind
    timestamp: str | None = None
    key: tuple[str, ...] | None = None
    key_is_hash: bool = False
    placing: int | None = None

    def __post_init__(self) -> None:
        if (self.key is None) is (self.kind is TableKind.TIME_ORDERED):
            raise ValueError("the slots of a time-ordered table follow from its key, of others from their sort key")

    @property
    def stored(self) -> pa.Schema:
        """The columns of a block."""
        sort_key = pa.field(SORT_KEY, pa.int64() if self.kind is TableKind.TIME_ORDERED else pa.uint64())
        tombstone = [pa.field(TOMBSTONE, pa.bool_())] if self.kind is TableKind.KEYED else []
        return pa.schema([*self.schema, sort_key, *tombstone])

    @property
    def expires_by(self) -> str | None:
        """The column by which rows expire, if they do."""
        return SORT_KEY if self.kind is TableKind.TIME_ORDERED else self.timestamp


@dataclass(frozen=True, slots=True)
class Merge:
    """A merge under way: the run `target` takes the rows of the `sources` next to it, step by step."""

    target: int
    sources: tuple[int, ...]
    fuel: int


@dataclass(slots=True)
class Contents:
    """The contents of one trace as the manifest says them: runs by number, newest first, and the merges under way.

    `live` is the number of keys of a keyed trace that does not age, None as long as it has rows of states of other
    slots, which nobody has counted.
    """

    runs: dict[int, Run]
    merges: list[Merge]
    next_run: int = 0
    expired_upto: int = MIN_TIME
    live: int | None = 0

    def blocks(self) -> list[Block]:
        """Return all blocks, newest run first."""
        return [block for run in self.runs.values() for block in run]

    def busy(self) -> set[int]:
        """Return the runs that merges take from or write to."""
        return {number for merge in self.merges for number in (merge.target, *merge.sources)}
