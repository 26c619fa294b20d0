"""The items of FROM: tables, views, WITH queries, subqueries, window table functions."""

from __future__ import annotations

from sqlglot import exp

from service.plan.formats import traits
from service.plan.nodes import Field, Node, Normalize, Scan, WindowRows
from service.plan.table import Table
from service.plan.types import Timestamp
from service.sql.errors import SqlError, did_you_mean
from service.sql.parse.query_grammar import WINDOW_FUNCTIONS
from service.sql.parse.stream_window_grammar import STREAM_WINDOWS
from service.sql.parse.table_grammar import local_name
from service.sql.resolve.context import QueryRejected, ResolveContext, TemporalFunction, View, not_yet
from service.sql.resolve.kept_times import with_time
from service.sql.resolve.relation import Relation, WindowColumns, column, projected, uniquely_named
from service.sql.resolve.syntax import call_name, names_of
from service.sql.resolve.table_hints import with_options
from service.sql.resolve.unread import refuse_unread
from service.sql.resolve.values_clause import resolve_values
from service.sql.resolve.windows import (
    described_time,
    partitioned,
    table_call,
    time_attribute,
    window_time,
    window_zone,
)
from service.sql.scope import Scope
from service.sql.tables.create_table import table_fields

_TIMESTAMP = Timestamp(3)


def resolve_relation(node: exp.Expr, session: ResolveContext) -> Relation:
    """Return the relation that an item of FROM gives, under its alias."""
    _check(node, session)
    match node:
        case exp.Table(this=exp.Anonymous() as call):
            return aliased(window_rows(call, session), node, session)
        case exp.Table(this=exp.Values() as values):
            return aliased(resolve_values(values, session), node, session)
        case exp.Table():
            return aliased(_named(node, session), node, session, local_name([p.name for p in node.parts]))
        case exp.Subquery():
            return aliased(query_inside(node.this, session), node, session)
        case exp.Values():
            return resolve_values(node, session)
        case _:
            shown = "LATERAL" if isinstance(node, exp.Lateral) else f'"{node.sql(comments=False)}"'
            raise session.give_up(not_yet(f"{shown} in FROM", node))


def query_inside(query: exp.Expr, session: ResolveContext) -> Relation:
    """Return a query inside a query."""
    from service.sql.resolve.query import resolve_query  # queries nest, so the modules do

    return resolve_query(query, session)


def _check(node: exp.Expr, session: ResolveContext) -> None:
    if node.args.get("version"):
        raise session.give_up(
            SqlError(
                "FOR SYSTEM_TIME AS OF belongs to the right side of a join",
                hint="write FROM <left> JOIN <table> FOR SYSTEM_TIME AS OF <left>.<time> ON ...",
                at=node.args["version"],
            )
        )
    for key, shown in (("joins", "a join in parentheses"), ("sample", "TABLESAMPLE"), ("pivots", "PIVOT")):
        if node.args.get(key):
            raise session.give_up(not_yet(shown, node))


def aliased(relation: Relation, node: exp.Expr, session: ResolveContext, default: str = "") -> Relation:
    """Return `relation` under the alias of `node`, with the names that it gives to columns; else under `default`."""
    alias = node.args.get("alias")
    names = [c.name for c in alias.args.get("columns") or ()] if alias is not None else []
    relation = renamed(relation, names, session, alias) if names else uniquely_named(relation, session.place(node))
    if alias is None:
        return relation.qualified(default)
    return relation.qualified(alias.name)


def renamed(relation: Relation, names: list[str], session: ResolveContext, at: exp.Expr | None) -> Relation:
    """Return the relation with other names for its columns."""
    listed = relation.scope.starred()
    if len(names) != len(listed):
        raise session.give_up(
            SqlError(
                f"{len(names)} column names are given for {len(listed)} columns",
                detail=f"the columns are {', '.join(relation.scope.field(i).name for i in listed)}",
                at=at,
            )
        )
    items = [(name, column(relation.scope, i)) for name, i in zip(names, listed, strict=True)]
    return projected(relation, items, session.place(at))


