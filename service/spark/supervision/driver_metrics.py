"""Metrics that only the driver can measure, sampled every few seconds: its processes and its JVM."""

from __future__ import annotations

import os
import time
from pathlib import Path

from pyspark.sql import SparkSession

from service.observability.metrics import Metrics
from service.observability.metrics.memory import memory_of
from service.spark.internals.jvm import elements, java_class
from service.spark.supervision.executors import DRIVER

EVERY = 10.0
"""Seconds between two measurements."""


class DriverMetrics:
    """Fills the gauges of `catalogue.PROCESSES` that describe the driver."""

    def __init__(self, session: SparkSession, metrics: Metrics, scratch: Path) -> None:
        factory = java_class(session, "java.lang.management.ManagementFactory")
        self._memory = factory.getMemoryMXBean()
        self._collectors = elements(factory.getGarbageCollectorMXBeans())
        self._metrics = metrics
        self._scratch = str(scratch)
        self._due = 0.0

    def look(self) -> None:
        """Measure, if it is due."""
        if time.monotonic() < self._due:
            return
        self._due = time.monotonic() + EVERY
        held = memory_of(os.getpid(), DRIVER, self._scratch)
        for process in ("driver", "jvm", "worker", "writer"):
            self._metrics.set("memory_bytes", held.get(process, 0), executor=DRIVER, process=process)
        self._look_at_jvm()

    def _look_at_jvm(self) -> None:
        heap = self._memory.getHeapMemoryUsage()
        self._metrics.set("jvm_memory_used_bytes", heap.getUsed(), area="heap")
        self._metrics.set("jvm_memory_max_bytes", heap.getMax(), area="heap")
        self._metrics.set("jvm_memory_used_bytes", self._memory.getNonHeapMemoryUsage().getUsed(), area="nonheap")
        collected = sum(each.getCollectionTime() for each in self._collectors)
        self._metrics.reach("jvm_gc_seconds_total", collected / 1000)
