"""Conversion of the lines of an input file to the blocks of records that a Kafka source would pass to a task."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import pyarrow as pa

from service.formats.contract import RECORD
from service.local.errors import CaseError
from service.local.inputs import ROWS, InputRows
from service.local.text_table import Line
from service.plan.table import Table


@dataclass(slots=True)
class Feed:
    """The records of one source; offsets go on from batch to batch. A row of a `.rows` file travels as the number of
    its line, from which `prepared.PreparedRows` knows the rest."""

    table: Table
    input: InputRows
    offsets: dict[int, int] = field(default_factory=dict)

    @property
    def topic(self) -> str:
        """The topic that the records seem to come from."""
        topics = self.table.connector.topics
        return topics[0] if topics else self.table.name

    def records(self, batch: int, now: int) -> list[pa.Table]:
        """Return the records of a batch, a table a partition, written at the wall-clock time `now`."""
        if batch >= len(self.input.arrivals):
            return []
        arrived = sorted(self.input.arrivals[batch].partitions.items())
        return [self._block(lines, partition, now) for partition, lines in arrived if lines]

    def _block(self, lines: Sequence[Line], partition: int, now: int) -> pa.Table:
        pairs = [self._pair(line) for line in lines]
        n = len(pairs)
        first = self.offsets.get(partition, 0)
        self.offsets[partition] = first + n
        columns = {
            "key": [k for k, _ in pairs],
            "value": [v for _, v in pairs],
            "topic": [self.topic] * n,
            "partition": [partition] * n,
            "offset": list(range(first, first + n)),
            "timestamp": [now * 1000] * n,
            "timestamp_type": [0] * n,
            "headers": [None] * n,
        }
        return pa.table([pa.array(columns[f.name], f.type) for f in RECORD], schema=RECORD)

    def _pair(self, line: Line) -> tuple[bytes | None, bytes | None]:
        """Key and value of a record: `VALUE`, or `KEY => VALUE` where the table reads keys; nothing is a null."""
        if self.input.path.suffix == ROWS:
            return None, str(line.number).encode()
        connector = self.table.connector
        keyed = connector.kind == "upsert-kafka" or connector.key_format is not None
        if line.text == "=>" or (keyed and "=>" in line.text):
            key, _, value = line.text.partition("=>")
            return self._bytes(line, key.strip()), self._bytes(line, value.strip())
        return None, self._bytes(line, line.text)

    def _bytes(self, line: Line, text: str) -> bytes | None:
        """The bytes that `text` stands for: itself, or `hex 7b7d` in hexadecimal."""
        if not text.startswith("hex "):
            return text.encode() if text else None
        try:
            return bytes.fromhex(text[4:])
        except ValueError:
            raise CaseError.at(self.input.path, line.number, f"`{text}` is not hexadecimal") from None
