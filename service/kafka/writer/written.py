"""The marker topic's records of a query: the committed batch of each partition, and the plans of its batches.

They are read before the query starts. A writer relies only on what it reads itself, after it took the epoch.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from service.kafka.errors import KafkaUnreachable
from service.kafka.writer.marker import PARTITIONS, Marker, MarkerReader, Record
from service.kafka.writer.partition_writer import PartitionWriter
from service.kafka.writer.writer_settings import WriterSettings

_AT_ONCE = 8
"""The number of partitions of the marker topic that are read concurrently, and of transactions that are ended."""

_PAUSE = 0.1
"""Seconds between two reads of the markers: a transaction takes some milliseconds to end."""


@dataclass(frozen=True, slots=True)
class Written:
    """The last marker of each partition of a query and its checkpoint, and the plans of its batches, packed; `ends`
    are the offsets up to which the partitions of the marker topic were read."""

    markers: Mapping[int, Marker] = field(default_factory=dict)
    plans: Mapping[int, tuple[bytes, ...]] = field(default_factory=dict)
    ends: Mapping[int, int] = field(default_factory=dict)


def written(settings: WriterSettings, since: Mapping[int, int] | None = None, seconds: float = 300.0) -> Written:
    """Read the marker topic for what a query and its checkpoint have written, all of it or from these offsets on.

    To be called by the one driver that works on the checkpoint, while no task does: a transaction that a process of the
    query has left open is rolled back, and nothing else is waited for than the end of those of others that hide a
    record of the query. Raises KafkaFailure.
    """
    reader = MarkerReader(settings.kafka)
    until = time.monotonic() + seconds
    ends = _decided(settings, reader, until)

    def read(partition: int) -> list[Record]:
        start = (since or {}).get(partition, 0)
        start = start if start <= ends[partition] else 0  # of a recreated topic
        return reader.between(settings.marker_topic, partition, start, ends[partition], until)

    markers: dict[int, Marker] = {}
    plans: dict[int, list[bytes]] = {}
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        for records in pool.map(read, range(PARTITIONS)):
            for key, value in dict(_own(settings, records)).items():  # the last of each key
                _, _, partition, *plan = json.loads(key)
                if plan:
                    plans.setdefault(partition, []).append(value)
                else:
                    markers[partition] = Marker.decode(value)
    return Written(markers, {partition: tuple(each) for partition, each in plans.items()}, ends)


def _decided(settings: WriterSettings, reader: MarkerReader, until: float) -> dict[int, int]:
    """See to it that no open transaction hides a record of the query; the offsets up to which all is decided.

    One that was left open in a commit would be ended by Kafka, when `transaction.timeout.ms` is over.
    """
    prefix, ended = _prefix(settings), set[int]()
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        while True:
            found = list(pool.map(lambda p: reader.undecided(settings.marker_topic, p, until), range(PARTITIONS)))
            hidden = {int(json.loads(key)[2]) for each in found for key in each.keys if key.startswith(prefix)}
            if not hidden:
                return {partition: each.stable for partition, each in enumerate(found)}
            if time.monotonic() > until:
                raise KafkaUnreachable(
                    f"a transaction that is open in topic {settings.marker_topic} hides markers of this query"
                )
            for _ in pool.map(lambda p: PartitionWriter(settings, p, reader).fence(), hidden - ended):
                pass
            ended |= hidden
            time.sleep(_PAUSE)


def _own(settings: WriterSettings, records: Iterable[Record]) -> Iterator[tuple[bytes, bytes]]:
    prefix = _prefix(settings)
    for key, value in records:
        if key is not None and value is not None and key.startswith(prefix):
            yield key, value


def _prefix(settings: WriterSettings) -> bytes:
    """The prefix of the keys of all markers and plans of the query."""
    return json.dumps([settings.query, settings.checkpoint_id]).encode()[:-1] + b","
