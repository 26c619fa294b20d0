"""The executors of a session, counted every few seconds. Their memory comes with their tasks: see `executor_memory`."""

from __future__ import annotations

import time

from pyspark.sql import SparkSession

from service.deployment.capacity import local_cluster
from service.observability.observer import Observer
from service.spark.driver.cluster_mode import is_local
from service.spark.internals.jvm import active_executors

EVERY = 2.0
"""Seconds between two counts."""

DRIVER = "driver"
"""The name that Spark gives the driver among its executors."""

DEFAULT_INSTANCES = "2"


class Executors:
    """Fills the gauges of executors."""

    def __init__(self, session: SparkSession, observer: Observer) -> None:
        self._session = session
        self._context = session.sparkContext
        self._metrics = observer.metrics
        self._master = str(self._context.master)
        self._local = is_local(self._master)
        self._metrics.set("executors_expected", self._asked_for())
        if self._local:
            self._metrics.set("executors", 1)
        self._due = 0.0

    def look(self) -> None:
        """Count the executors, if it is due."""
        if self._local or time.monotonic() < self._due:
            return
        self._due = time.monotonic() + EVERY
        connected = self._connected()
        self._metrics.set("executors", len(connected))
        for labels, _ in self._metrics.samples("memory_bytes"):
            if labels["executor"] not in connected.keys() | {DRIVER}:
                self._metrics.forget("memory_bytes", executor=labels["executor"])

    def _connected(self) -> dict[str, str]:
        """The names of executors that can run tasks, and their hosts as Spark writes them."""
        active = active_executors(self._session)
        return {name: at.rpartition(":")[0] for name, at in active.items() if name != DRIVER and at}

    def _asked_for(self) -> int:
        """The number of executors: one, the driver itself, with a local master; the number in a 'local-cluster'; else
        the setting."""
        if self._local:
            return 1
        if cluster := local_cluster(self._master):
            return cluster[0]
        return int(self._context.getConf().get("spark.executor.instances", DEFAULT_INSTANCES))
