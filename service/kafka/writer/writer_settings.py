"""The settings of a writer process: a value that is sent over the socket and never shows its secrets."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class WriterSettings:
    """Settings of one query's writer.

    `query` and `checkpoint_id` name whose output it is: a new checkpoint has a new id, so it writes all again. `kafka`
    holds librdkafka properties, secrets included. `parent_pid` is the process without which the writer has nothing to
    do (the executor's or the driver's JVM). `aborts` is the file of the `abort_counter` of transactions that were
    rolled back; empty = they are not counted. `patience_ms` bounds how long one call waits for a Kafka that does not
    answer, `attempt_wait_ms` how long a second attempt of a partition waits for the first before taking over.
    `accept_changed_source` takes a batch for written that reads other records than when it was written. `plan` is the
    plan number of the checkpoint, see `marker.Marker`.
    """

    query: str
    checkpoint_id: str
    kafka: Mapping[str, str] = field(repr=False)
    marker_topic: str
    socket_folder: str
    parent_pid: int
    transaction_timeout_ms: int = 60_000
    patience_ms: int = 120_000
    attempt_wait_ms: int = 5_000
    idle_seconds: int = 600
    aborts: str = ""
    accept_changed_source: bool = False
    plan: int = 0

    def transactional_id(self, partition: int) -> str:
        """Return the id under which Kafka fences: one owner at a time for each partition of a checkpoint."""
        return f"tailrace-{self.query}-{self.checkpoint_id}-{partition}"

    def socket_name(self) -> str:
        """Return a short name that differs where any setting differs: a writer never serves settings that it does not
        have."""
        return hashlib.sha256(self.to_json().encode()).hexdigest()[:16]

    def to_json(self) -> str:
        """Return the settings as JSON, for the command line of a writer."""
        values = {each.name: getattr(self, each.name) for each in fields(self)}
        return json.dumps(values | {"kafka": dict(self.kafka)}, sort_keys=True)

    @staticmethod
    def from_json(text: str) -> WriterSettings:
        """Return the settings that `to_json` wrote."""
        values: dict[str, Any] = json.loads(text)
        return WriterSettings(**values)
