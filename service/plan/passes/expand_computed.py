"""Computed columns of a table become a projection over what its records hold, and are planned like any other."""

from __future__ import annotations

from dataclasses import replace

from service.plan.expressions import Column, Expression, columns_of, moved, substituted
from service.plan.nodes import Field, Job, Node, Project, Scan
from service.plan.table import ColumnKind, Table
from service.plan.walk import rewrite


def expand_computed(job: Job) -> Job:
    """Make every scan read physical and metadata columns only, among them those that the watermark is computed from.

    >>> from tests.sql.outline import shown
    >>> print(shown("SELECT id, at FROM pay", expand_computed))
    project id, at
      project who, amount, id, ts, PROCTIME()
        scan pay
    """
    return rewrite(job, lambda node, _: _expanded(node) if isinstance(node, Scan) else node)


def declared(table: Table, index: int) -> Expression:
    """Return the declared column at `index` in terms of physical and metadata columns, by their declared index."""
    column = table.columns[index]
    if column.kind is ColumnKind.COMPUTED:
        assert column.expression is not None, f"the computed column {column.name} has no expression"
        return column.expression
    return Column(index, column.type, column.name)


def watermark(table: Table) -> Expression | None:
    """Return the watermark that a row asserts, in terms of physical and metadata columns, by their declared index."""
    if table.watermark is None:
        return None
    return substituted(table.watermark, tuple(declared(table, i) for i in range(len(table.columns))))


def watermark_columns(table: Table) -> set[int]:
    """Return the physical and metadata columns that the watermark is computed from."""
    expression = watermark(table)
    return set() if expression is None else set(columns_of(expression))


def _expanded(scan: Scan) -> Node:
    table = scan.table
    wanted = [declared(table, i) for i in scan.columns]
    read = sorted({c for e in wanted for c in columns_of(e)} | watermark_columns(table))
    if set(read) == set(scan.columns):
        return scan
    places = {index: place for place, index in enumerate(read)}
    known = dict(zip(scan.columns, scan.fields, strict=True))
    below = replace(scan, columns=tuple(read), fields=tuple(known.get(i) or _field(table, i) for i in read))
    return Project(
        input=below, expressions=tuple(moved(e, places) for e in wanted), fields=scan.fields, place=scan.place
    )


def _field(table: Table, index: int) -> Field:
    column = table.columns[index]
    return Field(column.name, column.type, column.nullable, table.time_kind(index))
