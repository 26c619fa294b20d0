"""The records of canal-json: {"data":[…],"old":[…],"type":"INSERT"|"UPDATE"|"DELETE"}, as Canal writes them.

`old` names only the columns that an update has changed. A record may hold several rows. Statements that change no row
(CREATE, ALTER, TRUNCATE, ...) are passed over, as Flink passes over CREATE.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from service.formats.changes.beside_rows import CANAL, FieldsBeside
from service.formats.changes.change_encodings import BEFORE, DELETE, EncodedChanges, joined, row_by_row, texts_at
from service.formats.changes.change_pairs import ChangePairs
from service.formats.changes.decoder import ChangeRows, Flags, dead_where, one_of
from service.formats.changes.partial_rows import Updated, names_in, overlaid
from service.formats.contract import DeadLetter, Positions
from service.formats.json.parse import Fields
from service.formats.record_parts import Part
from service.plan.table import Format, TableColumn
from service.plan.types import STRING, Array, Row

_UNKNOWN = DeadLetter("bad-value", 'the change has no "type" that is known: INSERT, UPDATE or DELETE')
_NO_DATA = DeadLetter("bad-value", 'the change has no "data"')
_STATEMENTS = ("CREATE", "ALTER", "ERASE", "TRUNCATE", "RENAME", "CINDEX", "DINDEX", "QUERY")


class Canal:
    """The shape of canal-json. Picklable."""

    def __init__(self, form: Format) -> None:
        self._database = form.options.get("database.include")
        self._table = form.options.get("table.include")
        self._names: tuple[str, ...] = ()
        self._beside = FieldsBeside(CANAL)

    def fields(self, rows: Part, metadata: Sequence[TableColumn]) -> Fields:
        self._names = rows.names
        row = Row(rows.names, rows.types)
        names = ("data", "old", "type", "database", "table")
        own = Fields(names, (Array(row), Array(row), STRING, STRING, STRING), repeats=2)
        return self._beside.added(own, metadata)

    def change_rows(self, fields: Sequence[pa.Array], records: pa.Array) -> ChangeRows:
        datas, olds, kind, database, table = fields[:5]
        wanted = self._wanted(database, self._database) & self._wanted(table, self._table)
        inserts, updates, deletes = (one_of(kind, word) & wanted for word in ("INSERT", "UPDATE", "DELETE"))
        comes, leaves = inserts | updates, updates | deletes
        counts = _lengths(datas)
        known = comes | leaves | one_of(kind, *_STATEMENTS) | ~wanted
        bad = {**dead_where((comes | leaves) & (counts == 0), _NO_DATA), **dead_where(~known, _UNKNOWN)}
        source = np.repeat(np.arange(len(counts)), counts)
        element = np.arange(len(source)) - np.repeat(np.cumsum(counts) - counts, counts)
        data, old = datas.flatten(), _elements(olds, source, element)

        def names_in_old(change: int) -> frozenset[str]:
            return names_in(records[int(source[change])].as_py(), "old", int(element[change]))

        before = overlaid(Updated(data, old, updates[source], names_in_old), self._names)
        return ChangeRows(before, data, leaves[source], comes[source], updates[source], bad, source)

    def metadata(self, fields: Sequence[pa.Array], column: TableColumn) -> pa.Array:
        return self._beside.column(fields, column)

    @staticmethod
    def _wanted(column: pa.Array, pattern: str | None) -> Flags:
        if pattern is None:
            return np.ones(len(column), dtype=bool)
        found: Flags = pc.fill_null(pc.match_substring_regex(column, f"^(?:{pattern})$"), False).to_numpy(
            zero_copy_only=False
        )
        return found


def _lengths(lists: pa.ListArray) -> Positions:
    found: Positions = pc.fill_null(pc.list_value_length(lists), 0).to_numpy(zero_copy_only=False).astype(np.int64)
    return found


def _elements(lists: pa.ListArray, source: Positions, element: Positions) -> pa.StructArray:
    """The element at a position of the list of each source, NULL where that list is shorter."""
    lengths = _lengths(lists)
    starts = np.cumsum(lengths) - lengths
    missing = element >= lengths[source]
    return lists.flatten().take(pa.array(np.where(missing, 0, starts[source] + element), mask=missing))


def encode(texts: pa.Array, pairs: ChangePairs) -> EncodedChanges:
    """Write changes as Flink does: an update is a delete and an insert.

    >>> texts = pa.array(['{"n":1}', '{"n":2}'])
    >>> pairs = ChangePairs(np.array([-1, 0, 1]), np.array([0, 1, -1]))  # an insert, an update, a delete
    >>> print(*encode(texts, pairs).values, sep="\\n")
    {"data":[{"n":1}],"type":"INSERT"}
    {"data":[{"n":1}],"type":"DELETE"}
    {"data":[{"n":2}],"type":"INSERT"}
    {"data":[{"n":2}],"type":"DELETE"}
    """
    rows, kinds = row_by_row(pairs)
    gone = np.isin(kinds, (BEFORE, DELETE))
    types = pa.array(["INSERT", "DELETE"]).take(pa.array(gone.astype(np.int64)))
    return EncodedChanges(joined('{"data":[', texts_at(texts, rows), '],"type":"', types, '"}'), rows, kinds)
