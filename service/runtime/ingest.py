"""Level 0: what one task does with the records of one Kafka partition in one batch."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from operators.columns import no_changes
from operators.kernel import WEIGHT, Step, together
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
from service.runtime.exchange import partition_by_hash
from service.runtime.layout import Layout
from service.runtime.net import with_culprits, without_culprits
from service.runtime.source_digest import digest_range
from service.runtime.task_metrics import TaskMetrics
from service.runtime.topology import Topology
from service.runtime.watermarks import channel_name


class BadInput(Exception):
    """A record that cannot be decoded, in a table whose 'tailrace.bad-input' is 'fail'."""


class Ingest:
    """Decodes records, runs the stateless operators of level 0 and addresses the results to buckets.

    `limits` holds the offset, by channel, at which a bounded source ends; records from there on are not read.
    """

    def __init__(
        self,
        topology: Topology,
        source: Source,
        decoder: Decoder,
        layout: Layout,
        sql: Sql,
        limits: Mapping[str, int] | None = None,
    ) -> None:
        self._topology = topology
        self._source = source
        self._decoder = decoder
        self._layout = layout
        self._buckets = layout.buckets
        self._sql = sql
        self._limits = limits or {}
        self._operators = [o for o in topology.operators_at(0) if source.id in topology.sources_of(o.id)]
        self._sequence = 0

    def run(self, blocks: Iterable[pa.Table], now: int) -> Iterator[Envelope]:
        """The envelopes of one task. `blocks` are records (contract.RECORD) of one partition in offset order."""
        exchanges = self._topology.exchanges
        parts: list[list[list[pa.Table]]] = [[[] for _ in range(self._buckets)] for _ in exchanges]
        metrics = TaskMetrics()
        channel, watermark, first, last, count = "", MIN_TIME, -1, -1, 0
        for records in blocks:
            if records.num_rows == 0:
                continue
            first = records["offset"][0].as_py() if first < 0 else first
            last = records["offset"][-1].as_py()
            count += records.num_rows
            channel = channel or self._channel(records)
            records = self._within_limit(records, channel)
            with metrics.timed("decode"):
                decoded = self._decode(records)
            self._count(records, decoded.dead, metrics)
            if decoded.dead.num_rows:
                yield from self._reject(decoded.dead, channel, now)
            watermark = max(watermark, self._asserted(decoded.changes))
            with metrics.timed("ingest_operators"):
                yield from self._operate(decoded.changes, channel, now, parts, metrics)
        if not channel:
            return
        for address, (exchange, by_bucket) in enumerate(zip(exchanges, parts, strict=True)):
            for bucket, tables in enumerate(by_bucket):
                for payload in packed(tables):
                    yield self._envelope(bucket, exchange.level, Kind.ROWS, address, channel, now, payload=payload)
        source_ranges = digest_range(channel, first, last, count)
        for level in self._topology.levels_heard_by(self._source.id):
            for bucket in self._layout.heads():
                yield self._envelope(
                    bucket, level, Kind.CLOCK, self._source.id, channel, now, watermark=watermark, payload=source_ranges
                )
        yield self._leave(Kind.OFFSETS, self._source.id, channel, now, source_ranges)
        yield self._leave(Kind.METRICS, self._source.id, channel, now, metrics.to_json())

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

    def _reject(self, rejected: pa.Table, channel: str, now: int) -> Iterator[Envelope]:
        """What the table's 'tailrace.bad-input' says: to the dead-letter topic, only counted, or the end of the job."""
        table = self._source.table
        match table.connector.bad_input:
            case "skip":
                return
            case "fail":
                place = f"offset {rejected['offset'][0].as_py()} of {channel.partition('/')[2]}"
                raise BadInput(f"table {table.name}, {place}: {rejected['detail'][0].as_py()}")
            case _:
                yield from self._leave_rows(Kind.REJECTED, self._source.id, channel, now, rejected)

    def _operate(
        self, rows: pa.Table, channel: str, now: int, parts: list[list[list[pa.Table]]], metrics: TaskMetrics
    ) -> Iterator[Envelope]:
        produced: dict[int, pa.Table] = {self._source.id: rows}
        clock = Clock(now, MIN_TIME, MIN_TIME)
        state = State.open({}, None, _no_blocks)
        for operator in self._operators:
            step = self._advance(operator, state, self._inputs(operator, produced), clock)
            produced[operator.id] = step.changes
            count_step(metrics, operator, step)
            for refused in step.dead.values():
                if refused.num_rows:
                    yield from self._leave_rows(Kind.DEAD, operator.id, channel, now, refused)
        for producer, table in produced.items():
            for address, exchange in self._topology.exchanges_from(producer):
                for bucket, part in partition_by_hash(table, exchange.key, self._buckets):
                    parts[address][bucket].append(part)
            for output in self._topology.outputs_of(producer):
                if output.discards:
                    count_changes(metrics, "output_changes_total", table, sink=output.table.name)
                elif table.num_rows:
                    yield from self._leave_rows(Kind.OUTPUT, output.id, channel, now, table)

    def _advance(self, operator: Operator, state: State, inputs: Sequence[pa.Table], clock: Clock) -> Step:
        kernel = operator.kernel
        if len(inputs) != 1:
            return kernel.advance(state, inputs, clock, self._sql)
        steps, culprits = without_culprits(inputs[0], lambda rows: kernel.advance(state, [rows], clock, self._sql))
        if len(steps) == 1 and not culprits:
            return steps[0]
        return with_culprits(together(steps, no_changes(kernel.output)), culprits)

    def _inputs(self, operator: Operator, produced: Mapping[int, pa.Table]) -> Sequence[pa.Table]:
        return [
            produced[edge.producer] if edge.producer in produced else empty(schema)
            for edge, schema in zip(operator.inputs, operator.kernel.inputs, strict=True)
        ]

    def _asserted(self, rows: pa.Table) -> int:
        """The highest watermark that these rows assert, in milliseconds; a row without a time asserts nothing."""
        if self._source.watermark is None or rows.num_rows == 0:
            return MIN_TIME
        asserted = None
        if self._source.rises_with is not None:
            name = f"c{self._source.rises_with}"
            highest = pa.table({name: pa.array([pc.max(rows[name])], rows[name].type)})
            asserted = next(iter(without_culprits(highest, self._highest)[0]), None)
        if asserted is None:  # so it is where the highest value has no watermark, being out of the range of times
            found, _ = without_culprits(rows, self._highest)
            asserted = max((each for each in found if each is not None), default=None)
        return MIN_TIME if asserted is None else asserted

    def _highest(self, rows: pa.Table) -> int | None:
        answer = self._sql(f"SELECT max(epoch_ms(TRY({self._source.watermark}))) AS w FROM changes", {"changes": rows})
        highest: int | None = answer["w"][0].as_py()
        return highest

    def _channel(self, records: pa.Table) -> str:
        return channel_name(self._source.id, records["topic"][0].as_py(), records["partition"][0].as_py())

    def _within_limit(self, records: pa.Table, channel: str) -> pa.Table:
        limit = self._limits.get(channel)
        return records if limit is None else records.filter(pc.field("offset") < limit)

    def _count(self, records: pa.Table, dead: pa.Table, metrics: TaskMetrics) -> None:
        if not records.num_rows:
            return
        topic = records["topic"][0].as_py()
        metrics.count("input_records_total", records.num_rows, source=self._source.table.name, topic=topic)
        metrics.count("decode_errors_total", dead.num_rows, topic=topic)

    def _leave_rows(self, kind: Kind, address: int, channel: str, now: int, rows: pa.Table) -> Iterator[Envelope]:
        for payload in packed([rows]):
            yield self._leave(kind, address, channel, now, payload)

    def _leave(self, kind: Kind, address: int, channel: str, now: int, payload: bytes) -> Envelope:
        """To the sink: one channel always through the same bucket, so that its rows keep their order."""
        bucket = int(channel.rsplit("/", 1)[-1]) % self._buckets
        return self._envelope(bucket, EGRESS, kind, address, channel, now, payload=payload)

    def _envelope(
        self,
        bucket: int,
        level: int,
        kind: Kind,
        address: int,
        channel: str,
        now: int,
        *,
        watermark: int = MIN_TIME,
        payload: bytes = b"",
    ) -> Envelope:
        self._sequence += 1
        return Envelope(bucket, level, kind, address, channel, self._sequence, now, watermark, False, payload)


def empty(schema: pa.Schema) -> pa.Table:
    """A block of changes without rows, with the visible columns of `schema`."""
    return schema.append(pa.field(WEIGHT, pa.int64())).empty_table()


def _no_blocks(identifier: str) -> pa.Buffer:
    raise LookupError(f"level 0 keeps no state, but block {identifier} was asked for")
