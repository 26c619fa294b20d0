"""Rows as Arrow structs, from which the writers of Avro and Protocol Buffers make their records."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

from service.formats.record_parts import Part
from service.plan.types import DataType, arrow, duckdb


def struct_text(part: Part, place: Mapping[int, str]) -> str:
    """Return the SQL text of a struct of the part's columns; `place` names those of a block, any other is NULL."""
    cells = (
        f"{_quoted(name)}: CAST({place.get(index, 'NULL')} AS {duckdb(type_)})"
        for index, name, type_ in zip(part.columns, part.names, part.types, strict=True)
    )
    return f"{{{', '.join(cells)}}}"


def rows_of(part: Part, column: pa.Array) -> pa.StructArray:
    """Return the answer to `struct_text` with each field in the Arrow type of its SQL type."""
    names, types = part.names, part.types
    return pa.StructArray.from_arrays(
        [_cast(each, t) for each, t in zip(column.flatten(), types, strict=True)],
        fields=[pa.field(n, arrow(t)) for n, t in zip(names, types, strict=True)],
    )


def _cast(column: pa.Array, type_: DataType) -> pa.Array:
    """The column in the type that its SQL type has: DuckDB may give it another one of the same values."""
    wanted = arrow(type_)
    return column if column.type == wanted else column.cast(wanted)


def _quoted(name: str) -> str:
    return "'" + name.replace("'", "''") + "'"
