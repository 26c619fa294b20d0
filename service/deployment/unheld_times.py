"""The search for a record whose timestamp Spark cannot represent.

Spark counts microseconds in 64 bits, and multiplies the timestamp of every record that it reads, asked for or not. One
in nanoseconds, which older brokers take, stops its job; Spark does not say where it is.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from service.deployment.deployment import Deployment
from service.kafka.admin import Cluster
from service.kafka.errors import KafkaFailure

LATEST = (2**63 - 1) // 1000
"""The last millisecond since the epoch that Spark can hold, in the year 294247."""

THROWN = "java.lang.ArithmeticException"
"""What the JVM throws at such a record."""


def unheld_time(deployment: Deployment, connect: Callable[[Mapping[str, str]], Cluster] = Cluster) -> str | None:
    """Return the message for a job that such a record has stopped, None where there is no such record."""
    for source in deployment.program.sources:
        address = deployment.source_addresses.get(source.id)
        if address is None:
            continue
        try:
            found = connect(address.librdkafka).first_later(source.table.connector.topics, LATEST)
        except KafkaFailure:
            continue
        for topic, by_partition in sorted(found.items()):
            partition, offset = min(by_partition.items())
            place = f"the record at offset {offset} of partition {partition} of topic {topic}"
            return (
                f"table {source.table.name}: {place} has a timestamp that Spark cannot hold\n"
                "  detail: Kafka counts milliseconds: a timestamp in nanoseconds is later than the year 294247\n"
                "  hint:   start with a new checkpoint behind that record ('scan.startup.mode' = 'specific-offsets'),"
                " and set message.timestamp.after.max.ms of the topic, so that brokers refuse such records"
            )
    return None
