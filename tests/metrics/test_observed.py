"""From the events of a service to its metrics."""

from __future__ import annotations

import io
from dataclasses import asdict

import pytest

from service.observability.health import Health
from service.observability.metrics import Metrics
from service.observability.metrics.series import announce
from service.observability.observer import Observer
from service.observability.progress import Progress, Read
from service.observability.redaction import Redaction
from service.plan.lowering.lower import compile_job
from service.plan.program import Program
from service.runtime.task_metrics import TaskMetrics
from service.sql.pipeline import read


def observer() -> Observer:
    return Observer(Health(600), Metrics(), "json", io.StringIO())


def batch(number: int, *reads: Read, seconds: float = 1.0) -> Progress:
    phases = {"addBatch": seconds / 2, "walCommit": seconds / 4}
    return Progress(
        batch=number, ended=100.0 + number, seconds=seconds, rows=(5,), phases=phases, state_commit=0.25, reads=reads
    )


def report(number: int, late: int) -> dict[str, object]:
    figures = TaskMetrics()
    figures.count("late_records_total", late, operator="agg")
    return {"batch": 0, "metrics": asdict(figures), "lines": [], "samples": []}


def test_counters_go_on_when_a_query_is_started_again_in_the_process():
    seen = observer()
    seen.starting(["q"])
    totals = []
    for attempt in range(3):
        seen.started("q")
        for number in range(2):
            seen.counted("q", report(2 * attempt + number, late=3))
            seen.batch("q", batch(2 * attempt + number))
        seen.failed("q", "no", attempt + 1, 0.1)
        totals.append([seen.metrics.value(n, query="q") for n in ("batches_total", "batch_failures_total")])
    assert totals == [[2, 1], [4, 2], [6, 3]]
    assert seen.metrics.value("late_records_total", query="q", operator="agg") == 18


def test_a_query_is_active_from_its_start_to_whatever_ends_it():
    seen = observer()

    def states() -> tuple[float, float]:
        active, finished = (seen.metrics.value(n, query="q") for n in ("query_active", "query_finished"))
        return active, finished

    seen.starting(["q"])
    found = [states()]
    for event in (
        lambda: seen.waiting("q", "no broker"),
        lambda: seen.started("q"),
        lambda: seen.failed("q", "no", 1, 0.1),
        lambda: seen.started("q"),
        lambda: seen.finished("q"),
    ):
        event()
        found.append(states())
    assert found == [(0, 0), (0, 0), (1, 0), (0, 0), (1, 0), (0, 1)]


def test_a_batch_reports_its_phases_and_where_its_partitions_are():
    seen = observer()
    seen.batch("q", batch(3, Read("orders", "t", 0, 10, 25, 40), Read("orders", "t", 1, 0, 7, 7), seconds=2.0))
    place = {"query": "q", "source": "orders", "topic": "t"}
    metrics = seen.metrics
    assert metrics.value("last_batch_completed_timestamp_seconds", query="q") == 103
    assert [metrics.value("kafka_consumer_lag", partition=p, **place) for p in ("0", "1")] == [15, 0]
    assert metrics.value("kafka_offset", kind="read", partition="0", **place) == 25


@pytest.mark.parametrize(("asked", "known"), [(60, 60), (30, 40)], ids=["newer", "older than what a batch said"])
def test_an_end_that_is_asked_for_beside_the_batches_never_goes_back(asked: int, known: int):
    seen = observer()
    seen.batch("q", batch(0, Read("orders", "t", 0, 10, 25, 40)))
    seen.ends("q", "orders", {"t": {0: asked}})
    assert seen.metrics.value("kafka_consumer_lag", query="q", source="orders", topic="t", partition="0") == known - 25


def test_a_query_that_is_finished_lags_behind_nothing():
    seen = observer()
    for query in ("q", "other"):
        seen.batch(query, batch(0, Read("orders", "t", 0, 10, 25, 40)))
    seen.finished("q")
    assert [labels["query"] for labels, _ in seen.metrics.samples("kafka_consumer_lag")] == ["other"]


