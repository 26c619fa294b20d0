"""The end of a batch, on the driver: its tasks have committed what they write, and tell what they did.

Spark calls this once a batch, and notes the batch as done when it comes back. So the state that the batch leaves behind
is noted here: before Spark's own note, and after all tasks are done.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path
from traceback import print_exc
from typing import Any

from pyspark.sql import DataFrame

from service.checkpoint.batch_log import COMMITS
from service.checkpoint.batch_plan import BatchPlan
from service.checkpoint.version import ShardState, Version, VersionSettled
from service.plan.program import starts_told
from service.runtime.task_metrics import TaskMetrics
from service.spark.query.attempts import forget_attempts
from service.spark.query.job_spec import JobSpec
from service.spark.query.payload_files import PayloadFiles
from service.spark.query.task_batch import NOW, PLAN
from service.spark.query.task_output import TaskReport


class BatchEnd:
    """Called by Spark, in a thread of its own. `hear` is told what each batch was; `failure` is what the last failed
    of, of which Spark keeps the text alone."""

    def __init__(self, spec: JobSpec, hear: Callable[[Mapping[str, Any]], None]) -> None:
        self.failure: Exception | None = None
        self._spec = spec
        self._hear = hear
        self._files = spec.state.open()
        self._plan_before: BatchPlan | None = None

    def __call__(self, reports: DataFrame, batch: int) -> None:
        """Run the tasks of a batch, and note it."""
        try:
            self._end(reports, batch)
        except Exception as error:
            self.failure = error
            raise

    def _end(self, reports: DataFrame, batch: int) -> None:
        plan = self._plan(batch)
        context = reports.sparkSession.sparkContext
        context.setLocalProperty(NOW, str(plan.times["batchTimestampMs"]))
        context.setLocalProperty(PLAN, b64encode(plan.to_bytes()).decode())
        told = [TaskReport.from_row(row.report) for row in reports.collect()]
        levels = self._spec.program.levels
        if levels:
            states = (ShardState.from_json(payload) for report in told for payload in report.state)
            version = Version.of(states, levels, self._spec.layout.shards)
            self._refuse_if_done(batch)
            version.write(self._files, batch)
        if self._spec.one_host:
            PayloadFiles(Path(self._spec.scratch) / self._spec.run, batch).remove()
            forget_attempts(self._spec, batch)
        self._tell(batch, told)

    def _refuse_if_done(self, batch: int) -> None:
        """Raise VersionSettled where Spark has noted the batch as done: this driver was paused, another has done the
        batch, and its version counts. In a folder the lock sees to it."""
        if not self._spec.state.is_folder and self._files.get(f"{COMMITS}/{batch}") is not None:
            raise VersionSettled(
                f"another driver works on the checkpoint {self._spec.state.url}: it has done batch {batch} already"
            )

    def _plan(self, batch: int) -> BatchPlan:
        """How the batch was cut."""
        spec = self._spec
        self._plan_before = BatchPlan.planned(
            self._files,
            batch,
            shards=spec.layout.shards,
            readers=spec.readers,
            plan=spec.writers[0].plan if spec.writers else 0,
            starts_of=starts_told(spec.program),
            before=self._plan_before,
        )
        return self._plan_before

    def _tell(self, batch: int, reports: list[TaskReport]) -> None:
        """Whatever fails in `hear` costs what it was told, not the batch."""
        total = TaskMetrics()
        for each in reports:
            total.absorb(each.metrics)
        try:
            self._hear(
                {
                    "batch": batch,
                    "metrics": asdict(total),
                    "lines": [line for each in reports for line in each.lines],
                    "samples": [sample for each in reports for sample in each.samples],
                }
            )
        except Exception:
            print_exc()
