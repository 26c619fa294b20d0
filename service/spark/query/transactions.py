"""The Kafka transactions of a task: one for each cluster that the job writes to, with the marker of its batch.

Law: what is held here may be dropped, and what is sent may be aborted, until `commit`; after it everything is committed
exactly once, by this attempt of the task or by an earlier one.

Records are held until their batch is computed, since a transaction that is open keeps time: it must end before
`transaction.timeout.ms`. What is more than memory should hold is sent while the rest is still computed, unless this
attempt is not the first: the one before may have failed of just that. Then it goes into a file until all is computed;
or nowhere, where the marker says that an earlier attempt has committed it.

Once a transaction of this run was open for too long, all first attempts of the run wait like that, too. The writer
process finds out (`PartitionWriter._discard_producer`) and raises TransactionExpired, which ends the attempt;
`TaskTransactions.__exit__` notes it for those to come.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from zlib import crc32

import pyarrow as pa

from service.kafka.errors import MessageTooLarge, TransactionExpired, TransactionLost
from service.kafka.writer import abort_counter
from service.kafka.writer.client import TransactionClient
from service.runtime.task_metrics import TaskMetrics
from service.spark.query.egress import WriterRecords
from service.spark.query.job_spec import WorkerJob
from service.spark.query.record_spool import RecordSpool

HELD = 64 << 20
"""The most bytes of records that a task keeps in memory."""


class TaskTransactions:
    """The transactions of the task that writes as `partition` of the job's output. Leaving the `with` block early
    aborts them. `again` says that an earlier attempt of this task may have run; `held` is the most bytes kept in
    memory."""

    def __init__(
        self, job: WorkerJob, partition: int, batch: int, metrics: TaskMetrics, *, again: bool, held: int
    ) -> None:
        self._job = job
        self._partition = partition
        self._batch = batch
        self._metrics = metrics
        self._waits = again or self._expired.exists()
        self._most = held
        self._held: dict[int, list[pa.RecordBatch]] = {}
        self._size = 0
        self._spooled: dict[int, RecordSpool] = {}
        self._dropped: set[int] = set()
        self._open: dict[int, _Transaction] = {}

    def write(self, written: WriterRecords) -> None:
        """Add records to the transaction of their writer."""
        self._held.setdefault(written.writer, []).append(written.records)
        self._size += written.records.nbytes
        if self._size >= self._most:
            with self._metrics.timed("write"):
                for number in list(self._held):
                    records = self._held.pop(number)
                    if self._waits:
                        self._set_aside(number, records)
                    else:
                        with _sent_by(number):
                            self._transaction(number, None).send(records)
            self._size = 0

    def commit(self, digest: bytes, plan: bytes, *, may_skip: bool) -> None:
        """Commit the output of the source rows of `digest`, with the packed `plan` of the batch. A transaction without
        records still records that its batch is done, unless it `may_skip`."""
        with self._metrics.timed("write"):
            # Dead letters come last: those with what a sink refused must not be committed without the sink's rows.
            for number in sorted(range(len(self._job.spec.writers)), key=lambda n: n == self._job.spec.side_writer):
                records = self._held.pop(number, [])
                spooled = self._spooled.get(number)
                dropped = number in self._dropped
                if may_skip and not (records or spooled or dropped) and number not in self._open:
                    continue
                transaction = self._transaction(number, digest)
                if dropped and transaction.writes:
                    raise TransactionLost(
                        f"the marker of batch {self._batch} of partition {self._partition} existed and is now missing",
                        "no record was written",
                    )
                with _sent_by(number):
                    if transaction.writes and spooled:
                        transaction.send(spooled.records())
                    transaction.send(records)
                    outcome = transaction.commit(digest, plan)
                self._metrics.count("transactions_total", outcome=outcome)
                del self._open[number]
                self._metrics.count("transactions_total", abort_counter.take(self._aborts), outcome="aborted")

    def __enter__(self) -> TaskTransactions:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for transaction in self._open.values():
            transaction.abort()
        for spool in self._spooled.values():
            spool.close()
        if isinstance(error, TransactionExpired):
            with suppress(OSError):  # a full disk: the next batch finds out again
                self._expired.touch()

    def _set_aside(self, number: int, records: Sequence[pa.RecordBatch]) -> None:
        """Keep the records of a writer outside memory until the batch is computed."""
        if number not in self._spooled and number not in self._dropped:
            if self._client(number, None).is_committed():
                self._dropped.add(number)
            else:
                self._spooled[number] = RecordSpool(self._job.folder)
        if number in self._spooled:
            for block in records:
                self._spooled[number].add(block)

    def _transaction(self, number: int, digest: bytes | None) -> _Transaction:
        """The transaction of a writer, begun if necessary; `digest` if it is known already."""
        if number not in self._open:
            self._open[number] = _Transaction(self._client(number, digest))
            self._open[number].begin()
        return self._open[number]

    def _client(self, number: int, digest: bytes | None) -> TransactionClient:
        settings = replace(
            self._job.spec.writers[number],
            parent_pid=os.getppid(),
            socket_folder=str(self._job.folder / "writer"),
            aborts=str(self._aborts),
        )
        redone = self._job.spec.redone
        earlier = None if redone is None else bytes.fromhex(redone.get(self._partition, ""))
        return TransactionClient(settings, self._partition, self._batch, digest, earlier)

    @property
    def _expired(self) -> Path:
        """The file that says that a transaction of the query was open for too long, in this run and on this host."""
        return self._job.folder / f"{crc32(self._job.spec.program.name.encode()):08x}.expired"

    @property
    def _aborts(self) -> Path:
        """The file of aborts, beside the folder of this run: a query that is restarted after a failure still reads
        it."""
        name = crc32(self._job.spec.program.name.encode())
        return Path(self._job.spec.scratch) / f"{name:08x}.aborts"


@contextmanager
def _sent_by(number: int) -> Iterator[None]:
    """Add to an error of too large records the writer that has sent them."""
    try:
        yield
    except MessageTooLarge as error:
        error.writer = number
        raise


class _Transaction:
    """A transaction that has begun, or that an earlier attempt has committed."""

    def __init__(self, client: TransactionClient) -> None:
        self._client = client
        self.writes = False
        """Whether records must be written: false if the batch is committed already."""

    def begin(self) -> None:
        self.writes = self._client.begin()

    def send(self, records: Iterable[pa.RecordBatch]) -> None:
        if self.writes:
            for block in records:
                self._client.send(block)

    def commit(self, digest: bytes, plan: bytes) -> str:
        """Commit, and return the outcome: `writer.report.Outcome`."""
        return self._client.commit(digest, plan).outcome

    def abort(self) -> None:
        self._client.abort()
