"""What a pipeline counts while it runs, as the metrics of one query."""

from __future__ import annotations

import json
from collections.abc import Sequence

import pyarrow as pa

from operators.sql import Sql
from service.formats.registry import decoder
from service.local.runner import LocalRunner
from service.observability.metrics import Metrics
from service.observability.metrics.series import absorb
from service.plan.lowering.lower import compile_job
from service.runtime.watermarks import Tick, channel_name
from service.sql.pipeline import read

PIPELINE = """
CREATE TABLE orders (name STRING, n BIGINT, ts BIGINT, et AS TO_TIMESTAMP_LTZ(ts, 3), WATERMARK FOR et AS et)
  WITH ('connector' = 'kafka', 'topic' = 't', 'format' = 'json', 'scan.watermark.idle-timeout' = '10 s');
CREATE TABLE windows (w TIMESTAMP(3), name STRING, n BIGINT)
  WITH ('connector' = 'kafka', 'topic' = 'windows', 'format' = 'json');
CREATE TABLE totals (name STRING, share BIGINT) WITH ('connector' = 'kafka', 'topic' = 'o', 'format' = 'debezium-json');
EXECUTE STATEMENT SET BEGIN
  INSERT INTO windows SELECT window_start, name, COUNT(*)
    FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(et), INTERVAL '10' SECOND)) GROUP BY window_start, window_end, name;
  INSERT INTO totals SELECT name, 100 / SUM(n) FROM orders GROUP BY name;
END;
"""
SECONDS = 1_000
CHANNELS = tuple(channel_name(0, "t", p) for p in (0, 1))


def records(partition: int, *values: tuple[str, int, int] | bytes) -> pa.Table:
    """Records of one partition: (name, n, second), or bytes as they are."""
    texts = [
        v if isinstance(v, bytes) else json.dumps({"name": v[0], "n": v[1], "ts": v[2] * SECONDS}).encode()
        for v in values
    ]
    return pa.table(
        {
            "value": pa.array(texts, pa.binary()),
            "topic": pa.array(["t"] * len(texts)),
            "partition": pa.array([partition] * len(texts), pa.int32()),
            "offset": pa.array(range(len(texts)), pa.int64()),
        }
    )


class Running:
    """The pipeline, and the metrics of what it did so far."""

    def __init__(self) -> None:
        program = compile_job(read(PIPELINE).jobs[0])
        self._source = program.sources[0]
        decoders = {self._source.id: decoder(self._source.table, self._source.columns)}
        self._runner = LocalRunner(program, decoders, 2, Sql())
        self.metrics = Metrics()
        self.operators = {o.name: o for o in program.operators}

    def batch(self, at: int, *partitions: pa.Table, ended: bool = False) -> None:
        tick = Tick({self._source.id: CHANNELS}, (self._source.id,) if ended else ())
        answer = self._runner.batch({self._source.id: list(partitions)}, tick, at * SECONDS)
        absorb(self.metrics, "q", answer.metrics)

    def by(self, metric: str, label: str) -> dict[str, float]:
        """The samples of a metric by one of their labels, those that are not 0."""
        return {labels[label]: value for labels, value in self.metrics.samples(metric) if value}


def named(running: Running, prefix: str, metric: str) -> Sequence[float]:
    """The samples of a metric of operators whose names start so."""
    return [v for name, v in sorted(running.by(metric, "operator").items()) if name.startswith(prefix)]


def test_rows_are_counted_where_they_enter_and_bad_records_apart():
    running = Running()
    running.batch(1, records(0, ("ann", 1, 1), b"no json"), records(1, ("bob", 2, 2)))
    assert running.by("input_records_total", "source") == {"orders": 3}
    assert running.by("decode_errors_total", "topic") == {"t": 1}


def test_an_update_is_a_row_that_is_retracted_and_a_row_that_is_added():
    running = Running()
    running.batch(1, records(0, ("ann", 1, 1)))
    running.batch(2, records(0, ("ann", 1, 2)))
    changes = {
        labels["kind"]: value
        for labels, value in running.metrics.samples("changes_total")
        if labels["operator"].startswith("group_by")
    }
    assert changes == {"insert": 2, "retract": 1}


def test_what_cannot_be_computed_is_counted_for_its_operator():
    running = Running()
    running.batch(1, records(0, ("ann", 0, 1)))
    assert sum(running.by("dead_records_total", "operator").values()) == 1


def test_the_watermark_of_an_operator_is_the_least_of_its_partitions_and_late_rows_are_behind_it():
    running = Running()
    running.batch(1, records(0, ("ann", 1, 30)), records(1, ("bob", 1, 25)))
    assert set(running.by("watermark_timestamp_seconds", "operator").values()) == {25}
    assert running.by("partition_watermark_timestamp_seconds", "partition") == {"0": 30, "1": 25}
    running.batch(2, records(0, ("ann", 1, 3)))
    assert sum(running.by("late_records_total", "operator").values()) == 1


def test_a_partition_that_is_silent_for_long_is_idle_and_comes_back():
    running = Running()
    running.batch(1, records(0, ("ann", 1, 30)), records(1, ("bob", 1, 25)))
    for at in range(5, 21, 5):
        running.batch(at, records(0, ("ann", 1, 30 + at)))
    assert running.by("partition_idle", "partition") == {"1": 1}
    assert set(running.by("watermark_timestamp_seconds", "operator").values()) == {50}
    running.batch(21, records(1, ("bob", 1, 60)))
    assert running.by("partition_idle", "partition") == {}


def test_time_that_has_ended_is_not_reported():
    running = Running()
    running.batch(1, records(0, ("ann", 1, 30)), records(1, ("bob", 1, 25)))
    running.batch(2, ended=True)
    for metric in ("watermark_timestamp_seconds", "partition_watermark_timestamp_seconds", "partition_idle"):
        assert running.metrics.samples(metric) == [], metric


def test_state_is_measured_over_all_shards():
    running = Running()
    running.batch(1, records(0, *((f"user {i}", 1, 1) for i in range(50))))
    assert named(running, "group_by", "state_rows") == [50]
    assert named(running, "group_by", "state_bytes")[0] > 50 * 8
