"""The metrics of one job: the page counts nothing that is already counted."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from service.observability.metrics import Metrics


class Counted:
    """The samples of the metrics of one query."""

    def __init__(self, metrics: Metrics, query: str) -> None:
        self._metrics = metrics
        self._query = query

    def total(self, metric: str, **labels: str) -> int:
        """Return the sum of a metric over all samples with these labels."""
        return round(sum(value for _, value in self._samples(metric, labels)))

    def by(self, metric: str, label: str) -> dict[str, float]:
        """Return the sums of a metric by the value of one label."""
        sums: dict[str, float] = {}
        for found, value in self._samples(metric, {}):
            sums[found[label]] = sums.get(found[label], 0.0) + value
        return sums

    def counts(self, metric: str, label: str) -> dict[str, int]:
        """Return what `by` does in whole numbers, without what never happened."""
        return {name: round(value) for name, value in self.by(metric, label).items() if value}

    def partitions(self, metric: str, source: str, **labels: str) -> dict[tuple[str, int], float]:
        """Return a gauge of the partitions of one table, by topic and partition."""
        samples = self._samples(metric, {"source": source, **labels})
        return {(found["topic"], int(found["partition"])): value for found, value in samples}

    def _samples(self, metric: str, labels: Mapping[str, str]) -> Iterable[tuple[Mapping[str, str], float]]:
        wanted = {"query": self._query, **labels}.items()
        return ((found, value) for found, value in self._metrics.samples(metric) if wanted <= found.items())
