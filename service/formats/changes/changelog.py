"""The records of changelog-json: {"data":…,"op":"+I"|"-U"|"+U"|"-D"}."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

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
