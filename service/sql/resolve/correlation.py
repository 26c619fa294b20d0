"""The correlation of an inner query with the outer one: conditions over both, by position.

Where they are equations, the inner sides become columns of the inner rows. Else the distinct values of the outer
columns that they read are joined with the inner rows first, and correlate them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from sqlglot import exp

from service.plan.expressions import Column
from service.plan.nodes import JoinKind
from service.sql.compiler.compile import names_no_column
from service.sql.errors import SqlError, did_you_mean
from service.sql.resolve.context import QueryRejected, ResolveContext
from service.sql.resolve.distinct import deduplicated
from service.sql.resolve.join_conditions import sort_conditions
from service.sql.resolve.join_nodes import join_of
from service.sql.resolve.relation import Relation, column, extended, projected
from service.sql.resolve.syntax import columns_in, field_of_row, names_of, positional, positions, replaced
from service.sql.scope import INTERNAL, POSITION, Scope, position


def by_position(node: exp.Expr, outer: Scope, inner: Scope) -> exp.Expr:
    """Return `node` with its columns by their positions in the outer scope, then the inner one, where they are
    in one."""
    width = len(outer)

    def part(each: exp.Expr) -> exp.Expr | None:
        if not isinstance(each, exp.Column):
            return None
        for scope, start in ((inner, width), (outer, 0)):
            try:
                found = scope.lookup(names_of(each))
            except SqlError:
                continue
            return field_of_row(positional(start + found.index, each), found.path)
        return None

    return replaced(node, part)


def check_names(nodes: Iterable[exp.Expr], outer: Scope, inner: Scope, session: ResolveContext) -> None:
    """Raise QueryRejected, the mistakes noted, for names that neither the inner query knows nor the one around it."""
    rejected = False
    for each in (found for node in nodes for found in columns_in(node)):
        if names_no_column(each) or any(positions(each, scope) is not None for scope in (inner, outer)):
            continue
        unreadable = session.of_correlation(each, outer, inner)
        session.mistakes.add_error(unreadable or _unknown(names_of(each), outer, inner), each)
        rejected = True
    if rejected:
        raise QueryRejected


def _unknown(names: Sequence[str], outer: Scope, inner: Scope) -> SqlError:
    """The mistake of a name, as the query that its table is of reports it."""
    around = names[0] in outer.qualifiers and names[0] not in inner.qualifiers
    try:
        (outer if around else inner).lookup(names)
    except SqlError as error:
        if not around and names[0] not in inner.qualifiers and "ambiguous" not in error.primary:
            others = list(dict.fromkeys(c.name for c in outer if not c.internal))
            error.detail += f"; the query around it has {', '.join(others)}"
            error.hint = error.hint or did_you_mean(names[0], (*outer.qualifiers, *others))
        return error
    raise AssertionError("a name that is known is no mistake")


@dataclass(frozen=True, slots=True)
class CorrelatedByColumns:
    """Inner rows of which the columns at `keys` are equal to what is in `outer`: expressions over the outer relation,
    each with whether NULL is equal to NULL. What were their own columns begins at `start`; `read` are the positions of
    the outer columns that come before them."""

    relation: Relation
    keys: tuple[int, ...]
    outer: tuple[tuple[exp.Expr, bool], ...]
    start: int = 0
    read: tuple[int, ...] = ()

    def inside(self, node: exp.Expr, width: int) -> exp.Expr:
        """Return an expression over the `width` outer columns that are read, then the inner ones, as one over these
        rows."""
        return renumbered(node, lambda p: self.read.index(p) if p < width else p - width + self.start)

    def equations(self, places: Iterable[int], width: int, at: exp.Expr) -> tuple[exp.Expr, ...]:
        """Return the conditions, where the keys are at `places` behind `width` outer columns."""
        return tuple(
            (exp.NullSafeEQ if safe else exp.EQ)(this=each.copy(), expression=positional(width + place, at))
            for (each, safe), place in zip(self.outer, places, strict=True)
        )


def correlated_by_columns(
    outer: Relation,
    right: Relation,
    correlation: Sequence[exp.Expr],
    at: exp.Expr,
    session: ResolveContext,
    *,
    ttl: int,
    also: Iterable[int] = (),
) -> CorrelatedByColumns:
    """Return the inner rows with columns that correlate them: the inner sides of equations, or all outer columns that
    they meet, and those of `also`, by position. What has to be kept for that is kept for `ttl` ms."""
    width, more = len(outer.scope), set(also)
    sides = [_equation(each, width) for each in correlation]
    known = [side for side in sides if side is not None]
    if len(known) == len(sides) and not more:
        right, keys = with_columns(right, [renumbered(inner, lambda p: p - width) for _, inner, _ in known], session)
        return CorrelatedByColumns(right, keys, tuple((mine, safe) for mine, _, safe in known))
    read = sorted(more | {place for each in correlation for place in places_in(each) if place < width})
    items = [(f"{INTERNAL}outer{i}", column(outer.scope, place)) for i, place in enumerate(read)]
    place = session.place(at)
    values = hidden(deduplicated(_listed(projected(replace(outer, windows=()), items, place)), session, place, ttl))
    new = {old: i for i, old in enumerate(read)}
    conditions = [renumbered(each, lambda p: new[p] if p < width else p - width + len(read)) for each in correlation]
    found = sort_conditions(conditions, values, right, session)
    joined = join_of(values, right, JoinKind.INNER, found, (ttl, ttl), at, session)
    start = len(read) + sum(not isinstance(key, Column) for key, _, _ in found.keys)
    meets = tuple((positional(place, at), True) for place in read)
    return CorrelatedByColumns(joined, tuple(range(len(read))), meets, start, tuple(read))


def _listed(relation: Relation) -> Relation:
    """The relation with all columns under plain names, so that `*` lists them."""
    columns = (replace(c, field=replace(c.field, name=f"outer{i}")) for i, c in enumerate(relation.scope))
    return replace(relation, scope=Scope(tuple(columns)))


def _equation(node: exp.Expr, width: int) -> tuple[exp.Expr, exp.Expr, bool] | None:
    """The outer and the inner side of an equation, if each reads one of the queries, and whether NULL equals NULL."""
    if not isinstance(node, exp.EQ | exp.NullSafeEQ):
        return None
    safe = isinstance(node, exp.NullSafeEQ)
    reads = [{place >= width for place in places_in(side)} for side in (node.left, node.right)]
    if reads == [{False}, {True}]:
        return node.left, node.right, safe
    if reads == [{True}, {False}]:
        return node.right, node.left, safe
    return None


def _place(node: exp.Column) -> int:
    """The position that a reference by position names; raises SqlError for another name, which is not known."""
    return position(names_of(node))


def places_in(node: exp.Expr) -> set[int]:
    """Return the positions that an expression reads; a function without parentheses looks like a name, and reads
    none."""
    return {_place(c) for c in columns_in(node) if c.parts[0].name.startswith(POSITION)}


def renumbered(node: exp.Expr, new: Callable[[int], int]) -> exp.Expr:
    """Return `node` with other positions."""

    def part(each: exp.Expr) -> exp.Expr | None:
        if isinstance(each, exp.Column) and each.parts[0].name.startswith(POSITION):
            return positional(new(_place(each)), each)
        return None

    return replaced(node, part)


def with_columns(
    relation: Relation, nodes: Sequence[exp.Expr], session: ResolveContext
) -> tuple[Relation, tuple[int, ...]]:
    """Return `relation` with a column for each of `nodes` that is none, and where they are."""
    places: list[int] = []
    for node in nodes:
        compiled = session.compile(node, relation.scope)
        if compiled is None:
            raise QueryRejected
        index = getattr(compiled, "index", None)
        if index is None:
            index = len(relation.scope)
            relation = extended(relation, [compiled], session.place(node))
        places.append(index)
    return relation, tuple(places)


def hidden(relation: Relation) -> Relation:
    """Return the relation without names: its columns are found by their positions."""
    scope = relation.scope
    unnamed = (replace(c, qualifier="", listed=False, alias=f"{INTERNAL}inner{i}") for i, c in enumerate(scope))
    return replace(relation, scope=Scope(tuple(unnamed)))
