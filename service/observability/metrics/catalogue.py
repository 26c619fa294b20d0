"""Every metric of the service: its type, its description, its labels. Tests check dashboards and alerts against it.

Most values are set in `service/observability/observer.py`: from Spark's report of a batch (`progress.py`, the phases of
the driver among it), and from what tasks have counted (`service/runtime/task_metrics.py`; `timed` counts their phases).
`service/spark/supervision` sets those of executors (`executors.py`) and of memory and the JVM (`driver_metrics.py`).

Labels are bounded by the pipeline (tables, topics and their partitions, operators) or by a short list of words. Two
gauges are computed when Prometheus scrapes them, so that they are right while nothing moves: the lag of a partition
and the age of a watermark.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, NamedTuple

PREFIX = "tailrace_"

Type = Literal["counter", "gauge", "histogram", "summary"]


class MetricSpec(NamedTuple):
    """A metric. A summary has a count and a sum, no quantiles."""

    type: Type
    help: str
    labels: tuple[str, ...] = ()


BATCH_BOUNDS = (0.1, 0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0, 5.0, 10.0, 30.0, 60.0, 300.0)
"""Upper bounds of the buckets of every histogram, in seconds."""

DRIVER_PHASES = ("latestOffset", "getBatch", "queryPlanning", "walCommit", "addBatch", "commitOffsets", "other")
"""The phases of the driver in a batch, by Spark's names and in their order; `other` is the remaining time."""

TASK_PHASES = ("decode", "ingest_operators", "operators", "lookup", "encode", "write", "state_commit")
"""The phases of tasks in addBatch."""

STORE_OPERATIONS = ("read", "write", "copy", "remove", "list", "look")
"""What is done with files of a checkpoint in an object store."""

_PARTITION = ("query", "source", "topic", "partition")
_OPERATOR = ("query", "operator")

SERVICE: Mapping[str, MetricSpec] = {
    "build_info": MetricSpec("gauge", "1, with the version as a label.", ("version",)),
    "up": MetricSpec("gauge", "1 while the service runs."),
    "query_active": MetricSpec("gauge", "1 while the query runs.", ("query",)),
    "query_started_timestamp_seconds": MetricSpec(
        "gauge", "Time of the last start or restart of the query.", ("query",)
    ),
    "clock_ahead_seconds": MetricSpec(
        "gauge",
        "How far the clock of the driver was ahead of all times that the checkpoint and the topics knew when the"
        " service started, if by more than a day; negative: behind the checkpoint, by more than an hour; else 0.",
        ("query",),
    ),
    "query_finished": MetricSpec(
        "gauge", "1 once every source of the query has ended and all rows are written.", ("query",)
    ),
    "trigger_interval_seconds": MetricSpec(
        "gauge", "Shortest time between the starts of two batches; 0 = as soon as there are rows.", ("query",)
    ),
    "tick_interval_seconds": MetricSpec("gauge", "How often a batch runs when no rows arrive.", ("query",)),
}

BATCHES: Mapping[str, MetricSpec] = {
    "batches_total": MetricSpec("counter", "Batches completed.", ("query",)),
    "batch_failures_total": MetricSpec("counter", "Batches that failed; the query is restarted.", ("query",)),
    "batches_replanned_total": MetricSpec(
        "counter", "Batches that did not fit into memory and were planned again with half of their records.", ("query",)
    ),
    "skipped_records": MetricSpec(
        "gauge", "Records that `tailrace checkpoint skip` has skipped.", ("query", "source", "topic")
    ),
    "batch_duration_seconds": MetricSpec("histogram", "Duration of a batch, from its start to its end.", ("query",)),
    "batch_phase_duration_seconds": MetricSpec(
        "summary",
        "Time that batches spent in each phase on the driver; phases are sequential:"
        f" {', '.join(DRIVER_PHASES[:-1])} and {DRIVER_PHASES[-1]}. Tasks run in addBatch.",
        ("query", "phase"),
    ),
    "task_seconds_total": MetricSpec(
        "counter",
        "Time that tasks spent in each phase, summed over parallel tasks:"
        f" {', '.join(TASK_PHASES[:-1])} and {TASK_PHASES[-1]}.",
        ("query", "phase"),
    ),
    "state_commit_duration_seconds": MetricSpec(
        "summary", "Time that the tasks of a batch spent committing state, summed over tasks.", ("query",)
    ),
    "last_batch_completed_timestamp_seconds": MetricSpec(
        "gauge", "Time when the last batch was completed.", ("query",)
    ),
}

