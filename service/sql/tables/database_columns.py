"""The columns of a table of a database: each is one of the database's own, of a type that databases have."""

from __future__ import annotations

from service.plan.table import ColumnKind, Table
from service.plan.types import Array, DataType, Interval, Map, Row, flink
from service.sql.errors import Mistakes
from service.sql.parse.statements import CreateTable


def check_database_columns(table: Table, statement: CreateTable, mistakes: Mistakes) -> None:
    """Note what a lookup cannot give."""
    if table.connector.kind != "jdbc":
        return
    for clause, column in zip(statement.columns, table.columns, strict=True):
        if column.kind is ColumnKind.COMPUTED:
            mistakes.add(
                f'column "{column.name}" cannot be computed in a table of a database',
                detail="its rows are looked up as they are",
                hint="compute it in the query, or in a view of the database",
                at=clause.name.at,
            )
        elif not _known(column.type):
            mistakes.add(
                f'column "{column.name}" cannot be read from a database',
                detail=f"{flink(column.type)} is not a separate type there",
                hint="declare it as STRING or ARRAY, or leave it out",
                at=clause.name.at,
            )
    for watermark in statement.watermarks:
        mistakes.add(
            "a table of a database has no WATERMARK",
            detail="it is looked up as it is now",
            hint="leave the WATERMARK out",
            at=watermark.at,
        )


def _known(kind: DataType) -> bool:
    match kind:
        case Array(element):
            return _known(element)
        case Map() | Row() | Interval():
            return False
        case _:
            return True
