"""The reaction to a failure, by the classes of its errors and never by their words."""

from __future__ import annotations

import duckdb

from service.databases.errors import DatabaseConfigError, DatabaseUnreachable
from service.kafka.errors import KafkaConfigError, KafkaUnreachable
from service.schema_registry.errors import RegistryConfigError, RegistryUnreachable
from service.spark.internals.failures import SparkFailure

_KAFKA = "org.apache.kafka.common.errors."

UNREACHABLE = tuple(
    f"{_KAFKA}{name}Exception"
    for name in (
        "Timeout",
        "Disconnect",
        "CoordinatorNotAvailable",
        "CoordinatorLoadInProgress",
        "LeaderNotAvailable",
        "NotLeaderOrFollower",
        "BrokerNotAvailable",
    )
)
"""Exceptions of Kafka's Java client whose reason is a broker that does not answer."""

REFUSED = tuple(
    f"{_KAFKA}{name}Exception"
    for name in (
        "Authentication",
        "SaslAuthentication",
        "SslAuthentication",
        "Authorization",
        "TopicAuthorization",
        "GroupAuthorization",
        "ClusterAuthorization",
        "TransactionalIdAuthorization",
    )
)
"""Exceptions of Kafka's Java client after which only other passwords or rights help. The classes below the first of
each kind are listed too: where Spark has kept only the text of an exception, those above it are not known."""


def is_patient(failure: SparkFailure) -> bool:
    """Return whether Kafka, a schema registry or a database cannot be reached: that is waited out for as long as it
    takes. A time-out of anything else is a failure like others."""
    return failure.raised(KafkaUnreachable, RegistryUnreachable, DatabaseUnreachable) or failure.thrown(*UNREACHABLE)


def is_misconfigured(failure: SparkFailure) -> bool:
    """Return whether only a change of settings, passwords or rights helps."""
    return failure.raised(KafkaConfigError, RegistryConfigError, DatabaseConfigError) or failure.thrown(*REFUSED)


def is_of_memory(failure: SparkFailure) -> bool:
    """Return whether a smaller batch may help: for want of memory, or where a worker or an executor ended, which mostly
    is for that."""
    return (
        failure.raised(MemoryError, duckdb.OutOfMemoryException)
        or failure.thrown("java.lang.OutOfMemoryError")
        or failure.ended is not None
    )
