"""The order of joins: as it is written, unless /*+ LEADING(a, b, ...) */ names the tables that come first, or a table
would be joined with nothing to compare it by that another order has something for.

Inner joins give the same rows in any order, so only these are moved: a chain that holds another kind, or merges columns
by USING or NATURAL, keeps its order.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from sqlglot import exp

from service.plan.table import TimeKind
from service.sql.errors import SqlError, did_you_mean
from service.sql.resolve.context import ResolveContext
from service.sql.resolve.relation import Relation
from service.sql.resolve.syntax import columns_in, conjuncts, has_query, names_of, positions
from service.sql.scope import Scope


class Link(NamedTuple):
    """A condition that compares tables, by their places in FROM: those that its one side reads, and its other side."""

    one: frozenset[int]
    other: frozenset[int]

    def leads_to(self, table: int, joined: set[int]) -> bool:
        """Return whether `table` is compared with those that are `joined`."""
        sides = ((self.one, self.other), (self.other, self.one))
        return any(side == {table} and rest <= joined for side, rest in sides)


def on_conditions(joins: Sequence[exp.Join]) -> list[exp.Expr]:
    """Return the conjuncts of ON of all joins."""
    return [c for join in joins for c in conjuncts(join.args.get("on"))]


def source_name(source: exp.Expr) -> str:
    """Return the name under which a table is joined; empty if it has none."""
    return source.alias or (source.name if isinstance(source, exp.Table) else "")


def by_leading(
    first: exp.Expr, joins: Sequence[exp.Join], relations: Sequence[Relation], hint: exp.Expr, session: ResolveContext
) -> list[int] | None:
    """Return the places of the tables in the order of LEADING: those that it names, then the others as they are
    written; None where they are in this order already."""
    written = [source_name(source) for source in (first, *(j.this for j in joins))]
    wanted = [each.name for each in hint.expressions]
    for each in hint.expressions:
        if each.name not in written or wanted.count(each.name) > 1:
            what = "and names it twice" if each.name in written else "which the query does not join"
            raise session.give_up(
                SqlError(
                    f'LEADING names "{each.name}", {what}',
                    detail=f"it joins {', '.join(filter(None, written))}",
                    hint=did_you_mean(each.name, [name for name in written if name]),
                    at=each,
                )
            )
    order = sorted(range(len(written)), key=lambda i: (_rank(written[i], wanted), i))
    if order == list(range(len(written))):
        return None
    if not _are_movable(first, joins):
        raise session.give_up(
            SqlError(
                "LEADING cannot move these joins",
                detail="only INNER JOINs of named tables, with ON or in WHERE, give the same rows in any order",
                hint="name the tables in the order in which they are written, or write them in another",
                at=hint,
            )
        )
    for column, owners in _unclear(joins, relations):
        several = len(owners) > 1
        raise session.give_up(
            SqlError(
                f'LEADING cannot move a condition with "{column.name}"',
                detail=f"it is a column of {' and of '.join(owners)}"
                + (", and the order says of which one" if several else ", which is joined later"),
                hint=f"write {' or '.join(f'{owner}.{column.name}' for owner in owners)}"
                if several
                else "write the condition into WHERE",
                at=column,
            )
        )
    return order


def by_links(
    first: exp.Expr, joins: Sequence[exp.Join], relations: Sequence[Relation], where: Sequence[exp.Expr]
) -> list[int] | None:
    """Return the places of the tables in an order in which fewer joins have nothing to compare their rows by than as
    they are written; None where there is none.

    A table comes as soon as something links it to those before it, and never later than it is written unless nothing
    does, so that joins by time stay what they are.
    """
    if len(joins) < 2 or not _are_movable(first, joins):
        return None
    conditions = on_conditions(joins)
    if any(map(has_query, conditions)) or next(_unclear(joins, relations), None) is not None:
        return None
    links = list(_links([*conditions, *where], relations))
    order: list[int] = []
    left = list(range(len(relations)))
    while left:
        table = next((t for t in left if _is_linked(t, order, links)), left[0])
        order.append(table)
        left.remove(table)
    return order if _unlinked(order, links) < _unlinked(range(len(relations)), links) else None


def found_later(condition: exp.Expr, joins: Sequence[exp.Join], relations: Sequence[Relation]) -> bool:
    """Return whether a name in `condition` is a column of one of `relations`, each that of a later join, too. One that
    is merged there is the same column."""
    for join, relation in zip(joins, relations, strict=True):
        if str(join.args.get("method") or "").upper() == "NATURAL":
            continue
        merged = {name.name for name in join.args.get("using") or ()}
        if any(_has(relation.scope, c) for c in columns_in(condition) if names_of(c)[0] not in merged):
            return True
    return False


def _unlinked(order: Sequence[int], links: Sequence[Link]) -> int:
    """How many tables, in this order, are joined with nothing to compare them by."""
    return sum(not _is_linked(table, order[:i], links) for i, table in enumerate(order) if i)


def _is_linked(table: int, joined: Sequence[int], links: Sequence[Link]) -> bool:
    return any(link.leads_to(table, set(joined)) for link in links)


def _links(conditions: Sequence[exp.Expr], relations: Sequence[Relation]) -> Iterator[Link]:
    """The equations between tables, and the comparisons of the times of two tables."""
    scope = Scope(tuple(c for r in relations for c in r.scope.columns))
    owners = [table for table, r in enumerate(relations) for _ in r.scope.columns]
    for condition in conditions:
        if isinstance(condition, exp.EQ | exp.NullSafeEQ):
            sides = positions(condition.left, scope), positions(condition.right, scope)
            one, other = (frozenset(owners[i] for i in side or ()) for side in sides)
            if one and other and not one & other:
                yield Link(one, other)
            continue
        read = positions(condition, scope) or set()
        tables = {owners[i] for i in read}
        if len(tables) == 2 and all(scope.field(i).time is not TimeKind.NONE for i in read):
            yield Link(*(frozenset({table}) for table in sorted(tables)))


def _unclear(joins: Sequence[exp.Join], relations: Sequence[Relation]) -> Iterator[tuple[exp.Column, list[str]]]:
    """The columns of ON that a later table has, so that they would be another's or ambiguous in WHERE; and of which
    tables they may be."""
    for place, join in enumerate(joins, 1):
        for condition in conjuncts(join.args.get("on")):
            for column in columns_in(condition):
                if any(_has(r.scope, column) for r in relations[place + 1 :]):
                    yield column, [r.scope.qualifiers[0] for r in relations if _has(r.scope, column)]


def _has(scope: Scope, column: exp.Column) -> bool:
    try:
        scope.lookup(names_of(column))
    except SqlError:
        return False
    return True


def _rank(name: str, wanted: Sequence[str]) -> int:
    return wanted.index(name) if name in wanted else len(wanted)


def _are_movable(first: exp.Expr, joins: Sequence[exp.Join]) -> bool:
    """Whether the joins give the same rows in any order."""
    kept = ("side", "method", "using")
    sources = [first, *(j.this for j in joins)]
    plain = all(isinstance(s, exp.Table | exp.Subquery) and not s.args.get("version") for s in sources)
    return plain and all(map(source_name, sources)) and not any(j.args.get(key) for j in joins for key in kept)
