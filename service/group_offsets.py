"""Consumer-group offsets for lag tools: told to Kafka after a batch is committed, and never read back.

It happens in a thread of its own and only the newest offsets are told, so a slow broker holds no batch up.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping
from typing import Any

from service.assign import Assignment
from service.kafka.admin import Cluster
from service.kafka.errors import KafkaFailure

Offsets = Mapping[str, Mapping[int, int]]


class GroupOffsets:
    """Publishes how far the sources of one job have been read."""

    def __init__(self, assignment: Assignment) -> None:
        self._assignment = assignment
        self._newest: dict[int, Offsets] = {}
        self._changed = threading.Condition()
        self._closed = False
        self._clusters: dict[int, Cluster] = {}
        self._thread = threading.Thread(target=self._publish, name="group-offsets", daemon=True)
        self._thread.start()

    def batch(self, progress: Mapping[str, Any]) -> None:
        """A batch is committed; `progress` is Spark's report, its sources in the order of the program's."""
        with self._changed:
            for source, told in zip(self._assignment.program.sources, progress["sources"], strict=False):
                offsets = told["endOffset"]
                offsets = json.loads(offsets) if isinstance(offsets, str) else offsets
                if offsets and source.id in self._assignment.source_addresses:
                    self._newest[source.id] = {t: {int(p): o for p, o in e.items()} for t, e in offsets.items()}
            self._changed.notify()

    def close(self) -> None:
        """Tell what is left and end."""
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
                self._tell(source, offsets)
            if last:
                return

    def _tell(self, source: int, offsets: Offsets) -> None:
        try:
            if source not in self._clusters:
                self._clusters[source] = Cluster(self._assignment.source_addresses[source].librdkafka)
            told = {topic: dict(each) for topic, each in offsets.items()}
            self._clusters[source].commit_group_offsets(self._assignment.group(source), told)
        except KafkaFailure:
            return  # only for information: the next batch tells again
