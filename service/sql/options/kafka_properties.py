"""The properties that Kafka's clients know, so that a misspelt one is noticed."""

from __future__ import annotations

from service.sql.errors import did_you_mean
from service.sql.options.given import GivenOptions

PREFIX = "properties."

_SECURITY = ("sasl.", "ssl.", "security.")
"""Those are read, and refused where they are not known."""

KNOWN = {
    *("acks", "allow.auto.create.topics", "auto.commit.interval.ms", "auto.include.jmx.reporter"),
    *("auto.offset.reset", "batch.size", "bootstrap.controllers", "bootstrap.servers", "buffer.memory"),
    *("check.crcs", "client.dns.lookup", "client.id", "client.rack", "compression.gzip.level"),
    *("compression.lz4.level", "compression.type", "compression.zstd.level", "config.providers"),
    *("connections.max.idle.ms", "default.api.timeout.ms", "delivery.timeout.ms", "enable.auto.commit"),
    *("enable.idempotence", "enable.metrics.push", "exclude.internal.topics", "fetch.max.bytes"),
    *("fetch.max.wait.ms", "fetch.min.bytes", "group.id", "group.instance.id", "group.protocol"),
    *("group.remote.assignor", "heartbeat.interval.ms", "interceptor.classes", "isolation.level"),
    *("key.deserializer", "key.serializer", "linger.ms", "max.block.ms", "max.in.flight.requests.per.connection"),
    *("max.partition.fetch.bytes", "max.poll.interval.ms", "max.poll.records", "max.request.size"),
    *("metadata.max.age.ms", "metadata.max.idle.ms", "metadata.recovery.rebootstrap.trigger.ms"),
    *("metadata.recovery.strategy", "metric.reporters", "metrics.num.samples", "metrics.recording.level"),
    *("metrics.sample.window.ms", "partition.assignment.strategy", "partitioner.adaptive.partitioning.enable"),
    *("partitioner.availability.timeout.ms", "partitioner.class", "partitioner.ignore.keys"),
    *("receive.buffer.bytes", "reconnect.backoff.max.ms", "reconnect.backoff.ms", "request.timeout.ms", "retries"),
    *("retry.backoff.max.ms", "retry.backoff.ms", "send.buffer.bytes", "session.timeout.ms"),
    *("share.acknowledgement.mode", "share.acquire.mode", "socket.connection.setup.timeout.max.ms"),
    *("socket.connection.setup.timeout.ms", "transaction.timeout.ms", "transaction.two.phase.commit.enable"),
    *("transactional.id", "value.deserializer", "value.serializer"),
}
"""The consumer's, the producer's and the admin client's of Kafka 3.9 and 4.3."""

OF_FLINK = {
    *("client.id.prefix", "commit.offsets.on.checkpoint", "partition.discovery.interval.ms"),
    "register.consumer.metrics",
}
"""Those of Flink's source that are written as properties of Kafka."""


def note_unknown(options: GivenOptions) -> None:
    """Note each 'properties.*' that no client knows. They refuse none, as extensions of theirs have properties, too."""
    for key, option in options.given.items():
        name = key.removeprefix(PREFIX)
        if name == key or name in KNOWN or name in OF_FLINK or name.startswith(_SECURITY):
            continue
        options.mistakes.note(
            f'Kafka\'s clients have no property "{name}": it has no effect',
            hint=did_you_mean(name, sorted(KNOWN)),
            at=option.key_at,
        )
