"""The writer process: serves the tasks of one query on one host until it is no longer needed."""

from __future__ import annotations

import os
import select
import socket
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pyarrow as pa

from service.kafka.errors import Fenced, KafkaFailure, Superseded, TransactionLost, to_message
from service.kafka.writer import wire
from service.kafka.writer.marker import MarkerPlace, MarkerReader
from service.kafka.writer.partition_writer import PartitionWriter
from service.kafka.writer.wire import PeerGone
from service.kafka.writer.writer_settings import WriterSettings

_LOOK_AROUND = 1.0
"""Seconds between two checks of the driver's life, and of idle producers."""

_LAST_WORDS = 5.0
"""Seconds for which a writer that exits waits for running attempts: a transaction that is open after that is aborted by
Kafka at its time-out, and replayed."""


MOVED_AFTER, MOVED_SECONDS = 20, 300.0
"""The batches that a partition misses, and the seconds without a write, before its producer is closed. A partition that
has moved to another host would leave threads and connections behind, some to each broker. One that seldom has a row
should not create its producer each time: that takes longer than to write the row."""


class PartitionLease:
    """The right to use a partition's producer: its holder writes, the next attempt waits, then takes over."""

    def __init__(self, writer: PartitionWriter) -> None:
        self.writer = writer
        self.batch = -1
        self.used = time.monotonic()
        self._free = threading.Lock()
        self._holder: Attempt | None = None

    def give_up(self) -> None:
        """Close the producer, unless an attempt is writing. It is created again if the partition comes back."""
        if self._free.acquire(blocking=False):
            try:
                self.writer.close()
                self.batch = -1
            finally:
                self._free.release()

    @contextmanager
    def acquire(self, attempt: Attempt, wait_ms: int) -> Iterator[PartitionWriter]:
        """Take the lease, once the previous attempt has ended or was superseded."""
        since = time.monotonic()
        while not self._free.acquire(timeout=0.05):
            attempt.check()
            holder = self._holder
            if holder is not None and holder.batch > attempt.batch:
                raise Fenced(f"batch {attempt.batch} comes too late: batch {holder.batch} is being written")
            if holder is not None and time.monotonic() - since > wait_ms / 1000:
                holder.supersede()
        self._holder = attempt
        self.batch = max(self.batch, attempt.batch)
        try:
            yield self.writer
        finally:
            self.writer.abort()
            self.used = time.monotonic()
            self._holder = None
            self._free.release()


class Attempt:
    """One task's attempt, over its connection."""

    def __init__(self, connection: socket.socket, batch: int) -> None:
        self.connection = connection
        self.batch = batch
        self._superseded = threading.Event()

    def supersede(self) -> None:
        """Make this attempt end: its next check fails, and no further message of its task is read."""
        self._superseded.set()
        with suppress(OSError):
            self.connection.shutdown(socket.SHUT_RD)

    def check(self) -> None:
        """Raise Superseded or an error of the connection if this attempt must end."""
        if self._superseded.is_set():
            raise Superseded(
                f"another attempt has taken the place of this one at batch {self.batch}",
                "it waited for this attempt to end and then aborted its transaction",
            )
        if wire.hung_up(self.connection):
            raise PeerGone("the task has gone")

    def receive(self) -> dict[str, Any] | pa.RecordBatch:
        """Return the next message. Raises Superseded if a later attempt has taken over."""
        try:
            return wire.receive(self.connection)
        except PeerGone:
            if self._superseded.is_set():
                self.check()
            raise


