"""How far a run is, asked of the broker: what the engine has committed as read, and what as written."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from typing import TypeVar

from confluent_kafka import Consumer, IsolationLevel, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec

from bench.cases import PARTITIONS

_PATIENCE = 20.0

Answer = TypeVar("Answer")


class Progress:
    """Asks one broker about one consumer group, for as long as the object lives; of topics with up to `partitions`
    partitions."""

    def __init__(self, bootstrap: str, group: str = "bench-progress", partitions: int = PARTITIONS) -> None:
        self._partitions = partitions
        self._admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 3})
        # It only asks for the group's offsets and never joins it.
        self._member = Consumer({"bootstrap.servers": bootstrap, "group.id": group, "enable.auto.commit": False})

    def close(self) -> None:
        self._member.close()

    def rows_read(self, topics: Iterable[str]) -> int:
        """The rows of `topics` that the group has committed as read.

        Flink commits them when a checkpoint completes, Tailrace and the native query when a batch does: in each case
        at the moment from which on these rows will not be read again and their results are visible.
        """
        partitions = [TopicPartition(topic, partition) for topic in topics for partition in range(self._partitions)]
        committed = patiently(lambda: self._member.committed(partitions, timeout=10))
        return sum(max(partition.offset, 0) for partition in committed)

    def visible_end(self, topic: str) -> int:
        """The end of what a read-committed consumer sees of `topic`, in offsets (they count transaction marks too)."""
        return self._ends(topic, IsolationLevel.READ_COMMITTED, PARTITIONS)

    def rows(self, topic: str) -> int:
        """The rows of a topic that was written without transactions."""
        return self._ends(topic, IsolationLevel.READ_UNCOMMITTED, self._partitions)

    def _ends(self, topic: str, isolation: IsolationLevel, partitions: int) -> int:
        latest = OffsetSpec.latest()  # type: ignore[no-untyped-call]
        request = {TopicPartition(topic, partition): latest for partition in range(partitions)}

        def ask() -> int:
            found = self._admin.list_offsets(request, isolation_level=isolation)
            return sum(future.result(10).offset for future in found.values())

        return patiently(ask)


def patiently(ask: Callable[[], Answer]) -> Answer:
    """Ask again while the broker is still settling, as it is after a topic was made."""
    deadline = time.monotonic() + _PATIENCE
    while True:
        try:
            return ask()
        except KafkaException:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.1)
