"""The end of a batch, on the driver: its tasks have committed their output, and report to the driver.

Spark calls this once a batch, and marks the batch as done when it returns. So the state after the batch is stored here:
before Spark's own mark, and after all tasks are done.
"""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from traceback import print_exc
from typing import Any

from pyspark.sql import DataFrame

from service.checkpoint.batch_log import COMMITS
from service.checkpoint.batch_plan import BatchPlan
from service.checkpoint.small_files import PLAN_NUMBER, SmallFiles
from service.checkpoint.version import BatchAlreadyDone, BatchTakenOver, ShardState, Version
from service.plan.program import starts_in_plan
from service.runtime.task_metrics import TaskMetrics
from service.spark.internals.jvm import collected
from service.spark.query.attempts import forget_attempts
from service.spark.query.job_spec import JobSpec
from service.spark.query.payload_files import PayloadFiles
from service.spark.query.store_metrics import count_traffic
from service.spark.query.task_batch import NOW, PLAN
from service.spark.query.task_output import TaskReport

PROJECTIONS = "spark.sql.codegen.factoryMode"
"""Spark's setting that says whether tasks compile their projections. It is sent with the tasks of a batch."""

FEW = 20_000
"""The most records of a batch whose projections are interpreted. To use a compiled projection, a task generates the
text of a Java class just to find it in the cache: 3 to 6 ms of a core for Kafka's records, against 0.2 for an
interpreted one. Interpreting costs 0.1 to 0.3 microseconds a record."""


class BatchEnd:
    """Ends a batch: Spark calls it in a thread of its own. `run` runs the tasks and returns their reports, `receive` is
    called with the report of the batch; `failure` is the error of the last batch: Spark keeps only its text."""

    def __init__(
        self,
        spec: JobSpec,
        receive: Callable[[Mapping[str, Any]], None],
        run: Callable[[DataFrame, str], list[bytes]] = collected,
    ) -> None:
        self.failure: Exception | None = None
        self._spec = spec
        self._receive = receive
        self._run = run
        self._files = spec.state.open()
        self._plan_before: BatchPlan | None = None

    def __call__(self, reports: DataFrame, batch: int) -> None:
        """Run the tasks of a batch, and store its state."""
        try:
            self._end(reports, batch)
        except Exception as error:
            self.failure = error
            raise

    def _end(self, reports: DataFrame, batch: int) -> None:
        before = () if self._plan_before is None else self._plan_before.ends
        plan = self._plan(batch)
        context = reports.sparkSession.sparkContext
        context.setLocalProperty(NOW, str(plan.time))
        context.setLocalProperty(PLAN, b64encode(plan.to_bytes()).decode())
        records = records_between(before, plan.ends[: len(self._spec.program.sources)])
        context.setLocalProperty(PROJECTIONS, "NO_CODEGEN" if records is not None and records <= FEW else "FALLBACK")
        task_reports = [TaskReport.from_row(report) for report in self._run(reports, self._spec.program.name)]
        levels = self._spec.program.levels
        if levels:
            states = (ShardState.from_json(payload) for report in task_reports for payload in report.state)
            version = Version.of(states, levels, self._spec.layout.shards)
            self._refuse_if_done(batch)
            self._store(version, batch)
        if self._spec.one_host:
            PayloadFiles(Path(self._spec.scratch) / self._spec.run, batch).remove()
            forget_attempts(self._spec, batch)
        self._report(batch, task_reports)

    def _refuse_if_done(self, batch: int) -> None:
        """Raise BatchAlreadyDone if Spark has marked the batch as done: this driver was paused, another one has done
        the batch, and its version is valid. In a folder the lock prevents that."""
        if not self._spec.state.is_folder and self._files.get(f"{COMMITS}/{batch}") is not None:
            raise BatchAlreadyDone(
                f"another driver works on the checkpoint {self._spec.state.url}: it has completed batch {batch} already"
            )

    def _store(self, version: Version, batch: int) -> None:
        """Store the state after the batch. Raises BatchTakenOver if the batch is repeated here, and another driver has
        taken it over since, which may remove the files that the version names.

        That driver takes a plan number before it looks for a version; here the version is stored before the last look
        at the plan number. So either it finds the version, and keeps its files, or the number is seen here.
        """
        repeats = batch == self._spec.replayed
        if repeats:  # a version that was stored in vain may replace the valid one
            self._refuse_if_taken_over(batch)
        version.write(self._files, batch)
        if repeats:
            self._refuse_if_taken_over(batch)

    def _refuse_if_taken_over(self, batch: int) -> None:
        if (SmallFiles(self._files).read(PLAN_NUMBER) or 0) > self._spec.plan:
            raise BatchTakenOver(
                f"another driver works on the checkpoint {self._spec.state.url}: it repeats batch {batch}, too"
            )

    def _plan(self, batch: int) -> BatchPlan:
        """The plan of the batch: its offsets, its time and its tasks."""
        spec = self._spec
        self._plan_before = BatchPlan.planned(
            self._files,
            batch,
            shards=spec.layout.shards,
            readers=spec.readers,
            plan=spec.plan,
            starts_of=starts_in_plan(spec.program),
            before=self._plan_before,
            sources=(source.id for source in spec.program.sources),
        )
        return self._plan_before

    def _report(self, batch: int, reports: list[TaskReport]) -> None:
        """An error in `receive` loses the report, not the batch."""
        total = TaskMetrics()
        for each in reports:
            total.absorb(each.metrics)
        count_traffic(total, self._files)
        try:
            self._receive(
                {
                    "batch": batch,
                    "metrics": asdict(total),
                    "lines": [line for each in reports for line in each.lines],
                    "samples": [sample for each in reports for sample in each.samples],
                }
            )
        except Exception:
            print_exc()


def records_between(before: Sequence[str], ends: Sequence[str]) -> int | None:
    """Return how many records there are between the offsets of two batches; None where that is not known: at the start,
    for a source that has begun or got a topic or a partition since, and for one that is not Kafka.

    >>> records_between(['{"t":{"0":5,"1":7}}'], ['{"t":{"0":9,"1":8}}'])
    5
    """
    records = 0
    for position, end in enumerate(ends):
        first, last = (_offsets(each) for each in (before[position] if position < len(before) else "null", end))
        if first is None or last is None or first.keys() != last.keys():
            return None
        records += sum(last.values()) - sum(first.values())
    return records


def _offsets(line: str) -> Mapping[tuple[str, str], int] | None:
    """The offsets in a line of the log of a Kafka source, by topic and partition; None for another source."""
    try:
        parsed = json.loads(line)
    except ValueError:  # "-" stands for a source that has not begun
        return None
    if not isinstance(parsed, dict):
        return None
    return {(topic, number): offset for topic, partitions in parsed.items() for number, offset in partitions.items()}
