"""Prometheus metrics: which there are, the samples that this process keeps of them, and how batches are counted in."""

from service.observability.metrics.catalogue import KNOWN, PREFIX
from service.observability.metrics.store import Metrics

__all__ = ["KNOWN", "PREFIX", "Metrics"]
