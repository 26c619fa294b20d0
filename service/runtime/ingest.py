"""Level 0: what one task does with the records of its Kafka partitions in one batch."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from operators.columns import no_changes
from operators.kernel import WEIGHT, Kernel, PerBlock, Step, together
from operators.sql import Sql
from operators.state.operator_state import State
from operators.time import MIN_TIME, Clock
from service.formats.contract import Decoded, Decoder
from service.formats.records import dead
from service.formats.rejected import NOT_DECODED
from service.formats.rejection import Rejection
from service.plan.program import Operator, Source
from service.runtime.counting import count_changes, count_step
from service.runtime.envelope import EGRESS, Envelope, Kind, packed
from service.runtime.exchange import Tags, partition_blocks, partition_by_hash
from service.runtime.layout import Layout
from service.runtime.net import OF_THE_MACHINE, with_culprits, without_culprits
from service.runtime.record_runs import TOGETHER, Run, gathered, runs
from service.runtime.source_digest import digest_range
from service.runtime.task_metrics import TaskMetrics
from service.runtime.topology import Topology
from service.runtime.watermarks import SourceChannel, channel_name


class BadInput(Exception):
    """A record that cannot be decoded, in a table whose 'tailrace.bad-input' is 'fail'."""


RUN_ROWS = 200_000
"""Records of one partition that are computed at a time, where nobody says how many."""


class _Taken(NamedTuple):
    """What was made of a run of records, and the watermark (milliseconds) that its rows assert."""

    changes: pa.Table
    dead: pa.Table
    watermark: int


class _Produced(NamedTuple):
    """What level 0 makes of a run: `parts` for shards (exchange, shard, rows), rows for `outputs`, and `dead` rows,
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
        visible = [f"c{i}" for i, name in enumerate(n for n in names if n.startswith("c"))]
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


class _Channel:
    """A Kafka partition in this batch: what it has given so far. `parts` are by exchange and shard."""

    def __init__(self, place: SourceChannel, topology: Topology, shards: int) -> None:
        self.place = place
        self.name = place.name
        self.watermark = MIN_TIME
        self.parts: list[list[list[pa.Table]]] = [[[] for _ in range(shards)] for _ in topology.exchanges]
        self._offsets: tuple[int, int] | None = None
        self._count = 0
        self._sequence = 0

    def read(self, records: pa.Table) -> None:
        """These records, of which there is one at least, were read."""
        first, last = records["offset"][0].as_py(), records["offset"][-1].as_py()
        self._offsets = (first if self._offsets is None else self._offsets[0], last)
        self._count += records.num_rows

    def source_range(self) -> bytes:
        """The digest of what was read."""
        assert self._offsets is not None
        return digest_range(self.name, *self._offsets, self._count)

    def envelope(
        self,
        shard: int,
        level: int,
        kind: Kind,
        address: int,
        now: int,
        *,
        watermark: int = MIN_TIME,
        payload: bytes = b"",
    ) -> Envelope:
        """The next envelope of this channel."""
        self._sequence += 1
        return Envelope(shard, level, kind, address, self.name, self._sequence, now, watermark, False, payload)


