"""The samples of metrics: counters that only grow, gauges that are worked out, and what a scrape says."""

from __future__ import annotations

import pytest
from prometheus_client import generate_latest

from service.observability.metrics import KNOWN, PREFIX, Metrics
from service.observability.metrics.catalogue import BATCH_BOUNDS

PLACE = {"query": "q", "source": "orders", "topic": "t", "partition": "0"}


def scraped(metrics: Metrics) -> dict[str, float]:
    """The samples of a scrape, by name with labels."""
    lines = generate_latest(metrics.registry).decode().splitlines()
    samples = (line.rpartition(" ") for line in lines if not line.startswith("#"))
    return {name: float(value) for name, _, value in samples}


def test_a_counter_adds_up_and_a_gauge_says_the_last_value():
    metrics = Metrics()
    for value in (1, 2):
        metrics.add("batches_total", value, query="q")
        metrics.set("state_rows", value, query="q", operator="join")
    assert scraped(metrics)['tailrace_batches_total{query="q"}'] == 3
    assert scraped(metrics)['tailrace_state_rows{operator="join",query="q"}'] == 2


def test_a_counter_that_somebody_else_counts_never_goes_back():
    metrics = Metrics()
    totals = []
    for total in (5.0, 3.0, 6.0):
        metrics.reach("jvm_gc_seconds_total", total)
        totals.append(metrics.value("jvm_gc_seconds_total"))
    assert totals == [5, 5, 6]


def test_a_histogram_counts_what_is_at_most_its_bound():
    metrics = Metrics()
    for seconds in (0.1, 0.11, 400):
        metrics.observe("batch_duration_seconds", seconds, query="q")
    samples = scraped(metrics)
    buckets = [samples[f'tailrace_batch_duration_seconds_bucket{{le="{b}",query="q"}}'] for b in BATCH_BOUNDS]
    assert buckets == [1, *[2] * (len(BATCH_BOUNDS) - 1)]
    assert samples['tailrace_batch_duration_seconds_bucket{le="+Inf",query="q"}'] == 3
    assert samples['tailrace_batch_duration_seconds_sum{query="q"}'] == pytest.approx(400.21)


def test_a_summary_has_a_count_and_a_sum():
    metrics = Metrics()
    for seconds in (1, 3):
        metrics.observe("batch_phase_duration_seconds", seconds, query="q", phase="addBatch")
    labels = '{phase="addBatch",query="q"}'
    samples = scraped(metrics)
    found = [samples[f"tailrace_batch_phase_duration_seconds_{part}{labels}"] for part in ("count", "sum")]
    assert found == [2, 4]


@pytest.mark.parametrize(
    ("read", "end", "lag"),
    [(10, 25, 15), (25, 25, 0), (30, 25, 0), (None, 25, None), (10, None, None)],
    ids=["behind", "at the end", "the end was asked earlier", "nothing read yet", "the end is not known"],
)
def test_lag_is_what_lies_between_reading_and_the_end(read: int | None, end: int | None, lag: int | None):
    metrics = Metrics()
    for kind, offset in (("read", read), ("end", end)):
        if offset is not None:
            metrics.set("kafka_offset", offset, kind=kind, **PLACE)
    assert [value for _, value in metrics.samples("kafka_consumer_lag")] == ([] if lag is None else [lag])


def test_the_lag_of_a_watermark_grows_while_nothing_moves():
    now = 1000.0
    metrics = Metrics(clock=lambda: now)
    metrics.set("watermark_timestamp_seconds", 990, query="q", operator="agg")
    assert metrics.value("watermark_lag_seconds", query="q", operator="agg") == 10
    now = 1060.0
    assert metrics.value("watermark_lag_seconds", query="q", operator="agg") == 70


def test_what_is_no_more_is_forgotten_and_the_rest_stays():
    metrics = Metrics()
    for executor in ("1", "2"):
        for process in ("jvm", "worker"):
            metrics.set("memory_bytes", 5, executor=executor, process=process)
    metrics.forget("memory_bytes", executor="1")
    assert [labels["executor"] for labels, _ in metrics.samples("memory_bytes")] == ["2", "2"]


def test_a_total_is_over_the_samples_that_have_the_labels():
    metrics = Metrics()
    for query, operator in (("a", "x"), ("a", "y"), ("b", "x")):
        metrics.set("state_rows", 1, query=query, operator=operator)
    assert (metrics.total("state_rows"), metrics.total("state_rows", query="a")) == (3, 2)


@pytest.mark.parametrize(
    ("call", "complaint"),
    [
        (lambda m: m.add("batches_total", 1), "has the labels"),
        (lambda m: m.add("batches_total", 1, query="q", topic="t"), "has the labels"),
        (lambda m: m.set("batches_total", 1, query="q"), "is a counter"),
        (lambda m: m.add("up", 1), "is a gauge"),
        (lambda m: m.observe("up", 1), "is a gauge"),
        (lambda m: m.forget("batches_total", query="q"), "is a counter"),
    ],
)
def test_a_metric_is_used_as_the_catalogue_says(call, complaint):
    with pytest.raises(ValueError, match=complaint):
        call(Metrics())


def test_every_metric_of_the_catalogue_has_a_help_text_in_a_scrape_and_names_follow_the_conventions():
    text = generate_latest(Metrics().registry).decode()
    for name, known in KNOWN.items():
        assert f"# HELP {PREFIX}{name} " in text
        assert name.endswith("_total") == (known.type == "counter"), name
        assert known.help.endswith("."), name
        assert len(set(known.labels)) == len(known.labels) <= 5, name
