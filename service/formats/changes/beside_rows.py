"""What the records of canal-json, maxwell-json and ogg-json say beside their rows: METADATA columns."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from service.formats.json.parse import Fields
from service.plan.table import TableColumn
from service.plan.types import BIGINT, INT, STRING, Array, DataType, Map, Timestamp, TimestampLtz, arrow


def as_read(values: pa.Array) -> pa.Array:
    """Return the values of a field as they are."""
    return values


class FieldBeside(NamedTuple):
    """A field of the record, its type there, and the column that its values become."""

    field: str
    type: DataType
    value: Callable[[pa.Array], pa.Array] = as_read


_MOST_MILLIS = (2**63 - 1) // 1000
"""The last millisecond since the epoch that a timestamp in microseconds can hold."""


def of_millis(column: pa.Array) -> pa.Array:
    """Return milliseconds as timestamps; NULL where one is too far away."""
    held = pc.and_(pc.greater_equal(column, -_MOST_MILLIS), pc.less_equal(column, _MOST_MILLIS))
    return pc.multiply(pc.if_else(held, column, pa.scalar(None, pa.int64())), 1000).view(pa.timestamp("us"))


def of_seconds(column: pa.Array) -> pa.Array:
    """Return seconds as timestamps; NULL where one is too far away."""
    most = _MOST_MILLIS // 1000
    held = pc.and_(pc.greater_equal(column, -most), pc.less_equal(column, most))
    return of_millis(pc.multiply(pc.if_else(held, column, pa.scalar(None, pa.int64())), 1000))


_SECOND = "%Y-%m-%d %H:%M:%S"
_WRITTEN = r"^\d{4}-\d{2}-\d{2}[ T]\d{2}:\d{2}:\d{2}(\.\d{1,6})?Z?$"


def of_text(column: pa.Array) -> pa.Array:
    """Return texts such as 2020-05-13 15:40:06.000000 as timestamps in UTC; NULL where one is none.

    >>> print(*of_text(pa.array(["2020-05-13T15:40:06.5Z", "2020-02-30 00:00:00", "soon"])))
    2020-05-13 15:40:06.500000 None None
    """
    texts = pc.if_else(pc.match_substring_regex(column, _WRITTEN), column, pa.scalar(None, pa.string()))
    texts = pc.replace_substring(pc.replace_substring(texts, "T", " "), "Z", "")
    seconds = pc.utf8_slice_codeunits(texts, 0, 19)
    found = pc.strptime(seconds, _SECOND, unit="s", error_is_null=True)
    # A day that a month does not have is read as one of the next.
    found = pc.if_else(pc.equal(pc.strftime(found, _SECOND), seconds), found, pa.scalar(None, found.type))
    fraction = pc.utf8_rpad(pc.utf8_slice_codeunits(texts, 20, 26), 6, "0").cast(pa.int64())
    return pc.add(found.cast(pa.timestamp("us")).cast(pa.int64()), fraction).view(pa.timestamp("us"))


CANAL: Mapping[str, FieldBeside] = {
    "value.database": FieldBeside("database", STRING),
    "value.table": FieldBeside("table", STRING),
    "value.sql-type": FieldBeside("sqlType", Map(STRING, INT)),
    "value.pk-names": FieldBeside("pkNames", Array(STRING)),
    "value.ingestion-timestamp": FieldBeside("ts", BIGINT, of_millis),
    "value.event-timestamp": FieldBeside("es", BIGINT, of_millis),
}
"""What Flink reads of canal-json, by the key of its METADATA."""

MAXWELL: Mapping[str, FieldBeside] = {
    "value.database": FieldBeside("database", STRING),
    "value.table": FieldBeside("table", STRING),
    "value.primary-key-columns": FieldBeside("primary_key_columns", Array(STRING)),
    "value.ingestion-timestamp": FieldBeside("ts", BIGINT, of_seconds),
}
"""What Flink reads of maxwell-json."""

OGG: Mapping[str, FieldBeside] = {
    "value.table": FieldBeside("table", STRING),
    "value.primary-keys": FieldBeside("primary_keys", Array(STRING)),
    "value.ingestion-timestamp": FieldBeside("current_ts", STRING, of_text),
    "value.event-timestamp": FieldBeside("op_ts", STRING, of_text),
}
"""What Flink reads of ogg-json."""


class FieldsBeside:
    """The fields of a format's records that METADATA columns ask for. Picklable."""

    def __init__(self, known: Mapping[str, FieldBeside]) -> None:
        self._known = known
        self._names: tuple[str, ...] = ()

    def added(self, own: Fields, metadata: Sequence[TableColumn]) -> Fields:
        """Return what is read of a record: the format's own fields, and behind them those that the columns ask for."""
        asked = {each.field: each.type for column in metadata for each in [self._known[column.metadata]]}
        more = {name: type_ for name, type_ in asked.items() if name not in own.names}
        self._names = (*own.names, *more)
        return Fields(self._names, (*own.types, *more.values()), own.repeats)

    def column(self, fields: Sequence[pa.Array], column: TableColumn) -> pa.Array:
        """Return a METADATA column, from the fields that were read."""
        beside = self._known[column.metadata]
        found = beside.value(fields[self._names.index(beside.field)])
        if isinstance(column.type, Timestamp | TimestampLtz) and column.type.precision < 6:
            found = pc.floor_temporal(found, multiple=10 ** (6 - column.type.precision), unit="microsecond")
        wanted = arrow(column.type)
        return found if found.type == wanted else found.cast(wanted)
