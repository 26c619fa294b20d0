"""Prometheus metrics: what the batches counted, under the names that dashboards and alerts use.

Counters only ever grow, whatever restarts a query has in this process: they are kept here, not in Spark.
"""

from __future__ import annotations

import re
import threading
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import Literal

from prometheus_client import CollectorRegistry, Histogram
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

PREFIX = "tailrace_"

KNOWN: Mapping[str, tuple[Literal["counter", "gauge"], str, tuple[str, ...]]] = {
    "build_info": ("gauge", "1, with the version as a label.", ("version",)),
    "up": ("gauge", "1 while the service runs.", ()),
    "query_active": ("gauge", "1 while the query runs.", ("query",)),
    "batches_total": ("counter", "Batches completed.", ("query",)),
    "batch_failures_total": ("counter", "Batches that failed.", ("query",)),
    "batch_phase_seconds_total": ("counter", "Seconds spent in each phase of the batches.", ("query", "phase")),
    "last_batch_completed_timestamp_seconds": ("gauge", "When the last batch was completed.", ("query",)),
    "input_records_total": ("counter", "Records read from Kafka.", ("query", "source", "topic")),
    "output_records_total": ("counter", "Records committed to Kafka.", ("query", "topic")),
    "kafka_consumer_lag": ("gauge", "Records of a partition that are not read yet.", ("query", "topic", "partition")),
    "kafka_offset": ("gauge", "Offsets of a partition.", ("query", "topic", "partition", "kind")),
    "watermark_timestamp_seconds": ("gauge", "Watermark of an operator.", ("query", "operator")),
    "watermark_lag_seconds": ("gauge", "Time of the batch less the watermark of an operator.", ("query", "operator")),
    "late_records_total": ("counter", "Rows that came behind the watermark.", ("query", "operator")),
    "dropped_retractions_total": ("counter", "Retractions of rows that were not known.", ("query", "operator")),
    "dead_records_total": ("counter", "Rows that an operator could not compute.", ("query", "operator")),
    "changes_total": ("counter", "Changes written to a table, by kind.", ("query", "sink", "kind")),
    "state_rows": ("gauge", "Rows of state of an operator.", ("query", "operator")),
    "state_bytes": ("gauge", "Bytes of state of an operator.", ("query", "operator")),
    "decode_errors_total": ("counter", "Records that could not be decoded.", ("query", "topic")),
    "dead_letter_records_total": ("counter", "Records sent to the dead-letter topic.", ("query", "topic", "reason")),
    "transactions_total": ("counter", "Transactions of the sink, by outcome.", ("query", "outcome")),
}
"""Every metric but the batch histogram: its type, its help text, its labels."""

_SAMPLE = re.compile(r"(\w+)(?:\{(.*)\})?")
_LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')


class Metrics(Collector):
    """A store of samples that Prometheus scrapes."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._values: dict[str, dict[tuple[str, ...], float]] = defaultdict(dict)
        self.registry = CollectorRegistry()
        self.registry.register(self)
        self.batch_duration = Histogram(
            PREFIX + "batch_duration_seconds",
            "Time from the start of a batch to its commit.",
            ["query"],
            buckets=(0.1, 0.25, 0.5, 0.75, 1, 1.5, 2, 3, 5, 10, 30, 60, 300),
            registry=self.registry,
        )

    def add(self, name: str, by: float, **labels: str) -> None:
        """Let a counter grow."""
        key = self._key(name, labels)
        with self._lock:
            self._values[name][key] = self._values[name].get(key, 0.0) + by

    def set(self, name: str, value: float, **labels: str) -> None:
        """Give a gauge its value."""
        with self._lock:
            self._values[name][self._key(name, labels)] = value

    def value(self, name: str, **labels: str) -> float:
        """A sample's value, 0 if it was never heard of."""
        with self._lock:
            return self._values[name].get(self._key(name, labels), 0.0)

    def total(self, name: str) -> float:
        """The sum of a metric over all its labels."""
        with self._lock:
            return sum(self._values[name].values())

    def absorb(self, query: str, counts: Mapping[str, float], levels: Mapping[str, float]) -> None:
        """Take in the figures of one batch of `query`."""
        for sample, value in counts.items():
            name, labels = parsed(sample)
            if name == "phase_seconds":
                name = "batch_phase_seconds_total"
            self.add(name, value, query=query, **labels)
        for sample, value in levels.items():
            name, labels = parsed(sample)
            self.set(name, value, query=query, **labels)

    def collect(self) -> Iterable[Metric]:
        """All samples, for a scrape."""
        with self._lock:
            yield from list(self._families())

    def _families(self) -> Iterator[Metric]:
        for name, (kind, help_text, labels) in KNOWN.items():
            family = (
                CounterMetricFamily(PREFIX + name.removesuffix("_total"), help_text, labels=labels)
                if kind == "counter"
                else GaugeMetricFamily(PREFIX + name, help_text, labels=labels)
            )
            for key, value in sorted(self._values[name].items()):
                family.add_metric(list(key), value)
            yield family

    @staticmethod
    def _key(name: str, labels: Mapping[str, str]) -> tuple[str, ...]:
        expected = KNOWN[name][2]
        if set(expected) != set(labels):
            raise ValueError(f"{name} has the labels {expected}, not {tuple(labels)}")
        return tuple(labels[label] for label in expected)


def parsed(sample: str) -> tuple[str, dict[str, str]]:
    """'late_records_total{operator="agg"}' as its name and labels."""
    match = _SAMPLE.fullmatch(sample)
    if match is None:
        raise ValueError(f"{sample!r} is no sample")
    return match[1], dict(_LABEL.findall(match[2] or ""))