def _named(node: exp.Table, session: ResolveContext) -> Relation:
    name = local_name([p.name for p in node.parts])
    if name in session.ctes:
        common = session.ctes[name]
        if node.meta.get("hints"):
            raise session.give_up(_no_options(name, "a query of WITH", node))
        relation = query_inside(common.query, common.session)
        return renamed(relation, list(common.columns), session, node) if common.columns else relation
    if name not in session.catalog.entries:
        known = (*session.ctes, *session.catalog.names)
        raise session.give_up(
            SqlError(
                f'table "{name}" does not exist',
                detail=f"known here: {', '.join(known)}" if known else "no table is declared before this line",
                hint=did_you_mean(name, known),
                at=node,
            )
        )
    entry = session.catalog.entries[name]
    match entry:
        case Table():
            return scan(with_options(entry, node, session), session, node)
        case View():
            if node.meta.get("hints"):
                raise session.give_up(_no_options(name, "a view", node))
            return resolve_view(entry, session)
        case TemporalFunction():
            raise session.give_up(
                SqlError(
                    f'"{name}" is a function of time, no table',
                    hint=f"write JOIN LATERAL TABLE({name}(<left>.<time>)) AS ... ON ...",
                    at=node,
                )
            )
        case None:
            raise QueryRejected


def _no_options(name: str, what: str, node: exp.Table) -> SqlError:
    return SqlError(f'"{name}" is {what}, and has no options', hint="write OPTIONS behind its table", at=node)


def resolve_view(view: View, session: ResolveContext) -> Relation:
    """Return the relation of a view, whose query sees the catalog and nothing of the query around it."""
    refuse_unread(view.query, session.inside(view.name))
    relation = query_inside(view.query, session.inside(view.name))
    return renamed(relation, list(view.columns), session, None) if view.columns else relation


def scan(table: Table, session: ResolveContext, at: exp.Expr) -> Relation:
    """Return all columns of a source table. An upsert stream becomes a relation of rows by its key; so does a keyed CDC
    stream that may repeat itself, if 'table.exec.source.cdc-events-duplicate' says so."""
    if table.connector.kind in ("print", "blackhole"):
        raise session.give_up(
            SqlError(f'table "{table.name}" cannot be read', detail=f"'{table.connector.kind}' is a sink", at=at)
        )
    fields = table_fields(table)
    place = session.place(at)
    node: Node = Scan(table=table, columns=tuple(range(len(fields))), fields=fields, place=place)
    value = table.connector.value_format
    repeats = session.deduplicate_cdc and value is not None and traits(value).carries_changes
    if table.key and (table.connector.kind == "upsert-kafka" or repeats):
        node = Normalize(input=node, key=table.key, ttl=session.ttl, place=place)
    return Relation(node, Scope.of(fields))


def window_rows(call: exp.Anonymous, session: ResolveContext) -> Relation:
    """Return a window table function: its table's rows, with window_start, window_end and window_time."""
    if call_name(call) in STREAM_WINDOWS:
        raise session.give_up(
            SqlError(f"{call.name} is not a table function", hint=f"write GROUP BY {call.name}(...)", at=call)
        )
    if call_name(call) not in WINDOW_FUNCTIONS:
        raise session.give_up(
            SqlError(
                f"the table function {call.name} does not exist",
                detail=f"there is {', '.join(WINDOW_FUNCTIONS)}",
                hint=did_you_mean(call.name, WINDOW_FUNCTIONS),
                at=call,
            )
        )
    try:
        window = table_call(call)
        data = window.arguments["DATA"]
        _check_data(data, window.name)
        relation = resolve_relation(data, session)
        name = f"the window {window.name}"
        described = described_time(window.arguments["TIMECOL"])
        relation = with_time(relation, described, session)
        time = time_attribute(described, relation.scope, name)
        shape = partitioned(window.window(), data, relation.scope)
    except SqlError as error:
        raise session.give_up(error, call) from error
    attribute = relation.scope.field(time)
    added = (
        Field("window_start", _TIMESTAMP, False),
        Field("window_end", _TIMESTAMP, False),
        window_time(attribute),
    )
    # As in Flink, the time attribute itself is a plain timestamp after the table function.
    scope = relation.scope.without_time()
    fields = (*scope.fields, *added)
    zone = window_zone(attribute, session.zone)
    node = WindowRows(input=relation.node, time=time, window=shape, fields=fields, zone=zone, place=session.place(call))
    width = len(relation.fields)
    windows = WindowColumns(width, width + 1, width + 2, added[2], zone, attribute=time)
    return Relation(node, scope.beside(Scope.of(added)), (windows,))


def _check_data(data: exp.Expr, window: str) -> None:
    """Raise SqlError if the data of a window are neither TABLE t nor a query in parentheses."""
    if isinstance(data, exp.Table | exp.Subquery):
        return
    bare = data.this if isinstance(data, exp.Paren) else data
    if isinstance(bare, exp.Column):
        name = ".".join(names_of(bare))
        raise SqlError(
            f'the data of {window} is a table, and "{name}" is read as a column', hint=f"write TABLE {name}", at=data
        )
    raise SqlError(f"the data of {window} is a table or a query", hint="write TABLE <table>, or (SELECT ...)", at=data)
