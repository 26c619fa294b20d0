"""The records of changelog-json, read and written: {"data":…,"op":"+I"|"-U"|"+U"|"-D"}."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from service.formats.changes.change_encodings import KINDS, EncodedChanges, joined, row_by_row, texts_at
from service.formats.changes.change_pairs import ChangePairs
from service.formats.changes.decoder import ChangeRows, dead_where, one_of
from service.formats.contract import DeadLetter
from service.formats.json.parse import Fields
from service.formats.record_parts import Part
from service.plan.table import TableColumn
from service.plan.types import STRING, Row

_UNKNOWN = DeadLetter("bad-value", 'the change has no "op" that is known: +I, -U, +U or -D')
_NO_DATA = DeadLetter("bad-value", 'the change has no "data"')


class Changelog:
    """The shape of changelog-json."""

    def fields(self, rows: Part, metadata: Sequence[TableColumn]) -> Fields:
        if metadata:
            raise ValueError(f"changelog-json has no metadata '{metadata[0].metadata}'")
        return Fields(("data", "op"), (Row(rows.names, rows.types), STRING))

    def change_rows(self, fields: Sequence[pa.Array], records: pa.Array) -> ChangeRows:
        data, op = fields
        comes, leaves = one_of(op, "+I", "+U"), one_of(op, "-U", "-D")
        bad = {
            **dead_where(data.is_null().to_numpy(zero_copy_only=False), _NO_DATA),
            **dead_where(~(comes | leaves), _UNKNOWN),
        }
        return ChangeRows(data, data, leaves, comes, one_of(op, "-U"), bad)

    def metadata(self, fields: Sequence[pa.Array], column: TableColumn) -> pa.Array:
        raise ValueError(f"changelog-json has no metadata '{column.metadata}'")


def encode(texts: pa.Array, pairs: ChangePairs) -> EncodedChanges:
    """Write each row that comes or leaves with its row kind.

    >>> import numpy as np
    >>> texts = pa.array(['{"n":1}', '{"n":2}'])
    >>> pairs = ChangePairs(np.array([-1, 0, 1]), np.array([0, 1, -1]))  # an insert, an update, a delete
    >>> print(*encode(texts, pairs).values, sep="\\n")
    {"data":{"n":1},"op":"+I"}
    {"data":{"n":1},"op":"-U"}
    {"data":{"n":2},"op":"+U"}
    {"data":{"n":2},"op":"-D"}
    """
    rows, kinds = row_by_row(pairs)
    ops = pa.array(KINDS).take(pa.array(kinds))
    return EncodedChanges(joined('{"data":', texts_at(texts, rows), ',"op":"', ops, '"}'), rows, kinds)
