"""What is decided about a job before it starts: its clusters, topics, offsets and sizes. Nothing is started here, and
every mistake that can be found is found."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Protocol

from service.databases.lookups import mistakes_of
from service.deployment.clusters import Address, address_of, address_of_table
from service.deployment.kafka_identity import UNKNOWN, KafkaIdentity
from service.deployment.matched_topics import match_topics
from service.deployment.schemas import agree_on_schemas
from service.deployment.writers import LARGEST, NOBODY, Writers, writers_of
from service.formats import datagen
from service.formats.record_size import OVERHEAD
from service.host import machine
from service.kafka import admin
from service.kafka.errors import KafkaConfigError, KafkaFailure
from service.kafka.record_sizes import largest_average
from service.kafka.writer.writer_settings import WriterSettings
from service.plan.program import Program
from service.plan.table import Table
from service.settings import Settings, Spark

"""Partitions of a job on executors of a cluster, where nobody says how many."""

_LOCAL = re.compile(r"local\[\s*(\d+|\*)\s*(?:,\s*\d+\s*)?\]")
"""Tasks at a time, and tries of a task."""

_LOCAL_CLUSTER = re.compile(r"local-cluster\[\s*(\d+)\s*,\s*(\d+)\s*,\s*\d+\s*\]")
"""Executors on this machine, which are as many as there will ever be; cores and MiB of each."""


class MovingEnds(Protocol):
    """The end of what a job reads, where another job says how far that is for now."""

    def now(self) -> Mapping[int, str]:
        """Return the end offsets of each source, as Spark's JSON of them; they never go back."""

    def final(self, read: Mapping[int, Mapping[str, Mapping[str, int]]]) -> bool:
        """Return whether all is read and the ends will not move any more, where the offsets by source are `read`."""


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
    """Topics that are read and that Kafka may compact soon after records were written."""
    side_bytes: int = admin.RECORD_BYTES
    """The largest record that the topics of dead letters and late rows take."""
    record_bytes: Mapping[int, float] = field(default_factory=dict)
    """The mean size of a record of each source, where that is known."""
    place: str = ""
    """The checkpoint, if it is not where those of jobs are."""
    starts: Mapping[int, str] = field(default_factory=dict)
    """Where Spark's sources begin, as their JSON, if not where their tables say."""
    ends: MovingEnds | None = None
    """Up to where records are read for now; None for as far as there are any."""

    @property
    def checkpoint(self) -> str:
        """Where the job's checkpoint is."""
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
        """Return where the records of a source begin that Kafka keeps, by topic and partition."""
        topics = self._table(source).connector.topics
        return self._cluster(source).start_offsets(topics, admin.StartPosition(mode="earliest-offset"))

    def end_offsets(self, source: int) -> Mapping[str, Mapping[int, int]]:
        """Return where the topics of a source end now, by topic and partition, or where this job may read to by now."""
        if self.ends is not None:
            told = json.loads(self.ends.now().get(source, "{}"))
            return {topic: {int(p): offset for p, offset in each.items()} for topic, each in told.items()}
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
        """Return what writes the outputs of writer `number`, for the checkpoint of that id and its plan number. Which
        process does so, and where it is met, is not known yet."""
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

    @property
    def batch_bytes(self) -> int:
        """Most bytes of records in a batch: what the settings say, else a part of the memory that there is."""
        return self.settings.batch.bytes or memory_of_tasks(self.settings.spark) // BATCH_SHARE

    def group(self, source: int) -> str:
        """Return the consumer group whose offsets are committed, for lag tools only."""
        if self.ends is not None:
            return f"tailrace-{self.program.name}-filling"
        return self._table(source).connector.properties.get("group.id") or f"tailrace-{self.program.name}"

    def _table(self, source: int) -> Table:
        return next(s.table for s in self.program.sources if s.id == source)

    def _cluster(self, source: int) -> admin.Cluster:
        return admin.Cluster(self.source_addresses[source].librdkafka)


def checkpoint_of(program: Program, settings: Settings) -> str:
    """Return the folder or URL of a job's checkpoint."""
    return f"{settings.checkpoint.rstrip('/')}/{program.name}"


