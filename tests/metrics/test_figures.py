"""What tasks count travels as samples by name, and is put together over tasks."""

from __future__ import annotations

import math

import pytest

from service.observability.metrics import Metrics
from service.observability.metrics.series import absorb
from service.runtime.task_metrics import TaskMetrics, parsed, sample


@pytest.mark.parametrize("value", ["agg", 'a "quoted" name', "back\\slash", "two\nlines", "a{b},c=d", "\\n", ""])
def test_a_sample_is_read_as_it_was_written(value: str):
    assert parsed(sample("late_records_total", operator=value, kind="x")) == (
        "late_records_total",
        {"operator": value, "kind": "x"},
    )


def test_a_sample_without_labels_is_its_name():
    assert parsed(sample("up")) == ("up", {})


def test_counts_and_levels_add_up_over_tasks_lows_and_highs_take_the_extreme():
    together = TaskMetrics()
    for low, high in ((3, 5), (2, 9), (4, 7)):
        task = TaskMetrics()
        task.count("batches_total", 1)
        task.level("state_rows", 10, operator="agg")
        task.low("watermark_timestamp_seconds", low, operator="agg")
        task.high("memory_bytes", high, executor="1", process="jvm")
        together.absorb(task.to_json())
    assert together == TaskMetrics(
        counts={"batches_total": 3},
        levels={'state_rows{operator="agg"}': 30},
        lows={'watermark_timestamp_seconds{operator="agg"}': 2},
        highs={'memory_bytes{executor="1",process="jvm"}': 9},
    )


def test_a_counter_grows_over_batches_and_a_gauge_follows_the_last():
    metrics = Metrics()
    for rows, late in ((7, 2), (4, 1)):
        figures = TaskMetrics()
        figures.count("late_records_total", late, operator="agg")
        figures.level("state_rows", rows, operator="agg")
        figures.high("memory_bytes", rows, executor="1", process="jvm")
        absorb(metrics, "q", figures)
    assert metrics.value("late_records_total", query="q", operator="agg") == 3
    assert metrics.value("state_rows", query="q", operator="agg") == 4
    assert metrics.value("memory_bytes", executor="1", process="jvm") == 4


def test_a_watermark_at_the_end_of_time_is_no_sample():
    metrics = Metrics()
    for watermark in (100.0, math.inf):
        figures = TaskMetrics()
        figures.low("watermark_timestamp_seconds", watermark, operator="agg")
        figures.absorb(figures.to_json())
        absorb(metrics, "q", figures)
    assert metrics.samples("watermark_timestamp_seconds") == []
