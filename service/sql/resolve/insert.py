"""INSERT INTO: the query's columns against the table's, cast where that loses nothing."""

from __future__ import annotations

from sqlglot import exp

from service.plan.expressions import Column, Expression, Literal
from service.plan.nodes import Node, Sink
from service.plan.table import ColumnKind, Table
from service.plan.types import DataType, duckdb, flink
from service.sql.errors import SqlError, did_you_mean, offset_of
from service.sql.expressions.casts import assignable, cast
from service.sql.options.connector import read_connector
from service.sql.parse.statements import Insert, Name
from service.sql.parse.written import written
from service.sql.resolve.context import QueryRejected, ResolveContext, TemporalFunction, View
from service.sql.resolve.enforcers import fitted, without_nulls
from service.sql.resolve.query import resolve_whole_query
from service.sql.resolve.relation import Relation, column, projected
from service.sql.scope import INTERNAL
from service.sql.tables.metadata_columns import WRITABLE_METADATA


def resolve_insert(insert: Insert, session: ResolveContext) -> Sink:
    """Return the sink of an INSERT; raises QueryRejected, its mistakes noted, if it has any."""
    with session.all_or_nothing():
        table = _table(insert, session)
        relation = resolve_whole_query(insert.query, session)
        if table is None:
            raise QueryRejected
    with session.all_or_nothing():
        targets = _targets(table, insert, session)
        items = _values(table, targets, relation, insert, session)
    columns = writable(table)
    relation = without_nulls(relation, _not_null(table, targets, relation), session, insert.at)
    node: Node = relation.node
    if not _already(items, relation):
        node = projected(relation, items, session.place(insert.at)).node
    return Sink(input=node, table=table, columns=columns, place=session.place(insert.at))


def _table(insert: Insert, session: ResolveContext) -> Table | None:
    name = insert.table
    if name.text not in session.catalog.entries:
        session.mistakes.add(
            f'table "{name.text}" does not exist',
            detail=f"known here: {', '.join(session.catalog.names)}" if session.catalog.names else "",
            hint=did_you_mean(name.text, session.catalog.names),
            at=name.at,
        )
        return None
    table = session.catalog.entries[name.text]
    if isinstance(table, View):
        session.mistakes.add(f'"{name.text}" is a view and cannot be written to', at=name.at)
        return None
    if isinstance(table, TemporalFunction):
        session.mistakes.add(f'"{name.text}" is a table function and cannot be written to', at=name.at)
        return None
    if table is None:
        return None
    if table.connector.kind == "datagen":
        session.mistakes.add(f'table "{table.name}" cannot be written to', detail="'datagen' is a source", at=name.at)
    if table.lookup is not None:
        session.mistakes.add(
            f'table "{table.name}" cannot be written to',
            detail="'jdbc' is looked up, and not written",
            hint="write to Kafka, and have Kafka Connect's JDBC sink write what is there into the database",
            at=name.at,
        )
    if len(table.connector.topics) > 1:
        session.mistakes.add(f'table "{table.name}" cannot be written to', detail="a sink has one topic", at=name.at)
    if table.connector.topic_pattern:
        session.mistakes.add(
            f'table "{table.name}" cannot be written to',
            detail="'topic-pattern' says what is read; a sink has one topic",
            hint="declare another table with 'topic' for what is written",
            at=name.at,
        )
    if insert.options:
        declared = {o.key: o for o in (*session.catalog.declared[table.name].options, *insert.options)}
        connector = read_connector(declared.values(), session.mistakes, name.at, session.idle_timeout)
        if connector is None:
            return None
        table = Table(table.name, table.columns, connector, table.key, table.rowtime, table.watermark, table.proctimes)
    return table


def writable(table: Table) -> tuple[int, ...]:
    """Return the columns that a row to be written has: physical ones, and metadata that is not VIRTUAL."""
    return tuple(
        i
        for i, c in enumerate(table.columns)
        if c.kind is ColumnKind.PHYSICAL or (c.kind is ColumnKind.METADATA and not c.virtual)
    )


def _targets(table: Table, insert: Insert, session: ResolveContext) -> tuple[int, ...]:
    """The columns that the query fills, in its order."""
    allowed = writable(table)
    for index in allowed:
        each = table.columns[index]
        if each.kind is ColumnKind.METADATA and each.metadata.removeprefix("value.") not in WRITABLE_METADATA:
            session.mistakes.add(
                f'column "{each.name}" cannot be written',
                detail=f"the metadata '{each.metadata}' of a record can only be read",
                hint=f"declare {each.name} ... METADATA FROM '{each.metadata}' VIRTUAL",
                at=insert.table.at,
            )
    if not insert.columns:
        return allowed
    names = {table.columns[i].name.removeprefix(INTERNAL): i for i in allowed}
    found: list[int] = []
    for name in insert.columns:
        if name.text not in names:
            session.mistakes.add_error(_unwritable(name, table, names), name.at)
        elif names[name.text] in found:
            session.mistakes.add(f'column "{name.text}" is filled twice', at=name.at)
        else:
            found.append(names[name.text])
    for index in allowed:
        each = table.columns[index]
        if index not in found and not each.nullable and len(found) == len(insert.columns):
            session.mistakes.add(
                f'column "{each.name}" is NOT NULL and is left out', hint=f"add {each.name} to the list", at=insert.at
            )
    return tuple(found)


