"""A service without Spark and Kafka, for the page: it plays batches, errors and samples to the observer as a real one
does, at a time of its own."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from service.observability.health import Health
from service.observability.http_server import Answers
from service.observability.metrics import Metrics
from service.observability.metrics.series import announce
from service.observability.observer import Observer
from service.observability.page.answers import answers
from service.observability.page.recorder import Recorder
from service.observability.page.settings_shown import secrets_of
from service.observability.progress import Progress, Read
from service.observability.redaction import Redaction
from service.plan.explain import explain
from service.plan.lowering.lower import compile_job
from service.plan.program import Program
from service.runtime.task_metrics import TaskMetrics
from service.settings import load
from service.sql.pipeline import read

NOON = 1_795_000_000.0
"""When every play begins, in seconds since the epoch."""

SPENDING = """
SET 'pipeline.name' = 'spending';
CREATE TABLE orders (order_id BIGINT, user_id STRING, amount DECIMAL(10, 2), ts TIMESTAMP(3), WATERMARK FOR ts AS ts)
  WITH ('connector' = 'kafka', 'topic' = 'orders', 'format' = 'json');
CREATE TABLE users (user_id STRING, city STRING, PRIMARY KEY (user_id) NOT ENFORCED)
  WITH ('connector' = 'kafka', 'topic' = 'users', 'format' = 'debezium-json');
CREATE TABLE cities (city STRING, orders BIGINT, spent DECIMAL(38, 2), PRIMARY KEY (city) NOT ENFORCED)
  WITH ('connector' = 'kafka', 'topic' = 'cities', 'format' = 'changelog-json');
CREATE TABLE minutes (product STRING, start TIMESTAMP(3), orders BIGINT)
  WITH ('connector' = 'kafka', 'topic' = 'minutes', 'format' = 'json');
EXECUTE STATEMENT SET BEGIN
INSERT INTO cities SELECT u.city, COUNT(*), SUM(o.amount)
  FROM orders AS o JOIN users AS u ON o.user_id = u.user_id GROUP BY u.city;
INSERT INTO minutes SELECT user_id, window_start, COUNT(*)
  FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE)) GROUP BY user_id, window_start, window_end;
END;
"""

COUNTS = """
SET 'pipeline.name' = 'counts';
CREATE TABLE clicks (who STRING) WITH ('connector' = 'kafka', 'topic' = 'clicks', 'format' = 'json');
CREATE TABLE totals (who STRING, n BIGINT, PRIMARY KEY (who) NOT ENFORCED)
  WITH ('connector' = 'upsert-kafka', 'topic' = 'totals', 'key.format' = 'json', 'value.format' = 'json');
