"""Errors of Kafka, one class per reaction of the caller.

`retriable` says whether running the same attempt again may succeed without anybody changing anything.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import ClassVar, NamedTuple


class KafkaFailure(Exception):
    """Something is wrong with Kafka: `primary` says what, `detail` what we know, `hint` what to do."""

    retriable: ClassVar[bool] = False

    def __init__(self, primary: str, detail: str | None = None, hint: str | None = None) -> None:
        super().__init__(primary, detail, hint)
        self.primary = primary
        self.detail = detail
        self.hint = hint

    def __str__(self) -> str:
        lines = [self.primary]
        if self.detail:
            lines.append(f"  detail: {self.detail}")
        if self.hint:
            lines.append(f"  hint:   {self.hint}")
        return "\n".join(lines)


class KafkaUnreachable(KafkaFailure):
    """No broker answers: wait and try again for as long as it takes."""

    retriable = True


class TransactionLost(KafkaFailure):
    """The transaction was not committed and none of its rows will ever be read: run the attempt again."""

    retriable = True


class TransactionExpired(TransactionLost):
    """The transaction was open for longer than `transaction.timeout.ms`: the next attempt should open it later.

    `PartitionWriter._discard_producer` recognises it, in the writer process. `TaskTransactions`
    (`service/spark/query/transactions.py`) acts on it: later attempts of the run hold their records back.
    """


class WriterUnavailable(KafkaFailure):
    """The writer process could not be started or does not answer: run the attempt again."""

    retriable = True


class Fenced(KafkaFailure):
    """Another writer owns the partition now: this attempt must end and must not be repeated by itself."""


class Superseded(Fenced):
    """Another attempt of the same partition has taken this attempt's place in the same writer process."""


class DigestMismatch(KafkaFailure):
    """The batch was written before from other rows: the checkpoint is not the one that wrote it."""


class SourceChanged(KafkaFailure):
    """The batch was written before, but reading it again gave other records: Kafka has removed some meanwhile."""


class KafkaConfigError(KafkaFailure):
    """Only a change of settings, rights or topics helps. `option` is the wrong property, in Java's name; empty if there
    is none, or if one is missing."""

    def __init__(self, primary: str, detail: str | None = None, hint: str | None = None, *, option: str = "") -> None:
        super().__init__(primary, detail, hint)
        self.option = option


class Refused(NamedTuple):
    """The sizes of records that a topic has refused as too large. `alone` is the smallest record that was a batch of
    its own, in bytes as `service.record_packing` counts them; `together` is the batch size at which several records
    were refused. 0: there were none."""

    alone: int = 0
    together: int = 0


class MessageTooLarge(KafkaFailure):
    """A record is larger than the producer or the topic allows. `refused` are the sizes that brokers have refused, by
    topic; `writer` is the number of the job's writer that has sent it, if that is known."""

    def __init__(
        self,
        primary: str,
        detail: str | None = None,
        hint: str | None = None,
        refused: Mapping[str, Refused] | None = None,
    ) -> None:
        super().__init__(primary, detail, hint)
        self.refused = dict(refused or {})
        self.writer: int | None = None

    @property
    def for_driver(self) -> Mapping[str, tuple[int, int]]:
        """The details for the driver, as JSON values: by writer and topic the refused sizes."""
        return {} if self.writer is None else {f"{self.writer}/{topic}": each for topic, each in self.refused.items()}


_CLASSES = {
    kind.__name__: kind
    for kind in (
        KafkaFailure,
        KafkaUnreachable,
        TransactionLost,
        TransactionExpired,
        WriterUnavailable,
        Fenced,
        Superseded,
        DigestMismatch,
        SourceChanged,
        KafkaConfigError,
        MessageTooLarge,
    )
}


def to_message(error: KafkaFailure) -> dict[str, str | None]:
    """Describe `error` for another process."""
    fields = {"kind": type(error).__name__, "primary": error.primary, "detail": error.detail, "hint": error.hint}
    return fields | ({"refused": json.dumps(error.refused)} if isinstance(error, MessageTooLarge) else {})


def from_message(message: Mapping[str, str | None]) -> KafkaFailure:
    """Return the error that `to_message` described."""
    fields = message["primary"] or "", message["detail"], message["hint"]
    kind = _CLASSES[message["kind"] or ""]
    if kind is MessageTooLarge:
        refused = json.loads(message.get("refused") or "{}")
        return MessageTooLarge(*fields, {topic: Refused(*each) for topic, each in refused.items()})
    return kind(*fields)
