"""The cause of a failed transaction, in the user's terms."""

from __future__ import annotations

from collections.abc import Mapping

from confluent_kafka import KafkaError as Code

from service.kafka.error_codes import TOO_LARGE, failure
from service.kafka.errors import Fenced, KafkaFailure, MessageTooLarge
from service.kafka.writer.librdkafka import Fault
from service.kafka.writer.producer import Refusal


def explain(reason: Fault, refusals: Mapping[Refusal, int], cannot: str) -> KafkaFailure:
    """Return the cause of a failed transaction: a refused record explains more than the failure that it caused."""
    for (code, topic), size in sorted(refusals.items(), key=_too_large_first):
        detail = f"the largest has {size} bytes (key and value): {Code(code).str()}"
        error = failure(code, detail, f"topic {topic} refused the records")
        if isinstance(error, MessageTooLarge) or reason.abortable:
            return error
    error = failure(reason.code, reason.text, cannot)
    if isinstance(error, Fenced):
        return Fenced(
            f"{cannot}: another writer has taken over, so this one stops",
            reason.text,
            "nothing to do if the partition has moved; otherwise make sure that only one driver runs this query",
        )
    return error


def _too_large_first(refusal: tuple[Refusal, int]) -> bool:
    """A record that is too large is the cause of all other refusals."""
    return refusal[0].code not in TOO_LARGE
