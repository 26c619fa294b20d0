"""Counters of the operators and clocks of a task, under the names of `observability.metrics.catalogue`."""

from __future__ import annotations

import math
from collections.abc import Iterable

import pyarrow as pa
import pyarrow.compute as pc

from operators.kernel import Step
from operators.names import WEIGHT
from operators.state.operator_state import State
from operators.time import END_OF_TIME, MIN_TIME
from service.plan.program import Operator, Source
from service.runtime.task_metrics import TaskMetrics
from service.runtime.watermarks import SourceChannel, WatermarkTracker


def count_changes(metrics: TaskMetrics, metric: str, changes: pa.Table, **labels: str) -> None:
    """Count the inserted and the retracted rows, by their weights."""
    if not changes.num_rows:
        return
    net = pc.sum(changes[WEIGHT]).as_py()
    gross = pc.sum(pc.abs(changes[WEIGHT])).as_py()
    metrics.count(metric, (gross + net) // 2, **labels, kind="insert")
    metrics.count(metric, (gross - net) // 2, **labels, kind="retract")


def count_step(metrics: TaskMetrics, operator: Operator, step: Step) -> None:
    """Count what an operator did in a batch."""
    name = operator.name
    count_changes(metrics, "changes_total", step.changes, operator=name)
    metrics.count("late_records_total", step.late_count, operator=name)
    metrics.count("dropped_retractions_total", step.unmatched_retractions, operator=name)
    metrics.count("dead_records_total", sum(t.num_rows for t in step.dead.values()), operator=name)


def measure_state(metrics: TaskMetrics, operator: Operator, state: State) -> None:
    """Measure the rows and bytes that an operator keeps in this shard."""
    for trace in state.table_sizes().values():
        metrics.level("state_rows", trace.rows, operator=operator.name)
        metrics.level("state_bytes", trace.bytes, operator=operator.name)


def measure_time(metrics: TaskMetrics, operator: Operator, watermark: int) -> None:
    """Measure the watermark (milliseconds) of an operator that is not idle."""
    if watermark > MIN_TIME:
        metrics.low("watermark_timestamp_seconds", _seconds(watermark), operator=operator.name)


def measure_partitions(metrics: TaskMetrics, tracker: WatermarkTracker, sources: Iterable[Source]) -> None:
    """Measure the watermark of each Kafka partition of `sources`, and whether it is idle."""
    for source in sources:
        clock = tracker.sources[source.id]
        for name, channel in clock.channels.items():
            of = SourceChannel.of(name)
            place = {"source": source.table.name, "topic": of.topic, "partition": of.partition}
            idle = math.inf if clock.ended else float(clock.is_idle(channel, tracker.running))
            metrics.low("partition_idle", idle, **place)
            watermark = END_OF_TIME if clock.ended else channel.watermark
            if watermark > MIN_TIME:
                metrics.low("partition_watermark_timestamp_seconds", _seconds(watermark), **place)


def _seconds(watermark: int) -> float:
    return math.inf if watermark >= END_OF_TIME else watermark / 1000