PIPELINE = """
CREATE TABLE orders (k STRING, n BIGINT, ts TIMESTAMP(3), WATERMARK FOR ts AS ts)
  WITH ('connector' = 'kafka', 'topic' = 'a;b', 'format' = 'json');
CREATE TABLE totals (k STRING, n BIGINT, PRIMARY KEY (k) NOT ENFORCED)
  WITH ('connector' = 'upsert-kafka', 'topic' = 'o', 'key.format' = 'json', 'value.format' = 'json');
INSERT INTO totals SELECT k, SUM(n) FROM orders GROUP BY k;
"""


def program() -> Program:
    return compile_job(read(PIPELINE).jobs[0])


def test_every_counter_of_a_program_stands_at_zero_before_it_runs():
    metrics = Metrics()
    running = program()
    announce(metrics, running, dead_letter_topic="dead", trigger=0.5, tick=1.0)
    assert metrics.samples("output_records_total") == [({"query": running.name, "sink": "totals", "topic": "o"}, 0)]
    assert [labels["topic"] for labels, _ in metrics.samples("decode_errors_total")] == ["a", "b"]
    assert {labels["operator"] for labels, _ in metrics.samples("late_records_total")} == {
        o.name for o in running.operators if o.level
    }
    assert {labels["topic"] for labels, _ in metrics.samples("dead_letter_records_total")} == {"dead"}
    assert metrics.value("trigger_interval_seconds", query=running.name) == 0.5


def test_announcing_a_program_again_takes_nothing_back():
    metrics = Metrics()
    running = program()
    for _ in range(2):
        announce(metrics, running, dead_letter_topic="dead", trigger=0, tick=1.0)
        metrics.add("batches_total", 4, query=running.name)
    assert metrics.value("batches_total", query=running.name) == 8


class Terminal(io.StringIO):
    """A stream that a person looks at."""

    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("watermarks", "shown"),
    [
        ([], "lag 0 | state"),
        ([1_700_000_000.0, 1_700_000_060.0], "lag 0 | watermark 2023-11-14 22:13:20 | state"),
        ([9e15], "lag 0 | state"),
    ],
)
def test_the_progress_line_shows_the_oldest_watermark_there_is(watermarks, shown):
    terminal = Terminal()
    seen = Observer(Health(600), Metrics(), "text", terminal)
    seen.starting(["q"])
    for number, seconds in enumerate(watermarks):
        seen.metrics.set("watermark_timestamp_seconds", seconds, query="q", operator=f"op_{number}")
    seen.batch("q", batch(0))
    assert shown in terminal.getvalue()


def test_no_secret_is_logged_or_shown_by_readyz_wherever_an_error_quotes_it():
    log = io.StringIO()
    seen = Observer(Health(600), Metrics(), "json", log, redaction=Redaction(["hush-1"]))
    seen.starting(["q"])
    quoted = 'login of ann with hush-1 and password="hush-2" failed'
    seen.waiting("q", quoted)
    answers = [seen.health.ready()]
    seen.failed("q", quoted, 1, 0.1, f"in full: {quoted}")
    answers.append(seen.health.ready())
    seen.jvm_says(quoted)
    seen.gave_up("q", quoted, f"in full: {quoted}")
    answers.append(seen.health.live())
    for text in [log.getvalue(), *map(str, answers), str(seen.recorder.jobs())]:
        assert "login of ann" in text
        assert "hush" not in text


class _Gone(io.StringIO):
    """A pipe whose reader has gone."""

    def write(self, text: str) -> int:
        raise BrokenPipeError


def test_a_reader_of_the_output_or_of_the_log_that_goes_away_takes_nothing_along(monkeypatch: pytest.MonkeyPatch):
    log = io.StringIO()
    monkeypatch.setattr("sys.stdout", _Gone())
    report = {"batch": 0, "metrics": asdict(TaskMetrics()), "lines": ["+I  t  a=1"], "samples": []}
    Observer(Health(600), Metrics(), "json", log).counted("q", report)
    assert "rows of 'print' tables are dropped" in log.getvalue()
    Observer(Health(600), Metrics(), "json", _Gone()).counted("q", report)
