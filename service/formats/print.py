"""Rows as the `print` connector shows them: +I[ann, 5]."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from operators.sql import Sql
from service.formats.changes.change_encodings import KINDS, row_by_row
from service.formats.changes.change_pairs import pair
from service.formats.contract import OUT
from service.formats.json.columns import quoted
from service.formats.json.parse import whole
from service.plan.table import Table
from service.plan.types import Binary, DataType, Simple, Timestamp, TimestampLtz


class PrintEncoder:
    """One line a row; what 'print-identifier' names stands before each."""

    def __init__(self, table: Table, columns: tuple[int, ...], key: tuple[int, ...] | None) -> None:
        self._key = key
        identifier = table.connector.options.get("print-identifier", "")
        self._prefix = f"{identifier}> " if identifier else ""
        texts = [f"coalesce({_text(f'c{i}', table.columns[c].type)}, 'null')" for i, c in enumerate(columns)]
        parts = [part for text in texts for part in (quoted(", "), text)][1:]
        self._statement = f"SELECT concat('[', {', '.join(parts)}, ']') AS value FROM changes"

    def encode(self, changes: pa.Table, sql: Sql) -> pa.Table:
        """Return records (OUT) whose value is the line."""
        if changes.num_rows == 0:
            return OUT.empty_table()
        texts = whole(sql(self._statement, {"changes": changes})["value"])
        rows, kinds = row_by_row(pair(changes, self._key))
        spoken = pa.array([self._prefix + kind for kind in KINDS]).take(pa.array(kinds))
        lines = pc.binary_join_element_wise(spoken, texts.take(pa.array(rows)), "")
        nothing = {f.name: pa.nulls(len(rows), f.type) for f in OUT}
        return pa.table({**nothing, "value": lines.cast(pa.binary())}, schema=OUT)


def _text(x: str, type_: DataType) -> str:
    match type_:
        case Timestamp():
            return f"replace(CAST({x} AS VARCHAR), ' ', 'T')"
        case TimestampLtz():
            return f"replace(CAST({x} AS VARCHAR), ' ', 'T') || 'Z'"
        case Simple("BYTES") | Binary():
            return f"hex({x})"
        case _:
            return f"CAST({x} AS VARCHAR)"