INSERT INTO totals SELECT who, COUNT(*) FROM clicks GROUP BY who;
"""

PHASES = {"addBatch": 0.78, "walCommit": 0.06, "commitOffsets": 0.05, "queryPlanning": 0.04, "latestOffset": 0.03}
"""Shares of a batch; what is left is in none of them."""

TASKS = {"decode": 0.5, "operators": 0.9, "ingest_operators": 0.1, "encode": 0.1, "write": 0.2}
"""Seconds of tasks for each second of a batch."""


class Stage:
    """A service whose clock stands still but for `play` and `pass_time`."""

    def __init__(self, *pipelines: str, environment: Mapping[str, str] | None = None) -> None:
        self.now = NOON
        self.settings = load(dict(environment or {}))
        jobs = [job for text in pipelines for job in read(text).jobs]
        self.programs = [compile_job(job) for job in jobs]
        metrics = Metrics(lambda: self.now)
        health = Health(600, clock=lambda: self.now)
        self.observer = Observer(health, metrics, "trouble", io.StringIO(), Recorder(lambda: self.now))
        plans = [explain(job) for job in jobs]
        redaction = Redaction(secrets_of(self.settings, self.programs))
        self.answers: Answers = answers(
            self.observer.recorder, metrics, health, self.settings, self.programs, plans, redaction
        )
        self._batch = 0
        self._read: dict[tuple[str, int], int] = {}

    def announce(self) -> None:
        """The service is about to start its jobs."""
        for program in self.programs:
            announce(
                self.observer.metrics, program, dead_letter_topic=self.settings.topics.dead_letter, trigger=0, tick=1
            )
        self.observer.starting([program.name for program in self.programs])

    def start(self) -> None:
        """Start every job."""
        self.announce()
        for program in self.programs:
            self.observer.started(program.name)

    def pass_time(self, seconds: float) -> None:
        """Let time go by."""
        self.now += seconds

    def play(
        self,
        job: str,
        rows: Mapping[str, Sequence[int]],
        *,
        seconds: float = 1.0,
        unread: Mapping[str, Sequence[int]] | None = None,
        state: Mapping[str, int] | None = None,
        phases: Mapping[str, float] | None = None,
        tasks: Mapping[str, float] | None = None,
        watermarks: Mapping[str, Sequence[float | None]] | None = None,
        counts: Mapping[str, float] | None = None,
        samples: Sequence[Mapping[str, Any]] = (),
    ) -> None:
        """One batch. `rows` and `unread` are by table, one number a partition; `unread` is what the batch leaves.
        `watermarks` are by table in seconds behind now, a value a partition."""
        program = self.program(job)
        self.now += seconds
        self._batch += 1
        figures = TaskMetrics()
        reads: list[Read] = []
        for table in {source.table.name: source.table for source in program.sources}.values():
            here = rows.get(table.name, ())
            left = (unread or {}).get(table.name, [0] * len(here))
            figures.count("input_records_total", sum(here), source=table.name, topic=table.connector.topics[0])
            for number, (count, behind) in enumerate(zip(here, left, strict=True)):
                first = self._read.get((table.name, number), 0)
                self._read[table.name, number] = last = first + count
                reads.append(Read(table.name, table.connector.topics[0], number, first, last, last + behind))
            for number, lag in enumerate((watermarks or {}).get(table.name, ())):
                place = {"source": table.name, "topic": table.connector.topics[0], "partition": number}
                figures.low("partition_idle", 0, **place)
                if lag is not None:
                    figures.low("partition_watermark_timestamp_seconds", self.now - lag, **place)
        for operator, kept in (state or {}).items():
            figures.level("state_rows", kept, operator=operator)
            figures.level("state_bytes", kept * 90, operator=operator)
            if watermarks:
                figures.low("watermark_timestamp_seconds", self.now - 12, operator=operator)
        for output in program.outputs:
            for topic in output.table.connector.topics:
                figures.count("output_records_total", 7, sink=output.table.name, topic=topic)
            figures.count("output_changes_total", 5, sink=output.table.name, kind="insert")
            figures.count("output_changes_total", 0 if output.append else 2, sink=output.table.name, kind="retract")
        for phase, share in (tasks or TASKS).items():
            figures.count("task_seconds_total", share * seconds, phase=phase)
        figures.counts.update(counts or {})
        report = {"batch": self._batch, "metrics": asdict(figures), "lines": [], "samples": list(samples)}
        self.observer.counted(job, json.loads(json.dumps(report)))
        self.observer.batch(
            job,
            Progress(
                batch=self._batch,
                ended=self.now,
                seconds=seconds,
                rows=tuple(sum(rows.get(source.table.name, ())) for source in program.sources),
                phases={phase: share * seconds for phase, share in (phases or PHASES).items()},
                state_commit=0.05 * seconds,
                reads=tuple(reads),
            ),
        )

    def program(self, job: str) -> Program:
        """The program of a job."""
        return next(program for program in self.programs if program.name == job)

    def json(self) -> Any:
        """What /status.json answers."""
        return json.loads(self.answers["/status.json"]().body)

    def html(self) -> str:
        """What / answers."""
        return self.answers["/"]().body.decode()