class Ingest:
    """Decodes records, runs the stateless operators of level 0 and addresses the results to shards.

    `limits` holds the offset, by channel, at which a bounded source ends; records from there on are not read. `rows`
    records of a partition are computed at a time.
    """

    def __init__(
        self,
        topology: Topology,
        source: Source,
        decoder: Decoder,
        layout: Layout,
        sql: Sql,
        limits: Mapping[str, int] | None = None,
        rows: int = RUN_ROWS,
    ) -> None:
        self._topology = topology
        self._source = source
        self._decoder = decoder
        self._layout = layout
        self._sql = sql
        self._limits = limits or {}
        self._rows = rows
        self._operators = [o for o in topology.operators_at(0) if source.id in topology.sources_of(o.id)]

    def run(self, blocks: Iterable[pa.Table], now: int) -> Iterator[Envelope]:
        """The envelopes of one task. `blocks` are records (contract.RECORD) of one partition after another, each in
        offset order; what leaves for a partition does not depend on which others there are."""
        metrics = TaskMetrics()
        channel: _Channel | None = None
        for group in gathered(runs(blocks, self._rows)):
            found = self._taken_in(group, metrics)
            with metrics.timed("ingest_operators"):
                changes = [taken.changes for taken in found]
                # The size of a run alone says how it is computed: a replay does the same.
                small = all(run.records.num_rows < TOGETHER for run in group)
                computed = (
                    self._operate_together(changes, now, metrics)
                    if small
                    else [self._operate(rows, now, metrics) for rows in changes]
                )
            for run, taken, produced in zip(group, found, computed, strict=True):
                place = SourceChannel(self._source.id, run.topic, run.partition)
                if channel is None or channel.place != place:
                    if channel is not None:
                        yield from self._close(channel, now)
                    channel = _Channel(place, self._topology, self._layout.shards)
                channel.read(run.records)
                if taken.dead.num_rows:
                    yield from self._reject(taken.dead, channel, now)
                channel.watermark = max(channel.watermark, taken.watermark)
                yield from self._hand_on(produced, channel, now)
        if channel is None:
            return
        yield from self._close(channel, now)
        yield self._leave(Kind.METRICS, self._source.id, channel, now, metrics.to_json())

    def _close(self, channel: _Channel, now: int) -> Iterator[Envelope]:
        """What a partition gave in all, and how far its time has come."""
        for address, (exchange, by_shard) in enumerate(zip(self._topology.exchanges, channel.parts, strict=True)):
            for shard, tables in enumerate(by_shard):
                for payload in packed(tables):
                    yield channel.envelope(shard, exchange.level, Kind.ROWS, address, now, payload=payload)
        source_ranges = channel.source_range()
        for level in self._topology.levels_heard_by(self._source.id):
            for shard in range(self._layout.shards):
                yield channel.envelope(
                    *(shard, level, Kind.CLOCK, self._source.id, now),
                    watermark=channel.watermark,
                    payload=source_ranges,
                )
        yield self._leave(Kind.OFFSETS, self._source.id, channel, now, source_ranges)

    def _taken_in(self, group: Sequence[Run], metrics: TaskMetrics) -> list[_Taken]:
        """The rows of each run, and the watermark that they assert."""
        wanted = [self._within_limit(run) for run in group]
        with metrics.timed("decode"):
            decoded = self._decode_together(wanted)
        for run, records, each in zip(group, wanted, decoded, strict=True):
            if records.num_rows:
                place = {"source": self._source.table.name, "topic": run.topic}
                metrics.count("input_records_total", records.num_rows, **place)
                size = sum(records[name].nbytes for name in ("key", "value") if name in records.schema.names)
                metrics.count("input_bytes_total", size, **place)
                metrics.count("decode_errors_total", each.dead.num_rows, topic=run.topic)
        watermarks = self._asserted([each.changes for each in decoded])
        return [_Taken(each.changes, each.dead, w) for each, w in zip(decoded, watermarks, strict=True)]

    def _decode_together(self, blocks: Sequence[pa.Table]) -> list[Decoded]:
        """Decode blocks of records as one where that tells which rows are of which block."""
        if len(blocks) == 1:
            return [self._decode(blocks[0])]
        try:
            whole = self._decoder.decode(pa.concat_tables(blocks).combine_chunks(), self._sql)
        except OF_THE_MACHINE:
            raise
        except Exception:
            return [self._decode(block) for block in blocks]
        ends = np.cumsum([block.num_rows for block in blocks])
        if whole.dead.num_rows or whole.changes.num_rows != (ends[-1] if whole.records is None else len(whole.records)):
            return [self._decode(block) for block in blocks]
        places = ends if whole.records is None else np.searchsorted(whole.records, ends)
        starts = [0, *places[:-1].tolist()]
        return [
            Decoded(whole.changes.slice(first, int(last) - first), whole.dead)
            for first, last in zip(starts, places, strict=True)
        ]

    def _decode(self, records: pa.Table) -> Decoded:
        """The rows of a block of records; a record with which the decoder cannot cope is a dead letter like others."""
        found, culprits = without_culprits(records, lambda block: self._decoder.decode(block, self._sql))
        if len(found) == 1 and not culprits:
            return found[0]
        if not found:
            found = [self._decoder.decode(records.slice(0, 0), self._sql)]
        bad = [dead(each.row, {0: Rejection(NOT_DECODED, each.reason)}) for each in culprits]
        rejected = pa.concat_tables([*(each.dead for each in found), *bad])
        return Decoded(pa.concat_tables([each.changes for each in found]), rejected.sort_by("offset"))

    def _reject(self, rejected: pa.Table, channel: _Channel, now: int) -> Iterator[Envelope]:
        """What the table's 'tailrace.bad-input' says: to the dead-letter topic, only counted, or the end of the job."""
        table = self._source.table
        match table.connector.bad_input:
            case "skip":
                return
            case "fail":
                place = f"offset {rejected['offset'][0].as_py()} of {channel.place.topic}/{channel.place.partition}"
                raise BadInput(f"table {table.name}, {place}: {rejected['detail'][0].as_py()}")
            case _:
                yield from self._leave_rows(Kind.REJECTED, self._source.id, channel, now, rejected)

    def _operate(self, rows: pa.Table, now: int, metrics: TaskMetrics) -> _Produced:
        """Run the operators over the rows of one run."""
        found = _Produced([], [], [])
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
            found.dead.extend((operator.id, refused) for refused in step.dead.values() if refused.num_rows)
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

    def _operate_together(self, blocks: Sequence[pa.Table], now: int, metrics: TaskMetrics) -> list[_Produced]:
        """Run the operators over the rows of several runs at once, as over those of each."""
        kernels = self._per_block
        if kernels is None:
            return [self._operate(block, now, metrics) for block in blocks]
        found = [_Produced([], [], []) for _ in blocks]
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
            for refused in step.dead.values():
                for number, part in _Tagged.of(refused, len(kernel.inputs[0]) - 1).parts():
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

    def _hand_on(self, produced: _Produced, channel: _Channel, now: int) -> Iterator[Envelope]:
        """Keep what goes to shards until the partition has been read; the rest leaves."""
        for address, shard, part in produced.parts:
            channel.parts[address][shard].append(part)
        for operator, refused in produced.dead:
            yield from self._leave_rows(Kind.DEAD, operator, channel, now, refused)
        for output, rows in produced.outputs:
            yield from self._leave_rows(Kind.OUTPUT, output, channel, now, rows)

    def _advance(self, kernel: Kernel, state: State, rows: pa.Table, clock: Clock) -> Step:
        steps, culprits = without_culprits(rows, lambda block: kernel.advance(state, [block], clock, self._sql))
        if len(steps) == 1 and not culprits:
            return steps[0]
        return with_culprits(together(steps, no_changes(kernel.output)), culprits)

    def _inputs(self, operator: Operator, produced: Mapping[int, pa.Table]) -> Sequence[pa.Table]:
        return [
            produced[edge.producer] if edge.producer in produced else empty(schema)
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

    def _asserted(self, blocks: Sequence[pa.Table]) -> list[int]:
        """The highest watermark that the rows of each block assert, in milliseconds; a row without a time asserts
        nothing."""
        asserted: list[int | None] = [None] * len(blocks)
        places = [i for i, rows in enumerate(blocks) if rows.num_rows]
        if self._source.watermark is None or not places:
            return [MIN_TIME] * len(blocks)
        if self._source.rises_with is not None:
            name = f"c{self._source.rises_with}"
            column = blocks[places[0]].schema.field(name)
            highest = pa.array([pc.max(blocks[i][name]) for i in places], column.type)
            for place, found in zip(places, self._each(pa.table({name: highest})), strict=True):
                asserted[place] = found
        for place in places:
            if asserted[place] is None:  # so it is, too, where the highest value is out of the range of times
                each, _ = without_culprits(blocks[place], self._highest)
                asserted[place] = max((found for found in each if found is not None), default=None)
        return [MIN_TIME if found is None else found for found in asserted]

    def _each(self, rows: pa.Table) -> Sequence[int | None]:
        """The watermark that each row asserts."""
        found, culprits = without_culprits(rows, self._read_watermarks)
        return [None] * rows.num_rows if culprits else [each for part in found for each in part]

    def _read_watermarks(self, rows: pa.Table) -> list[int | None]:
        statement = f"SELECT epoch_ms(TRY({self._source.watermark})) AS w FROM changes"
        answer: list[int | None] = self._sql(statement, {"changes": rows})["w"].to_pylist()
        return answer

    def _highest(self, rows: pa.Table) -> int | None:
        answer = self._sql(f"SELECT max(epoch_ms(TRY({self._source.watermark}))) AS w FROM changes", {"changes": rows})
        highest: int | None = answer["w"][0].as_py()
        return highest

    def _within_limit(self, run: Run) -> pa.Table:
        limit = self._limits.get(channel_name(self._source.id, run.topic, run.partition)) if self._limits else None
        return run.records if limit is None else run.records.filter(pc.field("offset") < limit)

    def _leave_rows(self, kind: Kind, address: int, channel: _Channel, now: int, rows: pa.Table) -> Iterator[Envelope]:
        for payload in packed([rows]):
            yield self._leave(kind, address, channel, now, payload)

    def _leave(self, kind: Kind, address: int, channel: _Channel, now: int, payload: bytes) -> Envelope:
        """To the sink: one channel always through the same task, so that its rows keep their order."""
        shard = channel.place.partition % self._layout.shards
        return channel.envelope(shard, EGRESS, kind, address, now, payload=payload)


def empty(schema: pa.Schema) -> pa.Table:
    """A block of changes without rows, with the visible columns of `schema`."""
    return schema.append(pa.field(WEIGHT, pa.int64())).empty_table()


def _no_blocks(identifier: str) -> pa.Buffer:
    raise LookupError(f"level 0 keeps no state, but block {identifier} was asked for")
