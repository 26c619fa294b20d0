"""The stateless operators of level 0, over the rows of one run of records or of several small runs at once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from operators.columns import no_changes
from operators.kernel import Kernel, PerBlock, Step, together
from operators.names import columns
from operators.sql import Sql
from operators.state.operator_state import State
from operators.time import MIN_TIME, Clock
from service.plan.program import Operator, Source
from service.runtime.counting import count_changes, count_step
from service.runtime.dead_rows import with_dead_rows, without_dead_rows
from service.runtime.layout import Layout
from service.runtime.partitioning import Tags, partition_blocks, partition_by_hash
from service.runtime.task_metrics import TaskMetrics
from service.runtime.topology import Topology


class Produced(NamedTuple):
    """The output of level 0 for a run: `parts` for shards (exchange, shard, rows), rows for `outputs`, and `dead` rows,
    by operator."""

    parts: list[tuple[int, int, pa.Table]]
    outputs: list[tuple[int, pa.Table]]
    dead: list[tuple[int, pa.Table]]


class _Tagged(NamedTuple):
    """Rows of several runs, and the number of each row's run."""

    rows: pa.Table
    tags: Tags

    @classmethod
    def of(cls, table: pa.Table, position: int) -> _Tagged:
        """The rows of a table that has the numbers in a column."""
        tags = table.column(position).to_numpy()
        names = [name for i, name in enumerate(table.column_names) if i != position]
        visible = columns(range(sum(name.startswith("c") for name in names)))
        hidden = names[len(visible) :]
        return cls(table.select(names).rename_columns([*visible, *hidden]), tags)

    def whole(self, schema: pa.Schema) -> pa.Table:
        """The rows with their numbers, as a kernel for several blocks takes them: its columns are those of `schema`."""
        tag = len(schema) - 1
        return self.rows.add_column(tag, schema.field(tag), pa.array(self.tags, pa.int64()))

    def parts(self) -> Iterator[tuple[int, pa.Table]]:
        """The rows of each run that has some, in their order."""
        for (number, _), part in partition_blocks(self.rows, self.tags, (), Layout(1)):
            yield number, part


class EntryOperators:
    """Runs the operators that the rows of one source meet before any exchange, and addresses the results to shards."""

    def __init__(self, topology: Topology, source: Source, layout: Layout, sql: Sql) -> None:
        self._topology = topology
        self._source = source
        self._layout = layout
        self._sql = sql
        self._operators = [o for o in topology.operators_at(0) if source.id in topology.sources_of(o.id)]

    def run(self, blocks: Sequence[pa.Table], now: int, metrics: TaskMetrics, *, at_once: bool) -> list[Produced]:
        """Return the result for each of `blocks`, the rows of one run each; `at_once` computes small blocks
        together."""
        if at_once:
            return self._run_together(blocks, now, metrics)
        return [self._run(rows, now, metrics) for rows in blocks]

    def _run(self, rows: pa.Table, now: int, metrics: TaskMetrics) -> Produced:
        """Run the operators over the rows of one run."""
        found = Produced([], [], [])
        produced: dict[int, pa.Table] = {self._source.id: rows}
        clock = Clock(now, MIN_TIME, MIN_TIME)
        state = State.open({}, None, _no_blocks)
        for operator in self._operators:
            inputs = self._inputs(operator, produced)
            if len(inputs) == 1:
                step = self._advance(operator.kernel, state, inputs[0], clock)
            else:
                step = operator.kernel.advance(state, inputs, clock, self._sql)
            produced[operator.id] = step.changes
            count_step(metrics, operator, step)
            found.dead.extend((operator.id, rows) for rows in step.dead.values() if rows.num_rows)
        for producer, table in produced.items():
            for address, exchange in self._topology.exchanges_from(producer):
                for shard, part in partition_by_hash(table, exchange.key, self._layout):
                    found.parts.append((address, shard, part))
            for output in self._topology.outputs_of(producer):
                if output.discards:
                    count_changes(metrics, "output_changes_total", table, sink=output.table.name)
                elif table.num_rows:
                    found.outputs.append((output.id, table))
        return found

    def _run_together(self, blocks: Sequence[pa.Table], now: int, metrics: TaskMetrics) -> list[Produced]:
        """Run the operators over the rows of several runs at once, as over those of each."""
        kernels = self._per_block
        if kernels is None:
            return [self._run(block, now, metrics) for block in blocks]
        found = [Produced([], [], []) for _ in blocks]
        tags = np.repeat(np.arange(len(blocks)), [block.num_rows for block in blocks])
        produced = {self._source.id: _Tagged(pa.concat_tables(blocks), tags)}
        clock = Clock(now, MIN_TIME, MIN_TIME)
        state = State.open({}, None, _no_blocks)
        for operator in self._operators:
            kernel, position = kernels[operator.id]
            rows = produced[operator.inputs[0].producer].whole(kernel.inputs[0])
            step = self._advance(kernel, state, rows, clock)
            produced[operator.id] = _Tagged.of(step.changes, position)
            count_step(metrics, operator, step)
            for dead in step.dead.values():
                for number, part in _Tagged.of(dead, len(kernel.inputs[0]) - 1).parts():
                    found[number].dead.append((operator.id, part))
        for producer, tagged in produced.items():
            for address, exchange in self._topology.exchanges_from(producer):
                for (number, shard), part in partition_blocks(*tagged, exchange.key, self._layout):
                    found[number].parts.append((address, shard, part))
            for output in self._topology.outputs_of(producer):
                if output.discards:
                    count_changes(metrics, "output_changes_total", tagged.rows, sink=output.table.name)
                else:
                    for number, part in tagged.parts():
                        found[number].outputs.append((output.id, part))
        return found

    def _advance(self, kernel: Kernel, state: State, rows: pa.Table, clock: Clock) -> Step:
        steps, failed = without_dead_rows(rows, lambda block: kernel.advance(state, [block], clock, self._sql))
        if len(steps) == 1 and not failed:
            return steps[0]
        return with_dead_rows(together(steps, no_changes(kernel.output)), failed)

    def _inputs(self, operator: Operator, produced: Mapping[int, pa.Table]) -> Sequence[pa.Table]:
        return [
            produced[edge.producer] if edge.producer in produced else no_changes(schema)
            for edge, schema in zip(operator.inputs, operator.kernel.inputs, strict=True)
        ]

    @cached_property
    def _per_block(self) -> Mapping[int, PerBlock] | None:
        """The operators for several runs at once, if there are such for all of them."""
        found: dict[int, PerBlock] = {}
        for operator in self._operators:
            kernel = operator.kernel.per_block()
            if kernel is None or len(operator.inputs) != 1:
                return None
            found[operator.id] = kernel
        return found


def _no_blocks(identifier: str) -> pa.Buffer:
    raise LookupError(f"level 0 keeps no state, but block {identifier} was asked for")
