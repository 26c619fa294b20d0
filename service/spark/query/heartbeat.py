"""The tick: a stream source that makes batches run when no data comes, and sends every shard what only the driver
knows, the partitions of each topic and the bounded sources that have ended.

A tick costs its batch a task. While rows come, each batch carries the time to every shard, so ticks are rare unless
there is something new. Everything that a tick says is in its offset, which Spark stores in its log, so a replayed batch
receives the same.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from pyspark.sql.datasource import DataSource, SimpleDataSourceStreamReader
from pyspark.sql.types import StructType

from operators.time import MIN_TIME
from service.host.clock import believed_time
from service.kafka.admin import Cluster
from service.kafka.errors import KafkaFailure
from service.runtime.envelope import Envelope, Kind
from service.runtime.watermarks import Tick, channel_name
from service.spark.internals.failures import noted
from service.spark.query.run_folder import RunFolder

PARTITIONS_REFRESH_SECONDS = 60.0
"""Seconds between two requests for the partitions of the topics. A new partition does not hold the watermark back
before it is known."""

MOST_INTERVALS = 10
"""The number of intervals after which a tick is due in any case: batches of nothing but aborted records carry no
time."""

FARTHEST_SECONDS = 1800.0
"""The most seconds between two ticks, whatever the interval: the time of a batch is doubted that is an hour later than
its tick (`batch_log.CLOCK_JUMP`)."""

SPARK_SCHEMA = (
    "shard INT, level INT, kind INT, address INT, channel STRING, sequence LONG, now LONG, watermark LONG,"
    " idle BOOLEAN, payload BINARY, file STRING, port INT"
)


class TickSource(DataSource):
    """Options: `interval` (ms), `shards` (of a level), `levels` (a JSON list), `topics` (JSON: source id to topics and
    librdkafka properties, or to the channels of what is not Kafka), `folder` (that of the run), `always` (whether an
    interval has its tick also while rows come)."""

    @classmethod
    def name(cls) -> str:
        """Return the name by which queries find this source."""
        return "tailrace-tick"

    def schema(self) -> str:
        """Return the columns of an envelope."""
        return SPARK_SCHEMA

    def simpleStreamReader(self, schema: StructType) -> SimpleDataSourceStreamReader:
        """Return the reader, which runs in the driver."""
        return TickReader(dict(self.options))


class TickReader(SimpleDataSourceStreamReader):
    """Reads in the driver; its rows need no task of their own."""

    def __init__(self, options: dict[str, str], connect: Callable[[Any], Cluster] = Cluster) -> None:
        self._connect = connect
        self._interval = min(int(options["interval"]) / 1000, FARTHEST_SECONDS)
        self._shards = int(options["shards"])
        self._levels: list[int] = json.loads(options["levels"])
        self._topics: dict[str, dict[str, Any]] = json.loads(options["topics"])
        self._folder = RunFolder(Path(options["folder"]))
        self._always = options["always"] == "true"
        self._channels: dict[str, list[str]] = {}
        self._refreshed = -PARTITIONS_REFRESH_SECONDS
        self._due = self._latest = 0.0

    def initialOffset(self) -> dict[str, Any]:
        """Return the offset of a query that has no checkpoint yet."""
        return {"now": 0, "channels": {}, "ended": []}

    def read(self, start: dict[str, Any]) -> tuple[Iterator[tuple[Any, ...]], dict[str, Any]]:
        """Return the next tick, or nothing while the last one is younger than the interval, no source has ended since
        and no partition has come."""
        with noted():
            return self._read(start)

    def _read(self, start: dict[str, Any]) -> tuple[Iterator[tuple[Any, ...]], dict[str, Any]]:
        now = believed_time(RunFolder.clock(self._folder.path.parent))
        ended = self._folder.ended()
        if self._folder.held():
            return iter(()), start
        # By a monotonic clock: the time of the last tick may come from a clock that was an hour ahead.
        due = time.monotonic() >= self._due or ended != start["ended"]
        if not due and not self._overdue():
            return iter(()), start
        channels = self._known(start["channels"])
        if not due and channels == start["channels"]:
            return iter(()), start
        self._due = time.monotonic() + self._interval
        self._latest = time.monotonic() + min(MOST_INTERVALS * self._interval, FARTHEST_SECONDS)
        end = {
            "now": max(now, start["now"] + 1),
            "channels": channels,
            "ended": ended,
            "waiting": self._folder.waiting(),
        }
        return self.readBetweenOffsets(start, end), end

    def readBetweenOffsets(self, start: dict[str, Any], end: dict[str, Any]) -> Iterator[tuple[Any, ...]]:
        """Return one envelope to every shard of every level that receives rows of a source."""
        channels = {int(k): tuple(v) for k, v in end["channels"].items()}
        # The checkpoint's log may be from a version in which no source waited.
        tick = Tick(channels, tuple(end["ended"]), tuple(end.get("waiting", ())))
        payload = tick.to_bytes()
        rows = [
            tuple(Envelope(shard, level, Kind.TICK, 0, "tick", 0, 0, MIN_TIME, False, payload))
            for level in self._levels
            for shard in range(self._shards)
        ]
        return iter(rows)  # of a list: Spark copies the iterator

    def commit(self, end: dict[str, Any]) -> None:
        """Note that a batch begins, with or without a tick: Spark calls this for the previous batch, on each source."""
        # A partition that is not read yet is not idle, which each tick repeats.
        if not self._always and not end.get("waiting"):
            self._due = min(time.monotonic() + self._interval, self._latest)

    def _overdue(self) -> bool:
        """Whether the partitions must be requested, though no tick is due."""
        return time.monotonic() - self._refreshed >= PARTITIONS_REFRESH_SECONDS

    def _known(self, before: dict[str, list[str]]) -> dict[str, list[str]]:
        """The channels of each source. If Kafka does not tell them, the known ones stay; a partition without a leader
        still counts."""
        if self._overdue():
            for source, description in self._topics.items():
                if "channels" in description:
                    self._channels[source] = description["channels"]
                    continue
                known = set(self._channels.get(source) or before.get(source) or ())
                with suppress(KafkaFailure):  # readers and writers say so where it lasts
                    partitions = self._connect(description["kafka"]).describe(description["topics"])
                    known |= {
                        channel_name(int(source), topic, number)
                        for topic, count in partitions.items()
                        for number in range(count)
                    }
                self._channels[source] = sorted(known)
            self._refreshed = time.monotonic()
        return before | self._channels
