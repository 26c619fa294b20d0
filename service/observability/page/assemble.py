"""Assembles the document from the recorded events, the metrics, and what is known since the start."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from service import __version__
from service.observability.health import Health
from service.observability.metrics import Metrics
from service.observability.page.averages import batches, pace, partition_rates, table_rates
from service.observability.page.counted import Counted
from service.observability.page.diagnosis import UNKNOWN, verdict
from service.observability.page.document import (
    SCHEMA,
    JobStatus,
    MemoryStatus,
    OperatorStatus,
    Partition,
    SetAside,
    Setting,
    SinkStatus,
    Status,
    TableStatus,
)
from service.observability.page.recorder import Failure, Recorder, Seen, ShownSample
from service.observability.redaction import Redaction
from service.plan.explain import Explained
from service.plan.program import Program
from service.settings import Settings


@dataclass(frozen=True, slots=True)
class Assembler:
    """The sources of the document. `plans` and `programs` are of the same jobs in the same order."""

    recorder: Recorder
    metrics: Metrics
    health: Health
    settings: Settings
    shown: tuple[Setting, ...]
    programs: Sequence[Program]
    plans: Sequence[Explained]
    redaction: Redaction

    def status(self) -> Status:
        """Return the document of this moment."""
        seen = {job.name: job for job in self.recorder.jobs()}
        alive, dead = self.health.live()
        ready, unready = self.health.ready()
        now = self.recorder.clock()
        return Status(
            schema=SCHEMA,
            version=__version__,
            now=now,
            started=self.recorder.began,
            alive=alive,
            ready=ready,
            troubles={name: self.redaction.foreign(why) for name, why in {**unready, **dead}.items()},
            jobs=tuple(
                self._job(program, plan, seen[program.name], now)
                for program, plan in zip(self.programs, self.plans, strict=True)
                if program.name in seen
            ),
            executors=self._gauge("executors"),
            executors_expected=self._gauge("executors_expected"),
            memory=tuple(
                MemoryStatus(labels["executor"], labels["process"], int(octets))
                for labels, octets in self.metrics.samples("memory_bytes")
                if octets
            ),
            settings=self.shown,
        )

    def _gauge(self, name: str) -> int | None:
        return next((int(value) for _, value in self.metrics.samples(name)), None)

    def _job(self, program: Program, plan: Explained, seen: Seen, now: float) -> JobStatus:
        counted = Counted(self.metrics, program.name)
        tables = tuple(_tables(program, counted, seen, now))
        topics = self.settings.topics
        job = JobStatus(
            name=program.name,
            state=seen.state,
            since=seen.since,
            reason=self.redaction.foreign(seen.reason),
            verdict=UNKNOWN,
            pace=pace(seen.batches, sum(table.lag for table in tables), now),
            batches=batches(seen.batches, counted, self.settings.batch, now),
            tables=tables,
            operators=tuple(_operators(program, plan, counted, now)),
            sinks=tuple(_sinks(program, counted)),
            late=self._set_aside("late_records_total", "operator", topics.late, seen.late, counted),
            dead_letters=self._set_aside("dead_letter_records_total", "reason", topics.dead_letter, seen.dead, counted),
            errors=tuple(self._error(each) for each in seen.errors),
            history=seen.series,
            plan=plan,
        )
        return replace(job, verdict=verdict(job, now))

    def _set_aside(
        self, metric: str, label: str, topic: str, samples: Sequence[ShownSample], counted: Counted
    ) -> SetAside:
        counts = counted.counts(metric, label)
        return SetAside(sum(counts.values()), counts, topic, tuple(self._sample(each) for each in samples))

    def _sample(self, sample: ShownSample) -> ShownSample:
        hide = self.redaction.foreign
        return replace(sample, reason=hide(sample.reason), detail=hide(sample.detail), value=hide(sample.value))

    def _error(self, failure: Failure) -> Failure:
        hide = self.redaction.foreign
        return replace(failure, summary=hide(failure.summary), text=hide(failure.text))


def _tables(program: Program, counted: Counted, seen: Seen, now: float) -> Iterator[TableStatus]:
    """The tables that are read; one that is read twice is counted under one name."""
    rates = table_rates(seen.batches, now)
    for name, source in {source.table.name: source for source in program.sources}.items():
        connector = source.table.connector
        partitions = tuple(_partitions(name, counted, seen, now))
        topics = connector.topics or tuple(sorted({partition.topic for partition in partitions}))  # of a pattern
        yield TableStatus(
            table=name,
            connector=connector.kind,
            format=connector.value_format.kind if connector.value_format else "",
            topics=topics,
            has_watermark=source.watermark is not None,
            idle_timeout_seconds=connector.idle_timeout / 1000,
            rows=counted.total("input_records_total", source=name),
            rows_per_second=rates.get(name, 0.0),
            lag=sum(partition.lag for partition in partitions),
            decode_errors=sum(counted.total("decode_errors_total", topic=topic) for topic in topics),
            partitions=partitions,
        )


def _partitions(table: str, counted: Counted, seen: Seen, now: float) -> Iterator[Partition]:
    rates = partition_rates(seen.batches, now)
    ends = counted.partitions("kafka_offset", table, kind="end")
    lags = counted.partitions("kafka_consumer_lag", table)
    watermarks = counted.partitions("partition_watermark_timestamp_seconds", table)
    idle = counted.partitions("partition_idle", table)
    for (topic, number), read in sorted(counted.partitions("kafka_offset", table, kind="read").items()):
        key, place = (topic, number), (table, topic, number)
        yield Partition(
            topic=topic,
            partition=number,
            read=int(read),
            end=int(ends.get(key, read)),
            lag=int(lags.get(key, 0)),
            rows_per_second=rates.get(place, 0.0),
            watermark=watermarks.get(key),
            idle=bool(idle.get(key, 0)),
            moved=seen.moved.get(place),
        )


def _operators(program: Program, plan: Explained, counted: Counted, now: float) -> list[OperatorStatus]:
    step = {name: each.id for each in plan.steps for name in each.operators}
    watermarks = counted.by("watermark_timestamp_seconds", "operator")
    rows, octets = counted.by("state_rows", "operator"), counted.by("state_bytes", "operator")
    late, dead, dropped = (
        counted.counts(metric, "operator")
        for metric in ("late_records_total", "dead_records_total", "dropped_retractions_total")
    )

    def whole(levels: Mapping[str, float], name: str) -> int | None:
        return round(levels[name]) if name in levels else None

    return [
        OperatorStatus(
            operator=operator.name,
            step=step.get(operator.name),
            level=operator.level,
            watermark=watermarks.get(operator.name),
            watermark_lag_seconds=now - watermarks[operator.name] if operator.name in watermarks else None,
            state_rows=whole(rows, operator.name),
            state_bytes=whole(octets, operator.name),
            late=late.get(operator.name, 0),
            uncomputed=dead.get(operator.name, 0),
            dropped_retractions=dropped.get(operator.name, 0),
        )
        for operator in program.operators
    ]


def _sinks(program: Program, counted: Counted) -> list[SinkStatus]:
    tables = {output.table.name: output.table for output in program.outputs}
    return [
        SinkStatus(
            table=name,
            connector=table.connector.kind,
            format=table.connector.value_format.kind if table.connector.value_format else "",
            topics=table.connector.topics,
            inserts=counted.total("output_changes_total", sink=name, kind="insert"),
            retractions=counted.total("output_changes_total", sink=name, kind="retract"),
            records=counted.total("output_records_total", sink=name),
        )
        for name, table in tables.items()
    ]
