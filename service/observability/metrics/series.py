"""Conversion of a program and the reports of its batches to samples."""

from __future__ import annotations

import math

from service.formats.dead_letters import REASONS
from service.observability.metrics.catalogue import KNOWN, STORE_OPERATIONS
from service.observability.metrics.store import Metrics
from service.plan.program import Program
from service.runtime.task_metrics import TaskMetrics, parsed

OUTCOMES = ("committed", "settled", "replayed", "aborted")
KINDS = ("insert", "retract")


def announce(metrics: Metrics, program: Program, *, dead_letter_topic: str, trigger: float, tick: float) -> None:
    """Show a program's metrics before it runs; `trigger` and `tick` are its intervals in seconds.

    Every counter starts at 0: Prometheus sees the growth of a counter only from its second sample on, so the first late
    row or dead letter would go unnoticed if its series began with it.
    """
    query = program.name
    metrics.set("trigger_interval_seconds", trigger, query=query)
    metrics.set("tick_interval_seconds", tick, query=query)
    of_store = ("store_read_bytes_total", "store_written_bytes_total")
    for name in ("batches_total", "batch_failures_total", "batches_replanned_total", *of_store):
        metrics.add(name, 0, query=query)
    for operation in STORE_OPERATIONS:
        metrics.add("store_operations_total", 0, query=query, operation=operation)
    announce_topics(metrics, program)
    for operator in program.operators:
        counters = ["dead_records_total"]
        counters += ["late_records_total", "dropped_retractions_total"] if operator.level else []
        for name in counters:
            metrics.add(name, 0, query=query, operator=operator.name)
        for kind in KINDS:
            metrics.add("changes_total", 0, query=query, operator=operator.name, kind=kind)
    for output in program.outputs:
        for kind in KINDS:
            metrics.add("output_changes_total", 0, query=query, sink=output.table.name, kind=kind)
        for topic in output.table.connector.topics:
            metrics.add("output_records_total", 0, query=query, sink=output.table.name, topic=topic)
    for outcome in OUTCOMES:
        metrics.add("transactions_total", 0, query=query, outcome=outcome)
    for reason in REASONS:
        metrics.add("dead_letter_records_total", 0, query=query, topic=dead_letter_topic, reason=reason)


def announce_topics(metrics: Metrics, program: Program) -> None:
    """Show the topics that are read, as far as they are known: those of a pattern are once Kafka was asked."""
    for source in program.sources:
        connector = source.table.connector
        for topic in (source.table.name,) if connector.kind == "datagen" else connector.topics:
            for name in ("input_records_total", "input_bytes_total"):
                metrics.add(name, 0, query=program.name, source=source.table.name, topic=topic)
            metrics.add("decode_errors_total", 0, query=program.name, topic=topic)
            metrics.set("skipped_records", 0, query=program.name, source=source.table.name, topic=topic)


def absorb(metrics: Metrics, query: str, task_metrics: TaskMetrics) -> None:
    """Add the metrics that the tasks of one batch have counted."""
    for written, value in task_metrics.counts.items():
        name, labels = parsed(written)
        metrics.add(name, value, **_of(query, name, labels))
    for written, value in (task_metrics.levels | task_metrics.lows | task_metrics.highs).items():
        name, labels = parsed(written)
        if math.isinf(value):
            metrics.forget(name, **_of(query, name, labels))
        else:
            metrics.set(name, value, **_of(query, name, labels))


def _of(query: str, name: str, labels: dict[str, str]) -> dict[str, str]:
    """The labels, with that of the query if the metric has one: memory belongs to a process, not to a query."""
    return {"query": query, **labels} if "query" in KNOWN[name].labels else labels
