"""What only the driver can see of a running session, looked at every few seconds: its processes, JVM and executors."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from service.metrics import Metrics
from service.metrics.memory import memory_of

EVERY = 10.0
"""Seconds between two looks."""

DRIVER = "driver"
"""The name that Spark gives the driver among its executors."""

DEFAULT_INSTANCES = "2"


class Vitals:
    """Fills the gauges of `catalogue.PROCESSES`. Memory of executors comes with their tasks instead: see `sink`."""

    def __init__(self, session: SparkSession, metrics: Metrics, scratch: Path) -> None:
        self._context: Any = session.sparkContext
        jvm: Any = session._jvm
        factory = jvm.java.lang.management.ManagementFactory
        self._memory = factory.getMemoryMXBean()
        self._collectors = list(factory.getGarbageCollectorMXBeans())
        self._metrics = metrics
        self._scratch = str(scratch)
        self._master = str(self._context.master)
        self._local = self._master == "local" or self._master.startswith("local[")
        self._due = 0.0
        metrics.set("executors_expected", self._expected())

    def look(self) -> None:
        """Look, if it is time to."""
        if time.monotonic() < self._due:
            return
        self._due = time.monotonic() + EVERY
        held = memory_of(os.getpid(), DRIVER, self._scratch)
        for process in ("driver", "jvm", "worker", "writer"):
            self._metrics.set("memory_bytes", held.get(process, 0), executor=DRIVER, process=process)
        self._look_at_jvm()
        self._look_at_executors()

    def _look_at_jvm(self) -> None:
        heap = self._memory.getHeapMemoryUsage()
        self._metrics.set("jvm_memory_used_bytes", heap.getUsed(), area="heap")
        self._metrics.set("jvm_memory_max_bytes", heap.getMax(), area="heap")
        self._metrics.set("jvm_memory_used_bytes", self._memory.getNonHeapMemoryUsage().getUsed(), area="nonheap")
        collected = sum(each.getCollectionTime() for each in self._collectors)
        self._metrics.reach("jvm_gc_seconds_total", collected / 1000)

    def _look_at_executors(self) -> None:
        if self._local:
            self._metrics.set("executors", 1)
            return
        active = self._context._jsc.sc().statusStore().executorList(True)
        names = {str(active.apply(i).id()) for i in range(active.size())} - {DRIVER}
        self._metrics.set("executors", len(names))
        for labels, _ in self._metrics.samples("memory_bytes"):
            if labels["executor"] not in names | {DRIVER}:
                self._metrics.forget("memory_bytes", executor=labels["executor"])

    def _expected(self) -> int:
        """One, the driver itself, with a local master; what a 'local-cluster' names; else what the settings ask for."""
        if self._local:
            return 1
        if self._master.startswith("local-cluster["):
            return int(self._master.partition("[")[2].split(",")[0])
        return int(self._context.getConf().get("spark.executor.instances", DEFAULT_INSTANCES))
