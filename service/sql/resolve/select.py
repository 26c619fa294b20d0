"""SELECT: FROM, WHERE, grouping, windows, the list of columns, DISTINCT, in the order in which they act."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from sqlglot import exp

from service.plan.expressions import Expression
from service.plan.nodes import Place, Values
from service.plan.passes.push_filters import both
from service.plan.types import DataType, Row
from service.sql.errors import SqlError, offset_of
from service.sql.resolve.context import QueryRejected, ResolveContext
from service.sql.resolve.distinct import deduplicated
from service.sql.resolve.group_by import is_grouped, resolve_grouped
from service.sql.resolve.inner_clauses import check_stars, star_of
from service.sql.resolve.join_conditions import checked_condition
from service.sql.resolve.joins import From, resolve_from
from service.sql.resolve.ordering import hidden_items, ordered, with_names
from service.sql.resolve.over import resolve_over
from service.sql.resolve.qualify import with_qualify
from service.sql.resolve.query_values import with_aggregated_queries, with_query_values
from service.sql.resolve.relation import Relation, field_for, filtered, projected
from service.sql.resolve.semi_joins import resolve_query_condition
from service.sql.resolve.single_values import with_single_values
from service.sql.resolve.skew import Skew, check_taken
from service.sql.resolve.stream_windows import resolve_stream_window, stream_window_of
from service.sql.resolve.syntax import field_of_row, has_query, output_name
from service.sql.resolve.table_hints import state_ttls
from service.sql.resolve.unnest import single_row
from service.sql.scope import Scope

Item = tuple[str, exp.Expr]
"""A column of a SELECT list: its name and its expression, without the alias."""


def resolve_select(select: exp.Select, session: ResolveContext) -> Relation:
    """Return the relation of one SELECT."""
    check_stars(select, session)
    with session.all_or_nothing():
        relation, named, places, ttl = _selected(select, session)
    if isinstance(relation.node, Values) and not relation.scope.columns:
        return ordered(select, _single_row(named, session.place(select)), session, ttl)
    relation = with_names(projected(relation, named, session.place(select), written=places))
    if select.args.get("distinct"):
        relation = deduplicated(relation, session, session.place(select), ttl)
    return ordered(select, relation, session, ttl)


def _selected(
    select: exp.Select, session: ResolveContext
) -> tuple[Relation, list[tuple[str, Expression]], list[Place], int]:
    """The relation that the SELECT list is computed over, the list and where it was written, and the TTL of what keeps
    state after it."""
    relation, where, hot = _from(select, session)
    ttls = state_ttls(select, relation.scope.qualifiers, session)
    window = stream_window_of(select, session)
    if window is None:
        relation = _where(relation, where, ttls, session, hot)
    check_taken(hot, session)
    items = list(_items(select, relation.scope, session))
    items += hidden_items(select, items, session)
    items = with_qualify(select, items, relation.scope, session)
    having = select.args["having"].this if select.args.get("having") else None
    ttl = next((ttls[q] for q in relation.scope.qualifiers if q in ttls), session.ttl)
    with session.all_or_nothing(), session.mistakes.collecting(select):
        items = [(name, with_single_values(node)) for name, node in items]
        having = None if having is None else with_single_values(having)
    if window is not None:
        relation, items, having = resolve_stream_window(window, select, relation, where, items, having, session)
    elif is_grouped(select, [node for _, node in items], having):
        asked = [*(node for _, node in items), *([] if having is None else [having])]
        relation, asked = with_aggregated_queries(relation, asked, ttls, session)
        having = None if having is None else asked[-1]
        items = [(name, node) for (name, _), node in zip(items, asked, strict=False)]
        relation, items, having = resolve_grouped(select, relation, items, having, ttl, session)
    elif having is not None:
        raise session.give_up(SqlError("HAVING without GROUP BY or an aggregate", hint="write WHERE", at=having))
    if having is not None:
        relation = _where(relation, [having], ttls, session)
    ttl = next((ttls[q] for q in relation.scope.qualifiers if q in ttls), session.ttl)
    relation, items = resolve_over(select, relation, items, ttl, session)
    if select.args.get("qualify"):
        relation, items = _where(relation, [items[-1][1]], ttls, session), items[:-1]
    relation, written = with_query_values(relation, [node for _, node in items], ttls, session)
    items = [(name, node) for (name, _), node in zip(items, written, strict=True)]
    named = list(_compiled(items, relation.scope, session))
    if len(named) < len(items):
        raise QueryRejected
    places = [session.place(select if offset_of(node) is None else node) for _, node in items]
    return relation, named, places, ttl


def _from(select: exp.Select, session: ResolveContext) -> From:
    """The relation of FROM; without FROM, a single row without columns."""
    if select.args.get("from_"):
        return resolve_from(select, session)
    if select.args.get("where"):
        raise session.give_up(
            SqlError("WHERE needs FROM", detail="without it the query has one row", at=select.args["where"])
        )
    if any(map(has_query, select.expressions)):
        return From(single_row(), [], [])
    return From(Relation(Values(rows=((),), fields=()), Scope()), [], [])


def _single_row(items: list[tuple[str, Expression]], place: Place) -> Relation:
    """SELECT 1, 'a': one row of constants."""
    fields = tuple(field_for(name, e, Scope()) for name, e in items)
    return Relation(Values(rows=(tuple(e for _, e in items),), fields=fields, place=place), Scope.of(fields))


def _where(
    relation: Relation,
    conditions: list[exp.Expr],
    ttls: Mapping[str, int],
    session: ResolveContext,
    hot: list[Skew] | None = None,
) -> Relation:
    """The rows for which all conditions are true: plain ones first, then those with a query in them, whose joins may
    spread keys that are `hot`."""
    compiled: list[Expression] = []
    for node in conditions:
        condition = None if has_query(node) else session.compile(node, relation.scope)
        if condition is not None:
            with session.mistakes.collecting(node):
                compiled.append(checked_condition(condition, node))
    condition = both(compiled)
    if condition is not None:
        relation = filtered(relation, condition, session.place(conditions[0]))
    for node in conditions:
        if has_query(node):
            relation = resolve_query_condition(relation, node, ttls, [] if hot is None else hot, session)
    return relation


def _items(select: exp.Select, scope: Scope, session: ResolveContext) -> Iterator[Item]:
    """The columns of the SELECT list, stars spelled out."""
    for position, node in enumerate(select.expressions):
        star, qualifier = star_of(node)
        if not star:
            yield output_name(node, position), node.unalias()
            continue
        indexes = scope.starred(qualifier)
        fields = () if indexes else _fields_of_row(scope, node)
        yield from fields
        if not indexes and not fields:
            name = f"{qualifier}.*" if qualifier else "*"
            session.mistakes.add(
                f"{name} stands for no columns", detail=f"the query reads {', '.join(scope.qualifiers)}", at=node
            )
        for index in indexes:
            yield scope.field(index).name, _column(scope, index, node)


def _fields_of_row(scope: Scope, star: exp.Expr) -> tuple[Item, ...]:
    """The fields that `column.*` stands for, by their names; nothing where no ROW is named."""
    if not isinstance(star, exp.Column):
        return ()
    try:
        found = scope.lookup([part.name for part in star.parts[:-1]])
    except SqlError:
        return ()
    row: DataType | None = found.field.type
    for name in found.path:
        inside = dict(zip(row.names, row.types, strict=True)) if isinstance(row, Row) else {}
        row = inside.get(name)
    if not isinstance(row, Row):
        return ()
    return tuple((name, field_of_row(_column(scope, found.index, star), (*found.path, name))) for name in row.names)


def _column(scope: Scope, index: int, star: exp.Expr) -> exp.Column:
    """A reference to the column at `index` that means it alone, even where another bears its name."""
    found = scope.columns[index]
    table = exp.Identifier(this=found.qualifier, quoted=True) if found.qualifier else None
    node = exp.Column(this=exp.Identifier(this=found.name, quoted=True), table=table)
    return node.update_positions(star) if star._meta else node


def _compiled(items: list[Item], scope: Scope, session: ResolveContext) -> Iterator[tuple[str, Expression]]:
    for name, node in items:
        expression = session.compile(node, scope)
        if expression is not None:
            yield name, expression
