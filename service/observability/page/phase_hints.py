"""The phases of a batch in words, and what helps when one of them takes most of it.

Their metric is a row of `service/observability/metrics/catalogue.py`, set by `observer.py` there.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple


class Words(NamedTuple):
    """A phase: its name, what happens in it, what helps when it is slow."""

    title: str
    meaning: str
    hint: str


COMPUTING = "addBatch"
"""The phase in which tasks run."""

DRIVER: Mapping[str, Words] = {
    "latestOffset": Words(
        "finding new rows",
        "the end offsets of Kafka's partitions are requested",
        "look at the brokers: they answer slowly, or the network to them is slow",
    ),
    "getBatch": Words("choosing offsets", "the offsets of the batch are laid out", ""),
    "queryPlanning": Words(
        "planning",
        "Spark plans the batch",
        "this costs the same for every batch: a longer TAILRACE_BATCH__TRIGGER makes fewer and larger ones",
    ),
    "walCommit": Words(
        "noting the offsets",
        "what the batch will read is written to the checkpoint",
        "look at the checkpoint's storage: it writes small files slowly",
    ),
    COMPUTING: Words(
        "computing",
        "tasks read, compute and write",
        "see below where its tasks spend their time",
    ),
    "commitOffsets": Words(
        "noting the end",
        "that the batch is done is written to the checkpoint",
        "look at the checkpoint's storage: it writes small files slowly",
    ),
    "other": Words("the rest", "between the phases, and between Spark and this process", ""),
}
"""The phases of the driver, one after another."""

TASKS: Mapping[str, Words] = {
    "decode": Words(
        "decoding",
        "records are turned into rows",
        "declare only the columns that the query needs; more partitions of the topic and more cores spread it",
    ),
    "ingest_operators": Words(
        "operators where rows enter",
        "filters, computed columns and partial totals of each partition",
        "more partitions of the topic and more cores spread this",
    ),
    "operators": Words(
        "operators with state",
        "joins, aggregates and windows",
        "more cores and tasks spread this; a time to live bounds the state that is searched",
    ),
    "lookup": Words(
        "looking up",
        "rows are looked up in tables of databases",
        "turn the table's cache on ('lookup.cache'), look at the database and at an index on the key",
    ),
    "encode": Words(
        "encoding",
        "changes are turned into records",
        "write fewer columns or fewer changes: filter, or window, before the sink",
    ),
    "write": Words(
        "writing to Kafka",
        "records are sent and the transaction is committed",
        "look at the brokers: a transaction waits for all replicas and for the coordinator",
    ),
    "state_commit": Words(
        "keeping the state",
        "state is written to the checkpoint",
        "look at the checkpoint's storage, and at operators whose state grows",
    ),
}
"""The phases of tasks while the driver is computing, concurrently."""


def words(phase: str) -> Words:
    """Return the words of a phase; an unknown one has its own name."""
    return DRIVER.get(phase) or TASKS.get(phase) or Words(phase.replace("_", " "), "", "")
