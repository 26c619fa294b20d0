"""Conversion of a program's output envelopes to Kafka records: output changes, dead letters, late rows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import pyarrow as pa

from operators.names import WEIGHT
from operators.sql import Sql
from service.formats.dead_letters import NOT_COMPUTED, NOT_ENCODABLE, dead_records, fitted, row_records
from service.formats.samples import Sample, samples
from service.kafka.writer.records import RECORDS
from service.plan.program import Output
from service.runtime.counting import count_changes
from service.runtime.encoding import encode_changes
from service.runtime.envelope import Envelope, Kind, table_of
from service.runtime.task_metrics import TaskMetrics
from service.spark.query.job_spec import WorkerJob

TOGETHER = 8 << 20
"""The bytes of an output's changes that are encoded at a time: enough to make the statement's cost per row small, and
little beside the other memory of a task. Records of narrow rows take three times as much, and the text twice that."""


class WriterRecords(NamedTuple):
    """Records (`writer.records.RECORDS`) and the number of the writer that they are for."""

    writer: int
    records: pa.RecordBatch


class Egress:
    """Encodes one task's share of a batch, piece by piece."""

    def __init__(self, job: WorkerJob, sql: Sql, metrics: TaskMetrics) -> None:
        self.lines: list[str] = []
        """Those of 'print' tables."""
        self._job = job
        self._sql = sql
        self._metrics = metrics
        self._outputs = {o.id: o for o in job.spec.program.outputs}
        self._gathered: dict[int, list[pa.Table]] = {}
        self._size: dict[int, int] = {}
        self._samples: dict[bool, list[Sample]] = {False: [], True: []}

    def take(self, envelope: Envelope) -> Iterator[WriterRecords]:
        """Yield the records that can be written by now. The envelopes of one channel come in their order."""
        match envelope.kind:
            case Kind.OUTPUT:
                changes = table_of(envelope)
                self._gathered.setdefault(envelope.address, []).append(changes)
                self._size[envelope.address] = self._size.get(envelope.address, 0) + changes.nbytes
                if self._size[envelope.address] >= TOGETHER:
                    yield from self._encoded(self._outputs[envelope.address], last=False)
            case Kind.DEAD_RECORDS:
                yield from self._dead_records(table_of(envelope))
            case Kind.DEAD_ROWS:
                yield from self._dead_rows(*self._origin(envelope), table_of(envelope), NOT_COMPUTED)
            case Kind.LATE:
                yield from self._late(*self._origin(envelope), table_of(envelope))

    def finish(self) -> Iterator[WriterRecords]:
        """Yield the remaining records."""
        for output in list(self._gathered):
            yield from self._encoded(self._outputs[output], last=True)

    @property
    def samples(self) -> list[Sample]:
        """The first few dead letters and late rows, whether or not there is a topic for them."""
        return self._samples[False] + self._samples[True]

    def _encoded(self, output: Output, *, last: bool) -> Iterator[WriterRecords]:
        """The records of the net changes so far; a row that cannot be encoded is a dead letter."""
        changes = pa.concat_tables(self._gathered.pop(output.id))
        self._size[output.id] = 0
        if not last and output.key is not None:
            changes = self._without_open_end(output, changes)
        count_changes(self._metrics, "output_changes_total", changes, sink=output.table.name)
        encoder = self._job.spec.encoders[output.id]
        with self._metrics.timed("encode"):
            encoded, dead = encode_changes(changes, encoder, self._sql)
        if dead is not None:
            sink = f"sink {output.table.name}"
            self._metrics.count("dead_records_total", dead.num_rows, operator=sink)
            yield from self._dead_rows(
                sink, [output.table.columns[i].name for i in output.columns], dead, NOT_ENCODABLE
            )
        if output.table.connector.kind == "print":
            self.lines.extend(v.decode() for v in encoded["value"].to_pylist() if v is not None)
            return
        topic = output.table.connector.topics[0]
        self._metrics.count("output_records_total", encoded.num_rows, sink=output.table.name, topic=topic)
        yield from _addressed(encoded, topic, self._job.spec.writer_of[output.id])

    def _without_open_end(self, output: Output, changes: pa.Table) -> pa.Table:
        """The changes without a retraction at their end: the row that replaces it may come next, and then the two are
        one update."""
        if changes[WEIGHT][-1].as_py() >= 0:
            return changes
        self._gathered[output.id] = [changes.slice(changes.num_rows - 1)]
        return changes.slice(0, changes.num_rows - 1)

    def _dead_records(self, dead: pa.Table) -> Iterator[WriterRecords]:
        for reason in dead["reason"].to_pylist():
            self._count_dead(reason, 1)
        self._show(dead_records(dead.slice(0, self._job.spec.samples)), late=False)
        if self._job.spec.dead_letter_topic:
            yield from self._side(dead_records(dead), self._job.spec.dead_letter_topic)

    def _dead_rows(self, operator: str, names: Iterable[str], rows: pa.Table, why: str) -> Iterator[WriterRecords]:
        self._show(self._row_records(operator, names, rows.slice(0, self._job.spec.samples), why), late=False)
        self._count_dead(why, rows.num_rows)
        if self._job.spec.dead_letter_topic:
            yield from self._side(self._row_records(operator, names, rows, why), self._job.spec.dead_letter_topic)

    def _late(self, operator: str, names: Iterable[str], rows: pa.Table) -> Iterator[WriterRecords]:
        self._show(self._row_records(operator, names, rows.slice(0, self._job.spec.samples), "late"), late=True)
        if self._job.spec.late_topic:
            yield from self._side(self._row_records(operator, names, rows, "late"), self._job.spec.late_topic)

    def _side(self, records: pa.Table, topic: str) -> Iterator[WriterRecords]:
        side = self._job.spec.side_writer
        assert side is not None
        yield from _addressed(fitted(records, self._job.spec.side_bytes), topic, side)

    def _show(self, records: pa.Table, *, late: bool) -> None:
        left = self._job.spec.samples - len(self._samples[late])
        if left > 0:
            self._samples[late] += samples(records.slice(0, left), late=late)

    def _count_dead(self, reason: str, records: int) -> None:
        """Count dead letters by reason, one of `dead_letters.REASONS`; the text of an operator's error is no label."""
        topic = self._job.spec.dead_letter_topic
        self._metrics.count("dead_letter_records_total", records, topic=topic, reason=reason)

    def _origin(self, envelope: Envelope) -> tuple[str, tuple[str, ...]]:
        """The operator at which rows are late or dead, and the names of its input columns in the query."""
        operator = self._job.topology.operators[envelope.address]
        return operator.name, operator.ports[envelope.port] if operator.ports else ()

    def _row_records(self, operator: str, names: Iterable[str], rows: pa.Table, why: str) -> pa.Table:
        return row_records(rows, tuple(names), operator, why, self._sql)


def _addressed(records: pa.Table, topic: str, writer: int) -> Iterator[WriterRecords]:
    """Records (formats.contract.OUT) with their topic, in the form that the writer takes."""
    columns = {name: records[name] for name in records.schema.names}
    columns["topic"] = pa.repeat(pa.scalar(topic, pa.string()), records.num_rows)
    schema = pa.schema([RECORDS.field(n) for n in RECORDS.names if n in columns])
    table = pa.table([columns[n] for n in schema.names], schema=schema)
    for block in table.combine_chunks().to_batches():
        yield WriterRecords(writer, block)
