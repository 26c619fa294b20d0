"""The samples of all metrics, kept in this process: counters only grow, even if queries restart in it."""

from __future__ import annotations

import threading
import time
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from prometheus_client import CollectorRegistry, ProcessCollector
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
    SummaryMetricFamily,
)
from prometheus_client.registry import Collector
from prometheus_client.utils import floatToGoString

from service.observability.metrics.catalogue import BATCH_BOUNDS, KNOWN, PREFIX, MetricSpec

Labels = tuple[str, ...]


@dataclass(slots=True)
class _Spread:
    """What a histogram or a summary has observed; `buckets` holds the count of each bucket by itself."""

    total: float = 0.0
    buckets: list[int] = field(default_factory=lambda: [0] * (len(BATCH_BOUNDS) + 1))

    def observe(self, value: float) -> None:
        self.total += value
        self.buckets[bisect_left(BATCH_BOUNDS, value)] += 1


class Metrics(Collector):
    """A store of samples that Prometheus scrapes. `clock` returns the time in seconds since the epoch."""

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        self._lock = threading.Lock()
        self._clock = clock
        self._values: dict[str, dict[Labels, float]] = defaultdict(dict)
        self._spreads: dict[str, dict[Labels, _Spread]] = defaultdict(dict)
        self.registry = CollectorRegistry()
        self.registry.register(self)
        ProcessCollector(registry=self.registry)  # process_*, the names that everybody knows, of this process

    def add(self, name: str, by: float, **labels: str) -> None:
        """Add to a counter; 0 shows it before there is anything to count."""
        key = _key(name, labels, "counter")
        with self._lock:
            self._values[name][key] = self._values[name].get(key, 0.0) + by

    def reach(self, name: str, total: float, **labels: str) -> None:
        """Set a counter that another system counts to `total`, if that is higher."""
        key = _key(name, labels, "counter")
        with self._lock:
            self._values[name][key] = max(total, self._values[name].get(key, 0.0))

    def observe(self, name: str, value: float, **labels: str) -> None:
        """Add an observation to a histogram or a summary."""
        key = _key(name, labels, "histogram", "summary")
        with self._lock:
            self._spreads[name].setdefault(key, _Spread()).observe(value)

    def set(self, name: str, value: float, **labels: str) -> None:
        """Give a gauge its value."""
        key = _key(name, labels, "gauge")
        with self._lock:
            self._values[name][key] = value

    def forget(self, name: str, **labels: str) -> None:
        """Remove the samples of a gauge that have these labels: what they describe has ended."""
        _key(name, {**dict.fromkeys(KNOWN[name].labels, ""), **labels}, "gauge")
        with self._lock:
            for key in [k for k in self._values[name] if labels.items() <= _named(name, k).items()]:
                del self._values[name][key]

    def value(self, name: str, **labels: str) -> float:
        """Return a sample's value, 0 if there is none."""
        with self._lock:
            return self._samples(name).get(_key(name, labels), 0.0)

    def total(self, name: str, **labels: str) -> float:
        """Return the sum of the samples of a metric that have these labels."""
        with self._lock:
            samples = self._samples(name)
        return sum(v for k, v in samples.items() if labels.items() <= _named(name, k).items())

    def samples(self, name: str) -> list[tuple[dict[str, str], float]]:
        """Return every sample of a counter or gauge: its labels and its value."""
        with self._lock:
            return [(_named(name, key), value) for key, value in sorted(self._samples(name).items())]

    def collect(self) -> Iterable[Metric]:
        """Return all samples, for a scrape."""
        with self._lock:
            return list(self._families())

    def _families(self) -> Iterator[Metric]:
        for name, known in KNOWN.items():
            match known.type:
                case "counter":
                    family: CounterMetricFamily | GaugeMetricFamily = CounterMetricFamily(
                        PREFIX + name.removesuffix("_total"), known.help, labels=known.labels
                    )
                case "gauge":
                    family = GaugeMetricFamily(PREFIX + name, known.help, labels=known.labels)
                case "histogram" | "summary":
                    yield self._spread_family(name, known)
                    continue
            for key, value in sorted(self._samples(name).items()):
                family.add_metric(key, value)
            yield family

    def _spread_family(self, name: str, known: MetricSpec) -> Metric:
        spreads = sorted(self._spreads[name].items())
        if known.type == "summary":
            summary = SummaryMetricFamily(PREFIX + name, known.help, labels=known.labels)
            for key, spread in spreads:
                summary.add_metric(key, sum(spread.buckets), spread.total)
            return summary
        histogram = HistogramMetricFamily(PREFIX + name, known.help, labels=known.labels)
        for key, spread in spreads:
            histogram.add_metric(key, _cumulative(spread.buckets), spread.total)
        return histogram

    def _samples(self, name: str) -> Mapping[Labels, float]:
        """The samples of a metric, as they are now."""
        match name:
            case "kafka_consumer_lag":
                return self._lag()
            case "watermark_lag_seconds":
                now = self._clock()
                return {key: now - mark for key, mark in self._values["watermark_timestamp_seconds"].items()}
            case _:
                return self._values[name].copy()

    def _lag(self) -> dict[Labels, float]:
        """End offset less read offset, of each partition of which both are known. They arrive at different moments, so
        the end may be the older one."""
        offsets = self._values["kafka_offset"]
        return {
            place: max(0.0, offsets[*place, "end"] - read)
            for (*partition, kind), read in offsets.items()
            if kind == "read" and (*(place := tuple(partition)), "end") in offsets
        }


def _named(name: str, key: Labels) -> dict[str, str]:
    return dict(zip(KNOWN[name].labels, key, strict=True))


def _key(name: str, labels: Mapping[str, str], *types: str) -> Labels:
    """The values of the labels, in the order of the catalogue. Raises ValueError for labels that the metric does not
    have, and for a metric of another type than `types`."""
    known = KNOWN[name]
    if set(known.labels) != labels.keys():
        raise ValueError(f"{name} has the labels {known.labels}, not {tuple(labels)}")
    if types and known.type not in types:
        raise ValueError(f"{name} is a {known.type}")
    return tuple(labels[label] for label in known.labels)


def _cumulative(buckets: list[int]) -> list[tuple[str, float]]:
    bounds = [*map(floatToGoString, BATCH_BOUNDS), "+Inf"]
    return [(bound, float(sum(buckets[: i + 1]))) for i, bound in enumerate(bounds)]
