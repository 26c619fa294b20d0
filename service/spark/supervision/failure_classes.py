"""The reaction to a failure, by the classes of its errors and never by their text."""

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
"""Exceptions of Kafka's Java client that mean that a broker does not answer."""

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
"""Exceptions of Kafka's Java client that only other passwords or rights resolve. Their subclasses are listed too: where
Spark has kept only the text of an exception, its superclasses are not known."""


def is_patient(failure: SparkFailure) -> bool:
    """Return whether Kafka, a schema registry or a database cannot be reached: the job waits for it without a limit.
    Any other time-out is a failure like others."""
    return failure.raised(KafkaUnreachable, RegistryUnreachable, DatabaseUnreachable) or failure.thrown(*UNREACHABLE)


def is_misconfigured(failure: SparkFailure) -> bool:
    """Return whether only a change of settings, passwords or rights helps."""
    return failure.raised(KafkaConfigError, RegistryConfigError, DatabaseConfigError) or failure.thrown(*REFUSED)


def is_of_memory(failure: SparkFailure) -> bool:
    """Return whether a smaller batch may help: after an out-of-memory error, or if a worker or an executor ended,
    mostly for want of memory."""
    return (
        failure.raised(MemoryError, duckdb.OutOfMemoryException)
        or failure.thrown("java.lang.OutOfMemoryError")
        or failure.ended is not None
    )
