"""Consumer-group offsets for lag tools: committed to Kafka after each batch, and never read back.

A thread of its own commits them, and only the newest, so a slow broker delays no batch.
"""

from __future__ import annotations

import threading

from service.deployment.deployment import Deployment
from service.kafka.admin import Cluster
from service.kafka.errors import KafkaFailure
from service.observability.progress import Offsets, Progress


class GroupOffsets:
    """Publishes how far the sources of one job have been read."""

    def __init__(self, assignment: Deployment) -> None:
        self._deployment = assignment
        self._newest: dict[int, Offsets] = {}
        self._changed = threading.Condition()
        self._closed = False
        self._clusters: dict[int, Cluster] = {}
        self._thread = threading.Thread(target=self._publish, name="group-offsets", daemon=True)
        self._thread.start()

    def batch(self, progress: Progress) -> None:
        """Note that a batch is committed."""
        with self._changed:
            for source in self._deployment.program.sources:
                read: dict[str, dict[int, int]] = {}
                for each in progress.reads:
                    if each.source == source.table.name:
                        read.setdefault(each.topic, {})[each.partition] = each.last
                if read and source.id in self._deployment.source_addresses:
                    self._newest[source.id] = read
            self._changed.notify()

    def close(self) -> None:
        """Commit the last offsets and end."""
        with self._changed:
            self._closed = True
            self._changed.notify()
        self._thread.join(5)

    def _publish(self) -> None:
        while True:
            with self._changed:
                while not self._newest and not self._closed:
                    self._changed.wait()
                due, self._newest = self._newest, {}
                last = self._closed
            for source, offsets in due.items():
                self._commit(source, offsets)
            if last:
                return

    def _commit(self, source: int, offsets: Offsets) -> None:
        try:
            if source not in self._clusters:
                self._clusters[source] = Cluster(self._deployment.source_addresses[source].librdkafka)
            committed = {topic: dict(each) for topic, each in offsets.items()}
            self._clusters[source].commit_group_offsets(self._deployment.group(source), committed)
        except KafkaFailure:
            return  # only for information: the next batch commits again
