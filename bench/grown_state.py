"""Much state in a checkpoint, made without reading a row: what a GROUP BY would keep of many keys.

The blocks are written by the classes that write those of a running query, as merges leave them: one sorted run of
blocks of some 32,768 rows. A row that is there is the pattern of all others; only the key and its hash differ.
"""

from __future__ import annotations

import json
from base64 import b64decode, b64encode
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from operators.names import SORT_KEY
from operators.slots import slots_of
from operators.state.block import Block, BlockStore
from operators.state.operator_state import contents_of, manifest_of
from operators.state.trace import Trace
from operators.state.upkeep import STEP_ROWS
from service.checkpoint.batch_log import COMMITS, last
from service.checkpoint.blocks import BlockWriter, Manifest
from service.checkpoint.files import Files, FolderFiles, StoredAt
from service.checkpoint.version import LevelState, Version
from service.plan.lowering.lower import compile_job
from service.plan.program import Operator
from service.runtime.layout import Layout
from service.sql.pipeline import read

HASHED = 4_000_000
"""Keys that are hashed at a time."""

TOGETHER = 64
"""Blocks whose files are written at a time."""

FIRST_KEY = 10**12
"""The new keys begin here, so that none of them is there already."""

Numbers = npt.NDArray[Any]


def grow(sql: str, folder: Path, keys: int) -> int:
    """Have the state of the first operator of the first job of `sql`, whose stopped checkpoint is in `folder`, keep
    `keys` more keys, which are BIGINT and begin with FIRST_KEY; return the bytes of its blocks."""
    program = compile_job(read(sql).jobs[0])
    operator = next(each for each in program.operators if each.kernel.traces())
    files = FolderFiles(str(folder))
    done = last(files, COMMITS)
    version = Version.before(files, done + 1)
    level = version.levels[operator.level]
    layout = Layout(len(level.manifests))
    added, places = 0, []
    for shard, place in enumerate(level.manifests):
        grown = _Grown(files, operator, done, shard, place)
        places.append(grown.with_keys(keys, layout.slots_of(shard)))
        added += grown.bytes
    levels = {**version.levels, operator.level: LevelState(level.clocks, tuple(places))}
    Version(levels).write(files, done)
    return added


class _Grown:
    """The state of an operator in one shard, while it grows."""

    def __init__(self, files: Files, operator: Operator, batch: int, shard: int, place: StoredAt) -> None:
        self._files, self._operator = files, operator
        self._batch, self._shard = batch, shard
        self._before = Manifest.from_bytes(files.block(place).to_pybytes())
        self.bytes = 0

    def _writer(self) -> BlockWriter:
        """One of files that have not been written before."""
        return BlockWriter(self._files, self._batch, self._operator.level, self._shard)

    def with_keys(self, keys: int, slots: range) -> StoredAt:
        """Those of the keys that are in `slots` added; where the manifest is then."""
        identity = self._operator.identity
        shard = json.loads(self._before.text)
        manifest_before = json.loads(b64decode(shard["states"][identity]["manifest"]))
        ((name, spec),) = self._operator.kernel.traces().items()
        places = dict(self._before.blocks)
        store = BlockStore(lambda block: self._files.block(places[f"{identity}:{block}"]), manifest_before["next"])
        contents = contents_of(manifest_before["traces"][name])
        trace = Trace(spec, contents, store, self._operator.order)
        pattern = trace.load(contents.blocks()[0]).rows.slice(0, 1)
        chosen, hashes = _sorted_keys(trace, keys, slots)
        run: list[Block] = []
        for start in range(0, len(chosen), STEP_ROWS * TOGETHER):
            writer = self._writer()
            for first in range(start, min(start + STEP_ROWS * TOGETHER, len(chosen)), STEP_ROWS):
                part = slice(first, first + STEP_ROWS)
                run += store.write(_like(pattern, chosen[part], hashes[part]), spec.expires_by)
            added = store.seal()[0]
            places |= {f"{identity}:{block}": writer.add(data) for block, data in added.items()}
            writer.close()
        contents.runs = {**contents.runs, contents.next_run: tuple(run)}  # the oldest
        contents.next_run += 1
        contents.live = None if contents.live is None else contents.live + len(chosen)
        self.bytes = sum(block.bytes for block in run)
        manifest = manifest_of(store.next_id, manifest_before["notes"], {name: contents})
        shard["states"][identity]["manifest"] = b64encode(manifest).decode()
        writer = self._writer()
        place = writer.add(pa.py_buffer(Manifest(json.dumps(shard).encode(), places).to_bytes()))
        writer.close()
        return place


def _sorted_keys(trace: Trace, keys: int, slots: range) -> tuple[Numbers, Numbers]:
    """The keys that are in `slots`, and their hashes, in the order of these."""
    parts: list[tuple[Numbers, Numbers]] = []
    for start in range(0, keys, HASHED):
        numbers = np.arange(FIRST_KEY + start, FIRST_KEY + min(start + HASHED, keys), dtype=np.int64)
        hashes = trace.key_hash(pa.table({"key": numbers}), (0,))
        found = slots_of(hashes)
        ours = (found >= slots.start) & (found < slots.stop)
        parts.append((numbers[ours], hashes[ours]))
    numbers, hashes = (np.concatenate(each) for each in zip(*parts, strict=True))
    order = np.argsort(hashes, kind="stable")
    return numbers[order], hashes[order]


def _like(pattern: pa.RecordBatch, keys: Numbers, hashes: Numbers) -> pa.Table:
    """A row for each key, all else of which is that of the pattern."""
    rows = pa.Table.from_batches([pattern.take(pa.array(np.zeros(len(keys), dtype=np.int64)))])
    rows = rows.set_column(0, rows.schema.field(0), pa.array(keys))
    return rows.set_column(rows.schema.get_field_index(SORT_KEY), rows.schema.field(SORT_KEY), pa.array(hashes))