class Server:
    """Answers on one Unix socket. `busy` connections keep the process alive."""

    def __init__(self, listener: socket.socket) -> None:
        self._listener = listener
        self._leases: dict[int, PartitionLease] = {}
        self._markers: MarkerReader | None = None
        self._lock = threading.Lock()
        self._busy = 0
        self._last_busy = time.monotonic()
        self._idle_seconds = 60.0

    def serve(self, parent_pid: int, socket_path: Path) -> None:
        """Serve until it is idle for long, or until the parent has ended; then leave no transaction open."""
        try:
            parent = os.pidfd_open(parent_pid)  # readable when the process has ended, even if nobody has waited for it
        except ProcessLookupError:
            return
        watched = select.poll()
        watched.register(self._listener, select.POLLIN)
        watched.register(parent, select.POLLIN)
        look_at = time.monotonic() + _LOOK_AROUND
        while not self._is_idle() and socket_path.exists():
            ready = {descriptor for descriptor, _ in watched.poll(_LOOK_AROUND * 1000)}
            if parent in ready:
                break
            if self._listener.fileno() in ready:
                connection, _ = self._listener.accept()
                with self._lock:
                    self._busy += 1
                threading.Thread(target=self._converse, args=(connection,), daemon=True).start()
            if time.monotonic() >= look_at:
                look_at = time.monotonic() + _LOOK_AROUND
                threading.Thread(target=self.close_moved, daemon=True).start()
        socket_path.unlink(missing_ok=True)
        self._listener.close()
        self._leave()

    def close_moved(self) -> None:
        """Close the producers of partitions that have missed many batches, for a while."""
        with self._lock:
            leases = list(self._leases.values())
        newest = max((lease.batch for lease in leases), default=-1)
        for lease in leases:
            missed = 0 <= lease.batch < newest - MOVED_AFTER
            if missed and time.monotonic() - lease.used >= MOVED_SECONDS:
                lease.give_up()

    def _is_idle(self) -> bool:
        with self._lock:
            return self._busy == 0 and time.monotonic() - self._last_busy > self._idle_seconds

    def _leave(self) -> None:
        until = time.monotonic() + _LAST_WORDS
        while self._busy and time.monotonic() < until:
            time.sleep(0.05)
        for lease in self._leases.values():
            if not self._busy:
                lease.writer.close()

    def _converse(self, connection: socket.socket) -> None:
        try:
            with connection:
                self._answer(connection)
        except PeerGone:
            pass
        finally:
            with self._lock:
                self._busy -= 1
                self._last_busy = time.monotonic()

    def _answer(self, connection: socket.socket) -> None:
        wire.send_message(connection, {"pid": os.getpid()})
        opening = wire.receive(connection)
        assert isinstance(opening, dict)
        settings = WriterSettings.from_json(opening["settings"])
        self._idle_seconds = settings.idle_seconds
        if opening.get("look"):
            return self._look(connection, settings, opening["partition"])
        attempt = Attempt(connection, opening["batch"])
        try:
            with self._lease(settings, opening["partition"]).acquire(attempt, settings.attempt_wait_ms) as writer:
                _attempt(attempt, writer, _bytes(opening["digest"]), _bytes(opening["earlier"]))
        except KafkaFailure as failure:
            self._refuse(connection, failure)
        except PeerGone:
            raise
        except Exception as error:
            print(f"{type(error).__name__}: {error}", file=sys.stderr, flush=True)
            self._refuse(connection, TransactionLost("the writer process failed", f"{type(error).__name__}: {error}"))

    def _look(self, connection: socket.socket, settings: WriterSettings, partition: int) -> None:
        """Send the newest committed batch of a partition, -1 if there is none."""
        try:
            place = MarkerPlace.of(settings, partition)
            marker = self._marker_reader(settings).committed(place, settings.patience_ms / 1000)
            wire.send_message(connection, {"newest": -1 if marker is None else marker.batch})
        except KafkaFailure as failure:
            wire.send_message(connection, {"error": to_message(failure)})

    def _refuse(self, connection: socket.socket, failure: KafkaFailure) -> None:
        """Send the error to the task, and read its remaining messages: it may still be sending."""
        wire.send_message(connection, {"error": to_message(failure)})
        with suppress(OSError):
            connection.shutdown(socket.SHUT_WR)
        while True:
            wire.receive(connection)

    def _lease(self, settings: WriterSettings, partition: int) -> PartitionLease:
        markers = self._marker_reader(settings)
        with self._lock:
            if partition not in self._leases:
                self._leases[partition] = PartitionLease(PartitionWriter(settings, partition, markers))
            return self._leases[partition]

    def _marker_reader(self, settings: WriterSettings) -> MarkerReader:
        with self._lock:
            if self._markers is None:
                self._markers = MarkerReader(settings.kafka)
            return self._markers


def _attempt(attempt: Attempt, writer: PartitionWriter, digest: bytes | None, earlier: bytes | None) -> None:
    """Run one attempt from its begin to its end. The caller aborts a transaction that is still open afterwards."""
    write = writer.begin(attempt.batch, digest, attempt.check, earlier)
    wire.send_message(attempt.connection, {"write": write})
    while True:
        request = attempt.receive()
        if isinstance(request, pa.RecordBatch):
            writer.write(request, attempt.check)
        elif request["do"] == "commit":
            report = writer.commit(bytes.fromhex(request["digest"]), attempt.check, bytes.fromhex(request["plan"]))
            return wire.send_message(attempt.connection, {"report": asdict(report)})
        else:
            writer.abort()
            return wire.send_message(attempt.connection, {"aborted": True})


def _bytes(text: str | None) -> bytes | None:
    return None if text is None else bytes.fromhex(text)
