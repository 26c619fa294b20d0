"""Conversion of a relation to its versions: an upsert stream whose changes are valid from a time on.

Versions are read below whatever keeps the last row of each key, since a batch has many versions of a row and one last
row. A condition that such a row must meet does not leave a version out, for the version before it would stay in force:
it becomes a column, and the version counts as no row where the column is not true.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

from service.plan.expression_text import describe
from service.plan.expressions import Column, Expression, Literal, columns_of
from service.plan.nodes import Field, Filter, Mode, Node, Normalize, Project, Scan, TopN
from service.plan.passes.bound_ranks import absorb_rank
from service.plan.passes.expand_computed import declared
from service.plan.properties import carries_changes, mode
from service.plan.table import ColumnKind, Table, TimeKind
from service.plan.types import BIGINT, BOOLEAN
from service.plan.walk import fields

_LAST_ROW = (
    "keep the last row of each key: ROW_NUMBER() OVER (PARTITION BY <key> ORDER BY <time> DESC) ... WHERE ... = 1"
)


class VersionStream(NamedTuple):
    """The columns of a relation, then others that it needs. `key` are the positions of its primary key; a version is
    a row of the relation where the BOOLEAN columns at `conditions` are true. `untimed_deletes` says that deletes may
    have no event time."""

    node: Node
    key: tuple[int, ...]
    conditions: tuple[int, ...] = ()
    untimed_deletes: bool = False


class NoVersions(Exception):
    """The reason why a relation has no versions: `primary` says what is missing, `hint` what to do."""

    def __init__(self, primary: str, hint: str) -> None:
        super().__init__(primary)
        self.primary = primary
        self.hint = hint


def version_stream(node: Node) -> VersionStream:
    """Return the versions of the relation `node`; raises NoVersions where there are none."""
    match node:
        case Normalize(input=Scan() as scan):
            return _of_table(scan)
        case Scan():
            return _of_table(node)
        case Filter():
            bounded = absorb_rank(node)
            return _filtered(node) if bounded is node else version_stream(bounded)
        case TopN():
            return _last_rows(node)
        case Project():
            return _projected(node)
        case _:
            raise NoVersions(
                "it is neither a table with a PRIMARY KEY, nor a view that keeps the last row of each key",
                _LAST_ROW,
            )


def _of_table(scan: Scan) -> VersionStream:
    table = scan.table
    if not table.key:
        raise NoVersions(
            f'table "{table.name}" has no PRIMARY KEY', "declare PRIMARY KEY (<columns>) NOT ENFORCED with the table"
        )
    if carries_changes(table) and table.connector.kind != "upsert-kafka":
        scan = replace(scan, table=replace(table, upserts=True))
    return VersionStream(
        scan, tuple(scan.columns.index(k) for k in table.key), untimed_deletes=_has_untimed_deletes(table)
    )


def _has_untimed_deletes(table: Table) -> bool:
    """Whether the event time of `table` comes from its records' values, which a tombstone has none of."""
    if table.connector.kind != "upsert-kafka" or table.rowtime is None:
        return False
    read = columns_of(declared(table, table.rowtime))
    return any(table.columns[i].kind is ColumnKind.PHYSICAL and i not in table.key for i in read)


def _last_rows(node: TopN) -> VersionStream:
    """Where the last row of each key is kept, every row of the input is a version."""
    time = fields(node.input)[node.order[0].column].time if len(node.order) == 1 else TimeKind.NONE
    if not (node.latest_first and node.first == node.last == 1 and time is not TimeKind.NONE):
        raise NoVersions("it ranks rows, and does not keep the last row of each key", _LAST_ROW)
    if mode(node.input) is not Mode.APPEND:
        raise NoVersions("it keeps the last rows of an updating input", "join the table whose rows change itself")
    if not node.shown:
        return VersionStream(node.input, node.partition)
    known = fields(node.input)
    rank = Literal("CAST(1 AS BIGINT)", BIGINT, "1")
    expressions: tuple[Expression, ...] = (*(Column(i, f.type, f.name) for i, f in enumerate(known)), rank)
    return VersionStream(
        Project(input=node.input, expressions=expressions, fields=node.fields, place=node.place), node.partition
    )


def _filtered(node: Filter) -> VersionStream:
    below = version_stream(node.input)
    known = fields(below.node)
    passes = Field(describe(node.condition), BOOLEAN)
    project = Project(
        input=below.node,
        expressions=(*(Column(i, f.type, f.name) for i, f in enumerate(known)), node.condition),
        fields=(*known, passes),
        place=node.place,
    )
    return below._replace(node=project, conditions=(*below.conditions, len(known)))


def _projected(node: Project) -> VersionStream:
    below = version_stream(node.input)
    known = fields(below.node)
    expressions: list[Expression] = list(node.expressions)
    columns = list(node.fields)
    places: dict[int, int] = {}
    for place, expression in enumerate(node.expressions):
        if isinstance(expression, Column):
            places.setdefault(expression.index, place)
    lost = [known[k].name for k in below.key if k not in places]
    if lost:
        raise NoVersions(
            f"it does not show {' and '.join(lost)}, of the primary key", "select all columns of the primary key"
        )
    for place in below.conditions:
        places[place] = len(columns)
        expressions.append(Column(place, known[place].type, known[place].name))
        columns.append(known[place])
    project = replace(node, input=below.node, expressions=tuple(expressions), fields=tuple(columns))
    return below._replace(
        node=project,
        key=tuple(places[k] for k in below.key),
        conditions=tuple(places[c] for c in below.conditions),
    )
