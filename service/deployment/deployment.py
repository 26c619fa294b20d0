"""A planned job: its program, its clusters and everything else that it needs to run."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Protocol

from service.deployment.capacity import memory_of_tasks
from service.deployment.clusters import Address
from service.deployment.kafka_identity import UNKNOWN, KafkaIdentity
from service.deployment.writers import NOBODY, Writers
from service.formats import datagen
from service.kafka import admin
from service.kafka.writer.writer_settings import WriterSettings
from service.plan.meaning import Meaning
from service.plan.program import Program
from service.plan.source_ids import ids_after, renumbered
from service.plan.table import Table
from service.settings import Settings

BATCH_SHARE = 32
"""The share of the memory that the records of a batch may take. They have been measured to take up to thirteen times
their bytes: decoded, in state, encoded and in between. The JVM and Kafka's client need memory, too."""


class MovingEnds(Protocol):
    """The end of what a job reads, if another job determines how far that is for now."""

    def now(self) -> Mapping[int, str]:
        """Return the end offsets of each source, as Spark's JSON of them; they never go back."""

    def final(self, read: Mapping[int, Mapping[str, Mapping[str, int]]]) -> bool:
        """Return whether everything is read and the ends are final, given the offsets `read` so far, by source."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Deployment:
    """A program and all that running it needs.

    `source_addresses` and `output_addresses` are by source and output id; outputs to 'print' and 'blackhole' have none.
    `side` is the cluster of dead letters and late rows. `bounded` are the sources that end.
    """

    program: Program
    settings: Settings
    source_addresses: Mapping[int, Address]
    output_addresses: Mapping[int, Address]
    side: Address | None
    bounded: frozenset[int]
    partitions: int
    writers: Writers = NOBODY
    kafka: KafkaIdentity = UNKNOWN
    compacted: tuple[str, ...] = ()
    """Topics that are read and that Kafka may compact soon after their records were written."""
    side_bytes: int = admin.RECORD_BYTES
    """The largest record that the topics of dead letters and late rows accept."""
    record_bytes: Mapping[int, float] = field(default_factory=dict)
    """The mean size of a record of each source, if it is known."""
    place: str = ""
    """The checkpoint, if it is not in the usual place."""
    starts: Mapping[int, str] = field(default_factory=dict)
    """Where Spark's sources begin, as their JSON, if not where their tables say."""
    ends: MovingEnds | None = None
    """The offsets up to which records are read for now; None for no limit."""

    @property
    def checkpoint(self) -> str:
        """The folder or URL of the job's checkpoint."""
        return self.place or checkpoint_of(self.program, self.settings)

    def starting_offsets(self, source: int) -> str:
        """Return where Spark's source begins when the checkpoint is new, as its JSON."""
        if source in self.starts:
            return self.starts[source]
        table = self._table(source)
        startup = table.connector.startup
        asked = admin.StartPosition(
            mode=startup.mode,  # type: ignore[arg-type]
            group=table.connector.properties.get("group.id"),
            reset=table.connector.properties.get("auto.offset.reset", "none"),  # type: ignore[arg-type]
            timestamp_ms=startup.timestamp or 0,
            offsets=dict(startup.offsets),
        )
        offsets = self._cluster(source).start_offsets(table.connector.topics, asked)
        return json.dumps({t: {str(p): o for p, o in each.items()} for t, each in offsets.items()})

    def first_offsets(self, source: int) -> Mapping[str, Mapping[int, int]]:
        """Return the first offsets that Kafka still keeps of a source, by topic and partition."""
        topics = self._table(source).connector.topics
        return self._cluster(source).start_offsets(topics, admin.StartPosition(mode="earliest-offset"))

    def end_offsets(self, source: int) -> Mapping[str, Mapping[int, int]]:
        """Return the current end offsets of a source's topics, or those that this job may read to by now, by topic and
        partition."""
        if self.ends is not None:
            offsets = json.loads(self.ends.now().get(source, "{}"))
            return {topic: {int(p): offset for p, offset in each.items()} for topic, each in offsets.items()}
        return self._cluster(source).end_offsets(self._table(source).connector.topics)

    def limits(self, source: int) -> Mapping[str, Mapping[int, int]]:
        """Return the end offsets of a bounded source, by topic and partition."""
        table = self._table(source)
        if table.connector.kind == "datagen":
            return {table.name: {0: datagen.rows_in_all(table) or 0}}
        bounded = table.connector.bounded
        cluster = self._cluster(source)
        match bounded.mode:
            case "latest-offset":
                return cluster.end_offsets(table.connector.topics)
            case "group-offsets":
                group = table.connector.properties["group.id"]
                asked = admin.StartPosition(mode="group-offsets", group=group)  # an error where the group has none
                return cluster.start_offsets(table.connector.topics, asked)
            case "timestamp":
                asked = admin.StartPosition(mode="timestamp", timestamp_ms=bounded.timestamp or 0)
                return cluster.start_offsets(table.connector.topics, asked)
            case _:
                return {topic: dict(bounded.offsets) for topic in table.connector.topics}

    def partitions_of(self, output: int) -> int | None:
        """Return how many partitions the topic of an output has; None where it goes to no topic."""
        if output not in self.output_addresses:
            return None
        topic = next(o.table.connector.topics[0] for o in self.program.outputs if o.id == output)
        return admin.Cluster(self.output_addresses[output].librdkafka).describe([topic]).get(topic)

    def writer(self, number: int, checkpoint_id: str, plan: int) -> WriterSettings:
        """Return the settings of writer `number`, for the checkpoint of that id and its plan number. The writer process
        and its address are not known yet."""
        return WriterSettings(
            query=self.program.name,
            checkpoint_id=self.writers.identity(checkpoint_id, number),
            kafka=self.writers.addresses[number].librdkafka,
            marker_topic=self.settings.topics.markers,
            socket_folder="",
            parent_pid=0,
            transaction_timeout_ms=self.settings.kafka.transaction_timeout,
            accept_changed_source=self.settings.retry.changed_source == "accept",
            plan=plan,
        )

    def going_on(self, known: Meaning) -> Deployment:
        """Return the deployment with the source ids of the query that was stored as `known`."""
        ids = ids_after(self.program, known)
        return replace(
            self,
            program=renumbered(self.program, ids),
            source_addresses={ids.of[source]: each for source, each in self.source_addresses.items()},
            output_addresses={ids.of[output]: each for output, each in self.output_addresses.items()},
            bounded=frozenset(ids.of[source] for source in self.bounded),
            writers=replace(self.writers, of_output={ids.of[o]: n for o, n in self.writers.of_output.items()}),
            record_bytes={ids.of[source]: size for source, size in self.record_bytes.items()},
            starts={ids.of[source]: start for source, start in self.starts.items()},
        )

    @property
    def batch_bytes(self) -> int:
        """The most bytes of records in a batch: the setting, else a share of the memory."""
        return self.settings.batch.bytes or memory_of_tasks(self.settings.spark) // BATCH_SHARE

    def group(self, source: int) -> str:
        """Return the consumer group whose offsets are committed, for lag tools only."""
        if self.ends is not None:
            return f"tailrace-{self.program.name}-backfill"
        return self._table(source).connector.properties.get("group.id") or f"tailrace-{self.program.name}"

    def _table(self, source: int) -> Table:
        return next(s.table for s in self.program.sources if s.id == source)

    def _cluster(self, source: int) -> admin.Cluster:
        return admin.Cluster(self.source_addresses[source].librdkafka)


def checkpoint_of(program: Program, settings: Settings) -> str:
    """Return the folder or URL of a job's checkpoint."""
    return f"{settings.checkpoint.rstrip('/')}/{program.name}"
