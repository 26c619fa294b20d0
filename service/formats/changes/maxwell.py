"""The records of maxwell-json: {"data":…,"old":…,"type":"insert"|"update"|"delete"}, as Maxwell writes them.

`old` names only the columns that an update has changed; the row before the update has all others as `data` has them.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from service.formats.changes.beside_rows import MAXWELL, FieldsBeside
from service.formats.changes.change_encodings import BEFORE, DELETE, EncodedChanges, joined, row_by_row, texts_at
from service.formats.changes.change_pairs import ChangePairs
from service.formats.changes.decoder import ChangeRows, dead_where, flags, one_of
from service.formats.changes.partial_rows import Updated, names_in, overlaid
from service.formats.contract import DeadLetter
from service.formats.json.parse import Fields
from service.formats.record_parts import Part
from service.plan.table import TableColumn
from service.plan.types import STRING, Row

_UNKNOWN = DeadLetter("bad-value", 'the change has no "type" that is known: insert, update or delete')
_NO_DATA = DeadLetter("bad-value", 'the change has no "data"')


class Maxwell:
    """The shape of maxwell-json. Picklable."""

    def __init__(self) -> None:
        self._names: tuple[str, ...] = ()
        self._beside = FieldsBeside(MAXWELL)

    def fields(self, rows: Part, metadata: Sequence[TableColumn]) -> Fields:
        self._names = rows.names
        row = Row(rows.names, rows.types)
        return self._beside.added(Fields(("data", "old", "type"), (row, row, STRING), repeats=2), metadata)

    def change_rows(self, fields: Sequence[pa.Array], records: pa.Array) -> ChangeRows:
        data, old, kind = fields[:3]
        inserts, updates, deletes = (one_of(kind, word) for word in ("insert", "update", "delete"))
        bootstraps = one_of(kind, "bootstrap-insert")
        silent = one_of(kind, "bootstrap-start", "bootstrap-complete")
        before = overlaid(Updated(data, old, updates, lambda i: names_in(records[i].as_py(), "old")), self._names)
        comes, leaves = inserts | bootstraps | updates, updates | deletes
        bad = {
            **dead_where((comes | leaves) & flags(data.is_null()), _NO_DATA),
            **dead_where(~(comes | leaves | silent), _UNKNOWN),
        }
        return ChangeRows(before, data, leaves, comes, updates, bad)

    def metadata(self, fields: Sequence[pa.Array], column: TableColumn) -> pa.Array:
        return self._beside.column(fields, column)


def encode(texts: pa.Array, pairs: ChangePairs) -> EncodedChanges:
    """Write changes as Flink does: an update is a delete and an insert.

    >>> texts = pa.array(['{"n":1}', '{"n":2}'])
    >>> pairs = ChangePairs(np.array([-1, 0, 1]), np.array([0, 1, -1]))  # an insert, an update, a delete
    >>> print(*encode(texts, pairs).values, sep="\\n")
    {"data":{"n":1},"type":"insert"}
    {"data":{"n":1},"type":"delete"}
    {"data":{"n":2},"type":"insert"}
    {"data":{"n":2},"type":"delete"}
    """
    rows, kinds = row_by_row(pairs)
    gone = np.isin(kinds, (BEFORE, DELETE))
    types = pa.array(["insert", "delete"]).take(pa.array(gone.astype(np.int64)))
    return EncodedChanges(joined('{"data":', texts_at(texts, rows), ',"type":"', types, '"}'), rows, kinds)
