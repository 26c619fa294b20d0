"""The columns of a block: their names by position, and how DuckDB writes an Arrow type."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

import numpy as np
import pyarrow as pa

from operators.names import AT, WEIGHT, column
from operators.sql_text import comma, quoted

_KNOWN = 1024
"""The number of cached empty blocks: each batch of each operator needs one, and to make it takes ten times as long."""

_SIMPLE: dict[pa.DataType, str] = {
    pa.bool_(): "BOOLEAN",
    pa.int8(): "TINYINT",
    pa.int16(): "SMALLINT",
    pa.int32(): "INTEGER",
    pa.int64(): "BIGINT",
    pa.uint64(): "UBIGINT",
    pa.float32(): "FLOAT",
    pa.float64(): "DOUBLE",
    pa.string(): "VARCHAR",
    pa.binary(): "BLOB",
    pa.date32(): "DATE",
    pa.time64("us"): "TIME",
    pa.timestamp("us"): "TIMESTAMP",
    pa.month_day_nano_interval(): "INTERVAL",
}


def duckdb_type(type_: pa.DataType) -> str:
    """Return how DuckDB writes `type_`, as in CAST(x AS ...)."""
    if (simple := _SIMPLE.get(type_)) is not None:
        return simple
    if pa.types.is_decimal(type_):
        return f"DECIMAL({type_.precision}, {type_.scale})"
    if pa.types.is_list(type_):
        return f"{duckdb_type(type_.value_type)}[]"
    if pa.types.is_map(type_):
        return f"MAP({duckdb_type(type_.key_type)}, {duckdb_type(type_.item_type)})"
    if pa.types.is_struct(type_):
        return f"STRUCT({comma(f'{quoted(field.name)} {duckdb_type(field.type)}' for field in type_)})"
    raise TypeError(f"no column of a block has the type {type_}")


def positional(types: Iterable[pa.DataType]) -> pa.Schema:
    """Return a schema with the columns c0, c1, ... of `types`."""
    return pa.schema([pa.field(column(i), t) for i, t in enumerate(types)])


def weighted(schema: pa.Schema) -> pa.Schema:
    """Return the schema of changes of a relation: its visible columns and the weight."""
    return pa.schema([*schema, pa.field(WEIGHT, pa.int64())])


def as_changes(table: pa.Table, schema: pa.Schema) -> pa.Table:
    """Return `table` with exactly the columns of `weighted(schema)`, cast where DuckDB chose a neighbouring type."""
    target = weighted(schema)
    table = table.select(target.names)
    return table if table.schema == target else table.cast(target)


@lru_cache(maxsize=_KNOWN)
def no_changes(schema: pa.Schema) -> pa.Table:
    """Return an empty block of changes of a relation with the columns `schema`."""
    return weighted(schema).empty_table()


def numbered(rows: pa.Table) -> pa.Table:
    """Return `rows` with their numbers, from 0, in a column AT."""
    return rows.append_column(AT, pa.array(np.arange(rows.num_rows)))