def _not_null(table: Table, targets: tuple[int, ...], relation: Relation) -> list[tuple[int, str]]:
    """The columns of the query that may be NULL where the table's may not, with the names of the latter."""
    return [
        (given, table.columns[target].name)
        for target, given in zip(targets, relation.scope.starred(), strict=True)
        if relation.scope.field(given).nullable and not table.columns[target].nullable
    ]


def _unwritable(name: Name, table: Table, names: dict[str, int]) -> SqlError:
    declared = next((c for c in table.columns if c.name == name.text), None)
    if declared is None:
        return SqlError(
            f'column "{name.text}" does not exist in table "{table.name}"',
            detail=f"{table.name} has the columns {', '.join(names)}",
            hint=did_you_mean(name.text, names),
        )
    why = "it is computed" if declared.kind is ColumnKind.COMPUTED else "it is VIRTUAL"
    return SqlError(f'column "{name.text}" cannot be written', detail=why)


def _values(
    table: Table, targets: tuple[int, ...], relation: Relation, insert: Insert, session: ResolveContext
) -> list[tuple[str, Expression]]:
    """One expression for each writable column, NULL for those left out."""
    given = relation.scope.starred()
    at = offset_of(insert.query)
    if len(given) != len(targets):
        shown = [table.columns[i] for i in targets]
        session.mistakes.add(
            f'the query gives {len(given)} columns, and "{table.name}" takes {len(targets)}',
            detail=f"the query: {_listed([(f.name, flink(f.type)) for f in map(relation.scope.field, given)])}; "
            f"the table: {_listed([(c.name, flink(c.type)) for c in shown])}",
            at=insert.at if at is None else at,
        )
        return []
    sources = dict(zip(targets, given, strict=True))
    items: list[tuple[str, Expression]] = []
    for index in writable(table):
        target = table.columns[index]
        if index not in sources:
            items.append((target.name, Literal(f"CAST(NULL AS {duckdb(target.type)})", target.type, "NULL")))
            continue
        field = relation.scope.field(sources[index])
        position = given.index(sources[index])
        if not assignable(field.type, target.type):
            session.mistakes.add(
                f'column "{field.name}" does not fit into "{target.name}" of table "{table.name}"',
                detail=f"it is {flink(field.type)}, and {target.name} takes {flink(target.type)}",
                hint=_cast_hint(column(relation.scope, sources[index]), target.type, insert.query, position),
                at=_item_place(insert.query, position, insert.at),
            )
            continue
        with session.mistakes.collecting(insert.query):
            value = fitted(column(relation.scope, sources[index]), target.type, session)
            items.append((target.name, value))
    return items


def _item_place(query: exp.Expr, position: int, default: int) -> int:
    """Where the column at `position` of a query is written, as far as that is known."""
    items = _items(query)
    found = offset_of(items[position]) if items else None
    return found if found is not None else offset_of(query) or default


def _cast_hint(value: Expression, to: DataType, query: exp.Expr, position: int) -> str:
    """How to cast the column at `position` of a query, or what to do where there is no such cast."""
    try:
        cast(value, to)
    except SqlError as error:
        return error.hint
    name = value.name if isinstance(value, Column) else ""
    return f"write CAST({_item_text(query, position, name)} AS {flink(to)})"


def _item_text(query: exp.Expr, position: int, name: str) -> str:
    """How the column at `position` of a query is written, if that is short, else dots; a column that * stands for is
    written by its `name`."""
    if items := _items(query):
        return written(items[position].unalias()) or "..."
    return name if isinstance(query, exp.Select) and name.replace("_", "a").isalnum() else "..."


def _items(query: exp.Expr) -> list[exp.Expr]:
    """What a query lists: a SELECT without *, or the only row of VALUES; nothing for any other query."""
    match query:
        case exp.Select() if not any(each.is_star for each in query.expressions):
            return query.expressions
        case exp.Values(expressions=[exp.Tuple() as row]):
            return row.expressions
        case _:
            return []


def _listed(columns: list[tuple[str, str]]) -> str:
    return ", ".join(f"{name} {kind}" for name, kind in columns)


def _already(items: list[tuple[str, Expression]], relation: Relation) -> bool:
    """Whether the query gives the columns just as the table takes them."""
    own = [column(relation.scope, i) for i in range(len(relation.scope))]
    return [e for _, e in items] == own
