"""What can go wrong with Kafka, one class per thing that the caller does about it.

`retriable` says whether running the same attempt again may succeed without anybody changing anything.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar


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
    """The transaction was open for longer than `transaction.timeout.ms`: the next attempt should open it later."""


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
    """The batch was written before, and reading it again gave other records: Kafka has removed some meanwhile."""


class KafkaConfigError(KafkaFailure):
    """Only a change of settings, rights or topics helps."""


class MessageTooLarge(KafkaFailure):
    """A record is larger than the producer or the topic allows."""


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
    return {"kind": type(error).__name__, "primary": error.primary, "detail": error.detail, "hint": error.hint}


def from_message(message: Mapping[str, str | None]) -> KafkaFailure:
    """Return the error that `to_message` described."""
    return _CLASSES[message["kind"] or ""](message["primary"] or "", message["detail"], message["hint"])
