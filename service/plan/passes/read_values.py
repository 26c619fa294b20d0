"""VALUES are read from a table of their numbers: a bounded source like any other, which ends after the last row."""

from __future__ import annotations

from service.plan.expressions import Call, Column, Expression
from service.plan.nodes import Field, Job, Node, Project, Scan, Values
from service.plan.table import ColumnKind, Connector, Table, TableColumn
from service.plan.types import BIGINT
from service.plan.walk import rewrite

NAME = "VALUES_{}"
"""The name of the source of a number of rows: those of one number of rows are read once."""

_RATE = 10_000
"""The most rows generated per second."""


def read_values(job: Job) -> Job:
    """Put each VALUES over a table of as many row numbers.

    >>> from tests.sql.outline import shown
    >>> print(shown("SELECT x FROM (VALUES (5), (7)) AS v(x)", read_values))
    project x
      project VALUES(row, 5, 7)
        scan VALUES_2
    """
    return rewrite(job, lambda node, _: _over_numbers(node) if isinstance(node, Values) else node)


def _over_numbers(node: Values) -> Node:
    count = len(node.rows)
    rate = str(min(count, _RATE))
    connector = Connector("datagen", options={"number-of-rows": str(count), "rows-per-second": rate})
    number = TableColumn("row", BIGINT, ColumnKind.METADATA, nullable=False, metadata="offset", virtual=True)
    table = Table(NAME.format(count), (number,), connector)
    scan = Scan(table=table, columns=(0,), fields=(Field("row", BIGINT, nullable=False),), place=node.place)
    expressions = tuple(_chosen([row[i] for row in node.rows]) for i in range(len(node.fields)))
    return Project(input=scan, expressions=expressions, fields=node.fields, place=node.place)


def _chosen(cells: list[Expression]) -> Expression:
    """The cell of the row that is read; only this one is computed."""
    whens = " ".join(f"WHEN {i} THEN {{{i + 1}}}" for i in range(len(cells)))
    return Call("VALUES", (Column(0, BIGINT, "row"), *cells), cells[0].type, f"CASE {{0}} {whens} END")
