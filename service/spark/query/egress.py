"""From the envelopes that leave a program to records for Kafka: output changes, dead letters, late rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

import pyarrow as pa

from operators.sql import Sql
from service.formats.contract import OUT
from service.formats.rejected import NOT_COMPUTED, fitted, rejected_records, row_records
from service.formats.samples import Sample, samples
from service.kafka.writer.records import RECORDS
from service.plan.program import Output
from service.runtime.counting import count_changes
from service.runtime.envelope import Envelope, Kind, table_of
from service.runtime.net import dead_rows, without_culprits
from service.runtime.task_metrics import TaskMetrics
from service.spark.query.job_spec import WorkerJob


class Egress:
    """Encodes one task's share of a batch."""

    def __init__(self, job: WorkerJob, sql: Sql, metrics: TaskMetrics) -> None:
        self._job = job
        self._sql = sql
        self._metrics = metrics
        self._outputs = {o.id: o for o in job.spec.program.outputs}
        self._unwritten: list[tuple[Output, pa.Table]] = []

    def records(self, envelopes: Sequence[Envelope]) -> tuple[dict[int, list[pa.RecordBatch]], list[str]]:
        """Return records by writer, in order, and the lines of 'print' tables. A writer that takes part in the job is
        named even without records: its marker must say that the batch is done."""
        by_writer: dict[int, list[pa.RecordBatch]] = {number: [] for number in range(len(self._job.spec.writers))}
        lines: list[str] = []
        for identifier, tables in self._gathered(envelopes, Kind.OUTPUT).items():
            output = self._outputs[identifier]
            table = pa.concat_tables(tables)
            count_changes(self._metrics, "output_changes_total", table, sink=output.table.name)
            encoded = self._encoded(output, table)
            if output.table.connector.kind == "print":
                lines.extend(v.decode() for v in encoded["value"].to_pylist() if v is not None)
                continue
            topic = output.table.connector.topics[0]
            self._metrics.count("output_records_total", encoded.num_rows, sink=output.table.name, topic=topic)
            by_writer[self._job.spec.writer_of[identifier]].extend(_addressed(encoded, topic))
        self._count_dead(envelopes)
        side = self._job.spec.side_writer
        if side is not None:
            by_writer[side].extend(self._side_records(envelopes))
        return by_writer, lines

    def _encoded(self, output: Output, changes: pa.Table) -> pa.Table:
        """The records of net changes; a row that cannot be written is a dead letter, and the others are."""
        encoder = self._job.spec.encoders[output.id]
        found, culprits = without_culprits(changes, lambda rows: encoder.encode(rows, self._sql))
        if culprits:
            self._metrics.count("dead_records_total", len(culprits), operator=f"sink {output.table.name}")
            self._unwritten.append((output, dead_rows(culprits)))
        return pa.concat_tables([OUT.empty_table(), *found])

    def samples(self, envelopes: Sequence[Envelope]) -> list[Sample]:
        """Return the first few dead letters and late rows, whether or not there is a topic for them."""
        most = self._job.spec.samples
        dead: list[Sample] = []
        late: list[Sample] = []
        for envelope in envelopes:
            match envelope.kind:
                case Kind.REJECTED if len(dead) < most:
                    dead += samples(rejected_records(table_of(envelope).slice(0, most)), late=False)
                case Kind.DEAD if len(dead) < most:
                    dead += samples(self._refused(envelope, NOT_COMPUTED, most), late=False)
                case Kind.LATE if len(late) < most:
                    late += samples(self._refused(envelope, "late", most), late=True)
        return dead[:most] + late[:most]

    def _side_records(self, envelopes: Sequence[Envelope]) -> Iterable[pa.RecordBatch]:
        spec = self._job.spec
        if spec.dead_letter_topic:
            for tables in self._gathered(envelopes, Kind.REJECTED).values():
                records = fitted(rejected_records(pa.concat_tables(tables)), spec.side_bytes)
                yield from _addressed(records, spec.dead_letter_topic)
            yield from self._rows(envelopes, Kind.DEAD, NOT_COMPUTED, spec.dead_letter_topic)
            for output, rows in self._unwritten:
                names = [output.table.columns[i].name for i in output.columns]
                records = row_records(rows, names, f"sink {output.table.name}", NOT_COMPUTED, self._sql)
                yield from _addressed(fitted(records, spec.side_bytes), spec.dead_letter_topic)
        if spec.late_topic:
            yield from self._rows(envelopes, Kind.LATE, "late", spec.late_topic)

    def _count_dead(self, envelopes: Sequence[Envelope]) -> None:
        """Count dead letters by reason, one of `rejected.REASONS`; what operators say in their words is no label."""
        reasons: Counter[str] = Counter()
        for envelope in envelopes:
            if envelope.kind == Kind.REJECTED:
                reasons.update(table_of(envelope)["reason"].to_pylist())
            elif envelope.kind == Kind.DEAD:
                reasons[NOT_COMPUTED] += table_of(envelope).num_rows
        reasons[NOT_COMPUTED] += sum(rows.num_rows for _, rows in self._unwritten)
        topic = self._job.spec.dead_letter_topic
        for reason, records in sorted(reasons.items()):
            self._metrics.count("dead_letter_records_total", records, topic=topic, reason=reason)

    def _rows(self, envelopes: Sequence[Envelope], kind: Kind, why: str, topic: str) -> Iterable[pa.RecordBatch]:
        """Rows that an operator refused, under the names that its input has in the query."""
        for envelope in envelopes:
            if envelope.kind == kind:
                yield from _addressed(fitted(self._refused(envelope, why), self._job.spec.side_bytes), topic)

    def _refused(self, envelope: Envelope, why: str, most: int | None = None) -> pa.Table:
        operator = self._job.topology.operators[envelope.address]
        names = operator.ports[envelope.port] if operator.ports else ()
        return row_records(table_of(envelope).slice(0, most), names, operator.name, why, self._sql)

    def _gathered(self, envelopes: Sequence[Envelope], kind: Kind) -> dict[int, list[pa.Table]]:
        found: dict[int, list[pa.Table]] = {}
        for envelope in envelopes:
            if envelope.kind == kind:
                found.setdefault(envelope.address, []).append(table_of(envelope))
        return found


def _addressed(records: pa.Table, topic: str) -> Iterable[pa.RecordBatch]:
    """Records (formats.contract.OUT) with their topic, as the writer takes them."""
    columns = {name: records[name] for name in records.schema.names}
    columns["topic"] = pa.repeat(pa.scalar(topic, pa.string()), records.num_rows)
    schema = pa.schema([RECORDS.field(n) for n in RECORDS.names if n in columns])
    table = pa.table([columns[n] for n in schema.names], schema=schema)
    yield from table.combine_chunks().to_batches()
