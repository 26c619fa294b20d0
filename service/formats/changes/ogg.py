"""The records of ogg-json: {"before":…,"after":…,"op_type":"I"|"U"|"D"|"T"}, as Oracle GoldenGate writes them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from service.formats.changes.beside_rows import OGG, FieldsBeside
from service.formats.changes.change_encodings import BEFORE, DELETE, EncodedChanges, joined, row_by_row, texts_at
from service.formats.changes.change_pairs import NONE, ChangePairs
from service.formats.changes.decoder import ChangeRows, Flags, dead_where, one_of
from service.formats.contract import DeadLetter, Positions
from service.formats.json.parse import Fields
from service.formats.record_parts import Part
from service.plan.table import TableColumn
from service.plan.types import STRING, Row

_UNKNOWN = DeadLetter("bad-value", 'the change has no "op_type" that is known: I, U, D or T')
_NO_BEFORE = DeadLetter("bad-value", 'an update or a delete has no "before": GoldenGate must write before images')
_NO_AFTER = DeadLetter("bad-value", 'an insert or an update has no "after"')


class Ogg:
    """The shape of ogg-json. Picklable."""

    def __init__(self) -> None:
        self._beside = FieldsBeside(OGG)

    def fields(self, rows: Part, metadata: Sequence[TableColumn]) -> Fields:
        row = Row(rows.names, rows.types)
        return self._beside.added(Fields(("before", "after", "op_type"), (row, row, STRING), repeats=2), metadata)

    def change_rows(self, fields: Sequence[pa.Array], records: pa.Array) -> ChangeRows:
        before, after, op = fields[:3]
        # T truncates a table: it says of no row that it has gone, and is passed over as Flink does.
        truncates = one_of(op, "T")
        comes, leaves = one_of(op, "I", "U"), one_of(op, "U", "D")
        bad = {
            **dead_where(comes & after.is_null().to_numpy(zero_copy_only=False), _NO_AFTER),
            **dead_where(leaves & before.is_null().to_numpy(zero_copy_only=False), _NO_BEFORE),
            **dead_where(~(comes | leaves | truncates), _UNKNOWN),
        }
        return ChangeRows(before, after, leaves, comes, leaves & comes, bad)

    def metadata(self, fields: Sequence[pa.Array], column: TableColumn) -> pa.Array:
        return self._beside.column(fields, column)


def encode(texts: pa.Array, pairs: ChangePairs) -> EncodedChanges:
    """Write changes as Flink does: an update is a delete and an insert.

    >>> texts = pa.array(['{"n":1}', '{"n":2}'])
    >>> pairs = ChangePairs(np.array([-1, 0, 1]), np.array([0, 1, -1]))  # an insert, an update, a delete
    >>> print(*encode(texts, pairs).values, sep="\\n")
    {"before":null,"after":{"n":1},"op_type":"I"}
    {"before":{"n":1},"after":null,"op_type":"D"}
    {"before":null,"after":{"n":2},"op_type":"I"}
    {"before":{"n":2},"after":null,"op_type":"D"}
    """
    rows, kinds = row_by_row(pairs)
    gone = (kinds == BEFORE) | (kinds == DELETE)
    ops = pa.array(["I", "D", "I", "D"]).take(pa.array(kinds))
    before = texts_at(texts, _where(gone, rows)).fill_null("null")
    after = texts_at(texts, _where(~gone, rows)).fill_null("null")
    values = joined('{"before":', before, ',"after":', after, ',"op_type":"', ops, '"}')
    return EncodedChanges(values, rows, kinds)


def _where(chosen: Flags, rows: Positions) -> Positions:
    return np.where(chosen, rows, NONE)
