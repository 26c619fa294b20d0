"""One partition's side of the protocol that makes a batch appear exactly once.

Law: a batch is committed if and only if its marker is. Rows and marker are one Kafka transaction, and the marker that
counts is read by who holds the newest epoch of the transactional id, after that epoch was taken: then no older writer
can commit any more, so what the marker says stays true until this writer commits.

The order is therefore: look at the marker (a late attempt must not fence the rightful owner), take the epoch, read the
marker again, write, write the marker, commit. A commit whose outcome is not known is settled by taking a new epoch and
reading the marker. A writer that was fenced gives up and never takes the epoch back by itself.

A transaction that the broker has ended for its time-out is TransactionExpired (`_discard_producer`). It ends the
attempt; later attempts open their transactions when the batch is computed (`service/spark/query/transactions.py`).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
from confluent_kafka import KafkaError as Code

from service.kafka.error_codes import REFUSED_FOR, failure
from service.kafka.errors import (
    DigestMismatch,
    Fenced,
    KafkaFailure,
    KafkaUnreachable,
    MessageTooLarge,
    SourceChanged,
    TransactionExpired,
    TransactionLost,
)
from service.kafka.writer import abort_counter
from service.kafka.writer.librdkafka import Fault
from service.kafka.writer.marker import PLAN, Marker, MarkerPlace, MarkerReader
from service.kafka.writer.plan_records import plan_key
from service.kafka.writer.producer import Producer
from service.kafka.writer.reasons import explain
from service.kafka.writer.records import TopicRows, by_topic, one_row
from service.kafka.writer.report import Outcome, WriteReport
from service.kafka.writer.writer_settings import WriterSettings

_SLICE = 2.0
"""Seconds that one call of librdkafka waits, so that a caller who has disconnected is noticed in between."""

_AT_ONCE = 8
"""The number of transactions that are ended concurrently."""

CheckCancelled = Callable[[], None]
"""Called while waiting; raises to end the wait."""


class PartitionWriter:
    """Writes the batches of one partition, one attempt at a time (the caller sees to that).

    `known` is the newest marker that is known to be committed: a lower bound that is always true. The producer is kept
    between batches for as long as it is known to be sound.
    """

    def __init__(self, settings: WriterSettings, partition: int, markers: MarkerReader) -> None:
        self._settings = settings
        self._partition = partition
        self._place = MarkerPlace.of(settings, partition)
        self._markers = markers
        self._producer: Producer | None = None
        self._last_committed: Marker | None = None
        self._open: WriteReport | None = None
        self._undecided = False
        self._earlier: bytes | None = None
        self._batch = -1
        self._began = 0.0

    def begin(
        self, batch: int, digest: bytes | None, check_cancelled: CheckCancelled, earlier: bytes | None = None
    ) -> bool:
        """Begin to write `batch`. Return False if it is committed already (with `digest`, if one is given).

        `earlier` is the digest with which it was committed, if it is repeated although later ones are committed; b""
        says that this partition wrote nothing of it then, as it had no records.
        """
        self._batch, self._open, self._began = batch, None, time.monotonic()
        self._earlier = earlier
        if self._is_committed(digest):
            return False
        if self._producer is None:
            self._remember_marker(self._markers.committed(self._place, self._patience))
            if self._is_committed(digest):
                return False
            self._fence_and_read_marker(check_cancelled)
            if self._is_committed(digest):
                return False
        self._begin_transaction()
        self._undecided = True
        return True

    def _begin_transaction(self) -> None:
        """Begin a transaction of the producer, which exists and has fenced older owners."""
        assert self._producer is not None
        try:
            self._producer.begin()
        except Fault as fault:
            raise self._discard_producer(fault) from fault
        self._open = WriteReport(outcome="committed")

    def supersede(self, batch: int, plan: bytes = b"") -> bool:
        """Make sure that no attempt of an earlier plan commits `batch`. Return False if the batch is committed.

        The marker is committed again unchanged, with the plan number of this writer, and with the new plan of the batch
        (`plan_records`), if there is one. Raises KafkaFailure if the outcome is unknown; the call may be repeated.
        """
        self._batch, self._open, self._began = batch, None, time.monotonic()
        self._fence_and_read_marker(_never_cancelled)
        known = self._last_committed or Marker(-1, b"")
        if known.batch >= batch:
            return False
        self._begin_transaction()
        marker = replace(known, plan=self._settings.plan)
        place = self._place
        self._produce(one_row(place.topic, place.partition, place.key, marker.encode()), _never_cancelled)
        self._produce_plan(batch, plan, _never_cancelled)
        self._commit(marker, _never_cancelled)
        self._last_committed, self._open = marker, None
        return True

    def fence(self) -> None:
        """End every transaction of older owners of the transactional id: they commit nothing any more, and their open
        transactions are rolled back."""
        self._fenced_producer(_never_cancelled).close()

    def write(self, records: pa.RecordBatch, check_cancelled: CheckCancelled) -> None:
        """Put `records` into the open transaction."""
        for rows in by_topic(records):
            report = self._opened
            self._produce(rows, check_cancelled)
            self._open = report.plus(rows.topic, rows.rows, rows.size)

    def commit(self, digest: bytes, check_cancelled: CheckCancelled, plan: bytes = b"") -> WriteReport:
        """Commit the open transaction with its marker and the `plan` of the batch (`plan_records`), or confirm what
        `begin` found committed."""
        if self._open is None:
            if not self._is_committed(digest):
                raise TransactionLost(f"no transaction is open for batch {self._batch} of partition {self._partition}")
            return WriteReport(outcome="replayed")
        started = time.monotonic()
        report, marker = self._opened, Marker(self._batch, digest, self._settings.plan)
        place = self._place
        self._produce(one_row(place.topic, place.partition, place.key, marker.encode()), check_cancelled)
        self._produce_plan(self._batch, plan, check_cancelled)
        outcome = self._commit(marker, check_cancelled)
        self._last_committed, self._open, self._undecided = marker, None, False
        return replace(report, outcome=outcome, milliseconds=(time.monotonic() - started) * 1000)

    def abort(self) -> None:
        """End an attempt and leave nothing open: an open transaction is rolled back, and counted as aborted."""
        if self._undecided and self._settings.aborts:
            abort_counter.add(Path(self._settings.aborts))
        self._undecided = False
        self._abort()

    def _abort(self) -> None:
        """Leave nothing open. A producer that cannot abort is discarded; the next one ends its transaction."""
        if self._open is None or self._producer is None:
            return
        self._open = None
        try:
            self._waiting(self._producer.abort, self._settings.patience_ms / 1000, _never_cancelled)
        except (Fault, KafkaFailure):
            self.close()

    def close(self) -> None:
        """Close the producer; the known marker stays known."""
        self._open = None
        if self._producer is not None:
            self._producer.close()
            self._producer = None

    @property
    def _opened(self) -> WriteReport:
        if self._open is None:
            raise TransactionLost(f"no transaction is open for batch {self._batch} of partition {self._partition}")
        return self._open

    @property
    def _patience(self) -> float:
        return self._settings.patience_ms / 1000

    def _is_committed(self, digest: bytes | None) -> bool:
        """Whether the batch is committed, as far as it is known. Refuses a batch that was planned otherwise."""
        known = self._last_committed
        if known is not None and known.plan > self._settings.plan:
            raise Fenced(
                f'batch {self._batch} of query "{self._settings.query}" was given up',
                "it has since been planned again, or its records were skipped",
            )
        if self._earlier == b"":
            return self._accept_changed_source()
        if known is None or known.batch < self._batch:
            return False
        if known.batch > self._batch and self._earlier is not None:
            known = replace(known, batch=self._batch, digest=self._earlier)
        if known.batch == self._batch and digest in (None, known.digest):
            return True
        if known.batch == self._batch and digest is not None and digest[:PLAN] == known.digest[:PLAN]:
            return self._accept_changed_source()
        committed = f"batch {known.batch} was committed from source rows {known.digest.hex()[:16]}"
        asked = f"now comes batch {self._batch}" + (f" from {digest.hex()[:16]}" if digest else "")
        raise DigestMismatch(
            f'partition {self._partition} of query "{self._settings.query}" is ahead of this checkpoint, or was '
            "written from other rows",
            f"{committed}; {asked}",
            "the checkpoint may be an older copy: use the newest one, or start with a new checkpoint",
        )

    def _accept_changed_source(self) -> bool:
        """Accept a batch that was written from other records, if the settings allow that."""
        if self._settings.accept_changed_source:
            return True
        raise SourceChanged(
            f"batch {self._batch} was written before, but reading it again gave other records",
            "Kafka has since removed records, as in a compacted topic: what is computed now is not what"
            f' partition {self._partition} of query "{self._settings.query}" has written',
            "start with a new checkpoint; or, if results for the removed records may stay as they were"
            " written, set TAILRACE_RETRY__CHANGED_SOURCE=accept until the batch is done",
        )

    def _remember_marker(self, marker: Marker | None) -> None:
        """Store the marker, unless a newer one is known: an open transaction may hide that one from readers."""
        if marker is not None and (self._last_committed is None or marker.batch >= self._last_committed.batch):
            self._last_committed = marker

    def _fence_and_read_marker(self, check_cancelled: CheckCancelled) -> None:
        """Make the producer, fence older owners, and read the marker that is now final."""
        producer = self._fenced_producer(check_cancelled)
        try:
            self._remember_marker(self._markers.last_decided(self._place, self._patience, check_cancelled))
        except BaseException:
            producer.close()
            raise
        self._producer = producer

    def _fenced_producer(self, check_cancelled: CheckCancelled) -> Producer:
        """Return a new producer, which has the newest epoch."""
        producer = self._make_producer()
        try:
            self._waiting(producer.init, self._patience, check_cancelled, producer)
        except Fault as fault:
            producer.close()
            raise failure(fault.code, fault.text, self._describe("take over")) from fault
        except BaseException:
            producer.close()
            raise
        return producer

    def _make_producer(self) -> Producer:
        settings = self._settings
        identity = settings.transactional_id(self._partition)
        try:
            return Producer(settings.kafka, identity, settings.transaction_timeout_ms)
        except Fault as fault:
            raise failure(fault.code, fault.text, "the settings of the Kafka producer are invalid") from fault

    def _produce(self, rows: TopicRows, check_cancelled: CheckCancelled) -> None:
        assert self._producer is not None
        try:
            self._producer.produce(rows, check_cancelled)
        except Fault as fault:
            raise self._discard_producer(fault) from fault

    def _produce_plan(self, batch: int, plan: bytes, check_cancelled: CheckCancelled) -> None:
        if plan:
            key = plan_key(self._settings, self._partition, batch, len(plan))
            self._produce(one_row(self._place.topic, self._place.partition, key, plan), check_cancelled)

    def _commit(self, marker: Marker, check_cancelled: CheckCancelled) -> Outcome:
        assert self._producer is not None
        try:
            self._waiting(self._producer.commit, self._settings.transaction_timeout_ms / 1000, _never_cancelled)
            return "committed"
        except Fault as fault:
            failed = self._discard_producer(fault)
        except KafkaUnreachable as unreachable:
            failed = unreachable
            self.close()
        if not failed.retriable:
            raise failed
        return self._resolve_unknown_outcome(marker, failed, check_cancelled)

    def _resolve_unknown_outcome(
        self, marker: Marker, failed: KafkaFailure, check_cancelled: CheckCancelled
    ) -> Outcome:
        """Find out whether a failed commit has happened after all: once there is a new epoch it has, or it never
        will."""
        self._fence_and_read_marker(check_cancelled)
        if self._is_committed(marker.digest):
            return "settled"
        if isinstance(failed, TransactionExpired):
            raise failed
        raise TransactionLost(
            failed.primary, failed.detail or "the marker says that nothing was committed", failed.hint
        )

    def _discard_producer(self, fault: Fault) -> KafkaFailure:
        """Abort and discard the producer; return the cause in the user's terms.

        A transaction that the broker has ended for its time-out looks as if another writer had fenced it. Its age
        distinguishes them: it is TransactionExpired, on which `service/spark/query/transactions.py` acts.
        """
        producer = self._producer
        assert producer is not None
        reason = producer.fatal() or self._first_cause(fault)
        if not reason.fatal:
            self._abort()  # and receive every refused record
        failed_with = explain(reason, producer.refusals, self._describe("write"))
        if isinstance(failed_with, MessageTooLarge):
            failed_with.refused = producer.too_large()
        self.close()  # a producer whose records were refused may fail again at its next ones
        age = time.monotonic() - self._began
        if isinstance(failed_with, Fenced) and age * 1000 >= self._settings.transaction_timeout_ms:
            return TransactionExpired(
                self._describe("commit"),
                f"it was open for {age:.0f} s, which is longer than transaction.timeout.ms allows",
                "raise TAILRACE_KAFKA__TRANSACTION_TIMEOUT (and transaction.max.timeout.ms of the brokers where that is"
                " less), or make batches smaller with TAILRACE_BATCH__BYTES",
            )
        return failed_with

    def _first_cause(self, fault: Fault) -> Fault:
        """The cause of the transaction's failure, if `fault` only says that it has failed."""
        if fault.code != Code._STATE or self._producer is None:
            return fault
        try:
            self._producer.commit(_SLICE)  # refused, since the transaction has failed; the refusal names the cause
        except Fault as cause:
            return cause
        return fault

    def _waiting(
        self,
        call: Callable[[float], None],
        seconds: float,
        check_cancelled: CheckCancelled,
        producer: Producer | None = None,
    ) -> None:
        """Repeat a call that may time out, for at most `seconds`. Raises KafkaUnreachable."""
        started = time.monotonic()
        producer = producer or self._producer
        assert producer is not None
        producer.trouble = None
        while True:
            try:
                return call(_SLICE)
            except Fault as fault:
                if fault.fatal or fault.abortable or not fault.retriable:
                    raise
                waited = time.monotonic() - started
                code, text = producer.trouble or (Code._TIMED_OUT, fault.text)
                failed_with = failure(code, text, self._describe("reach Kafka"))
                if waited >= (seconds if failed_with.retriable else min(seconds, REFUSED_FOR)):
                    raise failed_with from fault
            check_cancelled()

    def _describe(self, what: str) -> str:
        batch = f"batch {self._batch}, " if self._batch >= 0 else ""
        return f'cannot {what}: {batch}partition {self._partition}, query "{self._settings.query}"'


def _never_cancelled() -> None:
    """Accept no cancellation: commit and abort finish even if the caller has disconnected."""


def fence_all(tasks: Sequence[tuple[WriterSettings, int]]) -> None:
    """Fence older owners of these partitions, as `PartitionWriter.fence` does, before any marker is read: an open
    transaction hides the markers that others have written behind it."""

    def fence(task: tuple[WriterSettings, int]) -> None:
        settings, partition = task
        PartitionWriter(settings, partition, MarkerReader(settings.kafka)).fence()

    with ThreadPoolExecutor(_AT_ONCE) as pool:
        for _ in pool.map(fence, tasks):
            pass
