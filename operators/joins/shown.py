"""The columns that a join shows, and what stands in them where a row meets nothing."""

from __future__ import annotations

import pyarrow as pa

from operators.joins.kinds import JoinKind


def joined_types(kind: JoinKind, left: pa.Schema, right: pa.Schema) -> list[pa.DataType]:
    """Return the types of the columns of a join."""
    if kind is JoinKind.MARK:
        return [*left.types, pa.bool_()]
    return [*left.types, *(right.types if kind.shows_right else ())]


def beside_nulls(rows: pa.Table, other: pa.Schema, port: int = 0) -> list[pa.ChunkedArray | pa.Array]:
    """Return the columns of `rows` of the input at `port` (0 is left), with NULLs for those of the `other` input."""
    nulls = [pa.nulls(rows.num_rows, type_) for type_ in other.types]
    return [*nulls, *rows.columns] if port else [*rows.columns, *nulls]
