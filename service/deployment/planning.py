"""The decisions before a job starts: its clusters, topics, offsets and sizes.

Nothing is started here, and every mistake that can be found is found.
"""

from __future__ import annotations

from dataclasses import replace

from service.databases.lookups import mistakes_of
from service.deployment.capacity import tasks_of
from service.deployment.clusters import Address, address_of, address_of_table
from service.deployment.deployment import Deployment
from service.deployment.kafka_identity import KafkaIdentity
from service.deployment.matched_topics import match_topics
from service.deployment.schemas import agree_on_schemas
from service.deployment.topics import check_topics
from service.deployment.writers import LARGEST, writers_of
from service.formats import datagen
from service.kafka import admin
from service.kafka.errors import KafkaConfigError
from service.kafka.record_sizes import largest_average
from service.plan.program import Program
from service.plan.table import Table
from service.record_packing import OVERHEAD
from service.settings import Settings


def plan_deployment(program: Program, settings: Settings) -> Deployment:
    """Plan the deployment. Raises KafkaFailure with all mistakes."""
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
    planned = Deployment(
        program=program,
        settings=settings,
        source_addresses=sources,
        output_addresses=outputs,
        side=side,
        bounded=frozenset(bounded & {s.id for s in program.sources}),
        partitions=tasks_of(settings.spark),
    )
    check_topics(planned)
    agree_on_schemas(program)
    side_bytes = _side_bytes(planned)
    planned = replace(planned, side=_with_room(side, side_bytes))
    writers = writers_of(outputs, planned.side, lambda address: admin.Cluster(address.librdkafka).identifier())
    return replace(
        planned,
        writers=writers,
        kafka=_identity(planned),
        compacted=_compacted(planned),
        side_bytes=side_bytes,
        record_bytes=_record_bytes(planned),
    )


LONGEST_OUTAGE = 86_400_000
"""The least `min.compaction.lag.ms` of a compacted topic that is read, a day in ms: an interrupted batch is read again
when the service is back."""


def _compacted(planned: Deployment) -> tuple[str, ...]:
    found = {
        topic
        for source in planned.program.sources
        if source.id in planned.source_addresses
        for topic in source.table.connector.topics
        if _cluster_of(planned.source_addresses[source.id]).compacts_within(topic, LONGEST_OUTAGE)
    }
    return tuple(sorted(found))


def _identity(planned: Deployment) -> KafkaIdentity:
    """The clusters and topics that the job reads and writes, and its markers."""
    used: list[tuple[str, Address, tuple[str, ...]]] = [
        (f"table {s.table.name}", planned.source_addresses[s.id], s.table.connector.topics)
        for s in planned.program.sources
        if s.id in planned.source_addresses
    ]
    markers = planned.settings.topics.markers
    for output in planned.program.outputs:
        if output.id in planned.output_addresses:
            name = f"table {output.table.name} (written)"
            used.append((name, planned.output_addresses[output.id], (*output.table.connector.topics, markers)))
    clusters: dict[str, str] = {}
    topics: dict[str, str] = {}
    for name, address, wanted in used:
        cluster = _cluster_of(address)
        clusters[name] = cluster.identifier()
        topics |= {f"{clusters[name]}/{topic}": each for topic, each in cluster.topic_ids(wanted).items()}
    return KafkaIdentity(clusters, topics, markers)


def _cluster_of(address: Address) -> admin.Cluster:
    return admin.Cluster(address.librdkafka)


def _side_bytes(planned: Deployment) -> int:
    """The largest record that the topics of dead letters and late rows accept."""
    if planned.side is None:
        return admin.RECORD_BYTES
    topics = planned.settings.topics
    cluster = admin.Cluster(planned.side.librdkafka)
    found = [cluster.largest_record(topic) for topic in filter(None, (topics.dead_letter, topics.late))]
    return min((each - OVERHEAD for each in found if each is not None), default=admin.RECORD_BYTES)


def _with_room(side: Address | None, side_bytes: int) -> Address | None:
    """The cluster of the side outputs, with a producer that sends what their topics accept."""
    return None if side is None else replace(side, librdkafka={**side.librdkafka, LARGEST: str(side_bytes)})


def _record_bytes(planned: Deployment) -> dict[int, float]:
    tables = {source.id: source.table for source in planned.program.sources}
    known: dict[tuple[str, tuple[str, ...]], float | None] = {}  # many tables may read one topic
    found: dict[int, float] = {}
    for source, address in planned.source_addresses.items():
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
    """Whether a table produces rows for as long as it is read."""
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
