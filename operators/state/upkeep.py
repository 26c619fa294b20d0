"""The upkeep of a trace: compaction merges runs of similar size, and a sweep removes expired rows, a bounded part in
each batch.

The work of a batch follows what it wrote. Every decision depends on numbers in the manifest alone, so that a replay
makes the same blocks.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import pyarrow as pa
import pyarrow.compute as pc

from operators.names import TOMBSTONE
from operators.state.block import BLOCK, Block, BlockStore, slice_between
from operators.state.compaction import Run, boundary, mergeable, merged, rows_left, taken
from operators.state.contents import Contents, Merge, TableKind, TraceSpec
from operators.time import MIN_TIME

STEP_ROWS = 32_768
"""The approximate number of rows of one step of a merge."""

STEP_BYTES = BLOCK
"""The most bytes of one step, since rows may be of any size: a step holds its rows three times, as a block does."""

MERGE_FUEL = 2
"""Rows that a merge may read for each row that a batch writes. It reads some FAN runs of one size, and the next merge
of the size is not due until as many rows have been written again: one would do, two leave a margin for runs that have
come meanwhile."""

BATCH_FUEL = 4 * MERGE_FUEL
"""The same for all merges of a trace, and for its sweep: four merges advance side by side. Where there are more, those
that are nearest to their end come first, since a run that is gone is no longer read."""

Combine = Callable[[pa.Table], pa.Table]


@dataclass(frozen=True, slots=True)
class Upkeep:
    """The upkeep of one trace. What is merged passes through `combine`, which gives fewer rows that stand for the
    same."""

    spec: TraceSpec
    contents: Contents
    store: BlockStore
    combine: Combine | None

    def advance(self, written: int) -> None:
        """Sweep, advance the merges by the rows that a batch has `written`, and begin those that are due."""
        contents = self.contents
        batch_fuel = max(STEP_ROWS, BATCH_FUEL * written)
        self._sweep(batch_fuel)
        self._begin()
        step = min(max(STEP_ROWS, written), self._rows_in(STEP_BYTES))
        for merge in sorted(contents.merges, key=self._rows_left):
            left = self._rows_left(merge)
            fuel = merge.fuel + MERGE_FUEL * written
            while left and batch_fuel > 0 and (left <= step or fuel >= step):
                moved = self._move(merge, step)
                fuel, batch_fuel = fuel - moved, batch_fuel - moved
                left = self._rows_left(merge)
            at = contents.merges.index(merge)
            contents.merges[at] = replace(merge, fuel=max(0, fuel))
            if left == 0:
                del contents.merges[at]
                for number in merge.sources:
                    for block in contents.runs.pop(number):
                        self.store.drop(block)
                if not contents.runs[merge.target]:
                    contents.runs.pop(merge.target)
        if contents.live is None:
            self._recount()

    def _recount(self) -> None:
        """Count the keys again once all that others wrote has been merged away."""
        contents = self.contents
        if contents.merges or len(contents.runs) > 1 or any(block.clip is not None for block in contents.blocks()):
            return
        counted = 0
        for block in contents.blocks():
            loaded = self.store.load(block)
            first, last = slice_between(loaded, block.start, None)
            gone = loaded.rows.column(TOMBSTONE).slice(first, last - first)
            counted += len(gone) - (pc.sum(gone).as_py() or 0)
        contents.live = counted

    def _rows_in(self, size: int) -> int:
        """About how many rows are in `size` bytes of blocks, at least one."""
        blocks = self.contents.blocks()
        return max(1, size * sum(b.rows for b in blocks) // max(1, sum(b.bytes for b in blocks)))

    def _rows_left(self, merge: Merge) -> int:
        return sum(rows_left(self.contents.runs[n], self.store) for n in merge.sources)

    def _begin(self) -> None:
        """Begin merging neighbouring runs of one size, where no merge of theirs is under way."""
        contents = self.contents
        busy = contents.busy()
        while True:
            idle: list[int] = []
            for number in contents.runs:
                if number in busy:
                    break
                idle.append(number)
            sizes = [sum(b.rows for b in contents.runs[n]) for n in idle]
            span = mergeable(sizes)
            if span is None:
                return
            sources = tuple(idle[span[0] : span[1]])
            target = contents.next_run
            contents.next_run += 1
            runs: dict[int, Run] = {}
            for number, run in contents.runs.items():
                if number == sources[0]:
                    runs[target] = ()
                runs[number] = run
            contents.runs = runs
            contents.merges.append(Merge(target, sources, 0))
            busy |= {target, *sources}

    def _move(self, merge: Merge, step: int) -> int:
        """Move one step from the sources of `merge` to its target. Return how many rows that read."""
        contents, store = self.contents, self.store
        sources = [contents.runs[n] for n in merge.sources]
        bound = boundary(sources, step, store)
        parts: list[list[pa.RecordBatch]] = []
        finished: list[Block] = []
        for number, run in zip(merge.sources, sources, strict=True):
            rows, contents.runs[number], used = taken(run, bound, store)
            parts.append(rows)
            finished += used
        moved: int = sum(batch.num_rows for run in parts for batch in run)
        if moved:
            numbers = list(contents.runs)
            oldest = numbers[-1] == merge.sources[-1]
            table = merged(parts, replacing=self.spec.kind is TableKind.KEYED, oldest=oldest)
            for run in sources:
                for block in run:
                    store.read_through(block)
            del parts
            self._keep(merge.target, table)
        for block in finished:
            store.drop(block)
        return moved

    def _keep(self, target: int, rows: pa.Table) -> None:
        """Add the merged `rows` that have not expired to the run `target`."""
        expires_by = self.spec.expires_by
        if expires_by is not None and self.contents.expired_upto > MIN_TIME:
            rows = rows.filter(pc.greater(rows.column(expires_by), self.contents.expired_upto))
        if self.combine is not None and rows.num_rows:
            rows = self.combine(rows)
        if rows.num_rows:
            self.contents.runs[target] = (*self.contents.runs[target], *self.store.write(rows, expires_by))

    def _sweep(self, fuel: int) -> None:
        """Rewrite the blocks that hold more expired than valid rows, as many as `fuel` rows allow:
        the blocks of a large run are all of one age."""
        contents, expires_by = self.contents, self.spec.expires_by
        if expires_by is None or self.spec.kind is TableKind.TIME_ORDERED or contents.expired_upto == MIN_TIME:
            return
        busy = contents.busy()
        for number, run in list(contents.runs.items()):
            if number in busy:
                continue
            kept: list[Block] = []
            for block in run:
                if fuel <= 0 or contents.expired_upto - block.oldest <= block.newest - contents.expired_upto:
                    kept.append(block)
                    continue
                fuel -= block.rows
                loaded = self.store.load(block)
                first, last = slice_between(loaded, block.start, None)
                rows = pa.Table.from_batches([loaded.rows.slice(first, last - first)])
                rows = rows.filter(pc.greater(rows.column(expires_by), contents.expired_upto))
                self.store.drop(block)
                if rows.num_rows:
                    kept.extend(self.store.write(rows, expires_by))
            contents.runs[number] = tuple(kept)
        contents.runs = {n: run for n, run in contents.runs.items() if run or n in busy}
