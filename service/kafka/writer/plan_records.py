"""The plans of batches beside the markers: how each batch was cut, for a checkpoint that is an older copy.

Every task writes the plan of its batch in the transaction of its marker. So whatever of a batch is committed, its plan
is committed with it, and a batch of which nothing is committed has none. Keys are used again, a ring of them for each
task: of a compacted topic that is all that is kept.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from service.kafka.writer.marker import PARTITIONS, Marker, MarkerPlace, MarkerReader
from service.kafka.writer.writer_settings import WriterSettings

RING_BYTES = 16 << 20
"""What the plans of one task take at most. With a few Kafka partitions that is the longest ring."""

LONGEST_RING = 65_536
"""The most plans of one task that are kept: some hours of batches of a third of a second."""

_AT_ONCE = 8
"""Partitions of the marker topic that are read side by side."""


def plan_key(settings: WriterSettings, partition: int, batch: int, size: int) -> bytes:
    """Return the key of the plan of `batch`, of `size` bytes, that a partition of the query writes."""
    ring = LONGEST_RING
    while ring > 1 and ring * size > RING_BYTES:
        ring //= 2
    return json.dumps([settings.query, settings.checkpoint_id, partition, "plan", batch % ring]).encode()


@dataclass(frozen=True, slots=True)
class Written:
    """All that the marker topic tells of a query and its checkpoint: the last marker of each of its partitions, and the
    plans that are kept of them, packed."""

    markers: Mapping[int, Marker] = field(default_factory=dict)
    plans: Mapping[int, tuple[bytes, ...]] = field(default_factory=dict)


def last_markers(settings: WriterSettings, partitions: Iterable[int], seconds: float = 30.0) -> dict[int, Marker]:
    """Return the last marker of each of these partitions of the query, once every transaction that wrote one is
    decided; for a look before the query starts.

    Only a look: what a writer may rely on it reads itself, after it took the epoch.
    """
    reader = MarkerReader(settings.kafka)

    def settled(partition: int) -> tuple[int, Marker | None]:
        return partition, reader.settled(MarkerPlace.of(settings, partition), seconds, _never_cancelled)

    with ThreadPoolExecutor(_AT_ONCE) as pool:
        found = dict(pool.map(settled, partitions))
    return {partition: marker for partition, marker in found.items() if marker is not None}


def all_written(settings: WriterSettings, seconds: float = 300.0) -> Written:
    """Read the whole marker topic for what a query and its checkpoint have written."""
    reader = MarkerReader(settings.kafka)
    until = time.monotonic() + seconds

    def read(partition: int) -> list[tuple[bytes, bytes]]:
        place = MarkerPlace(settings.marker_topic, partition, b"")
        return list(_own(settings, reader.everything(place, until)))

    markers: dict[int, Marker] = {}
    plans: dict[int, list[bytes]] = {}
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        for records in pool.map(read, range(PARTITIONS)):
            for key, value in dict(records).items():  # the last of each key
                _, _, partition, *plan = json.loads(key)
                if plan:
                    plans.setdefault(partition, []).append(value)
                else:
                    markers[partition] = Marker.decode(value)
    return Written(markers, {partition: tuple(each) for partition, each in plans.items()})


def _own(
    settings: WriterSettings, records: Iterable[tuple[bytes | None, bytes | None]]
) -> Iterator[tuple[bytes, bytes]]:
    prefix = json.dumps([settings.query, settings.checkpoint_id]).encode()[:-1] + b","
    for key, value in records:
        if key is not None and value is not None and key.startswith(prefix):
            yield key, value


def _never_cancelled() -> None:
    """Nobody waits in vain for a look."""
