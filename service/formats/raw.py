"""The format `raw`: the bytes of a key or value are the value of its only column.

Text is UTF-8. Numbers are written with their fixed width, big-endian unless 'raw.endianness' says otherwise; a BOOLEAN
is one byte. This is what Flink's raw format reads and writes.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from operators.sql import Sql
from service.formats.contract import DeadLetter
from service.formats.record_parts import Part
from service.formats.records import BAD_UTF8, texts
from service.plan.table import Format
from service.plan.types import Binary, DataType, Simple, Text, arrow

_NUMBERS: Mapping[str, str] = {
    "TINYINT": "i1",
    "SMALLINT": "i2",
    "INT": "i4",
    "BIGINT": "i8",
    "FLOAT": "f4",
    "DOUBLE": "f8",
}


class RawReader:
    """Reads the only column of a part. Picklable."""

    def __init__(self, part: Part, form: Format) -> None:
        self._types = part.types
        self._order = _order(form)

    def read(self, values: pa.ChunkedArray, sql: Sql, bad: dict[int, DeadLetter]) -> list[pa.ChunkedArray]:
        """Return the column, NULL where there is no value or none of the right length; `bad` grows by the latter."""
        return [self._column(values, type_, bad) for type_ in self._types]

    def _column(self, values: pa.ChunkedArray, type_: DataType, bad: dict[int, DeadLetter]) -> pa.ChunkedArray:
        match type_:
            case Simple("STRING") | Text():
                decoded, broken = texts(values)
                bad.update(dict.fromkeys(broken, BAD_UTF8))
                return decoded
            case Simple("BYTES") | Binary():
                return values
            case Simple(name):
                return pa.chunked_array([self._numbers(values, name, arrow(type_), bad)])
            case _:
                raise ValueError(f"raw bytes cannot be a {type_}")

    def _numbers(self, values: pa.ChunkedArray, name: str, wanted: pa.DataType, bad: dict[int, DeadLetter]) -> pa.Array:
        width = np.dtype(_NUMBERS.get(name, "i1")).itemsize
        lengths = pc.fill_null(pc.binary_length(values), width).to_numpy()
        for index in np.flatnonzero(lengths != width):
            bad[int(index)] = DeadLetter(
                "wrong-type", f"{name} is {width} bytes, but the record has {int(lengths[index])} bytes"
            )
        missing = values.is_null().to_numpy() | (lengths != width)
        zero = pa.scalar(b"\0" * width)
        filled = pc.if_else(pa.array(missing), zero, values.combine_chunks())
        plain = np.frombuffer(b"".join(filled.to_pylist()), dtype=self._order + _NUMBERS.get(name, "i1"))
        if name == "BOOLEAN":
            return pa.array(plain != 0, mask=missing)
        return pa.array(plain.astype(plain.dtype.newbyteorder("=")), mask=missing).cast(wanted)


class RawWriter:
    """Writes the only column of a part. Picklable.

    >>> from service.plan.types import INT
    >>> from tests.formats.wire import encode, table
    >>> encode(table({"n": INT}, "raw"), (1, (258,)))["value"][0].as_py()
    b'\\x00\\x00\\x01\\x02'
    """

    def __init__(self, part: Part, form: Format, place: Mapping[int, str]) -> None:
        (column,), (type_,) = part.columns, part.types
        self.expression = place.get(column, "NULL")
        self._number = _NUMBERS.get(type_.name) if isinstance(type_, Simple) else None
        self._boolean = type_ == Simple("BOOLEAN")
        self._order = _order(form)

    def finish(self, column: pa.Array) -> pa.Array:
        """Return the bytes of each value; a NULL has none."""
        if self._number is None and not self._boolean:
            return column.cast(pa.binary())
        numbers = column.cast(pa.int8()) if self._boolean else column
        plain = numbers.fill_null(0).to_numpy(zero_copy_only=False).astype(self._order + (self._number or "i1"))
        width, data = plain.dtype.itemsize, plain.tobytes()
        cut = [data[i : i + width] for i in range(0, len(data), width)]
        return pa.array(cut, pa.binary(), mask=column.is_null().to_numpy(zero_copy_only=False))


def _order(form: Format) -> str:
    return "<" if form.options.get("endianness", "big-endian").lower() == "little-endian" else ">"
