"""Prometheus metrics: their catalogue, the samples of this process, and how batches are counted."""

from service.observability.metrics.catalogue import KNOWN, PREFIX
from service.observability.metrics.store import Metrics

__all__ = ["KNOWN", "PREFIX", "Metrics"]
