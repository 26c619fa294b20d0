"""The client of the writer: one attempt of a task to write one batch of one partition exactly once."""

from __future__ import annotations

import socket
import time
from contextlib import suppress
from types import TracebackType
from typing import Any

import pyarrow as pa

from service.kafka.errors import KafkaFailure, TransactionLost, WriterUnavailable, from_message
from service.kafka.writer import wire
from service.kafka.writer.launch import connect
from service.kafka.writer.report import WriteReport
from service.kafka.writer.wire import PeerGone
from service.kafka.writer.writer_settings import WriterSettings

__all__ = ["TransactionClient", "WriteReport", "WriterSettings", "warm_up"]

_FRAME_ROWS = 50_000
"""The rows of a frame: the writer handles one frame while the next is on its way, and holds two at most."""


def warm_up(settings: WriterSettings) -> None:
    """Start the writer process before the first batch, which then need not wait for it."""
    connect(settings).close()


class TransactionClient:
    """One attempt: `begin`, any number of `send`, then `commit` or `abort`. Leaving the `with` block early aborts.

    `digest` names the source rows that the batch was made from. Where it is only known at the end it is given to
    `commit`. `earlier` is the one that the batch was committed with, where it is done again although later ones are
    committed (b"" where this partition of it was not). If the task dies the writer process notices and aborts at once;
    if the writer process dies, `commit` asks a new one whether the batch was committed.
    """

    def __init__(
        self,
        settings: WriterSettings,
        partition: int,
        batch: int,
        digest: bytes | None = None,
        earlier: bytes | None = None,
    ) -> None:
        self._settings = settings
        self._partition = partition
        self._batch = batch
        self._digest = digest
        self._earlier = earlier
        self._connection: socket.socket | None = None
        self._longest_wait = 3 * settings.patience_ms / 1000 + settings.transaction_timeout_ms / 1000

    def begin(self) -> bool:
        """Begin the attempt. False if this batch of this partition is committed already: then write nothing, but still
        call `commit`."""
        for _ in range(3):
            try:
                return self._begin()
            except PeerGone:
                self.close()
        raise self._lost("the writer process died three times")

    def is_committed(self) -> bool:
        """Return whether the marker shows the batch as committed. It fences nobody and opens nothing."""
        for _ in range(3):
            try:
                return self._is_committed()
            except PeerGone:
                continue
            finally:
                self.close()
        raise self._lost("the writer process died three times")

    def send(self, records: pa.RecordBatch) -> None:
        """Add `records` (see `records.RECORDS`) to the transaction."""
        connection = self._open_connection()
        try:
            for first in range(0, records.num_rows, _FRAME_ROWS):
                if wire.readable(connection):
                    self._hear(connection)
                wire.send_rows(connection, records.slice(first, _FRAME_ROWS))
        except PeerGone as gone:
            raise self._why_gone(connection) from gone
        except TimeoutError as late:
            raise self._silent() from late

    def commit(self, digest: bytes | None = None, plan: bytes = b"") -> WriteReport:
        """Commit; afterwards the batch is committed exactly once, by this attempt or an earlier one. `plan` is the plan
        of the batch, in any form (`plan_records`)."""
        digest = digest if digest is not None else self._digest
        if digest is None:
            raise ValueError("commit needs the digest of the batch")
        connection = self._open_connection()
        started = time.monotonic()
        request = {"do": "commit", "digest": digest.hex(), "plan": plan.hex()}
        try:
            return WriteReport(**self._ask(connection, request)["report"])
        except PeerGone as gone:
            self._digest = digest
            return self._settle(started, gone)
        finally:
            self.close()

    def abort(self) -> None:
        """Abort; returns when the partition is free for the next attempt."""
        if self._connection is None:
            return
        try:
            self._ask(self._connection, {"do": "abort"})
        except (PeerGone, KafkaFailure):
            pass
        finally:
            self.close()

    def close(self) -> None:
        """Close the connection: an open transaction is aborted."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def __enter__(self) -> TransactionClient:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.abort()

    def _begin(self) -> bool:
        connection = self._connection = connect(self._settings)
        connection.settimeout(self._longest_wait)
        opening = {
            "settings": self._settings.to_json(),
            "partition": self._partition,
            "batch": self._batch,
            "digest": None if self._digest is None else self._digest.hex(),
            "earlier": None if self._earlier is None else self._earlier.hex(),
        }
        return bool(self._ask(connection, opening)["write"])

    def _is_committed(self) -> bool:
        connection = self._connection = connect(self._settings)
        connection.settimeout(self._longest_wait)
        opening = {"look": True, "settings": self._settings.to_json(), "partition": self._partition}
        newest = self._ask(connection, opening)["newest"]
        return bool(newest >= self._batch)

    def _settle(self, started: float, gone: PeerGone) -> WriteReport:
        """The writer process died while it committed: ask a new one for the outcome."""
        self.close()
        if self.begin():
            self.abort()
            raise self._lost("the writer process died before the batch was committed") from gone
        return WriteReport(outcome="settled", milliseconds=(time.monotonic() - started) * 1000)

    def _ask(self, connection: socket.socket, message: dict[str, Any]) -> dict[str, Any]:
        """Send a message and read the answer; a writer that no longer reads may have sent the reason before."""
        with suppress(PeerGone):
            wire.send_message(connection, message)
        return self._hear(connection)

    def _hear(self, connection: socket.socket) -> dict[str, Any]:
        try:
            reply = wire.receive(connection)
        except TimeoutError as late:
            raise self._silent() from late
        assert isinstance(reply, dict)
        if "error" in reply:
            raise from_message(reply["error"])
        return reply

    def _why_gone(self, connection: socket.socket) -> KafkaFailure:
        """The last message of a writer that has closed the connection, if there was one."""
        try:
            self._hear(connection)
        except KafkaFailure as reported:
            return reported
        except PeerGone:
            pass
        return self._lost("the writer process died before the batch was committed")

    def _silent(self) -> WriterUnavailable:
        return WriterUnavailable("the writer process does not answer", f"after {self._longest_wait:.0f} s")

    def _open_connection(self) -> socket.socket:
        if self._connection is None:
            raise ValueError("begin comes first")
        return self._connection

    def _lost(self, detail: str) -> TransactionLost:
        return TransactionLost(f"batch {self._batch} of partition {self._partition} was not committed", detail)
