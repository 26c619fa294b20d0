"""librdkafka's error codes, sorted by the caller's reaction.

`writer/partition_writer.py` handles a transaction that fails or expires.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

from confluent_kafka import KafkaError as Code
from confluent_kafka import KafkaException

from service.kafka.errors import (
    Fenced,
    KafkaConfigError,
    KafkaFailure,
    KafkaUnreachable,
    MessageTooLarge,
    TransactionLost,
)
from service.kafka.tls_alerts import OF_A_CERTIFICATE, alert_in

Answer = TypeVar("Answer")

_UNREACHABLE = {
    Code._TRANSPORT,
    Code._ALL_BROKERS_DOWN,
    Code._TIMED_OUT,
    Code._TIMED_OUT_QUEUE,
    Code._MSG_TIMED_OUT,
    Code._WAIT_COORD,
    Code._RESOLVE,
    Code._DESTROY,
    Code.REQUEST_TIMED_OUT,
    Code.NETWORK_EXCEPTION,
    Code.COORDINATOR_LOAD_IN_PROGRESS,
    Code.COORDINATOR_NOT_AVAILABLE,
    Code.NOT_COORDINATOR,
    Code.BROKER_NOT_AVAILABLE,
    Code.LEADER_NOT_AVAILABLE,
    Code.NOT_LEADER_FOR_PARTITION,
    Code.REPLICA_NOT_AVAILABLE,
    Code.NOT_ENOUGH_REPLICAS,
    Code.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
    Code.CONCURRENT_TRANSACTIONS,
    Code.NOT_CONTROLLER,
    Code._NOENT,  # "no leaders found"
    Code.FENCED_LEADER_EPOCH,
    Code.UNKNOWN_LEADER_EPOCH,
    Code.OFFSET_NOT_AVAILABLE,
}
_FENCED = {Code._FENCED, Code.PRODUCER_FENCED, Code.INVALID_PRODUCER_EPOCH}
TOO_LARGE = {Code.MSG_SIZE_TOO_LARGE, Code.RECORD_LIST_TOO_LARGE}
_LARGER = (
    "raise max.message.bytes of the topic, and 'properties.max.request.size' of the table (default 1000000);"
    " if each record is small enough, lower 'properties.batch.size' instead"
)
_CONFIG = {
    Code._AUTHENTICATION: "check the user, the password and the mechanism",
    Code.SASL_AUTHENTICATION_FAILED: "check the user, the password and the mechanism",
    Code.UNSUPPORTED_SASL_MECHANISM: "choose a mechanism that the brokers support",
    Code._SSL: "check the certificates, and that the port uses TLS",
    Code._INVALID_ARG: "correct the property",
    Code._UNKNOWN_TOPIC: "create the topic, or set TAILRACE_TOPICS__CREATE=true",
    Code.UNKNOWN_TOPIC_OR_PART: "create the topic, or set TAILRACE_TOPICS__CREATE=true",
    Code._UNKNOWN_PARTITION: "write to a partition that the topic has",
    Code.TOPIC_EXCEPTION: "choose another topic name",
    Code.TOPIC_AUTHORIZATION_FAILED: "grant READ, WRITE and DESCRIBE on the topic",
    Code.GROUP_AUTHORIZATION_FAILED: "grant READ on the group",
    Code.CLUSTER_AUTHORIZATION_FAILED: "grant IDEMPOTENT_WRITE on the cluster (and CREATE where topics are created)",
    Code.TRANSACTIONAL_ID_AUTHORIZATION_FAILED: "grant WRITE and DESCRIBE on ids that begin with tailrace-",
    Code.INVALID_TRANSACTION_TIMEOUT: "stay below the brokers' transaction.max.timeout.ms",
    Code.UNSUPPORTED_VERSION: "use brokers of version 2.5 or newer",
    Code.INVALID_REPLICATION_FACTOR: "choose a replication factor of at most the number of brokers",
    Code.INVALID_PARTITIONS: "choose a number of partitions of at least 1",
    Code.INVALID_CONFIG: "correct the topic's configuration",
    Code.POLICY_VIOLATION: "ask the administrator of the brokers' policy",
}


def failure(code: int, text: str, primary: str) -> KafkaFailure:
    """Return the failure for `code`; `primary` says what could not be done, `text` is librdkafka's explanation."""
    detail = text or str(Code(code))
    if code == Code._TRANSPORT and alert_in(text) in OF_A_CERTIFICATE:
        code = Code._SSL  # with TLS 1.3 a broker rejects our certificate only after the handshake
    if code in _UNREACHABLE:
        return KafkaUnreachable(primary, detail, "wait, or check bootstrap.servers and the brokers")
    if code in _FENCED:
        return Fenced(primary, detail)
    if code in TOO_LARGE:
        return MessageTooLarge(primary, detail, _LARGER)
    if code in _CONFIG:
        return KafkaConfigError(primary, detail, _CONFIG[code])
    return TransactionLost(primary, detail)


def failure_of(error: Exception, primary: str) -> KafkaFailure:
    """Return the failure for an exception of confluent-kafka."""
    if isinstance(error, KafkaException) and error.args and isinstance(error.args[0], Code):
        return failure(error.args[0].code(), error.args[0].str(), primary)
    if isinstance(error, TimeoutError):
        return KafkaUnreachable(primary, "no answer in time", "wait, or check bootstrap.servers and the brokers")
    return KafkaConfigError(primary, str(error))


REFUSED_FOR = 5.0
"""Seconds after which a refused password or certificate counts as refused: a broker may learn of a new password later
than another. Each refused login costs a broker some milliseconds, so a client does not ask for much longer."""


class Troubles:
    """The connection errors of a client (as its `error_cb`), which its calls report as a mere time-out."""

    def __init__(self) -> None:
        self._last: Code | None = None
        self._refused_since: float | None = None

    def __call__(self, error: Code) -> None:
        if error.code() == Code._ALL_BROKERS_DOWN:
            return
        self._last = error
        if not isinstance(failure(error.code(), error.str(), ""), KafkaConfigError):
            self._refused_since = None
        elif self._refused_since is None:
            self._refused_since = time.monotonic()

    def forget(self) -> None:
        """Forget the last error: Kafka answers again."""
        self._last = self._refused_since = None

    def refusal(self) -> Code | None:
        """Return the error of brokers that have refused this client for some time: it need not wait any longer."""
        since = self._refused_since
        return None if since is None or time.monotonic() - since < REFUSED_FOR else self._last

    def explain(self, failed: Exception, primary: str) -> KafkaFailure:
        """Return the failure of a call; for a time-out it is the last connection error."""
        return self.behind(failure_of(failed, primary))

    def behind(self, cause: KafkaFailure) -> KafkaFailure:
        """Return the cause of a failure; for a time-out it is the last connection error."""
        if self._last is None or not isinstance(cause, KafkaUnreachable):
            return cause
        return failure(self._last.code(), self._last.str(), cause.primary)


def patiently(ask: Callable[[], Answer], cannot: str, seconds: float) -> Answer:
    """Return the answer of `ask`, which is repeated while brokers are unavailable. Raises a KafkaFailure that begins
    with `cannot`."""
    until = time.monotonic() + seconds
    while True:
        try:
            return ask()
        except (KafkaException, TimeoutError) as failed:
            cause = failure_of(failed, cannot)
            if not cause.retriable or time.monotonic() >= until:
                raise cause from failed
        time.sleep(0.1)
