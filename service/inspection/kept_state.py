"""The state of a checkpoint after a batch, operator by operator, as tables."""

from __future__ import annotations

import json
from base64 import b64decode
from collections.abc import Iterator
from functools import partial
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from operators.names import SORT_KEY
from operators.slots import SLOTS, slots_of
from operators.state.lookup import find_between
from operators.state.operator_state import State, TableKind
from operators.state.trace import Trace
from operators.time import MIN_TIME
from service.checkpoint.blocks import Manifest
from service.checkpoint.files import Files
from service.checkpoint.small_files import SmallFiles
from service.checkpoint.version import Version
from service.plan.kept_tables import OPERATORS, KeptOperator, KeptTable
from service.runtime.shard_operators import READABLE, formats

PIECES = 16
"""The number of key ranges in which a shard's table is read, since it need not fit into memory as a whole."""

MOST = 3
"""The number of keys with most rows that are shown."""

_TOP = (1 << 64) - 1
_MAX_TIME = (1 << 63) - 1
"""The greatest sort keys: of hashes (64 bits without a sign), and of times (with one)."""


class NotReadable(Exception):
    """A checkpoint that cannot be read; the text says why, and what to do."""


class TableFigures(NamedTuple):
    """The size of a table. `largest` are the keys with most rows, as text. `skew` is the number of rows in the fullest
    hundredth of the slots, divided by the mean of all hundredths. Both are None if they were not counted."""

    name: str
    rows: int
    bytes: int
    largest: tuple[tuple[str, int], ...] | None
    skew: float | None


class CheckpointState:
    """All state after batch `batch`, which is done. Raises NotReadable."""

    def __init__(self, files: Files, batch: int) -> None:
        self._files = files
        self.batch = batch
        known = SmallFiles(files)
        meaning, operators = known.read("fixed"), known.read(OPERATORS)
        if meaning is None or meaning["format"] not in READABLE:
            found = "none" if meaning is None else f"format {meaning['format']}"
            raise NotReadable(
                f"the state is of another version of the service: {found}, this version reads {formats()}\n"
                "  hint:   look at it with the version that wrote it"
            )
        if operators is None:
            raise NotReadable(
                "the checkpoint does not say what its operators are called: it was last written by an earlier version\n"
                "  hint:   start the job once with this version"
            )
        self.operators = tuple(map(KeptOperator.from_json, operators))
        self._levels = Version.before(files, batch + 1).levels if self.operators else {}

    def operator(self, name: str) -> KeptOperator:
        """Return the operator of that name, short identity or identity. Raises NotReadable."""
        for each in self.operators:
            if name in (each.name, each.short, each.identity):
                return each
        names = ", ".join(f"{each.name} ({each.short})" for each in self.operators) or "none"
        raise NotReadable(f'no operator with state is called "{name}"\n  hint:   there are: {names}')

    def shards(self, operator: KeptOperator) -> Iterator[State]:
        """Open the state of an operator, shard by shard."""
        level = self._levels.get(operator.level)
        for place in level.manifests if level is not None else ():
            manifest = Manifest.from_bytes(self._files.block(place).to_pybytes())
            written = json.loads(manifest.text)["states"].get(operator.identity)
            if written is None:
                continue
            specs = {name: table.spec for name, table in operator.tables.items()}
            fetch = partial(self._fetch, manifest, operator.identity)
            yield State.open(specs, b64decode(written["manifest"]), fetch, operator.order)

    def _fetch(self, manifest: Manifest, operator: str, block: str) -> pa.Buffer:
        return self._files.block(manifest.blocks[f"{operator}:{block}"])

    def rows(self, operator: KeptOperator, table: str) -> Iterator[pa.Table]:
        """Yield the rows of a table, piece by piece, under the names that their columns have in the query."""
        kept = operator.tables[table]
        for state in self.shards(operator):
            for rows in _pieces(state[table]):
                yield _shown(rows, kept)

    def figures(self, operator: KeptOperator, *, count: bool) -> list[TableFigures]:
        """Measure the size of each table of an operator.

        To `count` rows, keys and slots the whole table is read. Otherwise the number of rows is an estimate if the
        number of tasks has changed since they were written.
        """
        rows: dict[str, int] = dict.fromkeys(operator.tables, 0)
        sizes: dict[str, int] = dict.fromkeys(operator.tables, 0)
        for state in self.shards(operator):
            for name, size in state.table_sizes().items():
                rows[name] += size.rows
                sizes[name] += size.bytes
        if count:
            return [self._counted(operator, name, sizes[name]) for name in operator.tables]
        return [TableFigures(name, rows[name], sizes[name], None, None) for name in operator.tables]

    def _counted(self, operator: KeptOperator, table: str, size: int) -> TableFigures:
        kept = operator.tables[table]
        hashed = kept.spec.kind is not TableKind.TIME_ORDERED
        by_slot = np.zeros(SLOTS, dtype=np.int64)
        largest: list[tuple[str, int]] = []
        count = 0
        for state in self.shards(operator):
            for rows in _pieces(state[table]):
                count += rows.num_rows
                if hashed:
                    by_slot += np.bincount(slots_of(rows.column(SORT_KEY).to_numpy()), minlength=SLOTS)
                if kept.key:
                    largest = sorted([*largest, *_counts(_shown(rows, kept), kept.key)], key=_by_count)[:MOST]
        return TableFigures(
            table, count, size, tuple(largest) if kept.key else None, _skew(by_slot) if hashed else None
        )


def _by_count(each: tuple[str, int]) -> tuple[int, str]:
    return -each[1], each[0]


def _pieces(trace: Trace) -> Iterator[pa.Table]:
    """The rows of a trace, in ranges of their sort keys. The rows of one key are in one range, except in a table sorted
    by time."""
    if trace.spec.kind is TableKind.TIME_ORDERED:
        yield trace.between(MIN_TIME, _MAX_TIME)
        return
    step = (_TOP >> 1) // (PIECES >> 1) + 1
    for first in range(0, _TOP, step):
        lows = np.array([first], np.uint64)
        highs = np.array([min(first + step - 1, _TOP)], np.uint64)
        found = find_between(trace, lows, highs)
        if found.num_rows:
            yield found


def _shown(rows: pa.Table, table: KeptTable) -> pa.Table:
    names = [name for name in rows.schema.names if name in table.shown]
    return rows.select(names).rename_columns([table.shown[name] for name in names])


def _counts(rows: pa.Table, key: tuple[str, ...]) -> list[tuple[str, int]]:
    counted = rows.group_by(list(key)).aggregate([([], "count_all")]).sort_by([("count_all", "descending")])
    return [
        (", ".join(f"{name}={each[name]}" for name in key), each["count_all"])
        for each in counted.slice(0, MOST).to_pylist()
    ]


def _skew(by_slot: npt.NDArray[np.int64]) -> float | None:
    total = int(by_slot.sum())
    if not total:
        return None
    hundredth = SLOTS // 100
    return float(np.sort(by_slot)[-hundredth:].sum() / total * SLOTS / hundredth)


def kept_bytes(files: Files, batch: int) -> int:
    """Return the bytes of all blocks that the version after `batch` lists, each counted once."""
    places = {
        (place.file, place.offset): place.length
        for level in Version.before(files, batch + 1).levels.values()
        for manifest in level.manifests
        for place in Manifest.from_bytes(files.block(manifest).to_pybytes()).blocks.values()
    }
    return sum(places.values())
