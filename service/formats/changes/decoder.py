"""The decoder of the formats whose records say what happened to a row: debezium-json, changelog-json, ..."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from operators.sql import Sql
from service.formats.contract import PASSED_OVER, DeadLetter, Decoded, PartReader, Positions
from service.formats.json.options import json_options
from service.formats.json.parse import Fields
from service.formats.metadata import metadata_column, record_column
from service.formats.record_parts import Part, required, value_part
from service.formats.records import block, dead, missing
from service.plan.table import ColumnKind, Format, Table, TableColumn

Flags = np.ndarray[Any, np.dtype[np.bool_]]


class ChangeRows(NamedTuple):
    """The changes that the records of a block describe: the row that leaves and the row that comes (structs of the
    wanted columns, to be taken where `leaves` and `comes` say so), where the row that leaves is `replaced` by another
    of its key, and the records that say nothing that makes sense.

    `source` is the position of each change's record, in ascending order; None if each record describes one change.
    """

    before: pa.StructArray
    after: pa.StructArray
    leaves: Flags
    comes: Flags
    replaced: Flags
    bad: Mapping[int, DeadLetter]
    source: Positions | None = None


class Shape(Protocol):
    """One format: picklable."""

    def fields(self, rows: Part, metadata: Sequence[TableColumn]) -> Fields:
        """Return what to read of a record whose rows have these columns."""

    def change_rows(self, fields: Sequence[pa.Array], records: pa.Array) -> ChangeRows:
        """Return what the records say, from the fields that were read; `records` are their bytes."""

    def metadata(self, fields: Sequence[pa.Array], column: TableColumn) -> pa.Array:
        """Return a METADATA column of the format itself."""


class ChangeDecoder:
    """Up to two rows a record, -1 before +1, in offset order; one at most where the table is read as upserts.

    A record without a value says nothing and is passed over: it is there for Kafka, to forget the key.
    """

    def __init__(
        self, table: Table, columns: tuple[int, ...], shape: Shape, reader: Callable[[Fields, Format], PartReader]
    ) -> None:
        self._table = table
        self._columns = columns
        self._shape = shape
        whole = value_part(table)
        physical = frozenset(i for i in columns if table.columns[i].kind is ColumnKind.PHYSICAL)
        # Without any column there would be no telling whether there is a row.
        self._rows = whole.only(physical or frozenset(whole.columns[:1]))
        self._metadata = [i for i in columns if table.columns[i].kind is ColumnKind.METADATA]
        of_format = [table.columns[i] for i in self._metadata if _of_format(table.columns[i])]
        form = table.connector.value_format or Format("json")
        self._reader = reader(shape.fields(self._rows, of_format), form)
        self._ignore = json_options(form).ignore_errors

    def needs(self) -> tuple[str, ...]:
        wanted = {"value": None}
        for index in self._metadata:
            column = self._table.columns[index]
            if not _of_format(column):
                wanted[record_column(column.metadata)] = None
        return tuple(name for name in wanted if name not in ("topic", "partition", "offset"))

    def decode(self, records: pa.Table, sql: Sql) -> Decoded:
        bad: dict[int, DeadLetter] = {}
        values = records["value"]
        fields = [c.combine_chunks() for c in self._reader.read(values, sql, bad)]
        change_rows = self._shape.change_rows(fields, values.combine_chunks())
        silent = values.is_null().to_numpy()
        for index, letter in change_rows.bad.items():
            if not silent[index]:
                bad.setdefault(index, PASSED_OVER if self._ignore else letter)
        source = np.arange(records.num_rows) if change_rows.source is None else change_rows.source
        columns = self._cells(records, fields, change_rows)
        for index, (before, after) in columns.items():
            if required(self._table, index):
                name = self._table.columns[index].name
                lacking: dict[int, DeadLetter] = {}
                missing(name, pa.chunked_array([before]), lacking, except_in=pa.array(~change_rows.leaves))
                missing(name, pa.chunked_array([after]), lacking, except_in=pa.array(~change_rows.comes))
                for change, letter in lacking.items():
                    bad.setdefault(int(source[change]), letter)
        valid = np.ones(records.num_rows, dtype=bool)
        valid[list(bad)] = False
        leaves = change_rows.leaves & ~change_rows.replaced if self._table.upserts else change_rows.leaves
        there = np.stack([leaves & valid[source], change_rows.comes & valid[source]], axis=1)
        places = np.arange(2 * len(source)).reshape(2, -1).T[there]
        weights = np.broadcast_to(np.array([-1, 1]), there.shape)[there]
        taken = pa.array(places)
        cells = [pa.concat_arrays(columns[i]).take(taken) for i in self._columns]
        origins = np.broadcast_to(source[:, None], there.shape)[there]
        return Decoded(block(cells, pa.array(weights)), dead(records, bad), origins)

    def _cells(
        self, records: pa.Table, fields: Sequence[pa.Array], change_rows: ChangeRows
    ) -> dict[int, tuple[pa.Array, pa.Array]]:
        """Each wanted column, in the row before and in the row after."""
        cells: dict[int, tuple[pa.Array, pa.Array]] = {}
        for position, index in enumerate(self._rows.columns):
            cells[index] = (
                pc.struct_field(change_rows.before, [position]),
                pc.struct_field(change_rows.after, [position]),
            )
        for index in self._metadata:
            column = self._table.columns[index]
            found = (
                self._shape.metadata(fields, column)
                if _of_format(column)
                else metadata_column(records, column).combine_chunks()
            )
            if change_rows.source is not None:
                found = found.take(pa.array(change_rows.source))
            cells[index] = (found, found)
        return cells


def flags(column: pa.Array) -> Flags:
    """Return a boolean column, false where it is NULL."""
    found: Flags = pc.fill_null(column, False).to_numpy(zero_copy_only=False)
    return found


def one_of(column: pa.Array, *words: str) -> Flags:
    """Return where a text is one of these."""
    return flags(pc.is_in(column, pa.array(words, pa.string())))


def dead_where(where: Flags, letter: DeadLetter) -> dict[int, DeadLetter]:
    """Return the same verdict on each of these records."""
    return dict.fromkeys(map(int, np.flatnonzero(where)), letter)


def _of_format(column: TableColumn) -> bool:
    """Whether a METADATA column is the format's, as Flink tells it from the connector's."""
    return column.metadata.startswith("value.")