def plan_deployment(program: Program, settings: Settings) -> Deployment:
    """Decide; raises KafkaFailure with all that stands in the way."""
    troubles: list[str] = []
    sources: dict[int, Address] = {}
    outputs: dict[int, Address] = {}
    bounded: set[int] = set()
    for table, where, identifier in [(s.table, sources, s.id) for s in program.sources] + [
        (o.table, outputs, o.id) for o in program.outputs
    ]:
        try:
            address = address_of_table(table, settings.kafka)
            endless = _endless(table)
        except KafkaConfigError as error:
            troubles.append(f"table {table.name}: {error}")
            continue
        except datagen.DatagenError as error:
            troubles.append(str(error))
            continue
        if address is not None:
            where[identifier] = address
        if not endless:
            bounded.add(identifier)
    troubles += [each for operator in program.operators if operator.lookup for each in mistakes_of(operator.lookup)]
    if troubles:
        raise KafkaConfigError("\n".join(dict.fromkeys(troubles)))
    program = match_topics(program, sources, outputs, settings.topics)
    side = _side(settings, [*outputs.values(), *sources.values()])
    assignment = Deployment(
        program=program,
        settings=settings,
        source_addresses=sources,
        output_addresses=outputs,
        side=side,
        bounded=frozenset(bounded & {s.id for s in program.sources}),
        partitions=tasks_of(settings.spark),
    )
    _check_topics(assignment)
    agree_on_schemas(program)
    side_bytes = _side_bytes(assignment)
    assignment = replace(assignment, side=_with_room(side, side_bytes))
    writers = writers_of(outputs, assignment.side, lambda address: admin.Cluster(address.librdkafka).identifier())
    return replace(
        assignment,
        writers=writers,
        kafka=_identity(assignment),
        compacted=_compacted(assignment),
        side_bytes=side_bytes,
        record_bytes=_record_bytes(assignment),
    )


LONGEST_OUTAGE = 86_400_000
"""Milliseconds for which a compacted topic that is read had better keep every record: a batch that is cut short is read
again when the service is back."""


def _compacted(assignment: Deployment) -> tuple[str, ...]:
    found = {
        topic
        for source in assignment.program.sources
        if source.id in assignment.source_addresses
        for topic in source.table.connector.topics
        if _cluster_of(assignment.source_addresses[source.id]).compacts_within(topic, LONGEST_OUTAGE)
    }
    return tuple(sorted(found))


def _identity(assignment: Deployment) -> KafkaIdentity:
    """Which clusters and topics the job reads and writes, and its markers."""
    used: list[tuple[str, Address, tuple[str, ...]]] = [
        (f"table {s.table.name}", assignment.source_addresses[s.id], s.table.connector.topics)
        for s in assignment.program.sources
        if s.id in assignment.source_addresses
    ]
    markers = assignment.settings.topics.markers
    for output in assignment.program.outputs:
        if output.id in assignment.output_addresses:
            name = f"table {output.table.name} (written)"
            used.append((name, assignment.output_addresses[output.id], (*output.table.connector.topics, markers)))
    clusters: dict[str, str] = {}
    topics: dict[str, str] = {}
    for name, address, wanted in used:
        cluster = _cluster_of(address)
        clusters[name] = cluster.identifier()
        topics |= {f"{clusters[name]}/{topic}": each for topic, each in cluster.topic_ids(wanted).items()}
    return KafkaIdentity(clusters, topics, markers)


def _cluster_of(address: Address) -> admin.Cluster:
    return admin.Cluster(address.librdkafka)


def _side_bytes(assignment: Deployment) -> int:
    """What the topics of dead letters and late rows take."""
    if assignment.side is None:
        return admin.RECORD_BYTES
    topics = assignment.settings.topics
    cluster = admin.Cluster(assignment.side.librdkafka)
    found = [cluster.largest_record(topic) for topic in filter(None, (topics.dead_letter, topics.late))]
    return min((each - OVERHEAD for each in found if each is not None), default=admin.RECORD_BYTES)


def _with_room(side: Address | None, side_bytes: int) -> Address | None:
    """The cluster of the side outputs, with a producer that sends what their topics take."""
    return None if side is None else replace(side, librdkafka={**side.librdkafka, LARGEST: str(side_bytes)})


def _record_bytes(assignment: Deployment) -> dict[int, float]:
    tables = {source.id: source.table for source in assignment.program.sources}
    known: dict[tuple[str, tuple[str, ...]], float | None] = {}  # many tables may read one topic
    found: dict[int, float] = {}
    for source, address in assignment.source_addresses.items():
        if source not in tables:
            continue
        topics = tables[source].connector.topics
        place = address.librdkafka["bootstrap.servers"], topics
        if place not in known:
            known[place] = largest_average(address.librdkafka, topics)
        size = known[place]
        if size is not None:
            found[source] = size
    return found


def bounded_sources(program: Program) -> frozenset[int]:
    """Return the sources that end."""
    return frozenset(source.id for source in program.sources if not _endless(source.table))


def _endless(table: Table) -> bool:
    """Whether a table has rows for as long as somebody reads."""
    if table.connector.kind == "datagen":
        return datagen.rows_in_all(table) is None
    return table.connector.bounded.mode == "unbounded"


def _side(settings: Settings, known: list[Address]) -> Address | None:
    """The cluster of the side outputs: the settings' own, else that of the first table."""
    if not settings.topics.dead_letter and not settings.topics.late:
        return None
    if settings.kafka.bootstrap_servers:
        return address_of({}, settings.kafka)
    return known[0] if known else None


