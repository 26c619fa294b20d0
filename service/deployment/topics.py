"""The topics of a job, which exist or are created before it starts: those of its tables, of markers, dead letters and
late rows."""

from __future__ import annotations

import json

from service.deployment.clusters import Address
from service.deployment.deployment import Deployment
from service.kafka import admin
from service.kafka.errors import KafkaConfigError

_WHOLE_ROWS = {"max.message.bytes": str(8 << 20)}
"""The record limit of a dead-letter topic that is created: it takes rows that were too large for the topic of their
sink. Hosted clusters allow no larger value."""


def check_topics(deployment: Deployment) -> None:
    """Check that every topic exists, or create it if the settings allow that. Raises KafkaConfigError with the names of
    all that are missing."""
    wanted: dict[str, tuple[Address, dict[str, admin.TopicSpec]]] = {}
    topics = deployment.settings.topics

    def want(address: Address, topic: admin.TopicSpec) -> None:
        key = json.dumps(dict(address.librdkafka), sort_keys=True)
        wanted.setdefault(key, (address, {}))[1].setdefault(topic.name, topic)

    def plain(name: str, **config: str) -> admin.TopicSpec:
        return admin.TopicSpec(name=name, partitions=topics.partitions, replication=topics.replication, config=config)

    for source in deployment.program.sources:
        for name in source.table.connector.topics:
            want(deployment.source_addresses[source.id], plain(name))
    for output in deployment.program.outputs:
        address = deployment.output_addresses.get(output.id)
        if address is not None:
            for name in output.table.connector.topics:
                compacted = {"cleanup.policy": "compact"} if output.table.connector.kind == "upsert-kafka" else {}
                want(address, plain(name, **compacted))
            want(address, admin.marker_topic(topics.markers, topics.replication))
    if deployment.side is not None:
        for name in filter(None, (topics.dead_letter, topics.late)):
            want(deployment.side, plain(name, **_WHOLE_ROWS))
        want(deployment.side, admin.marker_topic(topics.markers, topics.replication))
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
            "create them, or set TAILRACE_TOPICS__CREATE=true",
        )
