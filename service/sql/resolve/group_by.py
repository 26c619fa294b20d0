"""GROUP BY and aggregates: a projection of keys and arguments, an aggregate node, and the list of columns over it.

Over the aggregate node a query sees keys, aggregates and window bounds only, under internal names; the parts of the
SELECT list and of HAVING that compute them are replaced by references.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from sqlglot import exp

from service.plan.expressions import Expression
from service.plan.nodes import Aggregate, Place
from service.sql.compiler.function_calls import is_known, unknown_function
from service.sql.errors import SqlError
from service.sql.resolve.aggregate_calls import AggregateCalls
from service.sql.resolve.aggregate_parts import AggregateInputs, call_alias, key_alias, parts_of
from service.sql.resolve.context import ResolveContext, not_yet
from service.sql.resolve.firing import firing_of
from service.sql.resolve.group_windows import find_group_window, windowed, with_window_time
from service.sql.resolve.grouping_sets import (
    ALL_KEYS,
    GroupedBy,
    grouped_by,
    grouping_value,
    is_grouping_function,
)
from service.sql.resolve.over_definition import named_windows, spelled_out
from service.sql.resolve.relation import Relation
from service.sql.resolve.syntax import (
    call_name,
    canonical,
    columns_in,
    is_aggregate,
    names_of,
    parts_of_over,
    reference,
    replaced,
)
from service.sql.resolve.windows import is_window_call
from service.sql.scope import INTERNAL, Scope

Item = tuple[str, exp.Expr]


def is_grouped(select: exp.Select, items: Sequence[exp.Expr], having: exp.Expr | None) -> bool:
    """Return whether a SELECT aggregates: it has GROUP BY, or an aggregate outside of OVER."""
    return bool(select.args.get("group")) or any(
        has_aggregate(node) for node in (*items, *([having] if having is not None else []))
    )


def has_aggregate(node: exp.Expr) -> bool:
    """Return whether `node` aggregates rows of its own query, in the arguments of a call with OVER, too."""
    pending = [node]
    while pending:
        each = pending.pop()
        if isinstance(each, exp.Window):
            pending += parts_of_over(each)
        elif not isinstance(each, exp.Query):
            if is_aggregate(each):
                return True
            pending += each.iter_expressions()
    return False


class WindowBounds(Protocol):
    """The window of a grouped query: which calls and columns stand for its bounds."""

    def is_key(self, node: exp.Expr) -> bool:
        """Return whether `node`, of GROUP BY, is the window or a bound of it."""

    def bound(self, node: exp.Expr) -> str:
        """Return the internal name of the bound that `node` computes, or nothing."""


@dataclass(slots=True)
class Grouped:
    """The parts of a grouped query: `keys` over the input, without those of the window."""

    relation: Relation
    keys: list[tuple[exp.Expr, Expression]]
    window: WindowBounds | None
    calls: AggregateCalls
    by: GroupedBy = ALL_KEYS


def resolve_grouped(
    select: exp.Select,
    relation: Relation,
    items: list[Item],
    having: exp.Expr | None,
    ttl: int,
    session: ResolveContext,
) -> tuple[Relation, list[Item], exp.Expr | None]:
    """Return the aggregated relation, with the SELECT list and the HAVING condition written over it."""
    with session.all_or_nothing(), session.mistakes.collecting(select):
        items = [(name, spelled_out(node, named_windows(select))) for name, node in items]
    with session.all_or_nothing(lambda: look_further([node for _, node in items], relation, session)):
        by = grouping_of(select, relation, session)
        nodes = list(by.nodes)
        relation = with_window_time(nodes, relation, session)
        window, firing = None, None
        with session.mistakes.collecting(select):
            window = find_group_window(nodes, relation, session)
            check_sets(by, window, relation.scope)
            firing = None if window is None else firing_of(window, relation, session, nodes[0])
        keys = group_keys(nodes, window, relation, session)
        calls = AggregateCalls(relation.scope, session)
        for node in (*(n for _, n in items), *([having] if having is not None else [])):
            calls.collect(node)
    grouped = Grouped(relation, keys, window, calls, by)
    place = session.place(select.args.get("group") or select)
    parts = parts_of(relation, [e for _, e in keys], calls.found, key_sets(by, keys, relation.scope))
    result = _aggregate(parts, ttl, place) if window is None else windowed(parts, window, place, firing)
    rewriter = GroupRewriter(grouped)
    with session.all_or_nothing():
        items = [(name, rewriter.rewrite(node, session)) for name, node in items]
        having = None if having is None else rewriter.rewrite(having, session)
    return result, items, having


def look_further(items: Sequence[exp.Expr], relation: Relation, session: ResolveContext) -> None:
    """Note the mistakes of columns that are not aggregated, though the query is abandoned for others."""
    for node in items:
        if not has_aggregate(node) and not any(is_window_call(p) or is_grouping_function(p) for p in node.walk()):
            session.compile(node, relation.scope)


def grouping_of(select: exp.Select, relation: Relation, session: ResolveContext) -> GroupedBy:
    """Return the grouping sets of GROUP BY."""
    try:
        return grouped_by(_group(select, session), relation.scope)
    except SqlError as error:
        raise session.give_up(error) from error


def _group(select: exp.Select, session: ResolveContext) -> exp.Expr | None:
    """The GROUP BY clause."""
    group: exp.Expr | None = select.args.get("group")
    if group is not None and group.args.get("all"):
        raise session.give_up(not_yet("GROUP BY ALL", group))
    return group


def check_sets(by: GroupedBy, window: WindowBounds | None, scope: Scope) -> None:
    """Raise SqlError for a grouping set that lacks the window, or a part of it, if there is one."""
    if window is None:
        return
    for node in by.nodes:
        text = canonical(node, scope)
        if window.is_key(node) and any(text not in each for each in by.sets):
            raise SqlError(
                "a grouping set lacks the window",
                detail="each set is answered once, when its window closes",
                hint="write the window beside the sets: GROUP BY window_start, window_end, GROUPING SETS ((a), ())",
                at=node,
            )


def key_sets(by: GroupedBy, keys: Sequence[tuple[exp.Expr, Expression]], scope: Scope) -> tuple[frozenset[int], ...]:
    """Return the grouping sets by the positions of their keys; none where there is one set only."""
    if not by.several:
        return ()
    places = {canonical(node, scope): place for place, (node, _) in enumerate(keys)}
    return tuple(frozenset(places[text] for text in each if text in places) for each in by.sets)


def group_keys(
    nodes: list[exp.Expr], window: WindowBounds | None, relation: Relation, session: ResolveContext
) -> list[tuple[exp.Expr, Expression]]:
    """Return the keys of GROUP BY, without the window: each as it was written, and compiled."""
    found: list[tuple[exp.Expr, Expression]] = []
    for node in nodes:
        if is_window_call(node) or (window is not None and window.is_key(node)):
            continue
        if isinstance(node, exp.Literal) and not node.is_string:
            session.mistakes.add(
                "GROUP BY takes columns and expressions, not positions", hint="write the expression itself", at=node
            )
            continue
        if any(is_aggregate(part) for part in node.walk()):
            session.mistakes.add(
                "an aggregate cannot be grouped by",
                detail="it is computed of each group",
                hint="aggregate in a query inside FROM, and group by its column",
                at=node,
            )
            continue
        expression = session.compile(node, relation.scope)
        if expression is not None and all(expression != e for _, e in found):
            found.append((node, expression))
    return found


def _aggregate(parts: AggregateInputs, ttl: int, place: Place) -> Relation:
    node = Aggregate(
        input=parts.projection(place),
        keys=parts.keys,
        aggregates=parts.calls,
        fields=parts.fields,
        ttl=ttl,
        place=place,
    )
    return Relation(node, Scope(parts.columns))


class GroupRewriter:
    """Replaces keys, aggregates and window bounds by references to the columns of the aggregate node."""

    def __init__(self, grouped: Grouped) -> None:
        self.grouped = grouped
        scope = grouped.relation.scope
        self.keys = {canonical(node, scope): key_alias(i) for i, (node, _) in enumerate(grouped.keys)}

    def rewrite(self, node: exp.Expr, session: ResolveContext) -> exp.Expr:
        """Return `node` over the columns of the aggregate; what is neither a key nor aggregated is a mistake."""
        with session.mistakes.collecting(node):
            written = replaced(node, self._part)
            unknown = list(_unknown_calls(written))
            for call in unknown:
                session.mistakes.add_error(unknown_function(_called(call)), call)
            below = {id(column) for call in unknown for column in columns_in(call)}
            for left in columns_in(written):
                if not left.name.startswith(INTERNAL) and id(left) not in below:
                    session.mistakes.add_error(self._ungrouped(left), left)
            return written
        return node

    def _part(self, node: exp.Expr) -> exp.Expr | None:
        if isinstance(node, exp.Ordered):
            return None  # without DESC it is written as the key that it orders by
        scope = self.grouped.relation.scope
        window = self.grouped.window
        if is_grouping_function(node):
            return grouping_value(node, self.grouped.by, scope)
        if window is not None and (name := window.bound(node)):
            return reference(name, node)
        if name := self.keys.get(canonical(node, scope), ""):
            return reference(name, node)
        if isinstance(node, exp.Window):
            return self._over(node)
        if isinstance(node, exp.Query):
            return self._inside(node)
        position = self.grouped.calls.position(node)
        return None if position is None else reference(call_alias(position), node)

    def _inside(self, query: exp.Query) -> exp.Expr:
        """A query as a value: what it reads of the grouped one, by the names of its tables, are keys of the groups."""
        copy = query.copy()
        scope = self.grouped.relation.scope
        own = {table.alias_or_name for table in copy.find_all(exp.Table, exp.Subquery)}
        for each in list(copy.find_all(exp.Column)):
            if each.table not in scope.qualifiers or each.table in own:
                continue
            name = self.keys.get(canonical(each, scope), "")
            if not name:
                raise self._ungrouped(each)
            each.replace(reference(name, each))
        return copy

    def _over(self, node: exp.Window) -> exp.Expr:
        """An OVER window over the groups: its own function stays, what it reads is replaced."""
        copy = node.copy()
        function = node.this.this if isinstance(node.this, exp.Filter) else node.this
        inner = copy.this.this if isinstance(copy.this, exp.Filter) else copy.this
        inner.set("expressions", [replaced(a, self._part) for a in function.expressions])
        for key in ("partition_by", "order"):
            value = node.args.get(key)
            if isinstance(value, list):
                copy.set(key, [replaced(v, self._part) for v in value])
            elif value is not None:
                copy.set(key, replaced(value, self._part))
        return copy

    def _ungrouped(self, node: exp.Column) -> SqlError:
        name = ".".join(names_of(node))
        try:
            self.grouped.relation.scope.lookup(names_of(node))
        except SqlError as error:
            return error
        keys = [n.sql(dialect="") for n, _ in self.grouped.keys]
        return SqlError(
            f'column "{name}" is neither grouped by nor aggregated',
            detail=f"the query groups by {', '.join(keys)}" if keys else "the query has one group, of all rows",
            hint=f"add {name} to GROUP BY, or take MAX({name})",
        )


def _called(node: exp.Expr) -> str:
    """The name of the function that `node` calls, FILTER (WHERE ...) and its like around it included."""
    wrapped = isinstance(node, exp.Filter | exp.IgnoreNulls | exp.RespectNulls | exp.WithinGroup)
    return call_name(node.this if wrapped else node)


def _unknown_calls(node: exp.Expr) -> Iterator[exp.Expr]:
    """The outermost calls in `node` of functions that are not known, which may be meant as aggregates of the columns
    that they still read."""
    if isinstance(node, exp.Query):
        return
    name = _called(node)
    if name and not is_known(name) and any(not c.name.startswith(INTERNAL) for c in columns_in(node)):
        yield node
        return
    for child in node.iter_expressions():
        yield from _unknown_calls(child)