BATCH_SHARE = 32
"""A batch's records take one part of so many of the memory: decoded, in state, encoded and in between they have been
measured to take up to thirteen times as much, and the JVM and Kafka's client have their share."""

_UNITS = {"": 1, "k": 10, "m": 20, "g": 30, "t": 40}


def memory_of_tasks(spark: Spark) -> int:
    """Return bytes of memory of the machines that tasks run on, as far as that is known here."""
    if spark.master.startswith("local") and not spark.master.startswith("local-cluster"):
        return machine.memory()
    count = spark.executor.instances
    cluster = local_cluster(spark.master)
    if cluster is not None:
        count = cluster[0]
    found = [_bytes_of(text) for text in (spark.executor.memory, spark.executor.memory_overhead)]
    return max(count, 1) * sum(found) or machine.memory()


def _bytes_of(text: str) -> int:
    """A size as a JVM is told it, 512m or 2g; 0 where it is something else."""
    size = re.fullmatch(r"(\d+)\s*([kmgt]?)b?", text.strip().lower())
    return 0 if size is None else int(size[1]) << (_UNITS[size[2]] if size[2] else 0)


def tasks_of(spark: Spark) -> int:
    """Return how many tasks a level has: as many as run at a time, or fewer where the settings say so.

    More would serve narrower ranges of the same keys, one after the other, and each would cost a batch its statements.
    """
    most = _tasks_at_a_time(spark)
    wanted = spark.partitions or most or spark.executor.instances * spark.executor.cores
    return wanted if most is None else min(wanted, most)


def _tasks_at_a_time(spark: Spark) -> int | None:
    """The cores of all executors; None where nobody says how many Spark is given."""
    if spark.master == "local":
        return 1
    if local := _LOCAL.fullmatch(spark.master):
        return machine.cores() if local[1] == "*" else int(local[1])
    if cluster := local_cluster(spark.master):
        executors, cores = cluster
        return executors * cores
    if not spark.master.startswith("k8s://") or spark.conf.get("spark.dynamicAllocation.enabled") == "true":
        return None
    instances = spark.conf.get("spark.executor.instances", spark.executor.instances)
    return int(instances) * int(spark.conf.get("spark.executor.cores", spark.executor.cores))


def local_cluster(master: str) -> tuple[int, int] | None:
    """Of a cluster that Spark makes on this machine: how many executors, and the cores of each."""
    found = _LOCAL_CLUSTER.fullmatch(master)
    return (int(found[1]), int(found[2])) if found else None


_WHOLE_ROWS = {"max.message.bytes": str(8 << 20)}
"""Of topics of dead letters: a row may be there since it was too large for the topic of its sink. Hosted clusters take
no more."""


def _check_topics(assignment: Deployment) -> None:
    """Every topic exists, or is made where the settings say so; else one error that names them all."""
    wanted: dict[str, tuple[Address, dict[str, admin.TopicSpec]]] = {}
    topics = assignment.settings.topics

    def want(address: Address, topic: admin.TopicSpec) -> None:
        key = json.dumps(dict(address.librdkafka), sort_keys=True)
        wanted.setdefault(key, (address, {}))[1].setdefault(topic.name, topic)

    def plain(name: str, **config: str) -> admin.TopicSpec:
        return admin.TopicSpec(name=name, partitions=topics.partitions, replication=topics.replication, config=config)

    for source in assignment.program.sources:
        for name in source.table.connector.topics:
            want(assignment.source_addresses[source.id], plain(name))
    for output in assignment.program.outputs:
        address = assignment.output_addresses.get(output.id)
        if address is not None:
            for name in output.table.connector.topics:
                compacted = {"cleanup.policy": "compact"} if output.table.connector.kind == "upsert-kafka" else {}
                want(address, plain(name, **compacted))
            want(address, admin.marker_topic(topics.markers, topics.replication))
    if assignment.side is not None:
        for name in filter(None, (topics.dead_letter, topics.late)):
            want(assignment.side, plain(name, **_WHOLE_ROWS))
        want(assignment.side, admin.marker_topic(topics.markers, topics.replication))
    missing: list[str] = []
    for address, by_name in wanted.values():
        cluster = admin.Cluster(address.librdkafka)
        if topics.create:
            cluster.create(by_name.values())
        else:
            present = cluster.describe(by_name)
            missing.extend(sorted(set(by_name) - set(present)))
        if topics.markers in by_name and topics.markers not in missing:
            cluster.check_markers(topics.markers)
    if missing:
        raise KafkaConfigError(
            f"{'these topics do' if len(missing) > 1 else 'this topic does'} not exist: {', '.join(missing)}",
            None,
            "create them, or set TAILRACE_TOPICS__CREATE=true to have them created",
        )


__all__ = ["Deployment", "KafkaFailure", "plan_deployment"]
