"""Small questions about syntax trees of queries: conjunctions, calls, columns, names."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from copy import deepcopy

from sqlglot import exp

from service.sql.errors import SqlError, offset_of
from service.sql.expressions.aggregate_types import AGGREGATES
from service.sql.scope import POSITION, Scope


def conjuncts(node: exp.Expr | None) -> Iterator[exp.Expr]:
    """Yield the conditions that AND joins, from left to right."""
    pending = [node]
    while pending:
        each = pending.pop()
        if isinstance(each, exp.Paren):
            pending.append(each.this)
        elif isinstance(each, exp.And):
            pending += [each.right, each.left]
        elif each is not None:
            yield each


def call_name(node: exp.Expr) -> str:
    """Return the name of a call in capitals; empty if `node` is none."""
    if not isinstance(node, exp.Anonymous):
        return ""
    return (node.this.name if isinstance(node.this, exp.Expr) else str(node.this)).upper()


def is_aggregate(node: exp.Expr) -> bool:
    """Return whether `node` is an aggregate call, its FILTER (WHERE ...) around it included."""
    if isinstance(node, exp.Filter | exp.IgnoreNulls | exp.RespectNulls | exp.WithinGroup):
        node = node.this
    return call_name(node) in AGGREGATES


def parts_of_over(node: exp.Window) -> Iterator[exp.Expr]:
    """Yield what an OVER call reads: the arguments of its function, PARTITION BY and ORDER BY."""
    wrapped = isinstance(node.this, exp.Filter | exp.IgnoreNulls | exp.RespectNulls)
    function = node.this.this if wrapped else node.this
    yield from function.iter_expressions()
    yield from node.args.get("partition_by") or ()
    order = node.args.get("order")
    if order is not None:
        yield from order.expressions


def columns_in(node: exp.Expr) -> Iterator[exp.Column]:
    """Yield the column references of an expression, those of its subqueries left out."""
    if isinstance(node, exp.Column):
        yield node
    elif not isinstance(node, exp.Query):
        for child in node.iter_expressions():
            yield from columns_in(child)


def has_query(node: exp.Expr) -> bool:
    """Return whether there is a subquery in an expression."""
    return next(node.find_all(exp.Query), None) is not None


def names_of(node: exp.Column) -> list[str]:
    """Return the dotted name of a column reference."""
    return [part.name for part in node.parts]


def positions(node: exp.Expr, scope: Scope) -> set[int] | None:
    """Return the positions of the columns that `node` reads; None where one of its names is not in `scope`."""
    try:
        return {scope.lookup(names_of(c)).index for c in columns_in(node)}
    except SqlError:
        return None


def reference(name: str, like: exp.Expr) -> exp.Column:
    """Return a reference to the column `name`, at the place of `like`."""
    column = exp.Column(this=exp.Identifier(this=name, quoted=True))
    start = offset_of(like)
    if start is not None:
        column.meta["start"] = start
    return column


def positional(index: int, like: exp.Expr) -> exp.Column:
    """Return a reference to the column at `index` of the scope that it is compiled over, whatever its name."""
    return reference(f"{POSITION}{index}", like)


def field_of_row(node: exp.Expr, path: Iterable[str]) -> exp.Expr:
    """Return the field at `path` of a ROW: `node` itself where that is empty."""
    for name in path:
        node = exp.Dot(this=node, expression=exp.Identifier(this=name, quoted=True))
    return node


def canonical(node: exp.Expr, scope: Scope) -> str:
    """Return a text that is equal for expressions that are equal over `scope`, however their columns are qualified."""

    def positional(each: exp.Expr) -> exp.Expr:
        if isinstance(each, exp.Column):
            try:
                found = scope.lookup(names_of(each))
            except SqlError:
                return each
            return exp.Identifier(this=f"${found.index}{''.join('.' + p for p in found.path)}", quoted=True)
        return each

    return _unwrapped(node).copy().transform(positional).sql(comments=False)


def _unwrapped(node: exp.Expr) -> exp.Expr:
    while isinstance(node, exp.Paren):
        node = node.this
    return node


def replaced(node: exp.Expr, rule: Callable[[exp.Expr], exp.Expr | None]) -> exp.Expr:
    """Return a copy of `node` in which `rule` replaces whole parts, outermost first; subqueries are left alone."""
    new = rule(node)
    if new is not None:
        return new
    if isinstance(node, exp.Query):
        return node

    def part(value: object) -> object:
        if isinstance(value, list):
            return [part(each) for each in value]
        if not isinstance(value, exp.Expr):
            return value
        other = replaced(value, rule)
        return value.copy() if other is value else other

    # Node by node: copies of whole parts would be as many as the part is deep.
    made = type(node)(**{key: part(value) for key, value in node.args.items()})
    made.comments, made._type, made._meta = deepcopy((node.comments, node._type, node._meta))
    return made


def is_lateral(source: exp.Expr) -> bool:
    """Return whether an item of FROM is a query that may read what stands before it."""
    return isinstance(source, exp.Lateral) and isinstance(source.this, exp.Subquery)


def output_name(node: exp.Expr, position: int) -> str:
    """Return the name of a column of a SELECT list: its alias, its column's name, else EXPR$n as in Flink."""
    if isinstance(node, exp.Alias):
        return node.alias
    while isinstance(node, exp.Paren):
        node = node.this
    if isinstance(node, exp.Column):
        return node.name
    if isinstance(node, exp.Dot) and isinstance(node.expression, exp.Identifier):
        return node.expression.name
    return f"EXPR${position}"
