"""Count what operators and clocks of a task did, under the names of `observability.metrics.catalogue`."""

from __future__ import annotations

import math
from collections.abc import Iterable

import pyarrow as pa
import pyarrow.compute as pc

from operators.kernel import WEIGHT, Step
from operators.state.operator_state import State
from operators.time import END_OF_TIME, MIN_TIME
from service.plan.program import Operator, Source
from service.runtime.task_metrics import Figures
from service.runtime.watermarks import Clocks, channel_place


def count_changes(figures: Figures, metric: str, changes: pa.Table, **labels: str) -> None:
    """Count the rows that are added and those that are taken back, by their weights."""
    if not changes.num_rows:
        return
    net = pc.sum(changes[WEIGHT]).as_py()
    gross = pc.sum(pc.abs(changes[WEIGHT])).as_py()
    figures.count(metric, (gross + net) // 2, **labels, kind="insert")
    figures.count(metric, (gross - net) // 2, **labels, kind="retract")


def count_step(figures: Figures, operator: Operator, step: Step) -> None:
    """Count what an operator did in a batch."""
    name = operator.name
    count_changes(figures, "changes_total", step.changes, operator=name)
    figures.count("late_records_total", step.late_count, operator=name)
    figures.count("dropped_retractions_total", step.unmatched_retractions, operator=name)
    figures.count("dead_records_total", sum(t.num_rows for t in step.dead.values()), operator=name)


def measure_state(figures: Figures, operator: Operator, state: State) -> None:
    """The rows and bytes that an operator keeps in this bucket."""
    for trace in state.table_sizes().values():
        figures.level("state_rows", trace.rows, operator=operator.name)
        figures.level("state_bytes", trace.bytes, operator=operator.name)


def measure_time(figures: Figures, operator: Operator, watermark: int) -> None:
    """The watermark (milliseconds) of an operator that is not idle."""
    if watermark > MIN_TIME:
        figures.low("watermark_timestamp_seconds", _seconds(watermark), operator=operator.name)


def measure_partitions(figures: Figures, clocks: Clocks, sources: Iterable[Source]) -> None:
    """The watermark of each Kafka partition of `sources`, and whether it is idle."""
    for source in sources:
        clock = clocks.sources[source.id]
        for name, channel in clock.channels.items():
            topic, partition = channel_place(name)
            place = {"source": source.table.name, "topic": topic, "partition": partition}
            idle = math.inf if clock.ended else float(clock.is_idle(channel, clocks.running))
            figures.low("partition_idle", idle, **place)
            watermark = END_OF_TIME if clock.ended else channel.watermark
            if watermark > MIN_TIME:
                figures.low("partition_watermark_timestamp_seconds", _seconds(watermark), **place)


def _seconds(watermark: int) -> float:
    return math.inf if watermark >= END_OF_TIME else watermark / 1000
