"""The interface of a format: bytes of Kafka records to changes, and changes to bytes."""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

import numpy as np
import pyarrow as pa

from operators.sql import Sql

Positions = np.ndarray[Any, np.dtype[np.int64]]

RECORD = pa.schema(
    [
        ("key", pa.binary()),
        ("value", pa.binary()),
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("offset", pa.int64()),
        ("timestamp", pa.timestamp("us")),
        ("timestamp_type", pa.int32()),
        ("headers", pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))),
    ]
)
"""Records, of one Kafka partition after another, each in offset order; columns that the plan does not need are
absent. A `timestamp` that a TIMESTAMP cannot hold is NULL."""

DEAD_RECORD = pa.schema([*RECORD, ("reason", pa.string()), ("detail", pa.string())])
"""A record that could not be decoded. `reason` is one of a few fixed words (a metric label), `detail` a sentence."""

OUT = pa.schema(
    [
        ("key", pa.binary()),
        ("value", pa.binary()),
        ("partition", pa.int32()),
        ("timestamp", pa.int64()),
        ("headers", pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))),
    ]
)
"""Records to write, in order; partition null = chosen by the key as Java's default partitioner does."""


class DeadLetter(NamedTuple):
    """The reason why a record is a dead letter: one of a few fixed words (a metric label), and a sentence."""

    reason: str
    detail: str


PASSED_OVER = DeadLetter("", "")
"""Of a record that gives no row and is no dead letter: a comment, or an error that the table ignores."""


class Decoded(NamedTuple):
    """`changes`: columns c0, c1, ... and `_weight`, in offset order, one or two rows a record (an update of a CDC
    format is -1 then +1). `dead`: records with the columns of DEAD_RECORD. `records`: the position of each change's
    record, in ascending order; None where each record that is not dead gave one change."""

    changes: pa.Table
    dead: pa.Table
    records: Positions | None = None


class Decoder(Protocol):
    """Decodes the records of a table. Picklable; made once per job from the table and the columns that the plan
    reads."""

    def needs(self) -> tuple[str, ...]:
        """Return the columns of RECORD that `decode` reads besides topic, partition and offset."""

    def decode(self, records: pa.Table, sql: Sql) -> Decoded:
        """Decode one block of records; a bad record goes to `dead` and does not affect the others."""


class Encoder(Protocol):
    """Encodes the rows of a table. Picklable; made once per job from the table and the columns that are written."""

    def encode(self, changes: pa.Table, sql: Sql) -> pa.Table:
        """Return records (OUT) for the consolidated net changes of one batch: of one key, its -row before its +row.

        Raises NotEncodable for changes that the format cannot hold: call it again without them.
        """


class PartReader(Protocol):
    """Reads the columns of a record's key or value out of its bytes. Picklable."""

    def read(self, values: pa.ChunkedArray, sql: Sql, bad: dict[int, DeadLetter]) -> list[pa.ChunkedArray]:
        """Return a column for each wanted one, NULL where a value is missing or cannot be read. The positions of the
        values that cannot be read are added to `bad`, with the reason."""


class PartWriter(Protocol):
    """Writes the columns of a record's key or value. Picklable."""

    expression: str
    """DuckDB text over the columns of a block of changes, whose values `finish` turns into bytes."""

    def finish(self, column: pa.Array) -> pa.Array:
        """Return the text or the bytes of each row. Raises NotEncodable for rows that the format cannot hold."""