ROWS: Mapping[str, MetricSpec] = {
    "input_records_total": MetricSpec("counter", "Records read from Kafka.", ("query", "source", "topic")),
    "input_bytes_total": MetricSpec(
        "counter", "Bytes of the records read, including keys that are used.", ("query", "source", "topic")
    ),
    "exchanged_bytes_total": MetricSpec(
        "counter", "Bytes of the rows sent to a level; there is one level for each exchange.", ("query", "level")
    ),
    "output_records_total": MetricSpec("counter", "Records committed to Kafka.", ("query", "sink", "topic")),
    "output_changes_total": MetricSpec(
        "counter", "Rows added to a table (insert) and retracted from it (retract).", ("query", "sink", "kind")
    ),
    "changes_total": MetricSpec(
        "counter", "Rows that an operator emitted (insert) and retracted (retract).", (*_OPERATOR, "kind")
    ),
    "late_records_total": MetricSpec("counter", "Rows that arrived behind the watermark and were dropped.", _OPERATOR),
    "dropped_retractions_total": MetricSpec("counter", "Retractions of unknown rows, which were dropped.", _OPERATOR),
    "dead_records_total": MetricSpec(
        "counter", "Rows that an operator could not compute, or a sink not encode.", _OPERATOR
    ),
    "decode_errors_total": MetricSpec("counter", "Records that could not be decoded.", ("query", "topic")),
    "dead_letter_records_total": MetricSpec(
        "counter",
        "Records and rows for the dead-letter topic, by reason; with an empty topic they are only counted.",
        ("query", "topic", "reason"),
    ),
    "transactions_total": MetricSpec(
        "counter",
        "Transactions of the sink: committed; settled (found committed later, by its marker); replayed (already"
        " committed before); aborted (of failed tasks; counted with the next commit).",
        ("query", "outcome"),
    ),
}

KAFKA: Mapping[str, MetricSpec] = {
    "kafka_consumer_lag": MetricSpec("gauge", "Records of a partition that are not yet read.", _PARTITION),
    "kafka_offset": MetricSpec(
        "gauge", "Offsets of a partition: the next to read (read), and its end (end).", (*_PARTITION, "kind")
    ),
}

TIME: Mapping[str, MetricSpec] = {
    "watermark_timestamp_seconds": MetricSpec("gauge", "Watermark of an operator.", _OPERATOR),
    "watermark_lag_seconds": MetricSpec("gauge", "Current time minus the watermark of an operator.", _OPERATOR),
    "partition_watermark_timestamp_seconds": MetricSpec("gauge", "Watermark of a partition of a source.", _PARTITION),
    "partition_idle": MetricSpec(
        "gauge", "1 while a partition has been silent so long that it does not hold the watermark back.", _PARTITION
    ),
}

STATE: Mapping[str, MetricSpec] = {
    "state_rows": MetricSpec("gauge", "Rows of state of an operator.", _OPERATOR),
    "state_bytes": MetricSpec("gauge", "Bytes of state of an operator.", _OPERATOR),
    "store_operations_total": MetricSpec(
        "counter",
        "Operations on the object store that holds the checkpoint, but for Spark's own logs:"
        f" {', '.join(STORE_OPERATIONS[:-1])} and {STORE_OPERATIONS[-1]} (whether a file is there). In S3 a read is two"
        " requests, a removal three, each other one; more where a file is larger than a part of an upload.",
        ("query", "operation"),
    ),
    "store_read_bytes_total": MetricSpec(
        "counter",
        "Bytes read from the object store that holds the checkpoint: blocks of state that the host has no copy of, and"
        " versions and manifests.",
        ("query",),
    ),
    "store_written_bytes_total": MetricSpec(
        "counter", "Bytes written to the object store that holds the checkpoint, but for Spark's own logs.", ("query",)
    ),
}

PROCESSES: Mapping[str, MetricSpec] = {
    "executors": MetricSpec("gauge", "Connected executors; the driver itself with a local master."),
    "executors_expected": MetricSpec("gauge", "Requested executors."),
    "memory_bytes": MetricSpec(
        "gauge",
        "Resident memory of driver, jvm, worker (Python workers, shared pages counted once) and writer, by executor.",
        ("executor", "process"),
    ),
    "jvm_memory_used_bytes": MetricSpec("gauge", "Memory that the driver's JVM uses.", ("area",)),
    "jvm_memory_max_bytes": MetricSpec("gauge", "Memory that the driver's JVM may use.", ("area",)),
    "jvm_gc_seconds_total": MetricSpec("counter", "Time that the driver's JVM spent collecting garbage."),
}

KNOWN: Mapping[str, MetricSpec] = {**SERVICE, **BATCHES, **ROWS, **KAFKA, **TIME, **STATE, **PROCESSES}
"""Every metric by its name without prefix."""
