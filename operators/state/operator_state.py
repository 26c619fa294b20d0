"""The state of one operator in one shard: its traces, and what a batch changed in them.

A manifest lists the blocks of every trace; blocks are immutable and are fetched when they are first read. `seal` ends a
batch: it says which blocks are new and which are no longer needed. A state that lives on after `seal` and one that is
opened again from the manifest give bit-identical answers.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

import pyarrow as pa

from operators.state.block import Block, BlockStore, Clip, Fetch
from operators.state.contents import Contents, Merge, TableKind, TraceSpec
from operators.state.trace import Trace

__all__ = ["SealedState", "State", "TableKind", "TableSize", "TraceSpec"]


class TableSize(NamedTuple):
    """The size of a trace."""

    rows: int
    bytes: int


class SealedState(NamedTuple):
    """The changes of a batch to state: the manifest after it, the blocks it added, the blocks that are no longer
    needed. Those that were `written_early` are new as well."""

    manifest: bytes
    added: Mapping[str, pa.Buffer]
    removed: tuple[str, ...]
    written_early: tuple[str, ...] = ()


class State:
    """The traces of one operator in one shard, and a few numbers that it remembers beside them (`notes`). A note only
    ever grows: of the states of two shards that become one the greater counts."""

    def __init__(self, traces: dict[str, Trace], notes: dict[str, int], store: BlockStore) -> None:
        self._traces = traces
        self._store = store
        self.notes = notes

    @classmethod
    def open(
        cls,
        traces: Mapping[str, TraceSpec],
        manifest: bytes | None,
        fetch: Fetch,
        order: tuple[int, ...] | None = None,
        write_early: Callable[[str, pa.Buffer], bool] = lambda block, data: False,
    ) -> State:
        """Return the state that `manifest` describes, or an empty one.

        `fetch` gives the bytes of a block by id; it is called when a block is first read, and again only for a block
        that this state has itself written and sealed meanwhile. `order` is as in `Trace`, `write_early` as in
        `BlockStore`.
        """
        known: dict[str, Any] = json.loads(manifest) if manifest is not None else {"next": 0, "notes": {}, "traces": {}}
        store = BlockStore(fetch, known["next"], write_early)
        opened = {
            name: Trace(spec, contents_of(known["traces"].get(name)), store, order) for name, spec in traces.items()
        }
        return cls(opened, known["notes"], store)

    def __getitem__(self, name: str) -> Trace:
        return self._traces[name]

    def seal(self) -> SealedState:
        """End the batch: everything written since `open` or the last `seal`."""
        for trace in self._traces.values():
            trace.compact()
        added, removed, early = self._store.seal()
        traces = {name: trace.contents for name, trace in self._traces.items()}
        return SealedState(manifest_of(self._store.next_id, self.notes, traces), added, removed, early)

    @property
    def rows_read(self) -> int:
        """How many rows lookups have taken out of blocks since this state was opened: what the work of a batch follows,
        merges aside."""
        return self._store.rows_read

    def table_sizes(self) -> Mapping[str, TableSize]:
        """Return rows and bytes kept, by trace."""
        return {
            name: TableSize(trace.rows_seen(), sum(block.bytes for block in trace.blocks()))
            for name, trace in self._traces.items()
        }


def contents_of(known: dict[str, Any] | None) -> Contents:
    """Return what a manifest says of one trace."""
    if known is None:
        return Contents({}, [])
    return Contents(
        runs={number: tuple(_block(*block) for block in run) for number, run in known["runs"]},
        merges=[Merge(target, tuple(sources), fuel) for target, sources, fuel in known["merges"]],
        next_run=known["next"],
        expired_upto=known["expired_upto"],
        live=known["live"],
    )


def _block(*stored: Any) -> Block:
    *figures, clip = stored
    block = Block(*figures)
    return block if clip is None else replace(block, clip=Clip(clip[0], clip[1], tuple(clip[2]), clip[3]))


def manifest_of(next_id: int, notes: Mapping[str, int], traces: Mapping[str, Contents]) -> bytes:
    """Return the manifest of a state."""
    known = {"next": next_id, "notes": notes, "traces": {name: _listed(contents) for name, contents in traces.items()}}
    return json.dumps(known, separators=(",", ":"), sort_keys=True).encode()


def _listed(contents: Contents) -> dict[str, object]:
    return {
        "runs": [
            (number, [(b.id, b.rows, b.bytes, b.low, b.high, b.oldest, b.newest, b.start, b.clip) for b in run])
            for number, run in contents.runs.items()
        ],
        "merges": [(m.target, m.sources, m.fuel) for m in contents.merges],
        "next": contents.next_run,
        "expired_upto": contents.expired_upto,
        "live": contents.live,
    }
