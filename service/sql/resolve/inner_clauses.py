"""The clauses of a query inside another that answers for each row of the outer one: which of them are supported, and
what they say of no rows."""

from __future__ import annotations

from typing import NamedTuple

from sqlglot import exp
from sqlglot.optimizer.simplify import simplify

from service.sql.resolve.context import ResolveContext, not_yet
from service.sql.resolve.grouping_sets import is_grouping_sets
from service.sql.resolve.ordering import ordinal, selected_place
from service.sql.resolve.syntax import call_name, has_query, is_aggregate, output_name, replaced

_BEHIND_STAR = {"except_": "EXCEPT", "replace": "REPLACE", "rename": "RENAME"}
"""What other dialects write behind a star."""

LIMITS = ("limit", "offset", "fetch")
"""The arguments of a query's syntax tree that say how many rows it has."""


class Clauses(NamedTuple):
    """The clauses of a query: what it selects, what it groups by, which groups it keeps, in which order. `grouped` says
    that it aggregates. A number or an alias in ORDER BY stands for what it names."""

    items: tuple[exp.Expr, ...]
    group: tuple[exp.Expr, ...]
    having: exp.Expr | None
    order: exp.Expr | None
    grouped: bool

    @staticmethod
    def of(query: exp.Select, session: ResolveContext) -> Clauses:
        """Return the clauses of `query`."""
        group, having = query.args.get("group"), query.args.get("having")
        items = tuple(item.unalias() for item in query.expressions)
        by = tuple(group.expressions) if group is not None else ()
        kept = None if having is None else having.this
        grouped = bool(group) or having is not None or any(map(aggregates, items))
        return Clauses(items, by, kept, _order(query, items, session), grouped)

    @property
    def nodes(self) -> tuple[exp.Expr, ...]:
        """All expressions of the clauses."""
        return (*self.items, *self.group, *(each for each in (self.having, self.order) if each is not None))


def _order(query: exp.Select, items: tuple[exp.Expr, ...], session: ResolveContext) -> exp.Expr | None:
    """ORDER BY with the items that its numbers and aliases name."""
    written: exp.Expr | None = query.args.get("order")
    if written is None:
        return None
    order = written.copy()
    names = [output_name(item, i) for i, item in enumerate(query.expressions)]
    for each in order.expressions:
        if any(star_of(item)[0] for item in items):
            if ordinal(each.this) is not None:
                what = "a number in ORDER BY behind * in a query that reads the one around it"
                raise session.give_up(not_yet(what, each, "name the column"))
            continue
        place = selected_place(each, names, session)
        if place is not None:
            each.set("this", items[place].copy())
    return order


def of_distinct_rows(query: exp.Select, clauses: Clauses, session: ResolveContext) -> Clauses:
    """Return SELECT DISTINCT as GROUP BY of all that is selected."""
    if clauses.grouped or any(star_of(item)[0] for item in query.expressions):
        what = "SELECT DISTINCT of groups" if clauses.grouped else "SELECT DISTINCT *"
        hint = "write it as a query in FROM, and join it" if clauses.grouped else "name the columns"
        raise session.give_up(not_yet(f"{what} in a query that reads the one around it", query, hint))
    # A number alone would be a position.
    group = tuple(exp.Paren(this=each.copy()) if isinstance(each, exp.Literal) else each for each in clauses.items)
    return clauses._replace(group=group, grouped=True)


def check_supported(query: exp.Select, clauses: Clauses, session: ResolveContext) -> None:
    """Raise QueryRejected for what such a query may not have."""
    hint = "write it as a query in FROM, and join it"
    if query.args.get("qualify") or has_over(query):
        raise session.give_up(not_yet("OVER in a query that reads the one around it", query, hint))
    if any(is_grouping_sets(node) for node in clauses.group):
        raise session.give_up(not_yet("a grouping set in a query that reads the one around it", query, hint))
    if any(has_query(node) for node in clauses.nodes):
        raise session.give_up(not_yet("a query as a value, inside such a query", query))
    limits = [query.args[key] for key in LIMITS if query.args.get(key)]
    if clauses.grouped and not clauses.group and limits:
        what = "LIMIT of an aggregate of all rows in a query that reads the one around it"
        raise session.give_up(not_yet(what, limits[0], "leave it out: there is one row"))
    if clauses.having is not None and not clauses.group and not _fails_of_nothing(clauses.having):
        what = "HAVING without GROUP BY in a query that reads the one around it, which may hold of no rows"
        raise session.give_up(not_yet(what, clauses.having, "write NOT EXISTS where no row is meant"))


def _fails_of_nothing(having: exp.Expr) -> bool:
    """Whether a condition on all rows together is known not to hold where there are none."""
    found = simplify(over_nothing(having))
    return isinstance(found, exp.Null) or (isinstance(found, exp.Boolean) and not found.this)


def star_of(node: exp.Expr) -> tuple[bool, str]:
    """Return whether an item is a star, and the table whose columns it lists, if it names one."""
    if isinstance(node, exp.Star):
        return True, ""
    return isinstance(node, exp.Column) and isinstance(node.this, exp.Star), getattr(node, "table", "")


def check_stars(query: exp.Select, session: ResolveContext) -> None:
    """Raise QueryRejected for a star with a list of columns behind it that it leaves out, or shows otherwise."""
    for item in query.expressions:
        star = item.this if isinstance(item, exp.Column) else item
        for key, word in _BEHIND_STAR.items():
            if isinstance(star, exp.Star) and star.args.get(key):
                raise session.give_up(not_yet(f"* {word}", star.args[key][0], "name the columns"))


def aggregates(node: exp.Expr) -> bool:
    """Return whether an item aggregates, outside of queries inside it and of OVER."""
    if isinstance(node, exp.Query | exp.Window):
        return False
    return is_aggregate(node) or any(map(aggregates, node.iter_expressions()))


def has_over(query: exp.Select) -> bool:
    """Return whether a query computes over windows of rows."""
    return any(item.find(exp.Window) is not None for item in query.expressions)


def answers_over_nothing(query: exp.Expr) -> list[exp.Expr]:
    """Return what each item of a query that aggregates all its rows is over no rows: NULL, or another value."""
    assert isinstance(query, exp.Select)
    return [over_nothing(item.unalias()) for item in query.expressions]


def over_nothing(node: exp.Expr) -> exp.Expr:
    """Return `node` with each aggregate as it is over no rows."""

    def part(each: exp.Expr) -> exp.Expr | None:
        if not is_aggregate(each):
            return None
        call = each.this if isinstance(each, exp.Filter) else each
        counts = call_name(call) in ("COUNT", "APPROX_COUNT_DISTINCT")
        return exp.Literal.number(0) if counts else exp.Null()

    return replaced(node, part)
