"""The end offsets of a job's topics, requested from Kafka every few seconds.

Spark reports them once a batch. A lag that came from batches alone would stand still while a batch takes long or the
query waits for its restart, which is when people look at it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping

from service.deployment.deployment import Deployment
from service.kafka.admin import Cluster
from service.kafka.errors import KafkaFailure
from service.observability.progress import Offsets

EVERY = 10.0
"""Seconds between two requests."""

ReportEnds = Callable[[str, Offsets], None]


class EndOffsets:
    """Reports the end offsets of one job's topics, by table, in a thread of its own."""

    def __init__(
        self,
        assignment: Deployment,
        report: ReportEnds,
        *,
        every: float = EVERY,
        connect: Callable[[Mapping[str, str]], Cluster] = Cluster,
    ) -> None:
        self._deployment = assignment
        self._report = report
        self._every = every
        self._connect = connect
        self._clusters: dict[int, Cluster] = {}
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="end-offsets", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stop the requests."""
        self._closed.set()
        self._thread.join(1)

    def _watch(self) -> None:
        while not self._closed.wait(self._every):
            for source in self._deployment.program.sources:
                if source.id in self._deployment.source_addresses:
                    self._look(source.id, source.table.name, source.table.connector.topics)

    def _look(self, source: int, table: str, topics: tuple[str, ...]) -> None:
        try:
            if source not in self._clusters:
                self._clusters[source] = self._connect(self._deployment.source_addresses[source].librdkafka)
            ends = self._clusters[source].end_offsets(topics)
        except KafkaFailure:
            return  # the last offsets stay; others report that Kafka cannot be reached
        self._report(table, ends)
